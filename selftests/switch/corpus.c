// SPDX-License-Identifier: GPL-2.0
/*
 * Inputs of fuzz/fuzz_switch.c, given to the programs in the kernel: what it
 * has found in user space, or keeps because it reaches something, is a test of
 * what compiler and verifier make of it, too.  The oracle is in there.
 *
 * usage: bpf_corpus [FILE]...		(those of fuzz/corpus/switch)
 */
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "target_bpf.h"

#define MOST	4096	/* bytes of an input */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sigjmp_buf found;

static void aborted(int sig)
{
	(void)sig;
	siglongjmp(found, 1);
}

static bool play(const char *path)
{
	static uint8_t input[MOST + 1];
	FILE *f = fopen(path, "r");
	size_t len;

	if (!f)
		return false;
	len = fread(input, 1, sizeof(input), f);
	fclose(f);
	if (len > MOST)
		return false;
	c_failures = 0;
	if (sigsetjmp(found, 1) || LLVMFuzzerTestOneInput(input, len) ||
	    c_failures) {
		/* the next one begins anew, whatever this one has left */
		t_unload();
		return false;
	}
	return true;
}

/* The bits of an input that say how large its switch is */
static int size_of(const char *path)
{
	FILE *f = fopen(path, "r");
	int c = f ? getc(f) : EOF;

	if (f)
		fclose(f);
	return c & 0x0f;
}

static int by_size(const void *a, const void *b)
{
	return size_of(*(char *const *)a) - size_of(*(char *const *)b);
}

int main(int argc, char **argv)
{
	char **files = argv + 1;
	int n = argc - 1, bad = 0, i;
	glob_t all = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!n) {
		glob("../fuzz/corpus/switch/*", 0, NULL, &all);
		n = (int)all.gl_pathc;
		files = all.gl_pathv;
		/* to load a switch takes longer than to play an input */
		qsort(files, n, sizeof(*files), by_size);
	}
	printf("TAP version 13\n1..%d\n", n);
	t_keep = true;
	signal(SIGABRT, aborted);
	LLVMFuzzerInitialize(&argc, &argv);
	for (i = 0; i < n; i++) {
		bool good = play(files[i]);

		printf("%sok %d %s\n", good ? "" : "not ", i + 1, files[i]);
		bad += !good;
	}
	t_unload();
	globfree(&all);
	return bad || !n;
}
