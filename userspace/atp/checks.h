/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of a host or switch: each says one line.
 */
#ifndef _ATP_CHECKS_H
#define _ATP_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include "nl.h"
#include "reply.h"

/**
 * struct checks - a run of the checks
 * @nl: connection to the module, if @module
 * @module: it is there
 */
struct checks {
	struct nl	nl;
	bool		module;
};

/* What the lines that follow are about, or NULL for the machine */
void check_about(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The line of a check: @what was looked at, what was found, and how to mend it,
 * which is said of everything that is not fine.
 * A warning is what works, but not as well or not for everybody.
 */
void check_ok(const char *what, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void check_warn(const char *what, const char *mend, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(2)));
void check_bad(const char *what, const char *mend, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(2)));

/* This machine; whether the module is there is told in @c */
void check_machine(struct checks *c);

/* A job of this host: its devices, and the ways to its other hosts */
void check_job(const struct job_reply *job);

/* The switch that runs here; @only: this job of it.  Return: is there one? */
bool check_switch(const uint32_t *only);

#endif /* _ATP_CHECKS_H */
