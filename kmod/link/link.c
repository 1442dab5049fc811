// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: states, end, references and lookup.  link_life.c sets links up, and contains their
 * workers.
 *
 * Owns struct rstream_link.  Called by the streams (link.h), and by all files that detect
 * events of a link.  It calls neither ib_* nor rdma_*, nor the files that do; it notifies the
 * streams.
 *
 * Locks, outermost first; "|" separates locks that are never held together:
 *
 *	socket lock (of streams)
 *	  setup_lock (mutex; inside rdma_cm's handler mutex)
 *	    peer->lock | rstream_devs_lock
 *	      link->lock
 *	        ln->lock
 *
 * Streams take peer->lock and link->lock with their socket lock held; callbacks to streams
 * run under one of the two, and take neither.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "base/events.h"
#include "peer_host.h"
#include "ring.h"
#include "waiter.h"

/* ---- state ---- */

/* This host is no longer trying to establish the link. */
void rstream_link_attempt_over(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (!link->attempt)
		return;
	link->attempt = false;
	spin_lock(&link->ln->lock);
	rstream_host_del_attempt(link->ln, link->peer->host);
	spin_unlock(&link->ln->lock);
}

bool rstream_link_set_state(struct rstream_link *link,
			    enum rstream_link_state new)
{
	static const u8 from[] = {
		[RSTREAM_LINK_UP] = BIT(RSTREAM_LINK_CONNECTING),
		[RSTREAM_LINK_BROKEN] = BIT(RSTREAM_LINK_CONNECTING) |
					BIT(RSTREAM_LINK_UP),
		[RSTREAM_LINK_DEAD] = BIT(RSTREAM_LINK_BROKEN),
	};

	lockdep_assert_held(&link->lock);
	if (!(from[new] & BIT(link->state)))
		return false;
	/* with iWARP, TCP may keep connecting for minutes: link_down_work() waits for that */
	if (new == RSTREAM_LINK_UP || !link->iwarp)
		rstream_link_attempt_over(link);
	/* pairs with rstream_link_is_up(): earlier counts are visible */
	smp_store_release(&link->state, new);
	return true;
}

/* One step at a time: connected, registered, READY. */
void rstream_link_set_setup(struct rstream_link *link, enum rstream_link_setup new)
{
	lockdep_assert_held(&link->lock);
	if (!WARN_ON_ONCE(new != link->life.setup + 1))
		link->life.setup = new;
}

static void link_tell(const struct rstream_link *link,
		      enum rstream_reason reason, const char *why)
{
	const struct rstream_link_change change = {
		.id = link->id,
		.state = link->state,
		.up = link->state == RSTREAM_LINK_UP,
		.active = link->active,
		.peer = link->peer->name.instance,
		.device = link->dev_name,
		.port = link->port,
		.local = &link->local,
		.remote = &link->remote,
		.reason = reason,
		.why = why,
	};

	rstream_event_link(rstream_link_netns(link), &change);
}

/* ---- the end ---- */

static const struct {
	u8 kind;		/* enum rstream_end_kind */
	u8 by;			/* enum rstream_end_by */
	const char *text;
} ends[RSTREAM_ENDS] = {
#define X(name, kind, by, text) \
	[RSTREAM_END_##name] = { RSTREAM_END_KIND_##kind, RSTREAM_END_BY_##by, text },
	RSTREAM_LINK_ENDS(X)
#undef X
};

/* Effects of the end of a link that was up, by enum rstream_end_kind. */
static const struct {
	u8 count;		/* enum rstream_mib_item */
	u8 reason;		/* enum rstream_reason, for its streams */
	bool flaps;		/* its path is tried again later */
} end_kinds[RSTREAM_END_KINDS] = {
	[RSTREAM_END_KIND_FAULT] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
	[RSTREAM_END_KIND_IDLE] = { RSTREAM_MIB_LINKS_IDLE, RSTREAM_R_NONE, false },
	[RSTREAM_END_KIND_DRAINED] = { RSTREAM_MIB_LINKS_DRAINED, RSTREAM_R_DRAINED, false },
	[RSTREAM_END_KIND_RENEWED] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, false },
	[RSTREAM_END_KIND_REFUSED] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
	[RSTREAM_END_KIND_AGAIN] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
};

enum rstream_end_kind rstream_link_ended(const struct rstream_link *link)
{
	return ends[link->end].kind;
}

bool rstream_link_ended_by_host(const struct rstream_link *link)
{
	return ends[link->end].by == RSTREAM_END_BY_HOST;
}

bool rstream_link_flaps(const struct rstream_link *link)
{
	return end_kinds[rstream_link_ended(link)].flaps;
}

/* Number of rings to visit before giving up the lock and the CPU for a moment. */
#define LOOKS_MAX	64U

/*
 * A link can have many rings.  Code that walks through them calls this after the @n-th one; it may
 * drop and retake the lock.  Process context.  Return: true if the link is still up.
 */
bool rstream_link_pause(struct rstream_link *link, unsigned int n)
{
	lockdep_assert_held(&link->lock);
	if (n % LOOKS_MAX == 0) {
		spin_unlock_bh(&link->lock);
		cond_resched();
		spin_lock_bh(&link->lock);
	}
	return link->state == RSTREAM_LINK_UP;
}

/* Notifies all streams with a ring on the link.  May drop the lock. */
void rstream_link_tell_streams(struct rstream_link *link, enum rstream_link_event ev)
{
	unsigned int n = 0;
	struct rx_ring *rx;
	struct tx_ring *tx;
	int id;

	lockdep_assert_held(&link->lock);
	for (id = 0; (rx = idr_get_next(&link->rx.rings, &id)); id++) {
		if (rx->rs)
			rstream_link_ops->event(rx->rs, ev);
		rstream_link_pause(link, ++n);
	}
	for (id = 0; (tx = idr_get_next(&link->tx.rings, &id)); id++) {
		if (tx->rs)
			rstream_link_ops->event(tx->rs, ev);
		rstream_link_pause(link, ++n);
	}
}

/* Ends the link; @why is a constant text.  link_lost_work() notifies its streams. */
void rstream_link_ends(struct rstream_link *link, enum rstream_link_end end, const char *why)
{
	lockdep_assert_held(&link->lock);
	if (!rstream_link_alive(link))
		return;
	if (time_before64(get_jiffies_64(), link->probe.renews_until) &&
	    ends[end].by == RSTREAM_END_BY_PEER) {
		end = RSTREAM_END_PEER_RENEWS;
		why = ends[end].text;
	}
	/* set these before the state, see rstream_link_reason() */
	link->end = end;
	link->why = why;
	rstream_link_count(link, link->was_up ? end_kinds[ends[end].kind].count :
						RSTREAM_MIB_LINKS_FAILED);
	rstream_link_set_state(link, RSTREAM_LINK_BROKEN);
	pr_debug("link %u to %*phN: %s\n", link->id,
		 RSTREAM_INSTANCE_LEN, link->peer->name.instance, why);
	link_tell(link, rstream_link_reason(link), why);
	wake_up_all(&link->rmb.wait);
	queue_work(rstream_wqs[RSTREAM_WQ_LOST], &link->life.lost_work);
}

void rstream_link_break_locked(struct rstream_link *link, enum rstream_link_end end)
{
	rstream_link_ends(link, end, ends[end].text);
}

void rstream_link_break(struct rstream_link *link, enum rstream_link_end end)
{
	spin_lock_bh(&link->lock);
	rstream_link_break_locked(link, end);
	spin_unlock_bh(&link->lock);
}

/*
 * The peer has closed the connection.  That is no fault if it has no ring on the link, and the link
 * has carried messages or was up for some time.  Rings that it has left may still be unread here.
 */
void rstream_link_disconnected(struct rstream_link *link)
{
	bool of_use = link->rx.n == link->rx.n_done && !link->tx.n &&
		      (link->tx.msgs || link->rx.msgs ||
		       time_after(jiffies, link->up_at + HZ));

	lockdep_assert_held(&link->lock);
	rstream_link_break_locked(link, of_use ? RSTREAM_END_PEER_IDLE : RSTREAM_END_DISCONNECTED);
}

/* The link is UP once both ends can serve rings.  up_work notifies the waiters. */
void rstream_link_try_up(struct rstream_link *link)
{
	const struct rstream_path *path;

	lockdep_assert_held(&link->lock);
	if (link->life.setup < RSTREAM_SETUP_REGISTERED || !link->life.peer_ready ||
	    !rstream_link_set_state(link, RSTREAM_LINK_UP))
		return;
	link->was_up = true;
	link->up_at = jiffies;
	link->used_at = jiffies;
	rstream_link_count(link, RSTREAM_MIB_LINKS_UP);
	link_tell(link, RSTREAM_R_NONE, "");
	path = READ_ONCE(link->path);
	if (path && !path->own)
		rstream_link_count(link, RSTREAM_MIB_LINKS_ALT_PATH);
	queue_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->life.up_work);
	queue_delayed_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->probe.work,
			   msecs_to_jiffies(rstream_link_set(link->ln)->link_probe_ms));
}

/* The connection is established, as shown by rdma_cm or by a first message. */
void rstream_link_established(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (link->state != RSTREAM_LINK_CONNECTING || link->life.setup != RSTREAM_SETUP_CONNECT)
		return;
	rstream_link_set_setup(link, RSTREAM_SETUP_REGISTER);
	queue_work(rstream_wqs[RSTREAM_WQ_REGISTER], &link->life.register_work);
}

void rstream_link_peer_ready(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	link->life.peer_ready = true;
	/* READY may overtake the REP, and only that authenticates the peer */
	if (link->peer_id)
		rstream_link_established(link);
	rstream_link_try_up(link);
}

/* The peer, or its device, has answered the last probe. */
void rstream_link_probed(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	link->probe.timed = 0;
	link->probe.rtt_us = max_t(s64, ktime_us_delta(ktime_get(), link->probe.timed_at), 1);
}

/* @rs is notified when more memory has been registered, or when that has failed. */
void rstream_link_want_rmb(struct rstream_link *link,
			   enum rstream_rmb_kind kind, u32 least,
			   struct rstream *rs)
{
	bool lost;

	rstream_waiter_wait(link->peer, rs);
	spin_lock_bh(&link->lock);
	lost = link->state != RSTREAM_LINK_UP;
	if (!lost) {
		link->rmb.wanted |= BIT(kind);
		link->rmb.least = max(link->rmb.least, least);
		queue_work(rstream_wqs[RSTREAM_WQ_MEMORY], &link->rmb.work);
	}
	spin_unlock_bh(&link->lock);
	if (lost)
		rstream_waiter_failed(link->peer, rs);
}

/* ---- references and lookup ---- */

void rstream_link_hold(struct rstream_link *link)
{
	refcount_inc(&link->ref);
}

void rstream_link_put(struct rstream_link *link)
{
	/* vunmap() may sleep */
	if (refcount_dec_and_test(&link->ref))
		queue_work(rstream_wqs[RSTREAM_WQ_TIMERS], &link->life.free_work);
}

u32 rstream_link_id(const struct rstream_link *link)
{
	return link->id;
}

u32 rstream_link_peer_id(const struct rstream_link *link)
{
	return link->peer_id;
}

bool rstream_link_is_up(const struct rstream_link *link)
{
	/* readers that see BROKEN also see the final counts of the rings */
	return smp_load_acquire(&link->state) == RSTREAM_LINK_UP;
}

enum rstream_reason rstream_link_reason(const struct rstream_link *link)
{
	enum rstream_link_end end = READ_ONCE(link->end);

	if (!end)
		return RSTREAM_R_NONE;
	if (!link->was_up && ends[end].kind != RSTREAM_END_KIND_DRAINED)
		return RSTREAM_R_LINK_FAILED;
	return end_kinds[ends[end].kind].reason;
}

bool rstream_link_is_dead(const struct rstream_link *link)
{
	return READ_ONCE(link->state) == RSTREAM_LINK_DEAD;
}

struct rstream_link *rstream_link_find(struct net *net,
				       struct rstream_peer *peer, u32 id)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_link *link;

	spin_lock_bh(&ln->lock);
	link = idr_find(&ln->ids, id);
	if (link && link->peer == peer)
		rstream_link_hold(link);
	else
		link = NULL;
	spin_unlock_bh(&ln->lock);
	return link;
}

void rstream_link_proven(struct rstream_link *link)
{
	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_CONNECTING &&
	    link->life.setup >= RSTREAM_SETUP_REGISTERED) {
		rstream_link_peer_ready(link);
		rstream_msg_say_ready(link);	/* ahead of data, also with iWARP */
	}
	spin_unlock_bh(&link->lock);
}

/* The first link with an id greater than @id, referenced. */
struct rstream_link *rstream_link_next(struct rstream_link_net *ln, int id)
{
	struct rstream_link *link;

	id++;
	spin_lock_bh(&ln->lock);
	link = idr_get_next(&ln->ids, &id);
	if (link)
		rstream_link_hold(link);
	spin_unlock_bh(&ln->lock);
	return link;
}

bool rstream_link_drained(const struct net *net)
{
	return READ_ONCE(rstream_net(net)->links->drained);
}
