/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: struct proto_ops. */
#ifndef RSTREAM_COMPAT_LINUX_NET_H
#define RSTREAM_COMPAT_LINUX_NET_H

#include_next <linux/net.h>
#include <linux/socket.h>
#include <linux/version.h>

/* 6.10: the last arguments of accept() became a struct (92ef0fd55ac8) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define RSTREAM_ACCEPT_PARAMS	int accept_flags, bool accept_kern
#define RSTREAM_ACCEPT_ARGS	accept_flags, accept_kern
#define RSTREAM_ACCEPT_FLAGS	accept_flags
#define RSTREAM_ACCEPT_KERN	accept_kern
#else
#define RSTREAM_ACCEPT_PARAMS	struct proto_accept_arg *accept_arg
#define RSTREAM_ACCEPT_ARGS	accept_arg
#define RSTREAM_ACCEPT_FLAGS	(accept_arg->flags)
#define RSTREAM_ACCEPT_KERN	(accept_arg->kern)
#endif

/*
 * 6.19: a type of unspecified size for addresses ("net: Convert proto_ops bind() callbacks to
 * use sockaddr_unsized", and likewise for connect())
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define sockaddr_unsized	sockaddr
#endif

/*
 * 6.5: sendmsg() with MSG_SPLICE_PAGES replaced sendpage() (dc97391e6610).  Older
 * kernels do not keep programs from passing that bit, so it must mean nothing here.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#ifndef MSG_SPLICE_PAGES
#define MSG_SPLICE_PAGES	0
#endif
#define RSTREAM_SENDPAGE	.sendpage = rstream_sendpage,
static inline ssize_t rstream_ops_sendpage(const struct proto_ops *ops,
					   struct socket *sock,
					   struct page *page, int off,
					   size_t len, int flags)
{
	return ops->sendpage(sock, page, off, len, flags);
}
#else
#define MSG_SENDPAGE_NOTLAST	0
#define RSTREAM_SENDPAGE
static inline ssize_t rstream_ops_sendpage(const struct proto_ops *ops,
					   struct socket *sock,
					   struct page *page, int off,
					   size_t len, int flags)
{
	return -EOPNOTSUPP;
}
#endif

/*
 * 6.5: the end of a splice() (2bfc66850952, "splice, net: Add a splice_eof op to file-ops and
 * socket-ops").  Stable 6.1 has it, too: see flags.mk.
 */
#ifdef RSTREAM_HAVE_SPLICE_EOF	/* see flags.mk */
#define RSTREAM_SPLICE_EOF	.splice_eof = rstream_splice_eof,
#else
#define RSTREAM_SPLICE_EOF
#endif

/* 7.1: SO_RCVBUF limits TCP's window, too (b025461303d8) */
#ifdef RSTREAM_HAVE_SET_RCVBUF	/* see flags.mk */
#define RSTREAM_SET_RCVBUF	.set_rcvbuf = rstream_set_rcvbuf,
static inline void rstream_ops_set_rcvbuf(const struct proto_ops *ops, struct sock *sk,
					  int val)
{
	ops->set_rcvbuf(sk, val);
}
#else
#define RSTREAM_SET_RCVBUF
static inline void rstream_ops_set_rcvbuf(const struct proto_ops *ops, struct sock *sk,
					  int val)
{
}
#endif

/* 6.9: TCP supports SO_PEEK_OFF (05ea491641d3) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define RSTREAM_PEEK_OFF
#else
#define RSTREAM_PEEK_OFF	.set_peek_off = sk_set_peek_off,
#endif

#endif
