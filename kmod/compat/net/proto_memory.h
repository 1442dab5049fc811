/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the functions are that tell how much memory a protocol has. */
#ifndef RSTREAM_COMPAT_NET_PROTO_MEMORY_H
#define RSTREAM_COMPAT_NET_PROTO_MEMORY_H

/* in a header of their own, or in that of sockets (6.1) */
#ifdef RSTREAM_HAVE_PROTO_MEMORY
#include_next <net/proto_memory.h>
#else
#include <net/sock.h>
#endif

#endif
