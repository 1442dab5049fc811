/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: header of receive packet steering. */
#ifndef RSTREAM_COMPAT_NET_RPS_H
#define RSTREAM_COMPAT_NET_RPS_H

/* it has a header of its own, or is in net/sock.h (see flags.mk) */
#ifdef RSTREAM_HAVE_RPS
#include_next <net/rps.h>
#else
#include <net/sock.h>
#endif

#endif
