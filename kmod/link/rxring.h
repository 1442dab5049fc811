/* SPDX-License-Identifier: GPL-2.0-only */
/* The receiving end of a ring, as its stream sees it.  Included by link.h. */
#ifndef RSTREAM_RXRING_H
#define RSTREAM_RXRING_H

#include <linux/mm_types.h>
#include <linux/sizes.h>
#include <linux/types.h>

/*
 * Minimum size of a ring.  At least a page: an RMB consists of pages, and readers take a byte's
 * offset in its page from its offset in the ring.
 */
#define RSTREAM_RING_MIN	(PAGE_SIZE > SZ_16K ? (u32)PAGE_SIZE : SZ_16K)
/* Smaller grants are refused. */
#define RSTREAM_GRANT_MIN	SZ_4K
/* Maximum size of a ring.  A peer may grant a larger one, but it is of no use. */
#define RSTREAM_RING_MAX	SZ_4M

struct rstream;
struct rstream_link;

/**
 * struct rstream_rxring - a ring that this host has granted
 * @link:	its link, referenced
 * @id:		identifies the ring in immediate data, unique in the link,
 *		20 bits, not reused soon
 * @rkey:	remote key, for GRANT
 * @raddr:	remote address of its first byte, for GRANT
 * @size:	bytes, power of two
 * @mem:	its memory, contiguous in kernel address space
 * @landed:	bytes that have arrived since the ring was granted; counted in
 *		softirq from completions (smp_store_release), never decreases
 * @napi_id:	of its link, for programs that poll (SO_BUSY_POLL)
 * @want_credit: the sender is blocked and waits for a credit (set in
 *		softirq, cleared by the reader before it sends the credit)
 * @kept:		@mem is a copy, or NULL; its memory was returned [rstream_rxring_keep()]
 *
 * The stream keeps track of how much of @landed was read.  A DATA message that would
 * move @landed more than @size beyond the last credit sent is a protocol error:
 * ops->data() is called with bad = true, and @landed does not change.
 *
 * Once the link is BROKEN (see rstream_link_is_up()), @landed is frozen: it is the count that
 * RESUME reports.  The peer may still write beyond it for a while; that data is never read.
 * @mem remains readable until the ring is released.
 */
struct rstream_rxring {
	struct rstream_link *link;
	u32 id;
	u32 rkey;
	u64 raddr;
	u32 size;
	u8 *mem;
	u64 landed;
	unsigned int napi_id;
	bool want_credit;
	bool kept;
	/* rxring.c's private fields follow, in struct rx_ring */
};

/**
 * rstream_rxring_alloc() - allocate a ring for one stream
 * @link:	a link that is up
 * @size:	bytes; rounded up to a power of two of at least RSTREAM_RING_MIN.  The
 *		ring is smaller if there is not enough memory
 * @rs:		the stream that is passed to ops->data()
 *
 * The ring never contains data of another peer, see rmb.c.
 *
 * Context: socket lock held (any form), does not sleep.
 * Return: the ring, or ERR_PTR: -EAGAIN registered memory is used up and more is being
 * registered (@rs waits as in rstream_peer_want_link(), and ops->event() follows: UP or
 * FAILED), -ENOMEM a limit on memory is reached or there is none, -ENOTCONN link not up.
 */
struct rstream_rxring *rstream_rxring_alloc(struct rstream_link *link, u32 size,
					    struct rstream *rs);

/**
 * rstream_rxring_switched() - the peer's SWITCH has arrived, with its credit cell
 * @ring:	the receiving end
 * @cell_addr:	where to write credits, from the record; checked by the
 *		peer's HCA, not by this host
 * @cell_rkey:	remote key of the cell, likewise
 * @peer_ring:	the sender's id of its end, used in interrupting credits
 */
void rstream_rxring_switched(struct rstream_rxring *ring, u64 cell_addr,
			     u32 cell_rkey, u32 peer_ring);

/**
 * rstream_rxring_credit() - report to the sender how much was consumed
 * @ring:	the receiving end
 * @consumed:	bytes of this ring read so far, counted from its grant
 * @interrupt:	use WRITE_WITH_IMM, which wakes the sender, instead of a silent WRITE
 *
 * If the send queue is full or there is no receive credit, the ring keeps the
 * newest value and writes it as soon as possible.
 * Context: socket lock held, does not sleep.
 */
void rstream_rxring_credit(struct rstream_rxring *ring, u64 consumed,
			   bool interrupt);

/**
 * rstream_rxring_larger() - how large may a replacement for this ring be?
 * @ring:	the receiving end
 * @size:	the wanted size, bytes, a power of two
 *
 * The rings of a link share half of rmb_max, and none grows beyond its share, so that
 * rings that are busy at the same time have the same size.
 *
 * Return: bytes, a power of two and larger than the ring; or 0 if the ring cannot grow.
 */
u32 rstream_rxring_larger(struct rstream_rxring *ring, u32 size);

/**
 * rstream_rxring_page() - the page of a ring that contains a byte
 * @ring:	the receiving end
 * @at:		bytes since the ring was granted
 *
 * For copy_page_to_iter(), which is cheaper with hardened usercopy.
 */
struct page *rstream_rxring_page(const struct rstream_rxring *ring, u64 at);

/**
 * rstream_rxring_left() - has the sender finished with the ring?
 * @ring:	the receiving end
 *
 * Return: true if the sender has sent DONE, or the link has ended.  Context: any.
 */
bool rstream_rxring_left(const struct rstream_rxring *ring);

/**
 * rstream_rxring_keep() - copy the contents of an unread ring, and release its registered memory
 * @ring:	the receiving end
 *
 * Does nothing unless the link is DEAD and there is memory for a copy of @landed bytes.  The
 * socket remains charged as before.
 * Context: process, socket lock held.
 */
void rstream_rxring_keep(struct rstream_rxring *ring);

/**
 * rstream_rxring_withdraw() - release a ring whose GRANT was not sent
 * @ring:	the receiving end
 *
 * The peer does not know it, so the memory can be reused at once.  Context: any.
 */
void rstream_rxring_withdraw(struct rstream_rxring *ring);

/**
 * rstream_rxring_release() - the stream does not need the ring any more
 * @ring:	the receiving end
 *
 * After return, no ops->data() for the ring is running or will be called.  The memory is
 * reused only after the sender's DONE or after the link's drain, whatever arrives by TCP: the
 * host that refuses a grant or ends the connection may not be the one that writes.
 * Context: any; drops the ring's reference on the link.
 */
void rstream_rxring_release(struct rstream_rxring *ring);

#endif
