/* SPDX-License-Identifier: GPL-2.0-only */
/* Socket options and ioctls to which TCP does not know the answer. */
#ifndef RSTREAM_STREAM_OPT_H
#define RSTREAM_STREAM_OPT_H

#include <linux/sockptr.h>

struct rstream;
struct sock;
struct socket;

int rstream_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
int rstream_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
int rstream_setsockopt(struct socket *sock, int level, int optname,
		       sockptr_t optval, unsigned int optlen);
int rstream_getsockopt(struct socket *sock, int level, int optname,
		       char __user *optval, int __user *optlen);
int rstream_set_rcvlowat(struct sock *sk, int val);
void rstream_uncork(struct rstream *rs, bool now);	/* takes the lock */

#endif
