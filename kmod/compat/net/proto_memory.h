/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: header of the functions that account memory of a protocol. */
#ifndef RSTREAM_COMPAT_NET_PROTO_MEMORY_H
#define RSTREAM_COMPAT_NET_PROTO_MEMORY_H

/* they have a header of their own, or are in net/sock.h (see flags.mk) */
#ifdef RSTREAM_HAVE_PROTO_MEMORY
#include_next <net/proto_memory.h>
#else
#include <net/sock.h>
#endif

#endif
