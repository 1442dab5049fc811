// SPDX-License-Identifier: GPL-2.0-only
/*
 * To a pipe: splice() from a connection with records.
 *
 * Data from the queue is spliced like TCP's.  Data in the ring is copied into pages of its own, so
 * that the sender can have its place in the ring again, whatever becomes of the pipe.
 *
 * Socket held.
 */
#include <linux/highmem.h>
#include <linux/pipe_fs_i.h>
#include <linux/splice.h>
#include <net/rps.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "stream.h"

/* ---- into the pipe ---- */

static void page_put(struct splice_pipe_desc *spd, unsigned int i)
{
	put_page(spd->pages[i]);
}

/*
 * How many pages of the ring are copied at once: as many as the pipe, which is locked, can take.
 * One for a pipe without a reader: splice_to_pipe() sends SIGPIPE.
 */
static unsigned int pages_max(const struct pipe_inode_info *pipe)
{
	unsigned int used = pipe_occupancy(pipe->head, pipe->tail);

	return pipe->readers ? clamp_t(int, pipe->max_usage - used, 0, PIPE_DEF_BUFFERS) : 1;
}

static ssize_t splice_ring(struct rstream *rs, struct pipe_inode_info *pipe,
			   size_t len)
{
	struct partial_page partial[PIPE_DEF_BUFFERS];
	struct page *pages[PIPE_DEF_BUFFERS];
	struct splice_pipe_desc spd = {
		.pages = pages,
		.partial = partial,
		.nr_pages_max = pages_max(pipe),
		.ops = &nosteal_pipe_buf_ops,
		.spd_release = page_put,
	};
	const struct rstream_rxring *ring = rs->rxring;
	u64 at = rstream_rxq_ring_at(rs);
	ssize_t n;

	if (!spd.nr_pages_max)
		return -EAGAIN;
	len = min_t(u64, len, rstream_rxq_ready(rs) - rs->rxq.bytes);
	if (!len)
		return 0;
	while (len && spd.nr_pages < spd.nr_pages_max) {
		struct page *page = alloc_page(rs->sk->sk_allocation | __GFP_ACCOUNT);
		unsigned int off = offset_in_page(at);

		if (!page)
			break;
		n = min(len, PAGE_SIZE - off);
		memcpy_to_page(page, off, ring->mem + (at & (ring->size - 1)), n);
		partial[spd.nr_pages].offset = off;
		partial[spd.nr_pages].len = n;
		pages[spd.nr_pages++] = page;
		at += n;
		len -= n;
	}
	if (!spd.nr_pages)
		return -ENOMEM;
	n = splice_to_pipe(pipe, &spd);
	if (n > 0)
		rstream_mib_add(rs->rn, RSTREAM_MIB_SPLICED_COPY_BYTES, n);
	return n;
}

/* How many of the bytes @from to @to of a packet skb_splice_bits() copies. */
static size_t linear_bytes(const struct sk_buff *skb, size_t from, size_t to)
{
	size_t head = skb_headlen(skb), at = skb_pagelen(skb), n = 0;
	struct sk_buff *part;

	if (from < head && skb_head_is_locked(skb))
		n = min(to, head) - from;
	skb_walk_frags(skb, part) {
		if (to > at && from < at + part->len)
			n += linear_bytes(part, max(from, at) - at,
					  min(to, at + part->len) - at);
		at += part->len;
	}
	return n;
}

static ssize_t splice_queue(struct rstream *rs, struct pipe_inode_info *pipe,
			    size_t len)
{
	struct sk_buff *skb = skb_peek(&rs->rxq.skbs);
	struct rstream_skb_cb *cb = rstream_skb_cb(skb);
	ssize_t n = skb_splice_bits(skb, rs->sk, cb->off, pipe,
				    min_t(size_t, len, cb->len), 0);
	size_t copied;

	if (n <= 0)
		return n ?: -EAGAIN;
	copied = linear_bytes(skb, cb->off, cb->off + n);
	rstream_mib_add(rs->rn, RSTREAM_MIB_SPLICED_COPY_BYTES, copied);
	rstream_mib_add(rs->rn, RSTREAM_MIB_SPLICED_PAGE_BYTES,
			n - copied);
	return n;
}

/* Return: bytes, 0 if there are none, or a negative errno. */
static ssize_t splice_some(struct rstream *rs, struct pipe_inode_info *pipe,
			   size_t len)
{
	u64 ahead = 0;
	ssize_t n;

	if (!rstream_recv_take_plain(rs))
		return -ENOMEM;
	len = rstream_recv_next(rs, len, &ahead, false);
	if (!len)
		return 0;
	n = rs->rxq.bytes ? splice_queue(rs, pipe, len) :
			    splice_ring(rs, pipe, len);
	if (n > 0) {
		rstream_recv_consume(rs, n);
		sk_peek_offset_bwd(rs->sk, n);
	}
	return n;
}

static ssize_t splice_framed(struct rstream *rs, struct pipe_inode_info *pipe,
			     size_t len, int flags)
{
	long timeo = sock_rcvtimeo(rs->sk, flags & MSG_DONTWAIT);
	size_t done = 0;
	bool eof;
	int err = 0;

	while (done < len) {
		ssize_t n;

		rstream_ring_landed(rs);
		if (done && rstream_rxq_at_mark(rs, rs->rx.consumed))
			break;
		n = splice_some(rs, pipe, len - done);
		if (n > 0) {
			done += n;
			rstream_flush_due(rs);	/* the call may take long */
			continue;
		}
		err = n;
		if (err || done)
			break;
		err = rstream_recv_status(rs, &eof);
		if (err || eof)
			break;
		rstream_recv_ack(rs);
		err = rstream_recv_wait(rs, &timeo, 0, false);
		if (err)
			break;
	}
	rstream_recv_ack(rs);
	return done ?: err;
}

ssize_t rstream_splice_read(struct socket *sock, loff_t *ppos,
			    struct pipe_inode_info *pipe, size_t len,
			    unsigned int flags)
{
	struct rstream *rs = rstream_of(sock->sk);
	/* as in TCP, SPLICE_F_NONBLOCK applies to the pipe only */
	int dontwait = sock->file->f_flags & O_NONBLOCK ? MSG_DONTWAIT : 0;
	ssize_t ret;

	if (*ppos)
		return -ESPIPE;
	ret = rstream_recv_begin(rs, sock, dontwait);
	if (ret < 0)
		return ret;
	if (!ret)
		return rs->tcp_ops->splice_read(sock, ppos, pipe, len, flags);
	sock_rps_record_flow(sock->sk);
	ret = rs->mode == RSTREAM_FRAMED ? splice_framed(rs, pipe, len, dontwait) : 0;
	rstream_unlock(rs);
	return ret;
}
