/* SPDX-License-Identifier: GPL-2.0-only */
/* The sending end of a ring, as its stream sees it.  Included by link.h. */
#ifndef RSTREAM_TXRING_H
#define RSTREAM_TXRING_H

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/sizes.h>
#include <linux/types.h>

/* Bytes of a (compound) page into which writes are copied, as in sk_page_frag_refill(). */
#define RSTREAM_CACHED_PAGE_SIZE	max_t(u32, PAGE_SIZE, SZ_32K)

struct ib_device;
struct rstream;
struct rstream_link;
struct ubuf_info;

/**
 * struct rstream_frag - part of a page with data that the program has sent
 * @list:	in the transmit queue, then in the ring until released
 * @page:	referenced; may be a compound page
 * @off:	offset of the first byte in @page, bytes
 * @len:	bytes from there on
 * @dma:	DMA address of @off for @dma_dev; set by rstream_txring_post(),
 *		unmapped by rstream_frag_free()
 * @dma_dev:	NULL while not mapped
 * @uarg:	referenced; notified when the frag is freed; may be NULL
 * @copied:	@page was allocated for copies, by this module or by TCP
 * @charged:	RSTREAM_FRAG_COST, or 0 for the second part after a split; bytes
 * @end:	ring offset after this frag's last byte (set by post)
 * @sq_seq:	number of the work request that carries its last byte (post)
 */
struct rstream_frag {
	struct list_head list;
	struct page *page;
	u32 off;
	u32 len;
	u64 dma;
	struct ib_device *dma_dev;
	struct ubuf_info *uarg;
	bool copied;
	u8 charged;
	u64 end;
	u64 sq_seq;
};

/* Memory of a frag itself, bytes: its creator charges it to the socket. */
#define RSTREAM_FRAG_COST	ALIGN(sizeof(struct rstream_frag), 16)

/**
 * struct rstream_txring - a ring that the peer has granted
 * @link:	its link, referenced
 * @id:		the local id of this end, identifies it in interrupting credits
 * @size:	bytes, power of two
 * @cell:	the peer writes here how many bytes it has consumed: __be64, then
 *		its complement, because a reader may find a half-written cell
 * @cell_addr:	remote address of @cell, for SWITCH
 * @cell_rkey:	remote key of @cell, for SWITCH
 * @written:	bytes posted since the ring was granted
 * @acked:	bytes that the peer had consumed at the time of the last post
 * @stalled:	enum rstream_reason: why the last post did not take everything, or NONE
 * @scheduled:	has waited in the queue of the link and may post now; read locklessly
 * @asks:	the last post has asked for an interrupting credit
 * @notify:	a post with RSTREAM_POST_NOTIFY has not completed; read locklessly
 */
struct rstream_txring {
	struct rstream_link *link;
	u32 id;
	u32 size;
	__be64 *cell;
	u64 cell_addr;
	u32 cell_rkey;
	u64 written;
	u64 acked;
	u8 stalled;
	bool scheduled;
	bool asks;
	bool notify;
};

/**
 * rstream_txring_valid() - can there be such a ring?
 * @ring_id:	the receiver's id of the ring, from GRANT
 * @raddr:	remote address of its first byte, from GRANT
 * @size:	bytes, from GRANT; must be a power of two, RSTREAM_GRANT_MIN at least
 *
 * To be called before the next two functions.  Any context.
 */
bool rstream_txring_valid(u32 ring_id, u64 raddr, u32 size);

/**
 * rstream_txring_open() - accept a grant
 * @link:	link of the GRANT
 * @ring_id:	the receiver's id of the ring, from GRANT
 * @rkey:	remote key of its memory, from GRANT
 * @raddr:	remote address of its first byte, from GRANT
 * @size:	bytes, from GRANT
 * @rs:		the stream that is passed to ops->space()
 *
 * Context: socket lock held, does not sleep.
 * Return: the ring, or ERR_PTR: -EINVAL the ring is already open, -ENOTCONN
 * link not up, -ENOMEM, -EAGAIN no free credit cell and more are being registered (ops->event()
 * follows, as for rstream_rxring_alloc()).
 */
struct rstream_txring *rstream_txring_open(struct rstream_link *link,
					   u32 ring_id, u32 rkey, u64 raddr,
					   u32 size, struct rstream *rs);

/**
 * rstream_txring_refuse() - notify the receiver that a grant is not used
 * @link:	link of the GRANT, which is authentic
 * @ring_id:	the receiver's id of the ring, from GRANT
 *
 * Called after rstream_txring_open() has failed.  Posts DONE, now or later: only DONE returns
 * the memory to the receiver.  Context: any, does not sleep.
 */
void rstream_txring_refuse(struct rstream_link *link, u32 ring_id);

/**
 * rstream_txring_acked() - bytes of the ring that the peer has consumed
 * @ring:	the sending end
 *
 * Reads the credit cell.  Return: the count, or a negative errno if the cell
 * holds more than @written (-EPROTO).
 */
s64 rstream_txring_acked(struct rstream_txring *ring);

/*
 * Make the last message ask for an interrupting credit, and signal it, unless the ring is queued
 * on the link for the rest of the frags, see rstream_txring_post().
 */
#define RSTREAM_POST_CREDIT	1U
/* Likewise, but only if the last credit leaves no space for all frags. */
#define RSTREAM_POST_CREDIT_FULL	2U
/* Call ops->sent() when the last message has completed, unless a call is due already. */
#define RSTREAM_POST_NOTIFY	4U

/**
 * rstream_txring_post() - write frags to the peer
 * @ring:	the sending end
 * @frags:	list of struct rstream_frag, oldest first; posted ones are moved
 *		from its head to the ring's list of frags in flight.  A
 *		frag is split where the ring wraps, its
 *		space ends or a message is full
 * @queued:	bytes in @frags
 * @how:	RSTREAM_POST_*
 *
 * Posts as many work requests as ring space, send slots and receive credits allow, usually
 * as one chain.  If the link (not the ring) is out of resources, or other rings wait for them,
 * the ring is queued on the link, and ops->space() follows.  ops->space() also follows if ring
 * space that was credited cannot be reused yet because the writes to it have not completed.
 *
 * Context: socket lock held, does not sleep.
 * Return: bytes posted, 0 if nothing can be posted now, -ENOTCONN link broken,
 * -EPROTO bad credit cell.
 */
ssize_t rstream_txring_post(struct rstream_txring *ring,
			    struct list_head *frags, u64 queued, unsigned int how);

/**
 * rstream_txring_yield() - there is nothing to post now
 * @ring:	the sending end
 *
 * A stream that ops->space() has scheduled and that does not post must call this, because
 * other rings may wait behind it.
 * Context: socket lock held.
 */
void rstream_txring_yield(struct rstream_txring *ring);

/**
 * rstream_txring_ask() - send a zero-length message that only asks for a credit
 * @ring:	the sending end
 */
int rstream_txring_ask(struct rstream_txring *ring);

/**
 * rstream_txring_reap() - free frags that are not needed any more
 * @ring:	the sending end
 * @acked:	set to what rstream_txring_acked() would return, from the same read
 * @silent:	stop at the first frag with a @uarg
 * @cost:	set to the charge for the frags themselves, bytes
 *
 * These are the frags whose data the peer's software has consumed and whose work requests have
 * completed.  A writer that waits for memory also calls rstream_txring_sent(), or waits for the
 * next sweep of the link (settings.link_probe_ms).
 * Context: socket lock held.  Return: bytes freed (payload).
 */
size_t rstream_txring_reap(struct rstream_txring *ring, s64 *acked, bool silent,
			   size_t *cost);

/**
 * rstream_txring_cached_page() - take a page from the link's cache of sent pages
 * @ring:	the sending end
 *
 * Context: socket lock held.  Return: a compound page of RSTREAM_CACHED_PAGE_SIZE bytes with
 * arbitrary contents, to which the caller has the only reference; NULL if there is none.
 */
struct page *rstream_txring_cached_page(struct rstream_txring *ring);

/**
 * rstream_txring_sent() - have all posted writes completed locally?
 * @ring:	the sending end
 *
 * If the last ones were unsignalled, this posts a signalled request after
 * them, and ops->space() is called when it completes.
 */
bool rstream_txring_sent(struct rstream_txring *ring);

/**
 * rstream_txring_recall() - take back the frags in flight, after the link broke
 * @ring:	the sending end
 * @frags:	they are added at the front of this list, oldest first
 *
 * Not before RSTREAM_LINK_EV_DEAD (rstream_link_is_dead()): until then, the HCA may read
 * the frags.  They are unmapped.  From the @end of each, the sender knows which ones to drop
 * or trim because the count in RESUME covers them.
 *
 * Context: socket lock held.  Return: bytes, or -EBUSY if the link is not DEAD yet.
 */
ssize_t rstream_txring_recall(struct rstream_txring *ring,
			      struct list_head *frags);

/**
 * rstream_txring_close() - the stream writes no more
 * @ring:	the sending end
 *
 * The link takes over the frags in flight, and frees them when their work requests
 * have completed.  DONE is posted after the last write, now or as soon as a
 * slot is free.  No ops->space() follows after return.
 * Context: any, does not sleep.
 */
void rstream_txring_close(struct rstream_txring *ring);

struct rstream_frag *rstream_frag_alloc(gfp_t gfp);
void rstream_frag_free(struct rstream_frag *frag);	/* unmaps, puts page, uarg */

#endif
