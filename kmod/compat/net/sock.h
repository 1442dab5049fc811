/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: struct sock. */
#ifndef RSTREAM_COMPAT_NET_SOCK_H
#define RSTREAM_COMPAT_NET_SOCK_H

#include_next <net/sock.h>
#include <linux/version.h>

/* 6.17: sk_uid() ("net: annotate races around sk->sk_uid", "net: remove sock_i_uid()") */
static inline kuid_t rstream_sk_uid(struct sock *sk)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
	return sock_i_uid(sk);
#else
	return sk_uid(sk);
#endif
}

#endif
