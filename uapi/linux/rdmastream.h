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

#endif /* _UAPI_LINUX_RDMASTREAM_H */
