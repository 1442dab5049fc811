/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: sending on TCP. */
#ifndef RSTREAM_COMPAT_NET_TCP_H
#define RSTREAM_COMPAT_NET_TCP_H

#include_next <net/tcp.h>
#include <linux/bvec.h>
#include <linux/version.h>

/*
 * Queues part of a page on TCP by reference.  Socket lock held, does not sleep
 * with MSG_DONTWAIT.  Return: bytes taken or a negative errno.  6.5: by sendmsg()
 * (dc97391e6610, "sock: Remove ->sendpage*() in favour of sendmsg(MSG_SPLICE_PAGES)")
 */
static inline int rstream_tcp_sendpage(struct sock *sk, struct page *page,
				       unsigned int off, size_t len, int flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	page += off >> PAGE_SHIFT;
	off &= ~PAGE_MASK;
	len = min_t(size_t, len, PAGE_SIZE - off);
	return tcp_sendpage_locked(sk, page, off, len, flags);
#else
	struct msghdr msg = { .msg_flags = flags | MSG_SPLICE_PAGES };
	struct bio_vec bvec;

	bvec_set_page(&bvec, page, len, off);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bvec, 1, len);
	return tcp_sendmsg_locked(sk, &msg, len);
#endif
}

/*
 * Likewise, and notifies @uarg when TCP does not need the page any more.  TCP takes
 * a reference to @uarg for each skb that contains a part of the page.
 */
static inline int rstream_tcp_sendpage_zc(struct sock *sk, struct page *page,
					  unsigned int off, size_t len,
					  int flags, struct ubuf_info *uarg)
{
	struct msghdr msg = {
		.msg_flags = flags | MSG_ZEROCOPY,
		.msg_ubuf = uarg,
	};
	struct bio_vec bvec = {
		.bv_page = page,
		.bv_offset = off,
		.bv_len = len,
	};
	int key = atomic_read(&sk->sk_zckey), ret;

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bvec, 1, len);
	ret = tcp_sendmsg_locked(sk, &msg, len);
	/*
	 * If this fails, kernels before 6.5 take back the notification id of @uarg, because
	 * they take this call for the send that allocated it.  Undo that.  (a7533584728d,
	 * "net/tcp: optimise io_uring zc ubuf refcounting")
	 */
	if (atomic_read(&sk->sk_zckey) != key) {
		atomic_set(&sk->sk_zckey, key);
		uarg_to_msgzc(uarg)->len++;
	}
	return ret;
}

/*
 * What TCP's send calls return for @err of a control message.  6.16: that error ("net: devmem:
 * preserve sockc_err")
 */
static inline int rstream_tcp_cmsg_error(int err)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
	return -EINVAL;
#else
	return err;
#endif
}

/* Sends an ACK with the current window.  Socket lock held. */
static inline void rstream_tcp_ack(struct sock *sk)
{
#ifdef RSTREAM_HAVE_ACK_FLAGS
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt, 0);
#else
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
#endif
}

/*
 * Ends a sock in TCP_CLOSE that its program has closed, as TCP ends an orphan.  Socket
 * lock held, any context.  Return: false if this kernel does not export what is needed (see
 * flags.mk), so that TCP's close() has to do it.
 */
static inline bool rstream_tcp_end(struct sock *sk)
{
#ifdef RSTREAM_HAVE_DESTROY_SOCK
	this_cpu_inc(*sk->sk_prot->orphan_count);
	sock_orphan(sk);
	inet_csk_destroy_sock(sk);	/* also puts the program's reference */
	return true;
#else
	return false;
#endif
}

#endif
