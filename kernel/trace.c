// SPDX-License-Identifier: GPL-2.0
/* Tracepoints are made here and used everywhere. */
#define CREATE_TRACE_POINTS
#include "trace.h"
