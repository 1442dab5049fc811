/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LINKTEST_H
#define LINKTEST_H

#include "link/link.h"

/* linktest_bounds.c: what role=bounds does, and who its streams are. */
extern const struct rstream_link_ops linktest_bounds_ops;
int linktest_bounds(const char *addr, int cm_port);

#endif
