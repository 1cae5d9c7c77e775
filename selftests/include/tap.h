/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests in C with TAP output, in the manner of kselftest.
 *
 *	TEST(name)
 *	{
 *		EXPECT_EQ(6 * 7, 42);
 *	}
 *
 *	TAP_MAIN()
 *
 * Every test runs in a process of its own, so that a crash, a sanitizer's
 * report or a hang (TAP_TIMEOUT seconds, 120 by default) fails that test only.
 * EXPECT_*() goes on after a failure, ASSERT_*() ends the test; both work in
 * helper functions, too.  Arguments of the program select the tests whose names
 * contain one of them.
 */
#ifndef _ATP_SELFTESTS_TAP_H
#define _ATP_SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_PASS	0
#define TAP_FAIL	1
#define TAP_SKIP	4

/* A broken loop shall not fill the disk. */
#define TAP_MAX_REPORTS	20

struct tap_test {
	const char *name;
	void (*fn)(void);
	struct tap_test *next;
};

static struct tap_test *tap_first;
static struct tap_test **tap_last = &tap_first;
/* One for all files of a program: checks in helper files count, too. */
unsigned int __attribute__((weak)) tap_failures;
static uint64_t tap_state;

static void __attribute__((unused)) tap_register(struct tap_test *t)
{
	*tap_last = t;
	tap_last = &t->next;
}

static void __attribute__((unused, format(printf, 3, 4)))
tap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	if (++tap_failures > TAP_MAX_REPORTS)
		return;
	printf("# %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static void __attribute__((unused, noreturn)) tap_exit(void)
{
	exit(tap_failures ? TAP_FAIL : TAP_PASS);
}

static void __attribute__((unused, noreturn)) tap_skip(const char *why)
{
	printf("# SKIP %s\n", why);
	exit(tap_failures ? TAP_FAIL : TAP_SKIP);
}

/* Start the generator of this test; TAP_SEED in the environment overrides. */
static void __attribute__((unused)) tap_seed(uint64_t seed)
{
	const char *env = getenv("TAP_SEED");

	if (env)
		seed = strtoull(env, NULL, 0);
	printf("# seed %llu\n", (unsigned long long)seed);
	tap_state = seed;
}

static uint64_t __attribute__((unused)) tap_rand64(void)
{
	uint64_t z;

	/* a counter through two rounds of multiply and xor-shift */
	tap_state += 0x9e3779b97f4a7c15ULL;
	z = tap_state;
	z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ULL;
	z = (z ^ (z >> 29)) * 0xff51afd7ed558ccdULL;
	return z ^ (z >> 32);
}

static uint32_t __attribute__((unused)) tap_rand(void)
{
	return tap_rand64() >> 32;
}

/* 0 to n - 1 */
static uint32_t __attribute__((unused)) tap_below(uint32_t n)
{
	return ((uint64_t)tap_rand() * n) >> 32;
}

/* true once in n times */
static bool __attribute__((unused)) tap_chance(uint32_t n)
{
	return !tap_below(n);
}

#define TEST(test)							\
static void test(void);							\
static struct tap_test tap_test_##test = { #test, test, NULL };		\
static void __attribute__((constructor)) tap_register_##test(void)	\
{									\
	tap_register(&tap_test_##test);					\
}									\
static void test(void)

#define TAP_COMPARE(a, op, b, as, bs, then) do {			\
	long long __a = (long long)(a);					\
	long long __b = (long long)(b);					\
									\
	if (!(__a op __b)) {						\
		tap_fail(__FILE__, __LINE__,				\
			 "%s %s %s is false: %lld (0x%llx), %lld (0x%llx)", \
			 as, #op, bs, __a, (unsigned long long)__a,	\
			 __b, (unsigned long long)__b);			\
		then;							\
	}								\
} while (0)

#define TAP_CHECK(cond, what, then) do {				\
	if (!(cond)) {							\
		tap_fail(__FILE__, __LINE__, "%s", what);		\
		then;							\
	}								\
} while (0)

#define EXPECT_EQ(a, b)		TAP_COMPARE(a, ==, b, #a, #b, (void)0)
#define EXPECT_NE(a, b)		TAP_COMPARE(a, !=, b, #a, #b, (void)0)
#define EXPECT_LT(a, b)		TAP_COMPARE(a, <, b, #a, #b, (void)0)
#define EXPECT_LE(a, b)		TAP_COMPARE(a, <=, b, #a, #b, (void)0)
#define EXPECT_GT(a, b)		TAP_COMPARE(a, >, b, #a, #b, (void)0)
#define EXPECT_GE(a, b)		TAP_COMPARE(a, >=, b, #a, #b, (void)0)
#define EXPECT_TRUE(cond) \
	TAP_CHECK(cond, #cond " is false", (void)0)
#define EXPECT_FALSE(cond) \
	TAP_CHECK(!(cond), #cond " is true", (void)0)
#define ASSERT_EQ(a, b)		TAP_COMPARE(a, ==, b, #a, #b, tap_exit())
#define ASSERT_NE(a, b)		TAP_COMPARE(a, !=, b, #a, #b, tap_exit())
#define ASSERT_LT(a, b)		TAP_COMPARE(a, <, b, #a, #b, tap_exit())
#define ASSERT_LE(a, b)		TAP_COMPARE(a, <=, b, #a, #b, tap_exit())
#define ASSERT_GT(a, b)		TAP_COMPARE(a, >, b, #a, #b, tap_exit())
#define ASSERT_GE(a, b)		TAP_COMPARE(a, >=, b, #a, #b, tap_exit())
#define ASSERT_TRUE(cond) \
	TAP_CHECK(cond, #cond " is false", tap_exit())
#define ASSERT_FALSE(cond) \
	TAP_CHECK(!(cond), #cond " is true", tap_exit())

static bool __attribute__((unused)) tap_selected(const char *name, int argc,
						 char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

/* Return: true if the test did not fail. */
static bool __attribute__((unused)) tap_run(const struct tap_test *t,
					    unsigned int number)
{
	const char *env = getenv("TAP_TIMEOUT");
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(env ? atoi(env) : 120);
		t->fn();
		tap_exit();
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		printf("not ok %u %s # no process\n", number, t->name);
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == TAP_PASS) {
		printf("ok %u %s\n", number, t->name);
		return true;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == TAP_SKIP) {
		printf("ok %u %s # SKIP\n", number, t->name);
		return true;
	}
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	printf("not ok %u %s\n", number, t->name);
	return false;
}

static int __attribute__((unused)) tap_main(int argc, char **argv)
{
	unsigned int n = 0, failed = 0;
	const struct tap_test *t;

	/* a test that is killed shall have said what it knew */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (t = tap_first; t; t = t->next)
		n += tap_selected(t->name, argc, argv);
	printf("TAP version 13\n1..%u\n", n);
	n = 0;
	for (t = tap_first; t; t = t->next)
		if (tap_selected(t->name, argc, argv))
			failed += !tap_run(t, ++n);
	if (!n) {
		printf("# no such test\n");
		return TAP_FAIL;
	}
	printf("# Totals: pass:%u fail:%u\n", n - failed, failed);
	return failed ? TAP_FAIL : TAP_PASS;
}

#define TAP_MAIN()							\
int main(int argc, char **argv)						\
{									\
	return tap_main(argc, argv);					\
}

#endif /* _ATP_SELFTESTS_TAP_H */
