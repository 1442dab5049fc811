// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: their states, life and end.
 *
 * Owns struct rstream_link.  Called by the streams (link.h), by cm.c and verbs.c
 * when something happens to a link.  It never calls ib_* or rdma_* itself.
 *
 * Locks, outermost first; "|" separates locks that are never held together:
 *
 *	socket lock (the streams')
 *	  setup_lock (mutex; under rdma_cm's own handler mutex)
 *	    peer->lock | rstream_devs_lock
 *	      link->lock
 *	        ln->lock
 *
 * peer->lock and link->lock are both taken by streams with their socket lock
 * held; callbacks to streams run under one of the two and take neither.
 *
 * Life of a link.  rstream_link_new() makes the reference that the tables hold,
 * and one for its caller.  Exactly once, whatever happens, the link becomes BROKEN; that queues
 * link_down_work(), which ends with dropping this reference.  Until then these
 * may still hold the link, and this is why each has let go at the end:
 *
 *  1. timeout_work, probe_work, up_work, rmb_work: queued only under link->lock
 *     while the link is alive; cancelled with _sync by link_down_work().  None
 *     waits longer than the link lives (rmb.c's wait_event ends with it).
 *  2. Completion handlers: after the drain no completion is left; ib_free_cq()
 *     waits for the softirq.  Events of the QP: rdma_destroy_qp() waits for
 *     them, event_work is cancelled then.
 *  3. Handlers of the cm_id: rdma_destroy_id() waits for the one that runs, none
 *     comes after.  @closing keeps a handler that runs meanwhile from making
 *     what nobody would destroy.
 *  4. The device's list: rstream_verbs_detach() is last; only then a removal of
 *     the device goes on.
 *  5. Lookups by id or through the peer: take a reference under the table's lock;
 *     the link enters both tables at once, and leaves both before the reference
 *     of the tables is dropped.
 *  6. Who maps or unmaps pages without link->lock (ring_tx.c): link_down_work() waits
 *     for RCU when the link is DEAD.
 *  7. Rings: a reference each.  The memory they read (our mapping of the RMBs) is
 *     freed by link_free_work() with the last reference.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xfrm.h>

#include "base/events.h"
#include "cm.h"
#include "peer_host.h"
#include "rmb.h"
#include "verbs.h"

#define ORPHANS_MAX	SZ_2M

/* ---- state ---- */

static bool link_set_state(struct rstream_link *link,
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
	if (link->state == RSTREAM_LINK_CONNECTING && link->active) {
		spin_lock(&link->ln->lock);
		link->ln->n_connecting--;
		spin_unlock(&link->ln->lock);
	}
	/* pairs with rstream_link_is_up(): what was counted before is seen */
	smp_store_release(&link->state, new);
	return true;
}

static void link_count(struct rstream_link *link, enum rstream_mib_item item)
{
	rstream_mib_inc(link->ln->rn, item);
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
	const char *text;
} ends[RSTREAM_ENDS] = {
#define X(name, kind, text) \
	[RSTREAM_END_##name] = { RSTREAM_END_KIND_##kind, text },
	RSTREAM_LINK_ENDS(X)
#undef X
};

/* Of a link that was up. */
static const struct {
	u8 count;		/* enum rstream_mib_item */
	u8 reason;		/* enum rstream_reason, for its streams */
	bool flaps;		/* its path is tried again later */
} end_kinds[RSTREAM_END_KINDS] = {
	[RSTREAM_END_KIND_FAULT] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
	[RSTREAM_END_KIND_IDLE] = { RSTREAM_MIB_LINKS_CLOSED, RSTREAM_R_NONE, false },
	[RSTREAM_END_KIND_DRAINED] = { RSTREAM_MIB_LINKS_DRAINED, RSTREAM_R_DRAINED, false },
	[RSTREAM_END_KIND_RENEWED] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, false },
	[RSTREAM_END_KIND_REFUSED] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
	[RSTREAM_END_KIND_AGAIN] = { RSTREAM_MIB_LINKS_LOST, RSTREAM_R_LINK_LOST, true },
};

enum rstream_end_kind rstream_link_ended(const struct rstream_link *link)
{
	return ends[link->end].kind;
}

bool rstream_link_flaps(const struct rstream_link *link)
{
	return end_kinds[rstream_link_ended(link)].flaps;
}

/* The link ends, for what rdma_cm or the device says in its own words. */
void rstream_link_ends(struct rstream_link *link, enum rstream_link_end end, const char *why)
{
	lockdep_assert_held(&link->lock);
	if (!rstream_link_alive(link))
		return;
	/* before the state: see rstream_link_reason() */
	link->end = end;
	link->why = why;
	link_count(link, link->was_up ? end_kinds[ends[end].kind].count :
					RSTREAM_MIB_LINKS_FAILED);
	link_set_state(link, RSTREAM_LINK_BROKEN);
	pr_debug("rdmastream: link %u to %*phN: %s\n", link->id,
		 RSTREAM_INSTANCE_LEN, link->peer->name.instance, why);
	link_tell(link, rstream_link_reason(link), why);
	rstream_ring_tell(link, RSTREAM_LINK_EV_LOST);
	wake_up_all(&link->wait);
	queue_work(rstream_link_wq, &link->down_work);
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

/* Both ends can serve rings: up.  up_work tells those who wait. */
static void link_try_up(struct rstream_link *link)
{
	const struct rstream_path *path;

	lockdep_assert_held(&link->lock);
	if (!link->registered || !link->peer_ready ||
	    !link_set_state(link, RSTREAM_LINK_UP))
		return;
	link->was_up = true;
	link->up_at = jiffies;
	link->used_at = jiffies;
	link_count(link, RSTREAM_MIB_LINKS_UP);
	link_tell(link, RSTREAM_R_NONE, "");
	path = READ_ONCE(link->path);
	if (path && !path->own)
		link_count(link, RSTREAM_MIB_LINKS_OTHER);
	queue_work(rstream_link_wq, &link->up_work);
	queue_delayed_work(rstream_link_wq, &link->probe_work,
			   msecs_to_jiffies(rstream_link_set(link->ln)->probe_ms));
}

/* The connection is there, as the CM or a first message tells. */
void rstream_link_established(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	if (link->state != RSTREAM_LINK_CONNECTING || link->established)
		return;
	link->established = true;
	queue_work(rstream_link_wq, &link->up_work);
}

void rstream_link_peer_ready(struct rstream_link *link)
{
	lockdep_assert_held(&link->lock);
	link->peer_ready = true;
	/* it may overtake the answer of rdma_cm, which tells who the peer is */
	if (link->peer_id)
		rstream_link_established(link);
	link_try_up(link);
}

/* ---- workers ---- */

static void link_register(struct rstream_link *link)
{
	int err;

	rstream_verbs_query(link);
	err = rstream_rmb_add(link, RSTREAM_RMB_CELLS, 0);
	if (err) {
		rstream_link_break(link, RSTREAM_END_NO_CELLS);
		return;
	}
	/* without memory for rings of our own we can still send */
	rstream_rmb_add(link, RSTREAM_RMB_RINGS, 0);
	spin_lock_bh(&link->lock);
	if (rstream_link_alive(link)) {
		link->registered = true;
		link->rq_credits--;
		rstream_verbs_write_imm(link, 0, 0, RSTREAM_IMM_READY, 0);
		rstream_verbs_post(link);
		link_try_up(link);
	}
	spin_unlock_bh(&link->lock);
}

static void link_up_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 up_work);

	if (!link->registered)
		link_register(link);
	if (link->told_up || READ_ONCE(link->state) != RSTREAM_LINK_UP)
		return;
	link->told_up = true;
	cancel_delayed_work(&link->timeout_work);
	rstream_peer_link_up(link);
}

static void link_timeout_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(to_delayed_work(work),
						 struct rstream_link,
						 timeout_work);

	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_CONNECTING)
		rstream_link_break_locked(link, RSTREAM_END_LATE);
	spin_unlock_bh(&link->lock);
}

/*
 * Memory for a ring of @size could be had, or not: perhaps in smaller pieces.  The device
 * may allow no larger ones, or the ceiling; what was scarce only may be there again.
 */
static void ring_had(struct rstream_link *link, u32 size, bool had)
{
	u32 most = clamp_t(u32, had ? size * 2 : size / 2, RSTREAM_RING_MIN,
			   RSTREAM_RING_MAX);

	spin_lock_bh(&link->lock);
	if (had ? most > link->ring_most : most < link->ring_most)
		link->ring_most = most;
	spin_unlock_bh(&link->lock);
}

static void link_rmb_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 rmb_work);
	unsigned int wanted;
	int err = 0;
	u32 least;

	spin_lock_bh(&link->lock);
	wanted = link->rmb_wanted;
	least = link->rmb_least;
	/* what was wanted while the last one was being registered may be there */
	if (least && rstream_rmb_has(link, RSTREAM_RMB_RINGS, least))
		wanted &= ~BIT(RSTREAM_RMB_RINGS);
	link->rmb_wanted = 0;
	link->rmb_least = 0;
	spin_unlock_bh(&link->lock);
	if (wanted & BIT(RSTREAM_RMB_CELLS))
		err = rstream_rmb_add(link, RSTREAM_RMB_CELLS, 0);
	if (!err && wanted & BIT(RSTREAM_RMB_RINGS)) {
		err = rstream_rmb_add(link, RSTREAM_RMB_RINGS, least);
		ring_had(link, least, !err);
	}
	rstream_peer_tell(link->peer, err ? RSTREAM_LINK_EV_FAILED :
			  RSTREAM_LINK_EV_UP);
}

/* Is there memory for a ring of @size, or can there be? */
bool rstream_link_room(struct rstream_link *link, u32 size)
{
	bool room;

	spin_lock_bh(&link->lock);
	room = rstream_rmb_has(link, RSTREAM_RMB_RINGS, size) ||
	       rstream_rmb_fits(link, size);
	spin_unlock_bh(&link->lock);
	return room;
}

/* @rs is told when more memory is registered, or could not be. */
void rstream_link_want_rmb(struct rstream_link *link,
			   enum rstream_rmb_kind kind, u32 least,
			   struct rstream *rs)
{
	bool lost;

	rstream_peer_wait(link->peer, rs);
	spin_lock_bh(&link->lock);
	lost = link->state != RSTREAM_LINK_UP;
	if (!lost) {
		link->rmb_wanted |= BIT(kind);
		link->rmb_least = max(link->rmb_least, least);
		queue_work(rstream_link_wq, &link->rmb_work);
	}
	spin_unlock_bh(&link->lock);
	if (lost)
		rstream_peer_tell(link->peer, RSTREAM_LINK_EV_FAILED);
}

/*
 * A device that cannot send, because the wire is held up, need not count that as
 * a try: its retries never end.  Probes are counted, not time: who was stopped
 * himself, with the whole machine, has missed but one.
 */
static bool link_is_stalled(struct rstream_link *link, bool quiet)
{
	const struct rstream_settings *set = rstream_link_set(link->ln);
	unsigned int most = READ_ONCE(set->stall_ms);

	lockdep_assert_held(&link->lock);
	if (quiet && link->probed_signalled > link->sq_done)
		link->misses++;
	else
		link->misses = 0;
	most = DIV_ROUND_UP(most, READ_ONCE(set->probe_ms));
	return most && link->misses >= most;
}

/*
 * Something must complete on a quiet link now and then: what is unsignalled gets
 * its completion, and a dead peer is noticed by the retries of the probe.
 */
static void link_probe(struct rstream_link *link, bool quiet)
{
	lockdep_assert_held(&link->lock);
	if (link->sq_signalled > link->sq_done ||
	    (!quiet && link->sq_done == link->sq_posted) ||
	    !rstream_verbs_free(link))
		return;
	rstream_verbs_write(link, 0, 0);
	rstream_verbs_signal(link);
	link->timed_at = ktime_get();
	if (!rstream_verbs_post(link))
		link->timed = link->sq_posted;
	link_count(link, RSTREAM_MIB_PROBES);
}

static bool link_is_idle(struct rstream_link *link)
{
	unsigned long ms = rstream_link_set(link->ln)->link_idle_ms;

	lockdep_assert_held(&link->lock);
	return !link->n_rx && !link->n_tx &&
	       time_after(jiffies, link->used_at + msecs_to_jiffies(ms));
}

/* Routes or IPsec policies have changed: streams may not use their rings any more. */
static void link_look_at_routes(struct rstream_link *link)
{
#ifdef CONFIG_XFRM
	const struct net *net = rstream_link_netns(link);
	int genid = rt_genid_ipv4(net);

#if IS_ENABLED(CONFIG_IPV6)
	genid += rt_genid_ipv6(net);
#endif
	if (genid == link->routes)
		return;
	link->routes = genid;
	if (READ_ONCE(net->xfrm.policy_count[XFRM_POLICY_OUT]))
		rstream_ring_tell(link, RSTREAM_LINK_EV_ROUTES);
#endif
}

/* Memory lost in rings whose connections are gone, bytes; a new link has it all. */
static u64 orphans_max(const struct rstream_link *link)
{
	u64 max = READ_ONCE(rstream_link_set(link->ln)->rmb_max);

	return min_t(u64, ORPHANS_MAX, max / 4);
}

static void link_probe_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(to_delayed_work(work),
						 struct rstream_link,
						 probe_work);
	unsigned long ms = rstream_link_set(link->ln)->probe_ms;
	enum rstream_link_end end;
	bool quiet;

	spin_lock_bh(&link->lock);
	if (link->state != RSTREAM_LINK_UP)
		goto out;
	if (link_is_idle(link)) {
		rstream_link_break_locked(link, RSTREAM_END_IDLE);
		goto out;
	}
	quiet = link->probed_done == link->sq_done;
	if (link_is_stalled(link, quiet)) {
		rstream_link_break_locked(link, RSTREAM_END_STALLED);
		goto out;
	}
	link_probe(link, quiet);
	link->probed_done = link->sq_done;
	link->probed_signalled = link->sq_signalled;
	if (link->state == RSTREAM_LINK_UP)
		rstream_ring_sweep(link);
	link_look_at_routes(link);
	if (link->state != RSTREAM_LINK_UP)
		goto out;
	end = rstream_ring_withheld(link);
	if (end) {
		rstream_link_break_locked(link, end);
		goto out;
	}
	rstream_ring_find_idle(link);
	if (rstream_ring_orphans(link) > orphans_max(link)) {
		rstream_link_break_locked(link, RSTREAM_END_ORPHANS);
		goto out;
	}
	spin_unlock_bh(&link->lock);
	rstream_rmb_trim(link);
	spin_lock_bh(&link->lock);
	if (link->state == RSTREAM_LINK_UP)
		queue_delayed_work(rstream_link_wq, &link->probe_work,
				   msecs_to_jiffies(ms));
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

/* See the top of this file. */
static void link_down_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 down_work);
	struct rstream_link_net *ln = link->ln;

	mutex_lock(&link->setup_lock);
	link->closing = true;
	mutex_unlock(&link->setup_lock);
	cancel_delayed_work_sync(&link->timeout_work);
	cancel_delayed_work_sync(&link->probe_work);
	cancel_work_sync(&link->up_work);
	cancel_work_sync(&link->rmb_work);

	rstream_cm_disconnect(link);
	rstream_verbs_drain(link);
	rstream_ring_unmap(link);
	spin_lock_bh(&link->lock);
	rstream_ring_drained(link);
	link_set_state(link, RSTREAM_LINK_DEAD);
	rstream_ring_tell(link, RSTREAM_LINK_EV_DRAINED);
	rstream_tx_unlock(link);
	link_unlist(link);
	/* who waited for memory of this link, or for the link itself */
	rstream_peer_link_down(link);
	/* who unmaps or has mapped something without the lock: see ring_tx.c */
	synchronize_rcu();

	rstream_verbs_destroy(link);
	rstream_cm_destroy(link);
	rstream_verbs_detach(link);
	spin_lock_bh(&ln->lock);
	ln->n_attached--;
	spin_unlock_bh(&ln->lock);
	rstream_link_put(link);
}

static void link_free_work(struct work_struct *work)
{
	struct rstream_link *link = container_of(work, struct rstream_link,
						 free_work);
	struct rstream_link_net *ln = link->ln;
	struct rstream_peer *peer = link->peer;

	rstream_ring_free_all(link);
	rstream_rmb_free_all(link);
	kfree(link);
	spin_lock_bh(&ln->lock);
	rstream_host_del_link(ln, peer->host);
	wake_up_all(&ln->wait);
	spin_unlock_bh(&ln->lock);
	/* the namespace is there as long as its peers are */
	rstream_peer_put(peer);
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
		queue_work(rstream_link_wq, &link->free_work);
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
	/* who sees BROKEN sees the last count of its rings, too */
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
	if (link->state == RSTREAM_LINK_CONNECTING && link->registered)
		rstream_link_peer_ready(link);
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

static bool net_enlist(struct rstream_link *link)
{
	struct rstream_link_net *ln = link->ln;
	int id = -ENODEV;

	spin_lock(&ln->lock);
	if (!ln->exiting && !ln->drained &&
	    !(link->active && ln->n_connecting >= RSTREAM_CONNECTING_MAX))
		id = idr_alloc_cyclic(&ln->ids, link, 1, 0, GFP_NOWAIT);
	if (id > 0 && !rstream_host_add_link(ln, link->peer->host)) {
		idr_remove(&ln->ids, id);
		id = -EBUSY;
	}
	if (id > 0) {
		link->id = id;
		list_add_tail(&link->net_list, &ln->links);
		ln->n_connecting += link->active;
		ln->n_attached++;
	}
	spin_unlock(&ln->lock);
	return id > 0;
}

/*
 * Into both tables and with its timer, before anybody can break it: who finds it
 * needs its lock for that.
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
		queue_delayed_work(rstream_link_wq, &link->timeout_work,
				   msecs_to_jiffies(ms));
	}
	spin_unlock(&link->lock);
	spin_unlock_bh(&peer->lock);
	idr_preload_end();
	return ok;
}

/*
 * A link in CONNECTING that we make over @path, or NULL: the peer makes it.  Two
 * references: that of the tables and the caller's.
 * It ends by itself if nothing comes of it in time.
 */
struct rstream_link *rstream_link_new(struct rstream_peer *peer,
				      struct rstream_path *path, u8 slot)
{
	struct rstream_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int kind;

	if (!link)
		return NULL;
	refcount_set(&link->ref, 2);
	spin_lock_init(&link->lock);
	mutex_init(&link->setup_lock);
	init_waitqueue_head(&link->wait);
	INIT_DELAYED_WORK(&link->timeout_work, link_timeout_work);
	INIT_DELAYED_WORK(&link->probe_work, link_probe_work);
	INIT_WORK(&link->up_work, link_up_work);
	INIT_WORK(&link->down_work, link_down_work);
	INIT_WORK(&link->free_work, link_free_work);
	INIT_WORK(&link->rmb_work, link_rmb_work);
	for (kind = 0; kind < RSTREAM_RMB_KINDS; kind++)
		INIT_LIST_HEAD(&link->rmbs[kind]);
	idr_init(&link->rx_rings);
	idr_init(&link->tx_rings);
	idr_init(&link->tx_granted);
	INIT_LIST_HEAD(&link->ctrl_list);
	INIT_LIST_HEAD(&link->tx_waiters);
	INIT_LIST_HEAD(&link->tx_zombies);
	INIT_LIST_HEAD(&link->tx_ending);
	INIT_LIST_HEAD(&link->tx_dead);
	INIT_LIST_HEAD(&link->tx_sent);
	link->ring_most = RSTREAM_RING_MAX;
	link->active = path;
	link->path = path;
	link->slot = slot;
	link->made_at = jiffies;
	link->key = get_random_u64();
	get_random_bytes(&link->proof_key, sizeof(link->proof_key));
	get_random_bytes(&link->peer_proof_key, sizeof(link->peer_proof_key));
	link->ln = peer->ln;
	link->peer = peer;
	if (link_enlist(link))
		return link;
	kfree(link);
	return NULL;
}
