// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving end of rings, and the messages of a link.
 *
 * Owns the table of rings that this host has granted, the control messages that wait to be
 * posted, and the receive credits.  Called by the streams (link.h), by qp.c with messages, by
 * link_life.c (sweep, end), by ring_tx.c.  Everything but allocation runs under link->lock,
 * including the callbacks to streams.  It never trusts an id, length or number of a message,
 * and never sleeps.
 *
 * Receive credits.  Each message consumes one of the peer's posted receives (a silent
 * credit consumes none).  If the peer has a queue of D receives, D - R messages may be in
 * flight to it (R = RSTREAM_RQ_RESERVE).  The peer reposts each receive before it processes
 * the message, and reports this by RQ_CREDIT after every D/4.  RQ_CREDIT itself needs no
 * credit, so there is no deadlock.  It always finds a receive: this host, with a queue of D',
 * sends one RQ_CREDIT for each D'/4 messages of the peer, and the peer can send only
 * D' - R < D' messages until it processes an RQ_CREDIT.  So at most 3 of these are in flight,
 * and 3 < R: RNR never happens.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "ring.h"
#include "wr.h"

/*
 * When the DONE of a ring without a stream counts as missing.  Normally, it arrives much earlier:
 * when the sender's writes have completed, or if it refuses the grant, at once.
 */
#define DONE_TIME	(10 * HZ)
#define REFUSED_TIME	(2 * HZ)

/* How long after RENEW the end of the link is the peer's. */
#define RENEW_TIME	(10 * HZ)

static struct rx_ring *to_rx(struct rstream_rxring *ring)
{
	return container_of(ring, struct rx_ring, pub);
}

/* ---- messages without data ---- */

static void rx_put_memory(struct rx_ring *ring)
{
	if (ring->kept)
		vfree(ring->pub.mem);
	else
		rstream_rmb_put(&ring->block);
}

static void rx_free(struct rstream_link *link, struct rx_ring *ring)
{
	idr_remove(&link->rx_rings, ring->pub.id);
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

static bool post_credit(struct rstream_link *link, struct rx_ring *ring)
{
	bool intr = ring->ctrl.due & DUE_INTR;

	if (intr && !link->rq_credits)
		return false;
	if (intr) {
		rstream_wr_message(link, ring->cell_addr, ring->cell_rkey,
				   RSTREAM_IMM_CREDIT, ring->peer_ring);
		link->rq_credits--;
	} else {
		rstream_wr_write(link, ring->cell_addr, ring->cell_rkey);
	}
	rstream_wr_credit(link, ring->consumed);
	if (intr)
		rstream_wr_message_end(link, RSTREAM_CTRL_BYTES);
	ring->credited = ring->consumed;
	ring->ctrl.due &= ~(DUE_CREDIT | DUE_INTR);
	rstream_ring_count(link, intr ? RSTREAM_MIB_CREDITS_INTR :
	      RSTREAM_MIB_CREDITS_SILENT);
	return true;
}

static bool post_empty(struct rstream_link *link, enum rstream_imm_type type,
		       u32 id)
{
	if (!link->rq_credits)
		return false;
	link->rq_credits--;
	rstream_wr_notice(link, type, id);
	return true;
}

bool rstream_msg_say(struct rstream_link *link, enum rstream_imm_type type, u32 id)
{
	lockdep_assert_held(&link->lock);
	return rstream_wr_room(link) && post_empty(link, type, id) && !rstream_wr_post(link);
}

void rstream_msg_signal(struct rstream_link *link)
{
	if (link->sq_signalled == link->sq_posted || !rstream_wr_room(link))
		return;
	rstream_wr_write(link, 0, 0);
	rstream_wr_signal(link);
	rstream_wr_post(link);
}

/*
 * Have all writes to the peer for this ring completed?  If not, makes sure that their completion
 * calls rstream_msg_kick().  A device must not repeat a write to memory that the peer has reused.
 */
static bool ctrl_completed(struct rstream_link *link, const struct ring_ctrl *ctrl)
{
	if (link->sq_done >= ctrl->last_sq)
		return true;
	if (link->sq_signalled < ctrl->last_sq)
		rstream_msg_signal(link);
	return false;
}

/* Posts one message that is due.  Return: false if a slot, credit or completion is missing. */
static bool ctrl_post_one(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	struct rx_ring *rx = container_of(ctrl, struct rx_ring, ctrl);
	struct tx_ring *tx = container_of(ctrl, struct tx_ring, ctrl);

	if (!rstream_link_alive(link) || !rstream_wr_fits(link))
		return false;
	if (ctrl->due & (DUE_FREED | DUE_DONE) && !ctrl_completed(link, ctrl))
		return false;
	if (ctrl->due & DUE_CREDIT) {
		if (!post_credit(link, rx))
			return false;
	} else if (ctrl->due & DUE_FREED) {
		if (!post_empty(link, RSTREAM_IMM_FREED, rx->pub.id))
			return false;
		ctrl->due &= ~DUE_FREED;
	} else if (ctrl->due & DUE_ASK) {
		if (!post_empty(link, RSTREAM_IMM_DATA_WANT, tx->peer_ring))
			return false;
		ctrl->due &= ~DUE_ASK;
		return !rstream_wr_post(link);	/* a zero-length write */
	} else if (ctrl->due & DUE_DONE) {
		if (!post_empty(link, RSTREAM_IMM_DONE, tx->peer_ring))
			return false;
		rstream_wr_signal(link);
		ctrl->due &= ~DUE_DONE;
		list_add_tail(&tx->ending, &link->tx_ending);
	}
	ctrl->last_sq = link->sq_posted + link->batch->n;
	return !rstream_wr_post(link);
}

/*
 * Messages that only lack a receive credit are on a separate list, which is walked only when there
 * are credits: a peer can make many wait for long.
 */
static void ctrl_wait(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	bool poor = rstream_link_alive(link) && rstream_wr_fits(link) && !link->rq_credits &&
		    link->sq_done >= ctrl->last_sq;

	if (!list_empty(&ctrl->list) && ctrl->poor == poor)
		return;
	list_move_tail(&ctrl->list, poor ? &link->ctrl_poor : &link->ctrl_list);
	ctrl->poor = poor;
}

/* Posts what is due, now or in rstream_msg_kick().  May free @ctrl. */
bool rstream_msg_flush(struct rstream_link *link, struct ring_ctrl *ctrl)
{
	struct rx_ring *rx = container_of(ctrl, struct rx_ring, ctrl);

	lockdep_assert_held(&link->lock);
	while (ctrl->due) {
		if (ctrl_post_one(link, ctrl))
			continue;
		ctrl_wait(link, ctrl);
		return false;
	}
	list_del_init(&ctrl->list);
	if (!ctrl->tx && rx_finished(rx))
		rx_free(link, rx);
	return true;
}

static void return_receives(struct rstream_link *link)
{
	if (link->rq_return < link->depth / 4 || !rstream_wr_room(link))
		return;
	rstream_wr_notice(link, RSTREAM_IMM_RQ_CREDIT, link->rq_return);
	link->rq_return = 0;
	rstream_wr_post(link);
}

/* Not before READY, for which a credit must remain; an honest peer probes only after it. */
static void answer_probe(struct rstream_link *link)
{
	if (!link->owes_ack || link->setup != RSTREAM_SETUP_READY || !rstream_wr_room(link) ||
	    !post_empty(link, RSTREAM_IMM_PROBE_ACK, 0))
		return;
	link->owes_ack = false;
	rstream_wr_post(link);
}

/*
 * Sends READY once this end has registered its memory.  With iWARP, the active side must be the
 * first to send (RFC 5044, 7.1.2), so the passive side waits for its READY.
 */
void rstream_msg_say_ready(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (!rstream_link_alive(link) || link->setup != RSTREAM_SETUP_REGISTERED ||
	    (link->iwarp && !link->active && !link->peer_ready))
		return;
	link->setup = RSTREAM_SETUP_READY;
	link->rq_credits--;
	rstream_wr_notice(link, RSTREAM_IMM_READY, 0);
	rstream_wr_post(link);
}

/* There may be slots or credits again: serves the waiters, control messages first. */
void rstream_msg_kick(struct rstream_link *link)
{
	struct ring_ctrl *ctrl, *next_ctrl;

	lockdep_assert_held(&link->lock);
	return_receives(link);
	answer_probe(link);
	list_for_each_entry_safe(ctrl, next_ctrl, &link->ctrl_list, list) {
		/* without slots, stop; without credits, go on: silent credits need none */
		if (!rstream_msg_flush(link, ctrl) && !rstream_wr_fits(link))
			return;
	}
	while (link->rq_credits && !list_empty(&link->ctrl_poor)) {
		ctrl = list_first_entry(&link->ctrl_poor, struct ring_ctrl, list);
		if (!rstream_msg_flush(link, ctrl) && !rstream_wr_fits(link))
			return;
	}
	if (rstream_link_alive(link))
		rstream_sched_next(link);
}

/* ---- receiving end ---- */

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
	size = min(size, link->ring_most);
	/* a small ring is better than none */
	while ((err = rstream_rmb_get(link, RSTREAM_RMB_RINGS, size,
				      &ring->block)) == -EAGAIN &&
	       size > RSTREAM_RING_MIN && !rstream_rmb_fits(link, size))
		size /= 2;
	if (err == -EAGAIN && !rstream_rmb_may_add(link, size))
		err = -ENOMEM;
	if (err)
		goto fail;
	id = idr_alloc_cyclic(&link->rx_rings, ring, 1, RSTREAM_IMM_ID_MAX,
			      GFP_ATOMIC);
	if (id < 0) {
		err = -ENOMEM;
		rstream_rmb_put(&ring->block);
		goto fail;
	}
	ring->rs = rs;
	INIT_LIST_HEAD(&ring->ctrl.list);
	ring->pub.link = link;
	ring->pub.napi_id = link->napi.napi_id;
	ring->pub.id = id;
	ring->pub.size = size;
	ring->pub.rkey = rstream_rmb_rkey(&ring->block);
	ring->pub.raddr = rstream_rmb_addr(&ring->block);
	ring->pub.mem = rstream_rmb_mem(&ring->block);
	ring->busy_at = jiffies;
	link->n_rx++;
	link->n_rx_most = max(link->n_rx_most, link->n_rx);
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
	share = div_u64(most, link->n_rx_most);
	while (size > min_t(u64, share, link->ring_most))
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

	return ring->kept ? vmalloc_to_page(pub->mem + off) : rstream_rmb_page(&ring->block, off);
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
	WRITE_ONCE(ring->done, true);
	spin_unlock_bh(&pub->link->lock);
	rstream_rxring_release(pub);
}

/* A ring has returned memory: if the device has released its RMB, that can perhaps be freed. */
static void rx_trim(struct rstream_link *link)
{
	if (!READ_ONCE(link->down))
		return;
	rstream_link_hold(link);
	if (!queue_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->trim_work))
		rstream_link_put(link);
}

/* The link is DEAD: nothing more lands.  Copies what a reader may still want. */
void rstream_rxring_keep(struct rstream_rxring *pub)
{
	struct rx_ring *ring = to_rx(pub);
	struct rstream_link *link = pub->link;
	void *copy = NULL;

	if (!rstream_link_is_dead(link) || ring->kept)
		return;
	if (pub->landed) {
		size_t n = min_t(u64, pub->landed, pub->size);

		copy = vmalloc(PAGE_ALIGN(n));
		if (!copy)
			return;
		memcpy(copy, pub->mem, n);
	}
	spin_lock_bh(&link->lock);
	rstream_rmb_put(&ring->block);
	ring->kept = true;
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
	link->n_rx--;
	link->used_at = jiffies;
	if (rx_finished(ring))
		rx_free(link, ring);
	spin_unlock_bh(&link->lock);
	rx_trim(link);
	rstream_link_put(link);
}

static void message_data(struct rstream_link *link, u32 id, u32 len, bool want)
{
	struct rx_ring *ring = idr_find(&link->rx_rings, id);
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
	link->rx_bytes += len;
	link->rx_msgs++;
	if (len) {
		rstream_mib_add(link->ln->rn,
				RSTREAM_MIB_RING_RX_BYTES, len);
		rstream_ring_count(link, RSTREAM_MIB_RING_RX_MSGS);
	}
	/* pairs with the reader's smp_load_acquire(): the data is visible before the count */
	smp_store_release(&ring->pub.landed, landed + len);
	if (want)
		WRITE_ONCE(ring->pub.want_credit, true);
	if (ring->rs)
		rstream_link_ops->data(ring->rs, &ring->pub, false);
}

static void message_done(struct rstream_link *link, u32 id)
{
	struct rx_ring *ring = idr_find(&link->rx_rings, id);

	if (!ring || ring->done) {
		rstream_link_break_locked(link, RSTREAM_END_STRAY_END);
		return;
	}
	WRITE_ONCE(ring->done, true);
	ring->ctrl.due = DUE_FREED;
	rstream_msg_flush(link, &ring->ctrl);
}

/* Only on iWARP does the peer's software answer probes; elsewhere, its device does. */
static void message_probe(struct rstream_link *link, enum rstream_imm_type type)
{
	if (!link->iwarp) {
		rstream_link_break_locked(link, RSTREAM_END_UNKNOWN);
	} else if (type == RSTREAM_IMM_PROBE) {
		link->owes_ack = true;
		answer_probe(link);
	} else if (link->timed) {
		rstream_link_probed(link);
	}
}

/*
 * If the peer ends the link now, that will not count against the path.  Only once the link was up
 * for a second: otherwise, a peer could make this host establish links all the time.
 */
static void message_renew(struct rstream_link *link)
{
	if (link->was_up && time_after(jiffies, link->up_at + HZ))
		link->renews_until = get_jiffies_64() + RENEW_TIME;
}

/* ---- for qp.c and link_life.c ---- */

void rstream_msg_got(struct rstream_link *link, __be32 imm, u32 len)
{
	u32 id = rstream_imm_id(imm);

	lockdep_assert_held(&link->lock);
	/* before anything is counted, so that counts remain exact */
	if (rstream_imm_number(imm) != link->rx_number++) {
		rstream_link_break_locked(link, RSTREAM_END_OUT_OF_ORDER);
		return;
	}
	if (rstream_imm_type(imm) != RSTREAM_IMM_RQ_CREDIT)
		link->rq_return++;
	switch (rstream_imm_type(imm)) {
	case RSTREAM_IMM_DATA:
		message_data(link, id, len, false);
		break;
	case RSTREAM_IMM_DATA_WANT:
		message_data(link, id, len, true);
		break;
	case RSTREAM_IMM_CREDIT:
		rstream_txring_credit(link, id);
		break;
	case RSTREAM_IMM_DONE:
		message_done(link, id);
		break;
	case RSTREAM_IMM_FREED:
		rstream_txring_freed(link, id);
		break;
	case RSTREAM_IMM_READY:
		rstream_link_peer_ready(link);
		rstream_msg_say_ready(link);
		break;
	case RSTREAM_IMM_PROBE:
	case RSTREAM_IMM_PROBE_ACK:
		message_probe(link, rstream_imm_type(imm));
		break;
	case RSTREAM_IMM_RENEW:
		message_renew(link);
		break;
	case RSTREAM_IMM_RQ_CREDIT:
		if (!id || id > link->rq_credits_max - link->rq_credits) {
			rstream_link_break_locked(link, RSTREAM_END_RQ_CREDITS);
			break;
		}
		link->rq_credits += id;
		/* return_receives() reports at least a quarter: less counts as withholding */
		if (id >= link->rq_credits_max / 4)
			link->poor_sweeps = 0;
		rstream_msg_kick(link);
		break;
	default:
		rstream_link_break_locked(link, RSTREAM_END_UNKNOWN);
	}
	if (rstream_link_alive(link))
		return_receives(link);
}

/*
 * Notifies the stream of @ring if it has received nothing for @idle jiffies, or if it should move,
 * or ask for another link, because the link is busy.
 */
static void rx_sweep(struct rx_ring *ring, unsigned long idle, struct rstream_balance *balance)
{
	if (ring->swept != ring->pub.landed) {
		ring->swept = ring->pub.landed;
		/* data does not prolong the time that an orphan may wait for its DONE */
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
static bool rx_is_orphan(const struct rx_ring *ring)
{
	return !ring->rs && !ring->done &&
	       time_after(jiffies, ring->busy_at + (ring->switched ? DONE_TIME : REFUSED_TIME));
}

/*
 * Notifies the streams of rings that are idle (for less time if memory is short) or should move.
 * Return: bytes of orphaned rings.
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
	link->n_rx_most -= DIV_ROUND_UP(link->n_rx_most - link->n_rx, 4);
	if (rstream_rmb_pressure(link))
		ms /= 8;
	for (id = 0; (ring = idr_get_next(&link->rx_rings, &id)); id++) {
		rx_sweep(ring, msecs_to_jiffies(ms), balance);
		if (rx_is_orphan(ring))
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
	for (id = 0; (ring = idr_get_next(&link->rx_rings, &id)); id++) {
		if (rx_finished(ring))
			rx_free(link, ring);
		rstream_link_pause(link, ++n);
	}
}

/* The last reference to the link is gone. */
void rstream_rxring_free_all(struct rstream_link *link)
{
	WARN_ON_ONCE(!idr_is_empty(&link->rx_rings));
	WARN_ON_ONCE(!idr_is_empty(&link->tx_rings));
	idr_destroy(&link->rx_rings);
	idr_destroy(&link->tx_rings);
	idr_destroy(&link->tx_granted);
}
