// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving end of rings.
 *
 * Owns the table of rings that this host has granted.  Called by the streams (link.h), by msg.c
 * with the messages of a ring, and by link_life.c (sweep, end).  Everything but allocation runs
 * under link->lock, including the callbacks to streams.  It never trusts an id, length or number of
 * a message, and never sleeps.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "ring.h"

/*
 * When the DONE of a ring without a stream counts as missing.  Normally, it arrives much earlier:
 * when the sender's writes have completed, or if it refuses the grant, at once.
 */
#define DONE_TIME	(10 * HZ)
#define REFUSED_TIME	(2 * HZ)

static struct rx_ring *to_rx(struct rstream_rxring *ring)
{
	return container_of(ring, struct rx_ring, pub);
}

static void rx_put_memory(struct rx_ring *ring)
{
	if (ring->pub.kept)
		vfree(ring->pub.mem);
	else
		rstream_rmb_put(&ring->block);
}

static void rx_free(struct rstream_link *link, struct rx_ring *ring)
{
	idr_remove(&link->rx.rings, ring->pub.id);
	if (link->rx.last == ring)
		link->rx.last = NULL;
	list_del(&ring->ctrl.list);
	rx_put_memory(ring);
	kfree_rcu(ring, rcu);	/* poll() may read the ring without a lock */
}

/*
 * Do neither this host nor the peer use the ring any more?  Nothing that arrives by TCP counts:
 * only the other end of the link knows whether it will still write.
 */
static bool rx_finished(const struct rx_ring *ring)
{
	if (ring->pub.link->state == RSTREAM_LINK_DEAD)
		return !ring->rs;
	return !ring->rs && ring->done && !(ring->ctrl.due & DUE_FREED);
}

/* The peer does not use it any more. */
static void rx_set_done(struct rstream_link *link, struct rx_ring *ring)
{
	lockdep_assert_held(&link->lock);
	WRITE_ONCE(ring->done, true);
	if (ring->rs)
		link->rx.n_done++;
}

struct rstream_rxring *rstream_rxring_alloc(struct rstream_link *link, u32 size,
					    struct rstream *rs)
{
	struct rx_ring *ring;
	int err, id;

	size = clamp_t(u32, size, RSTREAM_RING_MIN, RSTREAM_RING_MAX);
	size = roundup_pow_of_two(size);
	ring = rstream_account_zalloc(link->ln, sizeof(*ring), GFP_ATOMIC);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&link->lock);
	err = -ENOTCONN;
	if (link->state != RSTREAM_LINK_UP)
		goto fail;
	size = min(size, link->rmb.ring_most);
	/* a small ring is better than none */
	while ((err = rstream_rmb_get(link, RSTREAM_RMB_RINGS, size,
				      &ring->block)) == -EAGAIN &&
	       size > RSTREAM_RING_MIN && !rstream_rmb_fits(link, size))
		size /= 2;
	if (err == -EAGAIN && !rstream_rmb_may_add(link, size))
		err = -ENOMEM;
	if (err)
		goto fail;
	id = idr_alloc_cyclic(&link->rx.rings, ring, 1, RSTREAM_IMM_ID_MAX,
			      GFP_ATOMIC);
	if (id < 0) {
		err = -ENOMEM;
		rstream_rmb_put(&ring->block);
		goto fail;
	}
	ring->rs = rs;
	INIT_LIST_HEAD(&ring->ctrl.list);
	ring->pub.link = link;
	ring->pub.napi_id = link->qp.napi.napi_id;
	ring->pub.id = id;
	ring->pub.size = size;
	ring->pub.rkey = rstream_rmb_rkey(&ring->block);
	ring->pub.raddr = rstream_rmb_addr(&ring->block);
	ring->pub.mem = rstream_rmb_mem(&ring->block);
	ring->busy_at = jiffies;
	link->rx.n++;
	link->rx.n_most = max(link->rx.n_most, link->rx.n);
	link->used_at = jiffies;
	rstream_link_hold(link);
	spin_unlock_bh(&link->lock);
	return &ring->pub;
fail:
	spin_unlock_bh(&link->lock);
	kfree(ring);
	if (err == -EAGAIN)
		rstream_link_want_rmb(link, RSTREAM_RMB_RINGS, size, rs);
	return ERR_PTR(err);
}

void rstream_rxring_switched(struct rstream_rxring *pub, u64 cell_addr,
			     u32 cell_rkey, u32 peer_ring)
{
	struct rx_ring *ring = to_rx(pub);
	struct rstream_link *link = pub->link;

	spin_lock_bh(&link->lock);
	ring->cell_addr = cell_addr;
	ring->cell_rkey = cell_rkey;
	ring->peer_ring = peer_ring & RSTREAM_IMM_ID_MAX;
	ring->switched = true;
	if (!ring->done && ring->consumed > ring->credited)
		ring->ctrl.due |= DUE_CREDIT;
	rstream_msg_flush(link, &ring->ctrl);
	spin_unlock_bh(&link->lock);
}

void rstream_rxring_credit(struct rstream_rxring *pub, u64 consumed,
			   bool interrupt)
{
	struct rx_ring *ring = to_rx(pub);
	struct rstream_link *link = pub->link;

	spin_lock_bh(&link->lock);
	ring->consumed = consumed;
	/* after FREED, which answers DONE, the cell may belong to another ring */
	if (ring->switched && !ring->done && rstream_link_alive(link)) {
		ring->ctrl.due |= DUE_CREDIT | (interrupt ? DUE_INTR : 0);
		rstream_msg_flush(link, &ring->ctrl);
	}
	spin_unlock_bh(&link->lock);
}

u32 rstream_rxring_larger(struct rstream_rxring *pub, u32 size)
{
	struct rstream_link *link = pub->link;
	u64 bytes, used, most, share;

	spin_lock_bh(&link->lock);
	most = rstream_account_rmb_max(link->ln) / 2;
	share = div_u64(most, link->rx.n_most);
	while (size > min_t(u64, share, link->rmb.ring_most))
		size /= 2;
	if (size <= pub->size) {
		size = 0;
		goto out;
	}
	rstream_rmb_usage(link, &bytes, &used);
	if (used - pub->size + size > most ||
	    (!rstream_rmb_has(link, RSTREAM_RMB_RINGS, size) &&
	     !rstream_rmb_fits(link, size)))
		size = 0;
out:
	spin_unlock_bh(&link->lock);
	return size;
}

struct page *rstream_rxring_page(const struct rstream_rxring *pub, u64 at)
{
	const struct rx_ring *ring = container_of(pub, struct rx_ring, pub);
	u32 off = at & (pub->size - 1);

	return pub->kept ? vmalloc_to_page(pub->mem + off) : rstream_rmb_page(&ring->block, off);
}

bool rstream_rxring_left(const struct rstream_rxring *pub)
{
	const struct rx_ring *ring = container_of(pub, struct rx_ring, pub);

	return READ_ONCE(ring->done) || !rstream_link_is_up(pub->link);
}

void rstream_rxring_withdraw(struct rstream_rxring *pub)
{
	struct rx_ring *ring = to_rx(pub);

	spin_lock_bh(&pub->link->lock);
	WARN_ON_ONCE(ring->switched);
	rx_set_done(pub->link, ring);
	spin_unlock_bh(&pub->link->lock);
	rstream_rxring_release(pub);
}

/* A ring has returned memory: if the device has released its RMB, that can perhaps be freed. */
static void rx_trim(struct rstream_link *link)
{
	if (!READ_ONCE(link->rmb.down))
		return;
	rstream_link_hold(link);
	if (!queue_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->rmb.trim_work))
		rstream_link_put(link);
}

/* The link is DEAD: nothing more lands.  Copies what a reader may still want. */
void rstream_rxring_keep(struct rstream_rxring *pub)
{
	struct rx_ring *ring = to_rx(pub);
	struct rstream_link *link = pub->link;
	void *copy = NULL;

	if (!rstream_link_is_dead(link) || pub->kept)
		return;
	if (pub->landed) {
		size_t n = min_t(u64, pub->landed, pub->size);

		/* dirty pages may be written back over this stream: don't wait for that */
		copy = __vmalloc(PAGE_ALIGN(n), GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN);
		if (!copy)
			return;
		memcpy(copy, pub->mem, n);
	}
	spin_lock_bh(&link->lock);
	rstream_rmb_put(&ring->block);
	pub->kept = true;
	pub->mem = copy;
	spin_unlock_bh(&link->lock);
	rx_trim(link);
}

void rstream_rxring_release(struct rstream_rxring *pub)
{
	struct rx_ring *ring = to_rx(pub);
	struct rstream_link *link = pub->link;

	spin_lock_bh(&link->lock);
	ring->rs = NULL;
	ring->busy_at = jiffies;
	link->rx.n--;
	if (ring->done)
		link->rx.n_done--;
	link->used_at = jiffies;
	if (rx_finished(ring))
		rx_free(link, ring);
	spin_unlock_bh(&link->lock);
	rx_trim(link);
	rstream_link_put(link);
}

/* ---- for msg.c ---- */

void rstream_rxring_said(struct rx_ring *ring)
{
	if (rx_finished(ring))
		rx_free(ring->pub.link, ring);
}

/* Mostly, several messages in a row are for the same ring. */
static struct rx_ring *rx_find(struct rstream_link *link, u32 id)
{
	if (!link->rx.last || link->rx.last->pub.id != id)
		link->rx.last = idr_find(&link->rx.rings, id);
	return link->rx.last;
}

void rstream_rxring_data(struct rstream_link *link, u32 id, u32 len, bool want)
{
	struct rx_ring *ring = rx_find(link, id);
	u64 landed;
	u32 at;

	if (!ring || ring->done) {
		rstream_link_break_locked(link, RSTREAM_END_STRAY_DATA);
		return;
	}
	landed = ring->pub.landed;
	at = landed & (ring->pub.size - 1);
	if (len > ring->pub.size - (landed - ring->credited)) {
		/* before SWITCH, the stream's peer may not be the one that writes */
		if (!ring->switched)
			rstream_link_break_locked(link, RSTREAM_END_EARLY_DATA);
		else if (ring->rs)
			rstream_link_ops->data(ring->rs, &ring->pub, true);
		return;
	}
	/* a message is one contiguous write, so it cannot wrap */
	if (len > ring->pub.size - at) {
		rstream_link_break_locked(link, RSTREAM_END_BEYOND);
		return;
	}
	rstream_rmb_sync_for_cpu(&ring->block, at, len);
	link->rx.bytes += len;
	link->rx.msgs++;
	if (len) {
		rstream_mib_add(link->ln->rn,
				RSTREAM_MIB_RING_RX_BYTES, len);
		rstream_link_count(link, RSTREAM_MIB_RING_RX_MSGS);
	}
	/* pairs with the reader's smp_load_acquire(): the data is visible before the count */
	smp_store_release(&ring->pub.landed, landed + len);
	if (want)
		WRITE_ONCE(ring->pub.want_credit, true);
	if (ring->rs)
		rstream_link_ops->data(ring->rs, &ring->pub, false);
}

void rstream_rxring_done(struct rstream_link *link, u32 id)
{
	struct rx_ring *ring = idr_find(&link->rx.rings, id);

	if (!ring || ring->done) {
		rstream_link_break_locked(link, RSTREAM_END_STRAY_END);
		return;
	}
	rx_set_done(link, ring);
	ring->ctrl.due = DUE_FREED;
	rstream_msg_flush(link, &ring->ctrl);
}

/* ---- for link_life.c ---- */

/*
 * Notifies the stream of @ring if it has received nothing for @idle jiffies, or if it should move,
 * or ask for another link, because the link is busy.
 */
static void rx_sweep(struct rx_ring *ring, unsigned long idle, struct rstream_balance *balance)
{
	if (ring->swept != ring->pub.landed) {
		ring->swept = ring->pub.landed;
		/* data does not prolong the time that an abandoned ring may wait for its DONE */
		if (!ring->rs)
			return;
		ring->busy_at = jiffies;
		if (balance->surplus) {
			balance->surplus--;
			rstream_link_ops->event(ring->rs, RSTREAM_LINK_EV_MOVE);
		}
		if (balance->more) {
			balance->more = false;
			rstream_link_ops->event(ring->rs, RSTREAM_LINK_EV_BUSY);
		}
	} else if (ring->rs && time_after(jiffies, ring->busy_at + idle)) {
		ring->busy_at = jiffies;
		rstream_link_ops->event(ring->rs, RSTREAM_LINK_EV_IDLE);
	}
}

/*
 * Is its stream gone, and its DONE overdue?  If the sender has never switched, it may never have
 * received the grant.
 */
static bool rx_is_abandoned(const struct rx_ring *ring)
{
	return !ring->rs && !ring->done &&
	       time_after(jiffies, ring->busy_at + (ring->switched ? DONE_TIME : REFUSED_TIME));
}

/*
 * Notifies the streams of rings that are idle (for less time if memory is short) or should move.
 * Return: bytes of abandoned rings.
 */
u64 rstream_rxring_look(struct rstream_link *link, struct rstream_balance *balance)
{
	unsigned long ms = READ_ONCE(rstream_link_set(link->ln)->ring_idle_ms);
	struct rx_ring *ring;
	unsigned int n = 0;
	u64 bytes = 0;
	int id;

	lockdep_assert_held(&link->lock);
	/* let the maximum decay by a quarter of the difference */
	link->rx.n_most -= DIV_ROUND_UP(link->rx.n_most - link->rx.n, 4);
	if (rstream_rmb_pressure(link))
		ms /= 8;
	for (id = 0; (ring = idr_get_next(&link->rx.rings, &id)); id++) {
		rx_sweep(ring, msecs_to_jiffies(ms), balance);
		if (rx_is_abandoned(ring))
			bytes += ring->pub.size;
		if (!rstream_link_pause(link, ++n))
			break;
	}
	return bytes;
}

void rstream_rxring_abandon(struct rstream_link *link)
{
	struct rx_ring *ring;
	unsigned int n = 0;
	int id;

	lockdep_assert_held(&link->lock);
	for (id = 0; (ring = idr_get_next(&link->rx.rings, &id)); id++) {
		if (rx_finished(ring))
			rx_free(link, ring);
		rstream_link_pause(link, ++n);
	}
}

/* The last reference to the link is gone. */
void rstream_rxring_free_all(struct rstream_link *link)
{
	WARN_ON_ONCE(!idr_is_empty(&link->rx.rings));
	idr_destroy(&link->rx.rings);
}
