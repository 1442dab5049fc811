// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling: which ring of a link may post, and how much.
 *
 * A queue pair works in order, so the writes of a stream wait for everything that others have
 * posted before.  Once QUEUE_MAX bytes of a link are in flight, a ring that has more to post
 * waits in a queue, which is served round robin: a scheduled ring posts at most a quantum, then
 * goes to the tail.  With many rings, the quantum is QUANTUM, for which any ring has room, so
 * that all streams get the same share, whatever the sizes of their rings.  Few rings reach
 * QUEUE_MAX only if they are large; then the quantum is an equal share of it.  A ring with
 * nothing in flight and few bytes to send does not queue.
 *
 * A scheduled ring posts as soon as its stream can; but a program may own the socket for as long
 * as it likes.  So a turn ends after TURN_MS while others wait.  When such a stream comes late, it
 * may post a quantum all the same.
 *
 * Owns the queue of waiting rings and the list of scheduled ones; all with link->lock held.  Called
 * by txring.c, by msg.c when there are slots or credits again, and by streams (yield).
 */
#include "ring.h"
#include "wr.h"

#define QUEUE_MAX	SZ_4M
#define QUANTUM		SZ_32K		/* the smallest ring of a busy stream */
#define SHARE_MIN	SZ_256K		/* if the share is smaller, QUANTUM is used */
#define SMALL_MAX	SZ_4K		/* bytes that need not queue */
#define TURN_MS		20

/*
 * Return: bytes of the link in flight, up to 64 KiB more than the true number, because not all
 * requests are signalled.
 */
static u64 in_flight(const struct rstream_link *link)
{
	return link->tx.bytes - link->sched.completed_bytes;
}

/* Return: quantum of a scheduled ring while others wait, bytes. */
static u64 quantum(const struct rstream_link *link)
{
	u64 part = QUEUE_MAX / (link->sched.n_waiting + link->sched.n_scheduled + 1);

	return part < SHARE_MIN ? QUANTUM : part;
}

/* Is another ring waiting, or scheduled and about to post? */
static bool others_wait(const struct tx_ring *ring)
{
	const struct rstream_link *link = ring->pub.link;
	unsigned int own = ring->pub.scheduled + !list_empty(&ring->waiter);

	return link->sched.n_scheduled + link->sched.n_waiting > own;
}

u64 rstream_sched_budget(const struct tx_ring *ring, u64 queued)
{
	const struct rstream_link *link = ring->pub.link;
	bool idle = link->wr.done >= ring->ctrl.last_sq;
	u64 all = in_flight(link);

	/* nothing in flight and few bytes to send, and there is a credit to spare for it */
	if (idle && queued <= SMALL_MAX && link->msg.credits > link->sched.n_scheduled)
		return SMALL_MAX;
	if (all >= QUEUE_MAX)
		return 0;
	if (!others_wait(ring))
		return max_t(u64, QUEUE_MAX - all, QUANTUM);
	return ring->pub.scheduled || ring->turn_lost ? quantum(link) : 0;
}

void rstream_sched_wait(struct tx_ring *ring, bool first)
{
	struct rstream_link *link = ring->pub.link;

	if (!ring->pub.stalled) {
		ring->pub.stalled = RSTREAM_R_STALL_SLOT;
		if (list_empty(&ring->waiter))
			rstream_link_count(link, RSTREAM_MIB_STALL_SLOT);
	}
	if (!list_empty(&ring->waiter))
		return;
	link->sched.n_waiting++;
	if (first)
		list_add(&ring->waiter, &link->sched.waiters);
	else
		list_add_tail(&ring->waiter, &link->sched.waiters);
}

void rstream_sched_wait_end(struct tx_ring *ring)
{
	if (list_empty(&ring->waiter))
		return;
	list_del_init(&ring->waiter);
	ring->pub.link->sched.n_waiting--;
}

static void sched_end(struct tx_ring *ring)
{
	list_del_init(&ring->sched_node);
	WRITE_ONCE(ring->pub.scheduled, false);
	ring->pub.link->sched.n_scheduled--;
}

void rstream_sched_yield(struct tx_ring *ring, bool next)
{
	struct rstream_link *link = ring->pub.link;

	ring->turn_lost = false;
	if (!ring->pub.scheduled)
		return;
	sched_end(ring);
	if (next && rstream_link_alive(link))
		rstream_sched_next(link);
}

void rstream_sched_next(struct rstream_link *link)
{
	struct tx_ring *ring, *next;
	unsigned int n;
	u64 all;

	lockdep_assert_held(&link->lock);
	all = in_flight(link);
	if (!link->sched.n_waiting || all >= QUEUE_MAX ||
	    rstream_wr_room(link) <= RSTREAM_SQ_CTRL)
		return;
	n = min3((rstream_wr_room(link) - RSTREAM_SQ_CTRL) / rstream_wr_per_message(link),
		 link->msg.credits,
		 (unsigned int)DIV64_U64_ROUND_UP(QUEUE_MAX - all, quantum(link)));
	list_for_each_entry_safe(ring, next, &link->sched.waiters, waiter) {
		if (link->sched.n_scheduled >= n)
			break;
		rstream_sched_wait_end(ring);
		list_add_tail(&ring->sched_node, &link->sched.scheduled);
		link->sched.n_scheduled++;
		ring->turn_at = jiffies;
		WRITE_ONCE(ring->pub.scheduled, true);
		rstream_link_ops->space(ring->rs, &ring->pub, false);
	}
	if (link->sched.n_waiting && link->sched.n_scheduled && rstream_link_alive(link))
		queue_delayed_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->sched.turn_work,
				   msecs_to_jiffies(TURN_MS) + 1);
}

void rstream_sched_turn_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(to_delayed_work(work), struct rstream_link,
						 sched.turn_work);
	struct tx_ring *ring, *next;

	spin_lock_bh(&link->lock);
	list_for_each_entry_safe(ring, next, &link->sched.scheduled, sched_node) {
		if (time_before(jiffies, ring->turn_at + msecs_to_jiffies(TURN_MS)))
			break;
		sched_end(ring);
		ring->turn_lost = true;
	}
	if (rstream_link_alive(link))
		rstream_sched_next(link);
	spin_unlock_bh(&link->lock);
}
