/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: completion of zero-copy sends. */
#ifndef RSTREAM_COMPAT_LINUX_SKBUFF_H
#define RSTREAM_COMPAT_LINUX_SKBUFF_H

#include_next <linux/skbuff.h>
#include <linux/version.h>

/*
 * Is @uarg that of MSG_ZEROCOPY, and not a caller's own?  6.10: the callback became part of ops
 * (7ab4f16f9e24)
 */
static inline bool rstream_uarg_is_msgzc(const struct ubuf_info *uarg)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	return uarg->callback == msg_zerocopy_callback;
#else
	return uarg->ops == &msg_zerocopy_ubuf_ops;
#endif
}

/*
 * Drops the reference on @uarg of data that a device has read in place.  As net_zcopy_put(), which
 * io_uring takes for a copy, because it names no packet: it only looks whether there is one.
 */
static inline void rstream_zcopy_sent(struct ubuf_info *uarg)
{
	static struct sk_buff packet;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	uarg->callback(&packet, uarg, true);
#else
	uarg->ops->complete(&packet, uarg, true);
#endif
}

/* 6.16: one more argument, for device memory ("net: devmem: Implement TX path") */
static inline struct ubuf_info *
rstream_msg_zerocopy_realloc(struct sock *sk, size_t size, struct ubuf_info *uarg)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
	return msg_zerocopy_realloc(sk, size, uarg);
#else
	return msg_zerocopy_realloc(sk, size, uarg, false);
#endif
}

#endif
