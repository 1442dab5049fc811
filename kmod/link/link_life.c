// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: setup, bring-up, periodic work and teardown.
 *
 * Lifetime of a link.  rstream_life_new() takes two references, for the tables and for its caller.
 * Every link becomes BROKEN exactly once; that queues link_lost_work(), which notifies the streams,
 * then link_down_work(), which drains the queue pair, then link_end_work(), which releases
 * everything and finally drops the reference of the tables.  The following may use the link until
 * then, or later if they hold a reference:
 *
 *  1. timeout_work, probe.work, turn_work, up_work, register_work, rmb.work: queued only under
 *     link->lock while the link is alive; cancelled with _sync, the first four by link_down_work(),
 *     the others, which may wait for the device, by link_end_work().  trim_work, which follows
 *     later, holds a reference; free_work is queued when the last one is dropped.
 *  2. Completion handlers: none runs after the drain, or before there is one on a QP that is new;
 *     napi_disable() and a grace period wait for polling.  Events of the QP: rdma_destroy_qp()
 *     waits for them, then event_work is cancelled.
 *  3. Handlers of the cm_id: rdma_destroy_id() waits for a running one, and none follows.
 *     setup_work, which creates the queues: queued by a handler, or when the link takes over a
 *     request, under setup_lock while @closing is false; cancelled with _sync once that is set.
 *  4. The device's list of links: rstream_dev_detach() comes after everything that uses the
 *     device; only then does the removal of the device continue.
 *  5. Lookups by id or through the peer: they take a reference under the table's lock.  The link
 *     enters both tables at once, and leaves both before the reference of the tables is dropped.
 *  6. Code that maps or unmaps pages without link->lock (txring.c): link_end_work() waits for an
 *     RCU grace period when the link is DEAD.
 *  7. Rings: each holds a reference.  RMBs without a ring are freed once @down is set, the others
 *     by trim_work or by link_free_work().
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "base/route.h"
#include "account.h"
#include "cm.h"
#include "peer_host.h"
#include "ring.h"
#include "device.h"
#include "qp.h"
#include "wr.h"
#include "waiter.h"

#define ABANDONED_MAX	SZ_2M
#define NUDGE_MS	50
/* How long the peer may owe an answer: it may queue behind 4 MiB of data on a slow network. */
#define OWED_MS		30000
/*
 * How long DONE may take to complete, during which the bytes of a closed stream are charged to
 * nobody.  A longer link_stall_ms counts instead, and 0 means for ever.
 */
#define DONE_MS		60000U
/* Bytes since the last sweep that make a link count as busy. */
#define BUSY_BYTES	SZ_64K
/* When larger rings are tried again, in sweeps: after 8 s by default, or up to an hour. */
#define RING_RETRY_SWEEPS	16U
#define RING_RETRY_MOST		8192U
/* Longest time between moves, in sweeps: half a minute by default. */
#define MOVE_PAUSE_MAX	64U

/*
 * siw may overlook a message that arrives while it accepts the connection, until something else
 * arrives.  So the active side, which sends first, keeps sending empty writes until the link is up.
 */
static void link_nudge(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (!link->iwarp || !link->active || link->state != RSTREAM_LINK_CONNECTING)
		return;
	if (link->life.setup == RSTREAM_SETUP_READY && rstream_wr_room(link)) {
		rstream_wr_write(link, 0, 0);
		rstream_wr_post(link);
	}
	queue_delayed_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->probe.work,
			   msecs_to_jiffies(NUDGE_MS));
}

static void link_register_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.register_work);
	int err;

	rstream_qp_query(link);
	err = rstream_rmb_add(link, RSTREAM_RMB_CELLS, 0);
	if (err) {
		rstream_link_break(link, RSTREAM_END_NO_CELLS);
		return;
	}
	/* without memory for rings, this host can still send */
	rstream_rmb_add(link, RSTREAM_RMB_RINGS, 0);
	spin_lock_bh(&link->lock);
	if (rstream_link_alive(link)) {
		rstream_link_set_setup(link, RSTREAM_SETUP_REGISTERED);
		rstream_msg_say_ready(link);
		rstream_link_try_up(link);
		link_nudge(link);
	}
	spin_unlock_bh(&link->lock);
}

static void link_up_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.up_work);

	if (READ_ONCE(link->state) != RSTREAM_LINK_UP)
		return;
	cancel_delayed_work(&link->life.timeout_work);
	rstream_peer_link_up(link);
}

static void link_timeout_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(to_delayed_work(work),
						 struct rstream_link,
						 life.timeout_work);

	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_CONNECTING)
		rstream_link_break_locked(link, RSTREAM_END_LATE);
	spin_unlock_bh(&link->lock);
}

/*
 * Adjusts the maximum size of new rings after memory for a ring of @size was registered (@had) or
 * could not be: smaller rings may still be possible, and scarce memory may become available again.
 */
static void ring_had(struct rstream_link *link, u32 size, bool had)
{
	u32 most = clamp_t(u32, had ? size * 2 : size / 2, RSTREAM_RING_MIN,
			   RSTREAM_RING_MAX);

	spin_lock_bh(&link->lock);
	if (had ? most > link->rmb.ring_most : most < link->rmb.ring_most)
		link->rmb.ring_most = most;
	link->rmb.retry_pause = had ? RING_RETRY_SWEEPS :
				min(link->rmb.retry_pause * 2, RING_RETRY_MOST);
	link->rmb.retry_at = link->probe.sweeps + link->rmb.retry_pause;
	spin_unlock_bh(&link->lock);
}

/*
 * Now and then, a larger ring may be tried again: the registration may have failed for lack of
 * memory, and rings that fit into what is registered do not tell that there is more.
 */
static void ring_may_have(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (link->rmb.ring_most == RSTREAM_RING_MAX ||
	    (int)(link->probe.sweeps - link->rmb.retry_at) < 0)
		return;
	link->rmb.ring_most = min_t(u32, link->rmb.ring_most * 2, RSTREAM_RING_MAX);
	link->rmb.retry_at = link->probe.sweeps + link->rmb.retry_pause;
}

static void link_rmb_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 rmb.work);
	unsigned int asked, wanted;
	int err = 0;
	u32 least;

	rstream_rmb_trim(link);
	spin_lock_bh(&link->lock);
	asked = link->rmb.wanted;
	wanted = asked;
	least = link->rmb.least;
	/* requests during the last registration may be satisfied by now */
	if (least && rstream_rmb_has(link, RSTREAM_RMB_RINGS, least))
		wanted &= ~BIT(RSTREAM_RMB_RINGS);
	link->rmb.wanted = 0;
	link->rmb.least = 0;
	spin_unlock_bh(&link->lock);
	if (wanted & BIT(RSTREAM_RMB_CELLS))
		err = rstream_rmb_add(link, RSTREAM_RMB_CELLS, 0);
	if (!err && wanted & BIT(RSTREAM_RMB_RINGS)) {
		err = rstream_rmb_add(link, RSTREAM_RMB_RINGS, least);
		ring_had(link, least, !err);
	}
	if (asked)
		rstream_waiter_notify(link->peer,
				      err ? RSTREAM_LINK_EV_FAILED : RSTREAM_LINK_EV_UP);
}

/* The device has released all RMBs; this frees those that no stream reads any more. */
static void link_trim_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link, rmb.trim_work);

	rstream_rmb_trim(link);
	rstream_link_put(link);
}

/*
 * A device that cannot send, because the network holds back its packets, may not count retries, and
 * so never give up.  This counts probes instead of time, because a machine that was stopped for a
 * while (a VM, say) misses only one.
 */
static bool link_is_stalled(struct rstream_link *link, bool quiet)
{
	const struct rstream_settings *set = rstream_link_set(link->ln);
	unsigned int most = READ_ONCE(set->link_stall_ms);
	bool waits = link->probe.signalled > link->wr.done;

	lockdep_assert_held(&link->lock);
	if (link->iwarp) {
		/* while a probe is unanswered, completions are no sign of life */
		if (link->probe.timed)
			quiet = link->probe.received == link->msg.received;
		waits |= link->probe.timed || !link->msg.credits;
	}
	if (quiet && waits)
		link->probe.misses++;
	else
		link->probe.misses = 0;
	most = DIV_ROUND_UP(most, READ_ONCE(set->link_probe_ms));
	return most && link->probe.misses >= most;
}

/* Has nothing completed since the last probe, and on iWARP, has nothing been received? */
static bool link_is_quiet(const struct rstream_link *link)
{
	return link->probe.done == link->wr.done &&
	       (!link->iwarp || link->probe.received == link->msg.received);
}

/*
 * Posts a signalled request if the link is quiet or waits for unsignalled requests: it completes
 * those, and its retries detect a dead peer.  With iWARP, a request completes when TCP has taken
 * it, and TCP retries for minutes, so the peer has to answer the probe.
 */
static void link_probe(struct rstream_link *link, bool quiet)
{
	lockdep_assert_held(&link->lock);
	if (link->wr.signalled > link->wr.done ||
	    (!quiet && link->wr.done == link->wr.posted) ||
	    !rstream_wr_room(link))
		return;
	if (link->iwarp) {
		if (link->probe.timed || !link->msg.credits) {
			rstream_msg_signal(link);
			return;
		}
		link->msg.credits--;
		rstream_wr_notice(link, RSTREAM_IMM_PROBE, 0);
	} else {
		rstream_wr_write(link, 0, 0);
	}
	rstream_wr_signal(link);
	link->probe.timed_at = ktime_get();
	if (!rstream_wr_post(link))
		link->probe.timed = link->wr.posted;
	rstream_link_count(link, RSTREAM_MIB_PROBES);
}

static bool link_is_idle(struct rstream_link *link)
{
	unsigned long ms = rstream_link_set(link->ln)->link_idle_ms;

	lockdep_assert_held(&link->lock);
	return !link->rx.n && !link->tx.n &&
	       time_after(jiffies, link->used_at + msecs_to_jiffies(ms));
}

/* If routes or IPsec policies have changed, streams may have to leave their rings: notify them. */
static void link_look_at_routes(struct rstream_link *link)
{
	struct net *net = rstream_link_netns(link);
	int genid = rstream_route_genid(net);

	if (genid == link->probe.routes)
		return;
	link->probe.routes = genid;
	if (rstream_route_net_protects(net))
		rstream_link_tell_streams(link, RSTREAM_LINK_EV_ROUTES);
}

/* Limit on memory lost in abandoned rings, bytes; beyond it, a new link replaces this one. */
static u64 abandoned_max(const struct rstream_link *link)
{
	u64 max = rstream_account_rmb_max(link->ln);

	return min_t(u64, ABANDONED_MAX, max / 4);
}

/*
 * Clears in @balance what is not to be done now: everything, if the link is not busy, and moves, if
 * it is too soon.  Rings that move may have to come back as others start and end, so the pause
 * doubles with each move.
 */
static void link_may_move(struct rstream_link *link, struct rstream_balance *balance)
{
	u64 bytes = link->tx.bytes + link->rx.bytes;

	lockdep_assert_held(&link->lock);
	if (bytes - link->probe.swept_bytes < BUSY_BYTES)
		*balance = (struct rstream_balance){};
	link->probe.swept_bytes = bytes;
	if (!balance->surplus)
		link->probe.move_pause = 0;
	else if ((int)(link->probe.sweeps - link->probe.move_at) < 0)
		balance->surplus = 0;
}

static void link_has_moved(struct rstream_link *link, unsigned int n)
{
	lockdep_assert_held(&link->lock);
	if (!n)
		return;
	link->probe.move_pause = min(max(link->probe.move_pause * 2, 2U), MOVE_PAUSE_MAX);
	link->probe.move_at = link->probe.sweeps + link->probe.move_pause;
}

/*
 * Ends the link, because this end has lost memory.  RENEW goes out one sweep earlier, so that the
 * peer does not count a fault.  Return: true if the link has ended.
 */
static bool link_renew(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (link->probe.renewing) {
		rstream_link_break_locked(link, RSTREAM_END_ORPHANS);
		return true;
	}
	link->probe.renewing = true;
	/* if there is no slot or credit, the peer takes the end for a fault */
	if (link->state == RSTREAM_LINK_UP)
		rstream_msg_say(link, RSTREAM_IMM_RENEW, 0);
	return false;
}

/*
 * Return: NONE, or why the link must end: an answer of the peer is overdue.  This counts sweeps
 * instead of time, because a host that was stopped for a while misses only one.
 */
static enum rstream_link_end link_is_owed(struct rstream_link *link)
{
	const struct rstream_settings *set = rstream_link_set(link->ln);
	unsigned int ms = READ_ONCE(set->link_probe_ms), stall = READ_ONCE(set->link_stall_ms);
	unsigned int most = DIV_ROUND_UP(OWED_MS, ms);
	enum rstream_link_end end;

	stall = stall ? DIV_ROUND_UP(max(stall, DONE_MS), ms) : UINT_MAX;
	end = rstream_txring_overdue(link, most, stall);
	if (end != RSTREAM_END_NONE)
		return end;
	return rstream_msg_overdue(link, most) ? RSTREAM_END_NO_RQ_CREDITS : RSTREAM_END_NONE;
}

static void link_probe_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(to_delayed_work(work),
						 struct rstream_link,
						 probe.work);
	unsigned long ms = rstream_link_set(link->ln)->link_probe_ms;
	struct rstream_balance balance;
	enum rstream_link_end end;
	unsigned int surplus;
	bool quiet;

	rstream_peer_balance(link, &balance);
	spin_lock_bh(&link->lock);
	link_nudge(link);
	if (link->state != RSTREAM_LINK_UP)
		goto out;
	if (link_is_idle(link)) {
		rstream_link_break_locked(link, RSTREAM_END_IDLE);
		goto out;
	}
	quiet = link_is_quiet(link);
	if (link_is_stalled(link, quiet)) {
		rstream_link_break_locked(link, RSTREAM_END_STALLED);
		goto out;
	}
	link_probe(link, quiet);
	link->probe.done = link->wr.done;
	link->probe.signalled = link->wr.signalled;
	link->probe.received = link->msg.received;
	link_may_move(link, &balance);
	surplus = balance.surplus;
	if (link->state == RSTREAM_LINK_UP)
		rstream_txring_sweep(link, &balance);
	link_look_at_routes(link);
	if (link->state != RSTREAM_LINK_UP)
		goto out;
	end = link_is_owed(link);
	if (end) {
		rstream_link_break_locked(link, end);
		goto out;
	}
	if (rstream_rxring_look(link, &balance) <= abandoned_max(link))
		link->probe.renewing = false;
	else if (link_renew(link))
		goto out;
	link_has_moved(link, surplus - balance.surplus);
	ring_may_have(link);
	if (link->state != RSTREAM_LINK_UP)
		goto out;
	if (rstream_rmb_sweep(link))
		queue_work(rstream_wqs[RSTREAM_WQ_MEMORY], &link->rmb.work);
	queue_delayed_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->probe.work, msecs_to_jiffies(ms));
out:
	spin_unlock_bh(&link->lock);
}

static void link_unlist(struct rstream_link *link)
{
	struct rstream_link_net *ln = link->ln;

	spin_lock_bh(&ln->lock);
	list_del(&link->net_list);
	idr_remove(&ln->ids, link->id);
	spin_unlock_bh(&ln->lock);
}

/* Never waits, so that streams continue on TCP however long the teardown takes. */
static void link_lost_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.lost_work);

	spin_lock_bh(&link->lock);
	rstream_link_tell_streams(link, RSTREAM_LINK_EV_LOST);
	spin_unlock_bh(&link->lock);
	/* no stream waits for the drain of a link that was never up */
	queue_work(rstream_wqs[link->was_up ? RSTREAM_WQ_DOWN : RSTREAM_WQ_FAILED],
		   &link->life.down_work);
}

/* See the top of this file. */
static void link_down_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.down_work);
	bool is_new;

	mutex_lock(&link->cm.setup_lock);
	link->cm.closing = true;
	mutex_unlock(&link->cm.setup_lock);
	cancel_work_sync(&link->cm.setup_work);
	cancel_delayed_work_sync(&link->life.timeout_work);
	cancel_delayed_work_sync(&link->probe.work);
	cancel_delayed_work_sync(&link->sched.turn_work);
	cancel_work_sync(&link->life.up_work);

	is_new = rstream_qp_is_new(link);
	rstream_cm_disconnect(link);
	if (!is_new)
		rstream_qp_drain(link);
	rstream_txring_unmap(link);
	spin_lock_bh(&link->lock);
	rstream_link_attempt_over(link);
	rstream_txring_drained(link);
	rstream_link_set_state(link, RSTREAM_LINK_DEAD);
	rstream_link_tell_streams(link, RSTREAM_LINK_EV_DEAD);
	rstream_txring_dead(link);
	rstream_txring_unlock(link);
	link_unlist(link);
	/* this also notifies streams that wait for the link, or for memory of it */
	rstream_peer_link_down(link);
	queue_work(rstream_wqs[RSTREAM_WQ_END], &link->life.end_work);
}

/* Has the peer requested the link, and ended it soon, or caused its end? */
static bool ended_young(const struct rstream_link *link)
{
	return !link->active && !rstream_link_ended_by_host(link) &&
	       !time_after(jiffies, link->made_at + RSTREAM_YOUNG);
}

/* No stream waits for this, which may take long: for the device, or for rdma_cm's retries. */
static void link_end_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.end_work);
	struct rstream_link_net *ln = link->ln;

	/* not in link_down_work(), because they may have to wait for the device */
	cancel_work_sync(&link->life.register_work);
	cancel_work_sync(&link->rmb.work);
	/* code that maps or unmaps without the lock: see txring.c */
	synchronize_rcu();

	rstream_qp_destroy(link);
	rstream_cm_destroy(link);
	rstream_dev_detach(link);
	spin_lock_bh(&link->lock);
	WRITE_ONCE(link->rmb.down, true);
	spin_unlock_bh(&link->lock);
	/* streams may hold the link for long; free all RMBs that they do not read */
	rstream_rmb_trim(link);
	spin_lock_bh(&ln->lock);
	rstream_host_del_link(ln, link->peer->host);
	if (ended_young(link))
		rstream_host_add_young(ln, link->peer->host);
	ln->n_attached--;
	spin_unlock_bh(&ln->lock);
	rstream_link_put(link);
}

static void link_free_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 life.free_work);
	struct rstream_link_net *ln = link->ln;
	struct rstream_peer *peer = link->peer;

	rstream_rxring_free_all(link);
	rstream_txring_free_all(link);
	rstream_rmb_free_all(link);
	kfree(link);
	spin_lock_bh(&ln->lock);
	ln->n_links--;
	wake_up_all(&ln->wait);
	spin_unlock_bh(&ln->lock);
	/* last, because the peers keep @ln and the namespace alive */
	rstream_peer_put(peer);
}

/* ---- setup ---- */

/* Counts the link, and if this host connects it, the attempt.  Return: false if at a limit. */
static bool host_enlist(struct rstream_link *link)
{
	struct rstream_host *host = link->peer->host;
	struct rstream_link_net *ln = link->ln;

	if (!rstream_host_add_link(ln, host))
		return false;
	link->attempt = link->active && rstream_host_add_attempt(ln, host);
	if (link->attempt == link->active)
		return true;
	rstream_host_del_link(ln, host);
	return false;
}

/* Does a stream or listener use the namespace?  The initial one is never removed, nor pinned. */
static bool net_used(const struct rstream_link_net *ln)
{
	return net_eq(ln->net, &init_net) || atomic_read(&ln->users);
}

static bool net_enlist(struct rstream_link *link)
{
	struct rstream_link_net *ln = link->ln;
	int id = -ENODEV;

	spin_lock(&ln->lock);
	/* not for the last user, which has gone meanwhile: listen_or_not() would miss this link */
	if (!ln->exiting && !ln->drained && net_used(ln))
		id = idr_alloc_cyclic(&ln->ids, link, 1, 0, GFP_NOWAIT);
	if (id > 0 && !host_enlist(link)) {
		idr_remove(&ln->ids, id);
		id = -EBUSY;
	}
	if (id > 0) {
		link->id = id;
		list_add_tail(&link->net_list, &ln->links);
		ln->n_attached++;
		ln->n_links++;
	}
	spin_unlock(&ln->lock);
	return id > 0;
}

/*
 * Enters the link in both tables and starts its timer.  Holds link->lock, so that nothing can break
 * the link before this is done.
 */
static bool link_enlist(struct rstream_link *link)
{
	unsigned int ms = rstream_link_set(link->ln)->cm_timeout_ms;
	struct rstream_peer *peer = link->peer;
	bool ok;

	idr_preload(GFP_KERNEL);
	spin_lock_bh(&peer->lock);
	spin_lock(&link->lock);
	ok = peer->n_links < RSTREAM_PEER_LINKS_MAX && net_enlist(link);
	if (ok) {
		rstream_peer_hold(peer);
		rstream_peer_add_link(peer, link);
		queue_delayed_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->life.timeout_work,
				   msecs_to_jiffies(ms));
	}
	spin_unlock(&link->lock);
	spin_unlock_bh(&peer->lock);
	idr_preload_end();
	return ok;
}

/*
 * Creates a link in state CONNECTING.  This host connects it over @path; if that is NULL, the peer
 * connects it.  The link ends by itself if it is not established in time.  Return: the link with a
 * reference for the caller besides that of the tables, or NULL.
 */
struct rstream_link *rstream_life_new(struct rstream_peer *peer,
				      struct rstream_path *path, u8 slot)
{
	struct rstream_link *link = rstream_account_zalloc(peer->ln, sizeof(*link),
							   GFP_KERNEL);
	int kind;

	if (!link)
		return NULL;
	refcount_set(&link->ref, 2);
	spin_lock_init(&link->lock);
	mutex_init(&link->cm.setup_lock);
	init_waitqueue_head(&link->rmb.wait);
	INIT_DELAYED_WORK(&link->life.timeout_work, link_timeout_work);
	INIT_DELAYED_WORK(&link->probe.work, link_probe_work);
	INIT_DELAYED_WORK(&link->sched.turn_work, rstream_sched_turn_work);
	INIT_WORK(&link->cm.setup_work, rstream_cm_setup_work);
	INIT_WORK(&link->life.register_work, link_register_work);
	INIT_WORK(&link->life.up_work, link_up_work);
	INIT_WORK(&link->life.lost_work, link_lost_work);
	INIT_WORK(&link->life.down_work, link_down_work);
	INIT_WORK(&link->life.end_work, link_end_work);
	INIT_WORK(&link->life.free_work, link_free_work);
	INIT_WORK(&link->rmb.work, link_rmb_work);
	INIT_WORK(&link->rmb.trim_work, link_trim_work);
	for (kind = 0; kind < RSTREAM_RMB_KINDS; kind++)
		INIT_LIST_HEAD(&link->rmb.lists[kind]);
	idr_init(&link->rx.rings);
	idr_init(&link->tx.rings);
	idr_init(&link->tx.granted);
	INIT_LIST_HEAD(&link->msg.waiting);
	INIT_LIST_HEAD(&link->msg.no_credit);
	INIT_LIST_HEAD(&link->sched.waiters);
	INIT_LIST_HEAD(&link->sched.scheduled);
	INIT_LIST_HEAD(&link->tx.busy);
	INIT_LIST_HEAD(&link->tx.zombies);
	INIT_LIST_HEAD(&link->tx.ending);
	INIT_LIST_HEAD(&link->tx.dead);
	INIT_LIST_HEAD(&link->tx.sent);
	link->rmb.ring_most = RSTREAM_RING_MAX;
	link->rmb.retry_pause = RING_RETRY_SWEEPS;
	link->node = NUMA_NO_NODE;
	link->active = path;
	link->path = path;
	link->slot = slot;
	link->made_at = jiffies;
	link->cm.key = get_random_u64();
	get_random_bytes(&link->cm.proof_key, sizeof(link->cm.proof_key));
	get_random_bytes(&link->cm.peer_proof_key, sizeof(link->cm.peer_proof_key));
	link->ln = peer->ln;
	link->peer = peer;
	if (link_enlist(link))
		return link;
	kfree(link);
	return NULL;
}
