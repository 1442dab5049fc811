/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels, even within stable series: syn_recv_sock(). */
#ifndef RSTREAM_COMPAT_NET_INET_CONNECTION_SOCK_H
#define RSTREAM_COMPAT_NET_INET_CONNECTION_SOCK_H

#include_next <net/inet_connection_sock.h>

#ifdef RSTREAM_HAVE_OPT_CHILD_INIT	/* see flags.mk */
#define RSTREAM_SYN_RECV_PARAMS(own) own, \
	void (*opt_child_init)(struct sock *newsk, const struct sock *sk)
#define RSTREAM_SYN_RECV_ARGS(own) own, opt_child_init
#else
#define RSTREAM_SYN_RECV_PARAMS(own) own
#define RSTREAM_SYN_RECV_ARGS(own) own
#endif

#endif
