/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LINKTEST_H
#define LINKTEST_H

#include "link/link.h"

/* TAP in the kernel log.  Each line begins with the module's name. */
__printf(2, 3) void linktest_ok(bool good, const char *fmt, ...);
void linktest_done(void);

/* linktest_bounds.c: what role=bounds does, and its streams. */
extern const struct rstream_link_ops linktest_bounds_ops;
void linktest_bounds(const char *addr, int cm_port);

#endif
