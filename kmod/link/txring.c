// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sending end of rings.
 *
 * Owns the table of rings granted to this host, the frags in flight on them, pages that were sent
 * and are kept for the next writes, and closed rings until the peer has sent FREED.  Called by the
 * streams (link.h), by msg.c with messages, by qp.c with completions.  Everything but allocation
 * and DMA mapping runs under link->lock, including the callbacks to streams.  It never waits: a
 * ring without a slot is scheduled when there is one.
 */
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "account.h"
#include "ring.h"
#include "wr.h"

/* ---- frags ---- */

#define FRAGS_AT_ONCE	16	/* that are given back to the cache */

static struct kmem_cache *frag_cache;

struct rstream_frag *rstream_frag_alloc(gfp_t gfp)
{
	return kmem_cache_zalloc(frag_cache, gfp);
}

/* Releases all that @frag refers to. */
static void frag_release(struct rstream_frag *frag)
{
	rstream_wr_unmap(frag);
	if (frag->page)
		put_page(frag->page);
	if (frag->uarg && frag->sq_seq)
		rstream_zcopy_sent(frag->uarg);
	else
		net_zcopy_put(frag->uarg);
}

void rstream_frag_free(struct rstream_frag *frag)
{
	frag_release(frag);
	kmem_cache_free(frag_cache, frag);
}

/*
 * Shortens @frag (not mapped yet) to @len bytes.  Return: a frag with the rest, which has its own
 * reference to the page; NULL if out of memory.
 */
static struct rstream_frag *frag_split(struct rstream_frag *frag, u32 len)
{
	struct rstream_frag *rest = rstream_frag_alloc(GFP_ATOMIC);

	if (!rest)
		return NULL;
	get_page(frag->page);
	rest->page = frag->page;
	rest->off = frag->off + len;
	rest->len = frag->len - len;
	if (frag->uarg)
		net_zcopy_get(frag->uarg);
	rest->uarg = frag->uarg;
	rest->copied = frag->copied;
	frag->len = len;
	return rest;
}

static void frags_free(struct list_head *frags)
{
	struct rstream_frag *frag, *next;
	void *gone[FRAGS_AT_ONCE];
	unsigned int n = 0;

	list_for_each_entry_safe(frag, next, frags, list) {
		frag_release(frag);
		gone[n++] = frag;
		if (n == ARRAY_SIZE(gone)) {
			kmem_cache_free_bulk(frag_cache, n, gone);
			n = 0;
		}
	}
	if (n)
		kmem_cache_free_bulk(frag_cache, n, gone);
	INIT_LIST_HEAD(frags);
}

int rstream_frag_init(void)
{
	frag_cache = KMEM_CACHE(rstream_frag, 0);
	return frag_cache ? 0 : -ENOMEM;
}

void rstream_frag_exit(void)
{
	kmem_cache_destroy(frag_cache);
}

/* ---- cached pages ---- */

/*
 * Pages into which writes were copied are kept for the next writes once they have been sent.  Some
 * kernels clear new pages (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), and cached ones are still in the CPU's
 * caches.  @frag has completed: keeps its page if it holds the only reference, and there is room.
 */
static void cache_put(struct rstream_link *link, struct rstream_frag *frag)
{
	struct page *page = frag->page;

	lockdep_assert_held(&link->lock);
	/* if this is the only reference, nobody can take another one */
	if (link->state == RSTREAM_LINK_UP && link->pages.n < RSTREAM_CACHED_PAGES &&
	    page_ref_count(page) == 1 && page_size(page) == RSTREAM_CACHED_PAGE_SIZE &&
	    !page_is_pfmemalloc(page)) {
		link->pages.cache[link->pages.n++] = page;
		frag->page = NULL;
	}
}

/* Drops the oldest pages first: the newest are most likely in the CPU's caches. */
static void cache_drop(struct rstream_link *link, unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&link->lock);
	for (i = 0; i < n; i++)
		put_page(link->pages.cache[i]);
	link->pages.n -= n;
	memmove(link->pages.cache, link->pages.cache + n,
		link->pages.n * sizeof(*link->pages.cache));
	link->pages.least = link->pages.n;
}

/* ---- DMA addresses ---- */

/*
 * Mapping and unmapping with an IOMMU may be slow, so it is done without link->lock, but under
 * RCU: the device exists until link_end_work() has waited for a grace period.  A mapped frag is
 * either posted, or unmapped before rcu_read_unlock().  Posted frags are unmapped when they are
 * freed, or when the link is drained, whichever comes first.
 */
void rstream_txring_unlock(struct rstream_link *link)
	__releases(&link->lock)
{
	LIST_HEAD(dead);

	lockdep_assert_held(&link->lock);
	list_splice_init(&link->tx.dead, &dead);
	rcu_read_lock();
	spin_unlock_bh(&link->lock);
	frags_free(&dead);
	rcu_read_unlock();
}

/* Splits @frag if it does not fit into @room.  Return: false if out of memory. */
static bool frag_fit(struct rstream_frag *frag, u32 room)
{
	struct rstream_frag *rest;

	if (frag->len <= room)
		return true;
	rest = frag_split(frag, room);
	if (!rest)
		return false;
	list_add(&rest->list, &frag->list);
	return true;
}

static bool frag_map(struct rstream_link *link, struct rstream_frag *frag)
{
	return frag->dma_dev || rstream_wr_map(link, frag);
}

/*
 * With link->lock held: makes @frag fit into @room, and maps it if the device uses virtual
 * addresses, for which mapping costs nothing.  For others, tx_map() has mapped it, or it is to be
 * copied when it is posted.
 */
static bool frag_prepare(struct rstream_link *link, struct rstream_frag *frag, u32 room)
{
	return frag_fit(frag, room) &&
	       (!ib_uses_virt_dma(link->qp.pd->device) || frag_map(link, frag));
}

/*
 * Is there just one frag, so short that the device can copy it when it is posted?  Then it is not
 * mapped.  Of several, some drivers copy only the first.
 */
static bool tx_inline(const struct rstream_link *link, const struct list_head *frags)
{
	const struct rstream_frag *frag;

	if (!link->qp.max_inline || !list_is_singular(frags))
		return false;
	frag = list_first_entry(frags, struct rstream_frag, list);
	return frag->len <= link->qp.max_inline && !frag->dma_dev && !PageHighMem(frag->page);
}

/* Maps up to @most bytes of frags, without the lock.  Return: bytes mapped. */
static u64 tx_map(struct tx_ring *ring, struct list_head *frags, u64 most)
{
	u64 at = ring->pub.written, room;
	struct rstream_frag *frag;

	list_for_each_entry(frag, frags, list) {
		room = ring->pub.size - (at & (ring->pub.size - 1));
		if (!most || !frag_fit(frag, min(room, most)) ||
		    !frag_map(ring->pub.link, frag))
			break;
		at += frag->len;
		most -= frag->len;
	}
	return at - ring->pub.written;
}

/*
 * Return: how many of the @mapped bytes to post if the limit is now @most.  Mapped frags cannot be
 * split, so this may exceed @most by a part of the last frag.
 */
static u64 tx_whole_frags(const struct list_head *frags, u64 mapped, u64 most)
{
	const struct rstream_frag *frag;
	u64 whole = 0;

	most = min(mapped, most);
	list_for_each_entry(frag, frags, list) {
		if (whole >= most)
			break;
		whole += frag->len;
	}
	return whole;
}

/* Unmaps the first @bytes of @frags, which were mapped, but not posted. */
static void tx_unmap(struct list_head *frags, s64 bytes)
{
	struct rstream_frag *frag;

	list_for_each_entry(frag, frags, list) {
		if (bytes <= 0)
			return;
		bytes -= frag->len;
		rstream_wr_unmap(frag);
	}
}

/* ---- the ring ---- */

static struct tx_ring *tx_new(const struct rstream_link *link, u32 peer_ring)
{
	struct tx_ring *ring = rstream_account_zalloc(link->ln, sizeof(*ring), GFP_ATOMIC);

	if (!ring)
		return NULL;
	INIT_LIST_HEAD(&ring->ctrl.list);
	INIT_LIST_HEAD(&ring->waiter);
	INIT_LIST_HEAD(&ring->sched_node);
	INIT_LIST_HEAD(&ring->busy);
	INIT_LIST_HEAD(&ring->sent);
	INIT_LIST_HEAD(&ring->zombie);
	INIT_LIST_HEAD(&ring->ending);
	INIT_LIST_HEAD(&ring->flight);
	ring->ctrl.tx = true;
	ring->peer_ring = peer_ring;
	return ring;
}

static void tx_uncount(struct rstream_link *link)
{
	atomic_dec(&link->ln->n_ends);
	atomic_dec(&link->peer->host->n_ends);
}

/* One more sending end of the namespace.  An address gets a quarter of what all may have. */
static bool tx_count(struct rstream_link *link)
{
	unsigned int most = rstream_account_most(link->ln, RSTREAM_NET_TX_MAX,
						 sizeof(struct tx_ring));
	unsigned int all = atomic_inc_return(&link->ln->n_ends);
	unsigned int own = atomic_inc_return(&link->peer->host->n_ends);

	if (all <= most && own <= DIV_ROUND_UP(most, 4))
		return true;
	tx_uncount(link);
	return false;
}

/*
 * Enters both tables.  The receiver reuses an id only after FREED: while this end exists, a
 * second grant with its id is a protocol violation.
 */
static int tx_enlist(struct rstream_link *link, struct tx_ring *ring)
{
	u32 peer_ring = ring->peer_ring;
	int id, err;

	lockdep_assert_held(&link->lock);
	if (link->state != RSTREAM_LINK_UP)
		return -ENOTCONN;
	if (link->tx.n + link->tx.n_zombies >= RSTREAM_TX_MAX || !tx_count(link))
		return -ENOMEM;
	err = idr_alloc(&link->tx.granted, ring, peer_ring, peer_ring + 1,
			GFP_ATOMIC);
	if (err < 0) {
		err = err == -ENOSPC ? -EINVAL : err;
		goto no_id;
	}
	id = idr_alloc_cyclic(&link->tx.rings, ring, 1, RSTREAM_IMM_ID_MAX,
			      GFP_ATOMIC);
	if (id < 0) {
		idr_remove(&link->tx.granted, peer_ring);
		err = -ENOMEM;
		goto no_id;
	}
	ring->pub.link = link;
	ring->pub.id = id;
	return 0;

no_id:
	tx_uncount(link);
	return err;
}

/* The ring has frags in flight, so the next sweeps must look at it. */
static void tx_busy(struct tx_ring *ring)
{
	struct rstream_link *link = ring->pub.link;

	if (list_empty(&ring->busy)) {
		list_add_tail(&ring->busy, &link->tx.busy);
		link->tx.n_busy++;
	}
}

static void tx_busy_end(struct tx_ring *ring)
{
	if (list_empty(&ring->busy))
		return;
	list_del_init(&ring->busy);
	ring->pub.link->tx.n_busy--;
}

static void tx_free(struct rstream_link *link, struct tx_ring *ring)
{
	idr_remove(&link->tx.rings, ring->pub.id);
	idr_remove(&link->tx.granted, ring->peer_ring);
	tx_uncount(link);
	list_del(&ring->ctrl.list);
	list_del(&ring->waiter);
	list_del(&ring->sent);
	if (!list_empty(&ring->zombie))
		link->tx.n_zombies--;
	list_del(&ring->zombie);
	list_del(&ring->ending);
	list_splice_init(&ring->flight, &link->tx.dead);
	if (ring->cell.rmb)
		rstream_rmb_put(&ring->cell);
	kfree(ring);
}

/*
 * What the device has sent of a ring without a stream is not needed any more.  DONE, after which
 * nothing is left, may wait for the peer's receive credit.
 */
static void tx_drop(struct rstream_link *link, struct tx_ring *ring)
{
	struct rstream_frag *frag, *next;

	list_for_each_entry_safe(frag, next, &ring->flight, list) {
		if (frag->sq_seq > link->wr.done)
			break;
		list_move_tail(&frag->list, &link->tx.dead);
	}
	if (list_empty(&ring->flight))
		list_del_init(&ring->sent);
	else if (list_empty(&ring->sent))
		list_add_tail(&ring->sent, &link->tx.sent);
}

/* The stream is gone, or the grant is refused: sends DONE after the last write. */
static void tx_end(struct rstream_link *link, struct tx_ring *ring)
{
	/* an ASK that was not posted is not needed any more */
	ring->ctrl.due = DUE_DONE;
	ring->owed_at = link->probe.sweeps;
	list_add_tail(&ring->zombie, &link->tx.zombies);
	link->tx.n_zombies++;
	rstream_msg_flush(link, &ring->ctrl);
}

/*
 * Reads the cell.  A value that does not match its complement is ignored, because the HCA may be
 * writing it.  So is a value that is smaller than before, because the HCA may repeat a write.
 */
static s64 tx_acked(struct tx_ring *ring)
{
	u64 value, check;

	lockdep_assert_held(&ring->pub.link->lock);
	if (ring->cell.rmb)
		rstream_rmb_sync_for_cpu(&ring->cell, 0, RSTREAM_CTRL_BYTES);
	value = be64_to_cpu(READ_ONCE(ring->pub.cell[0]));
	check = be64_to_cpu(READ_ONCE(ring->pub.cell[1]));
	if (value == ~check && value > ring->pub.written)
		return -EPROTO;
	if (value == ~check && value > ring->acked)
		ring->acked = value;
	return ring->acked;
}

s64 rstream_txring_acked(struct rstream_txring *pub)
{
	s64 acked;

	spin_lock_bh(&pub->link->lock);
	acked = tx_acked(to_tx(pub));
	spin_unlock_bh(&pub->link->lock);
	return acked;
}

bool rstream_txring_valid(u32 ring_id, u64 raddr, u32 size)
{
	return size >= RSTREAM_GRANT_MIN && is_power_of_2(size) && ring_id &&
	       ring_id <= RSTREAM_IMM_ID_MAX && raddr + size >= raddr;
}

struct rstream_txring *rstream_txring_open(struct rstream_link *link,
					   u32 ring_id, u32 rkey, u64 raddr,
					   u32 size, struct rstream *rs)
{
	struct tx_ring *ring;
	int err;

	ring = tx_new(link, ring_id);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&link->lock);
	err = -ENOTCONN;
	if (link->state != RSTREAM_LINK_UP)
		goto fail;
	err = rstream_rmb_get(link, RSTREAM_RMB_CELLS, RSTREAM_CELL_SIZE,
			      &ring->cell);
	if (err)
		goto fail;
	err = tx_enlist(link, ring);
	if (err) {
		rstream_rmb_put(&ring->cell);
		goto fail;
	}
	ring->rs = rs;
	ring->rkey = rkey;
	ring->raddr = raddr;
	ring->pub.size = size;
	ring->pub.cell = rstream_rmb_mem(&ring->cell);
	ring->pub.cell_addr = rstream_rmb_addr(&ring->cell);
	ring->pub.cell_rkey = rstream_rmb_rkey(&ring->cell);
	ring->pub.cell[0] = cpu_to_be64(0);
	ring->pub.cell[1] = cpu_to_be64(~0ULL);
	rstream_rmb_sync_for_device(&ring->cell, 0, RSTREAM_CTRL_BYTES);
	link->tx.n++;
	link->used_at = jiffies;
	rstream_link_hold(link);
	spin_unlock_bh(&link->lock);
	return &ring->pub;
fail:
	spin_unlock_bh(&link->lock);
	kfree(ring);
	if (err == -EAGAIN)
		rstream_link_want_rmb(link, RSTREAM_RMB_CELLS, 0, rs);
	return ERR_PTR(err);
}

/*
 * Nothing was written, so if there is no memory, DONE needs none.  If there is no slot or credit
 * either, the receiver gets no DONE, and its ring is lost until the link ends.
 */
void rstream_txring_refuse(struct rstream_link *link, u32 ring_id)
{
	struct tx_ring *ring = tx_new(link, ring_id);
	int err = -ENOMEM;

	spin_lock_bh(&link->lock);
	if (ring)
		err = tx_enlist(link, ring);
	if (!err)
		tx_end(link, ring);
	else if (err == -ENOMEM && link->state == RSTREAM_LINK_UP &&
		 !idr_find(&link->tx.granted, ring_id) &&
		 rstream_msg_say(link, RSTREAM_IMM_DONE, ring_id))
		link->tx.n_refused++;
	spin_unlock_bh(&link->lock);
	if (err)
		kfree(ring);
}

/*
 * Return: offset up to which ring space may be reused: the reader has consumed the data, and the
 * writes have completed, so that the device cannot repeat them.
 */
static u64 tx_reusable(const struct tx_ring *ring)
{
	const struct rstream_frag *frag;

	list_for_each_entry(frag, &ring->flight, list) {
		if (frag->end - frag->len >= ring->acked)
			break;
		if (frag->sq_seq > ring->pub.link->wr.done)
			return frag->end - frag->len;
	}
	return ring->acked;
}

/*
 * Likewise, or a lower bound that leaves space for @queued bytes.  Offsets and completions only
 * grow, so an earlier result is such a bound, and there is no need to walk the frags each time.
 */
static u64 tx_reusable_for(struct tx_ring *ring, u64 queued)
{
	if (queued > ring->pub.size - (ring->pub.written - ring->reusable))
		ring->reusable = tx_reusable(ring);
	return ring->reusable;
}

/*
 * Return: bytes of the ring that may be written.  A small space counts as 0 unless everything fits:
 * otherwise a receiver could make this host send arbitrarily small messages (silly window syndrome,
 * RFC 9293, 3.8.6.2.1).  Our receivers free a quarter of the ring at a time, or all of it.
 */
static u64 tx_space(const struct tx_ring *ring, u64 queued, u64 reusable)
{
	u64 space = ring->pub.size - (ring->pub.written - reusable);
	bool small = space < min_t(u32, ring->pub.size / 4, PAGE_SIZE);

	return small && queued > space ? 0 : space;
}

/* Builds one message of up to @room bytes.  The first frag is prepared.  Return: its bytes. */
static u32 tx_message(struct tx_ring *ring, struct list_head *frags, u32 room)
{
	struct rstream_link *link = ring->pub.link;
	u32 off = ring->pub.written & (ring->pub.size - 1);
	unsigned int n = 0;
	u32 len = 0;

	rstream_wr_message(link, ring->raddr + off, ring->rkey,
			   RSTREAM_IMM_DATA, ring->peer_ring);
	link->msg.credits--;
	do {
		struct rstream_frag *frag;

		frag = list_first_entry(frags, struct rstream_frag, list);
		if (n && !frag_prepare(link, frag, room))
			break;
		if (frag->dma_dev)
			rstream_wr_sge(link, frag->dma, frag->len);
		else
			rstream_wr_inline(link, page_address(frag->page) + frag->off, frag->len);
		len += frag->len;
		room -= frag->len;
		frag->end = ring->pub.written + len;
		frag->sq_seq = link->wr.posted + link->wr.batch->n;
		list_move_tail(&frag->list, &ring->flight);
	} while (++n < link->qp.max_sge && room && !list_empty(frags));
	link->tx.bytes += len;
	rstream_wr_message_end(link, len);
	/* signal once per half of the ring, because space is reused only after completion */
	if ((off ^ (off + len)) >= ring->pub.size / 2)
		rstream_wr_signal(link);
	tx_busy(ring);
	ring->pub.written += len;
	ring->ctrl.last_sq = link->wr.posted + link->wr.batch->n;
	link->tx.msgs++;
	return len;
}

/* ---- posting ---- */

/* Are there slots and a credit for a message? */
static bool tx_may_post(struct tx_ring *ring)
{
	struct rstream_link *link = ring->pub.link;

	if (rstream_wr_room(link) < RSTREAM_SQ_CTRL + rstream_wr_per_message(link)) {
		ring->pub.stalled = RSTREAM_R_STALL_SLOT;
		rstream_link_count(link, RSTREAM_MIB_STALL_SLOT);
	} else if (!link->msg.credits) {
		ring->pub.stalled = RSTREAM_R_STALL_CREDIT;
		rstream_link_count(link, RSTREAM_MIB_STALL_CREDIT);
	} else {
		return true;
	}
	return false;
}

static u64 tx_messages(struct tx_ring *ring, struct list_head *frags, u64 space)
{
	struct rstream_link *link = ring->pub.link;
	struct rstream_frag *frag;
	u64 total = 0;
	u32 room, len, msgs = 0;

	while (!list_empty(frags) && space && tx_may_post(ring)) {
		if (link->wr.batch->n + rstream_wr_per_message(link) > RSTREAM_BATCH_WRS &&
		    rstream_wr_post(link))
			break;
		room = ring->pub.size -
		       (ring->pub.written & (ring->pub.size - 1));
		room = min_t(u64, room, space);
		frag = list_first_entry(frags, struct rstream_frag, list);
		if (!frag_prepare(link, frag, room)) {
			/* out of memory: a credit will free some */
			ring->pub.stalled = RSTREAM_R_STALL_RING;
			break;
		}
		len = tx_message(ring, frags, room);
		total += len;
		space -= len;
		msgs++;
	}
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_RING_TX_BYTES,
			total);
	rstream_mib_add(link->ln->rn, RSTREAM_MIB_RING_TX_MSGS,
			msgs);
	return total;
}

/* Notifies the stream when its last message has completed: it may be corking small writes. */
static void tx_notify(struct tx_ring *ring)
{
	struct rstream_link *link = ring->pub.link;

	rstream_wr_signal(link);
	ring->notify_sq = ring->ctrl.last_sq;
	WRITE_ONCE(ring->pub.notify, true);
	if (list_empty(&ring->sent))
		list_add_tail(&ring->sent, &link->tx.sent);
}

/* Calls ops->space() when everything that was posted has completed. */
static void tx_notify_all(struct tx_ring *ring)
{
	struct rstream_link *link = ring->pub.link;

	ring->notify_all = true;
	if (list_empty(&ring->sent))
		list_add_tail(&ring->sent, &link->tx.sent);
	if (link->wr.signalled < ring->ctrl.last_sq)
		rstream_msg_signal(link);
}

/* Asks for a credit: with the last message, if there is one in the batch. */
static void tx_ask(struct tx_ring *ring)
{
	struct rstream_link *link = ring->pub.link;

	if (link->wr.batch->n) {
		rstream_wr_retype(link, RSTREAM_IMM_DATA_WANT);
		/* space and pages can be reused only after completion, too */
		rstream_wr_signal(link);
	} else {
		ring->ctrl.due |= DUE_ASK;
		rstream_msg_flush(link, &ring->ctrl);
	}
}

/* The next turn is another ring's, unless this one has been scheduled and could not post. */
static void tx_turn(struct tx_ring *ring, bool posted, bool waits)
{
	if (posted)
		ring->turn_lost = false;
	/* if a scheduled ring could not post, no other can, or memory is short for a while */
	if (ring->pub.scheduled)
		rstream_sched_yield(ring, posted || !waits);
	else if (waits)
		rstream_sched_next(ring->pub.link);
}

ssize_t rstream_txring_post(struct rstream_txring *pub,
			    struct list_head *frags, u64 queued, unsigned int how)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;
	ssize_t total = -ENOTCONN;
	u64 reusable, space, most, mapped = 0;
	bool starved = false, full, waits;
	s64 acked;

	rcu_read_lock();
	spin_lock_bh(&link->lock);
	acked = link->state == RSTREAM_LINK_UP ? tx_acked(ring) : -ENOTCONN;
	if (acked < 0) {
		total = acked;
		rstream_sched_yield(ring, true);
		goto out;
	}
	pub->acked = acked;
	if (queued > pub->size - (pub->written - acked) && how & RSTREAM_POST_CREDIT_FULL)
		how |= RSTREAM_POST_CREDIT;
	reusable = tx_reusable_for(ring, queued);
	space = tx_space(ring, queued, reusable);
	if (!space && queued)
		rstream_link_count(link, RSTREAM_MIB_STALL_RING);
	pub->stalled = RSTREAM_R_NONE;
	most = min(space, rstream_sched_budget(ring, queued));
	if (most && !ib_uses_virt_dma(link->qp.pd->device) && !tx_inline(link, frags)) {
		spin_unlock_bh(&link->lock);
		mapped = tx_map(ring, frags, most);
		spin_lock_bh(&link->lock);
		if (link->state != RSTREAM_LINK_UP)
			goto out;
		starved = mapped < most;
		most = tx_whole_frags(frags, mapped, rstream_sched_budget(ring, queued));
	}
	total = tx_messages(ring, frags, most);
	full = !list_empty(frags) && total == space;
	waits = !list_empty(frags) && !full;
	/* in the second case, no DMA addresses are left: a credit will free some */
	if (full || (waits && starved && total == mapped))
		pub->stalled = RSTREAM_R_STALL_RING;
	if (waits) {
		bool first = pub->scheduled && !total && pub->stalled != RSTREAM_R_STALL_RING;

		rstream_sched_wait(ring, first);
	}
	/* a ring that waits to be scheduled for the rest need not ask for a credit */
	pub->asks = how & RSTREAM_POST_CREDIT && total &&
		    (!waits || pub->stalled == RSTREAM_R_STALL_RING);
	if (pub->asks)
		tx_ask(ring);
	if (how & RSTREAM_POST_NOTIFY && link->wr.batch->n && !pub->notify)
		tx_notify(ring);
	/* if this fails, the frags can be recalled when the QP is drained */
	rstream_wr_post(link);
	if (full && reusable < (u64)acked && rstream_link_alive(link))
		tx_notify_all(ring);
	tx_turn(ring, total, waits);
out:
	spin_unlock_bh(&link->lock);
	if (mapped > max_t(s64, total, 0))
		tx_unmap(frags, mapped - max_t(s64, total, 0));
	rcu_read_unlock();
	return total;
}

int rstream_txring_ask(struct rstream_txring *pub)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;
	int err = -ENOTCONN;

	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_UP) {
		ring->ctrl.due |= DUE_ASK;
		rstream_msg_flush(link, &ring->ctrl);
		err = 0;
	}
	spin_unlock_bh(&link->lock);
	return err;
}

size_t rstream_txring_reap(struct rstream_txring *pub, s64 *acked, bool silent,
			   size_t *cost)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;
	struct rstream_frag *frag, *next;
	size_t bytes = 0;
	LIST_HEAD(done);

	*cost = 0;
	rcu_read_lock();
	spin_lock_bh(&link->lock);
	*acked = tx_acked(ring);
	list_for_each_entry_safe(frag, next, &ring->flight, list) {
		if (*acked < 0 || frag->end > (u64)*acked ||
		    frag->sq_seq > link->wr.done || (silent && frag->uarg))
			break;
		bytes += frag->len;
		*cost += frag->charged;
		list_move_tail(&frag->list, &done);
		if (frag->copied)
			cache_put(link, frag);
	}
	spin_unlock_bh(&link->lock);
	frags_free(&done);
	rcu_read_unlock();
	return bytes;
}

struct page *rstream_txring_cached_page(struct rstream_txring *pub)
{
	struct rstream_link *link = pub->link;
	struct rstream_link_pages *pages = &link->pages;
	struct page *page = NULL;

	if (!READ_ONCE(pages->n))
		return NULL;
	spin_lock_bh(&link->lock);
	/* a page of another NUMA node would be slow: the next sweep frees it */
	if (pages->n && page_to_nid(pages->cache[pages->n - 1]) == numa_mem_id()) {
		page = pages->cache[--pages->n];
		pages->least = min(pages->least, pages->n);
	}
	spin_unlock_bh(&link->lock);
	return page;
}

bool rstream_txring_sent(struct rstream_txring *pub)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;
	bool sent;

	spin_lock_bh(&link->lock);
	sent = link->wr.done >= ring->ctrl.last_sq;
	if (!sent && rstream_link_alive(link))
		tx_notify_all(ring);
	spin_unlock_bh(&link->lock);
	return sent;
}

ssize_t rstream_txring_recall(struct rstream_txring *pub,
			      struct list_head *frags)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;
	struct rstream_frag *frag;
	ssize_t bytes = -EBUSY;

	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_DEAD) {
		bytes = 0;
		list_for_each_entry(frag, &ring->flight, list)
			bytes += frag->len;
		list_splice_init(&ring->flight, frags);
	}
	spin_unlock_bh(&link->lock);
	return bytes;
}

void rstream_txring_yield(struct rstream_txring *pub)
{
	if (!READ_ONCE(pub->scheduled))
		return;
	spin_lock_bh(&pub->link->lock);
	rstream_sched_yield(to_tx(pub), true);
	spin_unlock_bh(&pub->link->lock);
}

void rstream_txring_close(struct rstream_txring *pub)
{
	struct tx_ring *ring = to_tx(pub);
	struct rstream_link *link = pub->link;

	spin_lock_bh(&link->lock);
	ring->rs = NULL;
	link->tx.n--;
	link->used_at = jiffies;
	rstream_sched_wait_end(ring);
	tx_busy_end(ring);
	list_del_init(&ring->sent);
	rstream_sched_yield(ring, true);
	if (link->state == RSTREAM_LINK_DEAD) {
		tx_free(link, ring);
	} else {
		if (rstream_link_alive(link))
			tx_drop(link, ring);
		tx_end(link, ring);
	}
	rstream_txring_unlock(link);
	rstream_link_put(link);
}

/* The DONE of @ring has completed, and so have all its writes. */
static void tx_ended(struct rstream_link *link, struct tx_ring *ring)
{
	list_del_init(&ring->ending);
	ring->owed_at = link->probe.sweeps;
	if (ring->freed)
		tx_free(link, ring);
	else
		list_splice_init(&ring->flight, &link->tx.dead);
}

void rstream_txring_credit(struct rstream_link *link, u32 id)
{
	struct tx_ring *ring = idr_find(&link->tx.rings, id);

	if (!ring)
		rstream_link_break_locked(link, RSTREAM_END_STRAY_CREDIT);
	else if (ring->rs)
		rstream_link_ops->space(ring->rs, &ring->pub, true);
}

void rstream_txring_freed(struct rstream_link *link, u32 id)
{
	struct tx_ring *ring = idr_find(&link->tx.granted, id);

	if (!ring && link->tx.n_refused) {
		link->tx.n_refused--;
		return;
	}
	/* FREED answers DONE, so it must not arrive before DONE was posted */
	if (!ring || list_empty(&ring->zombie) || ring->ctrl.due || ring->freed) {
		rstream_link_break_locked(link, RSTREAM_END_STRAY_FREED);
		return;
	}
	ring->freed = true;
	if (list_empty(&ring->ending))
		tx_free(link, ring);
}

/*
 * FREED must follow DONE within @most sweeps, and DONE must complete within @done: nobody is
 * charged any more for the bytes of closed connections that the link keeps until then.
 * Return: NONE, or why the link must end.
 */
enum rstream_link_end rstream_txring_overdue(struct rstream_link *link, unsigned int most,
					     unsigned int done)
{
	const struct tx_ring *oldest;
	unsigned int since;

	lockdep_assert_held(&link->lock);
	oldest = list_first_entry_or_null(&link->tx.zombies, struct tx_ring, zombie);
	if (!oldest)
		return RSTREAM_END_NONE;
	since = link->probe.sweeps - oldest->owed_at;
	if (oldest->ctrl.due || !list_empty(&oldest->ending))
		return since > done ? RSTREAM_END_STALLED : RSTREAM_END_NONE;
	return since > most ? RSTREAM_END_NOT_FREED : RSTREAM_END_NONE;
}

/* ---- for qp.c and link_life.c ---- */

/* Work requests have completed up to link->wr.done. */
void rstream_txring_sq_done(struct rstream_link *link)
{
	struct tx_ring *ring, *next;
	bool more = false;

	lockdep_assert_held(&link->lock);
	list_for_each_entry_safe(ring, next, &link->tx.ending, ending) {
		if (ring->ctrl.last_sq > link->wr.done)
			break;
		tx_ended(link, ring);
	}
	list_for_each_entry_safe(ring, next, &link->tx.sent, sent) {
		bool notify = ring->pub.notify && link->wr.done >= ring->notify_sq;
		bool all = link->wr.done >= ring->ctrl.last_sq;

		if (!ring->rs) {
			tx_drop(link, ring);
			continue;
		}
		if (!all)
			more |= ring->notify_all && link->wr.signalled < ring->ctrl.last_sq;
		if (notify) {
			WRITE_ONCE(ring->pub.notify, false);
			rstream_link_ops->sent(ring->rs);
		}
		if (all && ring->notify_all) {
			ring->notify_all = false;
			rstream_link_ops->space(ring->rs, &ring->pub, false);
		}
		if (!ring->notify_all && !ring->pub.notify)
			list_del_init(&ring->sent);
	}
	if (more)
		rstream_msg_signal(link);
	rstream_msg_kick(link);
}

/* Notifies the stream of @ring if it can free memory. */
static void tx_look(struct rstream_link *link, struct tx_ring *ring)
{
	struct rstream_frag *frag;
	s64 acked;

	frag = list_first_entry_or_null(&ring->flight, struct rstream_frag, list);
	if (!frag) {
		tx_busy_end(ring);
		return;
	}
	list_move_tail(&ring->busy, &link->tx.busy);
	acked = tx_acked(ring);
	if (acked < 0 || ((u64)acked >= frag->end && link->wr.done >= frag->sq_seq))
		rstream_link_ops->space(ring->rs, &ring->pub, false);
}

/* Makes a stream that uses the link ask for another link, if one is wanted. */
static void tx_ask_link(struct rstream_link *link, struct rstream_balance *balance)
{
	struct tx_ring *ring;

	ring = list_first_entry_or_null(&link->tx.busy, struct tx_ring, busy);
	if (!ring || !balance->more)
		return;
	balance->more = false;
	rstream_link_ops->event(ring->rs, RSTREAM_LINK_EV_BUSY);
}

/* Notifies streams that do not send any more, but can free memory.  Unused rings cost nothing. */
void rstream_txring_sweep(struct rstream_link *link, struct rstream_balance *balance)
{
	unsigned int n, all = link->tx.n_busy;

	lockdep_assert_held(&link->lock);
	link->probe.sweeps++;
	tx_ask_link(link, balance);
	for (n = 1; n <= all && link->tx.n_busy; n++) {
		tx_look(link, list_first_entry(&link->tx.busy, struct tx_ring, busy));
		if (!rstream_link_pause(link, n))
			return;
	}
	/* what was not needed since the last sweep, or all when memory is short */
	cache_drop(link, rstream_rmb_pressure(link) ? link->pages.n : link->pages.least);
	rstream_msg_kick(link);
}

/*
 * The QP is drained, so the device does not need the frags any more: unmaps them, without the lock.
 * To their streams, they remain in flight until the link is DEAD.
 */
void rstream_txring_unmap(struct rstream_link *link)
{
	struct rstream_frag *frag;
	struct tx_ring *ring;
	LIST_HEAD(frags);
	int id;

	spin_lock_bh(&link->lock);
	for (id = 0; (ring = idr_get_next(&link->tx.rings, &id)); id++) {
		list_splice_init(&ring->flight, &frags);
		/* the link is BROKEN: nothing is posted, and no ring is freed */
		spin_unlock_bh(&link->lock);
		list_for_each_entry(frag, &frags, list)
			rstream_wr_unmap(frag);
		spin_lock_bh(&link->lock);
		list_splice_init(&frags, &ring->flight);
	}
	spin_unlock_bh(&link->lock);
}

/* Nothing is posted any more, so no ring need wait. */
void rstream_txring_drained(struct rstream_link *link)
{
	struct tx_ring *ring;
	unsigned int n = 0;

	while ((ring = list_first_entry_or_null(&link->sched.waiters, struct tx_ring, waiter))) {
		rstream_sched_wait_end(ring);
		rstream_link_pause(link, ++n);
	}
	while ((ring = list_first_entry_or_null(&link->tx.sent, struct tx_ring, sent))) {
		list_del_init(&ring->sent);
		rstream_link_pause(link, ++n);
	}
	cache_drop(link, link->pages.n);
}

/* No more credits are written: keeps the last one, and releases the cell. */
static void tx_keep_cell(struct tx_ring *ring)
{
	if (!ring->cell.rmb)
		return;
	rstream_rmb_sync_for_cpu(&ring->cell, 0, RSTREAM_CTRL_BYTES);
	memcpy(ring->last, ring->pub.cell, sizeof(ring->last));
	ring->pub.cell = ring->last;
	rstream_rmb_put(&ring->cell);
	ring->cell.rmb = NULL;
}

/*
 * The link is DEAD.  Frees the rings without a stream.  Streams may keep theirs for long, so the
 * credit cells of these are released.
 */
void rstream_txring_dead(struct rstream_link *link)
{
	struct tx_ring *ring;
	unsigned int n = 0;
	int id;

	lockdep_assert_held(&link->lock);
	rstream_rxring_abandon(link);
	for (id = 0; (ring = idr_get_next(&link->tx.rings, &id)); id++) {
		tx_keep_cell(ring);
		rstream_link_pause(link, ++n);
	}
	while ((ring = list_first_entry_or_null(&link->tx.zombies, struct tx_ring, zombie))) {
		tx_free(link, ring);
		rstream_link_pause(link, ++n);
	}
}

/* The last reference to the link is gone. */
void rstream_txring_free_all(struct rstream_link *link)
{
	WARN_ON_ONCE(!idr_is_empty(&link->tx.rings));
	idr_destroy(&link->tx.rings);
	idr_destroy(&link->tx.granted);
}
