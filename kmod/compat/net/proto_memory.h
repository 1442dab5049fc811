/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the functions are that tell how much memory a protocol has. */
#ifndef RSTREAM_COMPAT_NET_PROTO_MEMORY_H
#define RSTREAM_COMPAT_NET_PROTO_MEMORY_H

/* 6.10: a header of their own ("net: move sysctl_mem_pcpu_rsv and kin", "proto_memory.h") */
#if __has_include_next(<net/proto_memory.h>)
#include_next <net/proto_memory.h>
#else
#include <net/sock.h>
#endif

#endif
