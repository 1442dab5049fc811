/* SPDX-License-Identifier: GPL-2.0-only */
/* Stand-in: stats.h needs of it only the name. */
struct net;
