// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the program to the transmit queue without a copy: pages that the caller passes
 * (MSG_SPLICE_PAGES, sendpage), and pages of user memory (MSG_ZEROCOPY).
 *
 * A fragment holds a reference on its page until the peer has acknowledged it, or until TCP
 * has a reference of its own.  Likewise, each fragment holds a reference on the ubuf_info
 * whose completion the program waits for; the last of our fragments or TCP's packets to be
 * freed completes it.  Socket owned by the caller; may sleep.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/uio.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "stream.h"

/* How many user pages are taken at once. */
#define PIN_PAGES	16
/* Adjacent pieces become one fragment, up to this size. */
#define FRAG_MAX	SZ_64K
/*
 * If this much is queued or in flight, pieces of up to SMALL_PAGE_PART bytes are copied, because a
 * reference on each would cost more memory than the program is charged for.
 */
#define BACKLOG		SZ_16K
#define SMALL_PAGE_PART	128

/* Does the piece at @off of @page continue the last fragment? */
static struct rstream_frag *tail_of(struct rstream *rs, struct page *page,
				    size_t off, struct ubuf_info *uarg)
{
	struct rstream_frag *frag = rstream_txq_tail(rs);

	/* within a folio, a reference on any page holds all of them */
	if (!frag || frag->uarg != uarg || frag->len >= FRAG_MAX ||
	    page_folio(frag->page) != page_folio(page))
		return NULL;
	return page_to_phys(frag->page) + frag->off + frag->len ==
	       page_to_phys(page) + off ? frag : NULL;
}

/* Return: false without memory. */
static bool add_page_part(struct rstream *rs, struct page *page, size_t off,
			  size_t len, struct ubuf_info *uarg)
{
	struct rstream_frag *frag = tail_of(rs, page, off, uarg);

	if (!frag) {
		frag = rstream_frag_alloc(rs->sk->sk_allocation);
		if (!frag)
			return false;
		get_page(page);
		frag->page = page;
		frag->off = off;
		if (uarg)
			net_zcopy_get(uarg);
		frag->uarg = uarg;
		list_add_tail(&frag->list, &rs->txq.frags);
	}
	frag->len += len;
	rstream_txq_queued(rs, frag, len, RSTREAM_MIB_SENT_PAGE_BYTES);
	rs->zc.awaited = true;
	return true;
}

/* May we refer to the first piece of the message, instead of copying it? */
static bool may_refer(struct rstream *rs, struct page *page, size_t len,
		      size_t off)
{
	/* a reference does not keep a slab page, or one without a refcount */
	if (!sendpage_ok(page))
		return false;
	return len > SMALL_PAGE_PART || rs->txq.mem < BACKLOG ||
	       tail_of(rs, page, off, NULL);
}

/*
 * Queue the first page that the caller passes, up to @max bytes.
 * Return: bytes, 0 if it has to be copied, -EAGAIN without memory.
 */
ssize_t rstream_page_refer(struct rstream *rs, struct msghdr *msg, u64 max)
{
	struct iov_iter *iter = &msg->msg_iter;
	const struct bio_vec *bvec;
	struct page *page;
	size_t off, len;

	if (!iov_iter_is_bvec(iter))
		return 0;
	bvec = iter->bvec;
	off = bvec->bv_offset + iter->iov_offset;
	page = bvec->bv_page + (off >> PAGE_SHIFT);
	off &= ~PAGE_MASK;
	len = min3(bvec->bv_len - iter->iov_offset, PAGE_SIZE - off,
		   msg_data_left(msg));
	len = min_t(u64, len, max);
	if (!len || !may_refer(rs, page, len, off))
		return 0;
	len = rstream_txq_schedule(rs, len, 1);
	if (!len || !add_page_part(rs, page, off, len, NULL))
		return -EAGAIN;
	iov_iter_advance(iter, len);
	return len;
}

/*
 * Queue user memory in place, up to @max bytes.
 * Return: bytes, -EFAULT, or -EAGAIN without memory.
 */
ssize_t rstream_page_pin(struct rstream *rs, struct msghdr *msg, u64 max,
			 struct ubuf_info *uarg)
{
	size_t want = min_t(u64, max, PIN_PAGES * PAGE_SIZE), off, done = 0;
	struct page *pages[PIN_PAGES];
	bool full = false;
	ssize_t got, left;
	int i;

	want = rstream_txq_schedule(rs, min(want, msg_data_left(msg)), PIN_PAGES);
	if (!want)
		return -EAGAIN;
	got = iov_iter_get_pages2(&msg->msg_iter, pages, want, PIN_PAGES, &off);
	if (got <= 0)
		return got ?: -EFAULT;
	for (i = 0, left = got; left > 0; i++, off = 0) {
		size_t n = min_t(size_t, left, PAGE_SIZE - off);

		full = full || !add_page_part(rs, pages[i], off, n, uarg);
		if (!full)
			done += n;
		put_page(pages[i]);
		left -= n;
	}
	iov_iter_revert(&msg->msg_iter, got - done);
	return done ?: -EAGAIN;
}

/* The ubuf_info of the last send, if that is still queued: the next send can share it. */
static struct ubuf_info *last_uarg(const struct rstream *rs)
{
	struct rstream_frag *frag = rstream_txq_tail(rs);

	return frag && frag->uarg && rstream_uarg_is_msgzc(frag->uarg) ? frag->uarg : NULL;
}

/*
 * MSG_ZEROCOPY, as in TCP: the caller's own ubuf_info, or one that reports to the socket's error
 * queue.
 */
struct ubuf_info *rstream_zerocopy_begin(struct rstream *rs, struct msghdr *msg)
{
	struct ubuf_info *uarg = msg->msg_ubuf;
	struct sock *sk = rs->sk;

	if (!msg_data_left(msg))
		return NULL;
	if (uarg) {
		net_zcopy_get(uarg);
		return uarg;
	}
	if (!sock_flag(sk, SOCK_ZEROCOPY))
		return NULL;
	uarg = rstream_msg_zerocopy_realloc(sk, msg_data_left(msg), last_uarg(rs));
	return uarg ?: ERR_PTR(-ENOBUFS);
}

void rstream_zerocopy_end(struct ubuf_info *uarg, bool sent)
{
	if (sent)
		net_zcopy_put(uarg);
	else
		net_zcopy_put_abort(uarg, true);
}

/*
 * Does a ring have frags in flight that refer to pages whose owners wait for their release?  Then
 * ask for credit at once, even if we need no space.
 */
bool rstream_page_awaited(struct rstream *rs)
{
	if (rs->txq.mem == rs->tx.written - rs->tx.sent)
		rs->zc.awaited = false;
	return rs->zc.awaited;
}

/* TCP was given pages of MSG_ZEROCOPY. */
void rstream_zerocopy_by_tcp(struct rstream *rs)
{
	rs->zc.seq = tcp_sk(rs->sk)->write_seq;
	rs->zc.tcp = RSTREAM_ZC_SENT;
}

/*
 * MSG_ZEROCOPY completions must be in order, so those of a ring wait for what was sent by TCP
 * before: until it is acknowledged, and TCP then has no packets in flight except bare ACKs.
 */
bool rstream_zerocopy_waits(struct rstream *rs)
{
	if (rs->zc.tcp == RSTREAM_ZC_SENT && !before(tcp_sk(rs->sk)->snd_una, rs->zc.seq))
		rs->zc.tcp = RSTREAM_ZC_ACKED;
	if (rs->zc.tcp == RSTREAM_ZC_ACKED && sk_wmem_alloc_get(rs->sk) < SKB_TRUESIZE(1))
		rs->zc.tcp = RSTREAM_ZC_NONE;
	return rs->zc.tcp != RSTREAM_ZC_NONE;
}
