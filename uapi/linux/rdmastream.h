/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Sockets of rdmastream: TCP's behaviour, with RDMA where both ends can.
 *
 *	socket(AF_RDMASTREAM, SOCK_STREAM, RDMASTREAM_PROTO_IPV4);
 *	socket(AF_INET6, SOCK_STREAM, IPPROTO_RDMASTREAM);
 *
 * Either way addresses are struct sockaddr_in and sockaddr_in6, and everything
 * else is as tcp(7) describes it.
 */
#ifndef _UAPI_LINUX_RDMASTREAM_H
#define _UAPI_LINUX_RDMASTREAM_H

#include <linux/types.h>

/*
 * The socket family, unless the module was loaded with another number by its
 * parameter "family".  The number in use is in /proc/sys/net/rdmastream/family.
 */
#ifndef AF_RDMASTREAM
#define AF_RDMASTREAM		22
#define PF_RDMASTREAM		AF_RDMASTREAM
#endif

/* Third argument of socket(AF_RDMASTREAM, ...): what is spoken inside. */
#define RDMASTREAM_PROTO_IPV4	0
#define RDMASTREAM_PROTO_IPV6	1

/*
 * Third argument of socket(AF_INET or AF_INET6, ...).  Above 255, so that it
 * can never be the number of a protocol on the wire.
 */
#ifndef IPPROTO_RDMASTREAM
#define IPPROTO_RDMASTREAM	257
#endif

/* Level of options that are ours alone. */
#define SOL_RDMASTREAM		IPPROTO_RDMASTREAM

/*
 * setsockopt(): int, said before connect().  1: the connection shall move to RDMA as
 * soon as the settings allow it, so its first bytes are not those of plain TCP.
 */
#define RDMASTREAM_EAGER	2

/*
 * setsockopt(): with whom to negotiate, said before connect() or listen().  An array
 * of rules, or nothing; those that a listener has are for all its connections.  The
 * first rule that fits decides.  If none does: the contrary of the last one.
 */
#define RDMASTREAM_RULES	1
#define RDMASTREAM_RULES_MAX	32

struct rdmastream_rule {
	__u8 addr[16];		/* of the other host; IPv4 is ::ffff:a.b.c.d */
	__u8 prefix_len;	/* how many bits of it, up to 128 */
	__u8 exclude;		/* 1: stay on plain TCP */
	__u16 port_min;		/* of the server, host order, */
	__u16 port_max;		/* inclusive */
	__u16 reserved;		/* 0 */
};

#endif /* _UAPI_LINUX_RDMASTREAM_H */
