/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * rdmastream sockets behave like TCP sockets, and use RDMA when both hosts support it.
 *
 *	socket(AF_RDMASTREAM, SOCK_STREAM, RDMASTREAM_PROTO_IPV4);
 *	socket(AF_INET6, SOCK_STREAM, IPPROTO_RDMASTREAM);
 *
 * In both cases, addresses are struct sockaddr_in and sockaddr_in6, and everything else is
 * as described in tcp(7).
 */
#ifndef _UAPI_LINUX_RDMASTREAM_H
#define _UAPI_LINUX_RDMASTREAM_H

#include <linux/types.h>

/*
 * The default socket family.  The module parameter "family" selects another number; the
 * number in use is in /proc/sys/net/rdmastream/family.
 */
#ifndef AF_RDMASTREAM
#define AF_RDMASTREAM		22
#define PF_RDMASTREAM		AF_RDMASTREAM
#endif

/* Third argument of socket(AF_RDMASTREAM, ...): the version of IP. */
#define RDMASTREAM_PROTO_IPV4	0
#define RDMASTREAM_PROTO_IPV6	1

/*
 * Third argument of socket(AF_INET or AF_INET6, ...).  It is above 255, so it can never be
 * a protocol number in an IP header.
 */
#ifndef IPPROTO_RDMASTREAM
#define IPPROTO_RDMASTREAM	257
#endif

/* Level of rdmastream's own socket options. */
#define SOL_RDMASTREAM		IPPROTO_RDMASTREAM

/*
 * setsockopt(), int, before connect().  1: move to RDMA as soon as the settings allow it,
 * instead of sending the first bytes as plain TCP.
 */
#define RDMASTREAM_EAGER	2

/*
 * setsockopt(), before connect() or listen(): an array of rules, or nothing.  They select
 * the peers with which rdmastream is negotiated; the rules of a listener apply to all
 * connections that it accepts.  The first matching rule decides.  If no rule matches, the
 * opposite of what the last rule says applies.
 */
#define RDMASTREAM_RULES	1
#define RDMASTREAM_RULES_MAX	32

struct rdmastream_rule {
	__u8 addr[16];		/* of the other host; IPv4: ::ffff:a.b.c.d */
	__u8 prefix_len;	/* number of leading bits to compare, up to 128 */
	__u8 exclude;		/* 1: stay on plain TCP */
	__u16 port_min;		/* range of the server's port, host byte order */
	__u16 port_max;		/* inclusive */
	__u16 reserved;		/* 0 */
};

#endif /* _UAPI_LINUX_RDMASTREAM_H */
