// SPDX-License-Identifier: GPL-2.0
/* The terminal of atp top. */
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include "top.h"

static struct screen *screen;
static char said[4096];

int top_screen_open(void)
{
	/* What is said meanwhile would be wiped off with the screen */
	setvbuf(stderr, said, _IOFBF, sizeof(said));
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -1;
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	return 0;
}

void top_screen_close(void)
{
	endwin();
	delscreen(screen);
	fflush(stderr);
}

void top_screen_draw(const struct top *top)
{
	char *text = NULL, *line, *end;
	size_t len;
	FILE *to;
	int y;

	to = open_memstream(&text, &len);
	if (!to)
		return;
	top_text(top, to);
	fclose(to);
	/* something else may have written there */
	redrawwin(stdscr);
	erase();
	for (line = text, y = 0; line && *line && y < LINES; y++) {
		end = strchrnul(line, '\n');
		mvaddnstr(y, 0, line, end - line < COLS ? end - line : COLS);
		line = *end ? end + 1 : end;
	}
	refresh();
	free(text);
}

bool top_screen_wait(uint32_t ms)
{
	int key;

	timeout(ms);
	key = getch();
	return key == 'q' || key == 'Q';
}
