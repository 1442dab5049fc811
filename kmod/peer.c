// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: other network namespaces, and the tries to make links to them.
 *
 * Owns struct rstream_peer, the streams that wait for a link, and the back-off.
 * Called by the streams (link.h) and by link.c when a link comes or goes.  It
 * never touches a link beyond its state and reference count.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "cm.h"

#define RETRY_MIN_MS	100
#define RETRY_MAX_MS	30000
/* A link that was up for less than this counts as a failed try. */
#define STABLE_MS	10000

struct waiter {
	struct hlist_node node;
	struct rstream *rs;
	u64 token, our_token;	/* 0: it waits for memory */
};

/* ---- the table ---- */

static struct hlist_head *peer_bucket(struct rstream_link_net *ln,
				      const u8 *instance)
{
	return &ln->peers[instance[0] % ARRAY_SIZE(ln->peers)];
}

static struct rstream_peer *peer_find(struct rstream_link_net *ln,
				      const u8 *instance)
{
	struct rstream_peer *peer;

	lockdep_assert_held(&ln->lock);
	hlist_for_each_entry(peer, peer_bucket(ln, instance), node)
		if (!memcmp(peer->instance, instance, RSTREAM_INSTANCE_LEN) &&
		    refcount_inc_not_zero(&peer->ref))
			return peer;
	return NULL;
}

static void peer_work(struct work_struct *work);

static struct rstream_peer *peer_new(struct net *net, const u8 *instance)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream_peer *peer = kzalloc(sizeof(*peer), GFP_ATOMIC);
	int order = memcmp(rn->instance, instance, RSTREAM_INSTANCE_LEN);

	if (!peer)
		return NULL;
	refcount_set(&peer->ref, 1);
	spin_lock_init(&peer->lock);
	INIT_LIST_HEAD(&peer->links);
	hash_init(peer->waiters);
	INIT_DELAYED_WORK(&peer->work, peer_work);
	memcpy(peer->instance, instance, RSTREAM_INSTANCE_LEN);
	peer->ln = rn->links;
	peer->active = order >= 0;
	peer->self = !order;
	return peer;
}

struct rstream_peer *rstream_peer_get(struct net *net, const u8 *instance)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_peer *peer, *new;

	spin_lock_bh(&ln->lock);
	peer = peer_find(ln, instance);
	spin_unlock_bh(&ln->lock);
	if (peer)
		return peer;
	new = peer_new(net, instance);
	if (!new)
		return NULL;
	spin_lock_bh(&ln->lock);
	peer = peer_find(ln, instance);
	if (!peer && !ln->exiting && ln->n_peers < RSTREAM_PEERS_MAX) {
		hlist_add_head(&new->node, peer_bucket(ln, instance));
		ln->n_peers++;
		peer = new;
	}
	spin_unlock_bh(&ln->lock);
	if (peer != new)
		kfree(new);
	return peer;
}

void rstream_peer_hold(struct rstream_peer *peer)
{
	refcount_inc(&peer->ref);
}

void rstream_peer_put(struct rstream_peer *peer)
{
	struct rstream_link_net *ln = peer->ln;

	if (!refcount_dec_and_test(&peer->ref))
		return;
	WARN_ON_ONCE(peer->n_waiters);
	spin_lock_bh(&ln->lock);
	hlist_del(&peer->node);
	ln->n_peers--;
	wake_up_all(&ln->wait);
	spin_unlock_bh(&ln->lock);
	kfree(peer);
}

bool rstream_peer_active(const struct rstream_peer *peer)
{
	return peer->active;
}

/* ---- who waits ---- */

static struct waiter *waiter_find(struct rstream_peer *peer, struct rstream *rs)
{
	struct waiter *w;

	hash_for_each_possible(peer->waiters, w, node, (unsigned long)rs)
		if (w->rs == rs)
			return w;
	return NULL;
}

static struct waiter *waiter_add(struct rstream_peer *peer, struct rstream *rs)
{
	struct waiter *w;

	lockdep_assert_held(&peer->lock);
	w = waiter_find(peer, rs);
	if (w)
		return w;
	w = kzalloc(sizeof(*w), GFP_ATOMIC);
	if (!w) {
		rstream_link_event(rs, RSTREAM_LINK_EV_FAILED);
		return NULL;
	}
	w->rs = rs;
	hash_add(peer->waiters, &w->node, (unsigned long)rs);
	peer->n_waiters++;
	return w;
}

static void waiter_del(struct rstream_peer *peer, struct waiter *w)
{
	hash_del(&w->node);
	peer->n_waiters--;
	kfree(w);
}

/* Who hears that a try has failed goes on waiting for the next one. */
static void waiters_tell(struct rstream_peer *peer, enum rstream_link_event ev)
{
	struct hlist_node *next;
	struct waiter *w;
	int i;

	lockdep_assert_held(&peer->lock);
	hash_for_each_safe(peer->waiters, i, next, w, node) {
		rstream_link_event(w->rs, ev);
		if (ev == RSTREAM_LINK_EV_UP)
			waiter_del(peer, w);
	}
}

void rstream_peer_wait(struct rstream_peer *peer, struct rstream *rs)
{
	spin_lock_bh(&peer->lock);
	waiter_add(peer, rs);
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_tell(struct rstream_peer *peer, enum rstream_link_event ev)
{
	spin_lock_bh(&peer->lock);
	waiters_tell(peer, ev);
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_forget(struct rstream_peer *peer, struct rstream *rs)
{
	struct waiter *w;

	spin_lock_bh(&peer->lock);
	w = waiter_find(peer, rs);
	if (w)
		waiter_del(peer, w);
	spin_unlock_bh(&peer->lock);
}

/* ---- tries ---- */

static struct rstream_link *peer_up_link(struct rstream_peer *peer)
{
	struct rstream_link *link;

	lockdep_assert_held(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		if (rstream_link_is_up(link))
			return link;
	return NULL;
}

struct rstream_link *rstream_peer_link(struct rstream_peer *peer)
{
	struct rstream_link *link;

	spin_lock_bh(&peer->lock);
	link = peer_up_link(peer);
	if (link)
		rstream_link_hold(link);
	spin_unlock_bh(&peer->lock);
	return link;
}

static bool peer_connecting(struct rstream_peer *peer)
{
	struct rstream_link *link;

	lockdep_assert_held(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		if (READ_ONCE(link->state) == RSTREAM_LINK_CONNECTING)
			return true;
	return false;
}

/* Starts a try now or when the back-off ends; peer->busy holds a reference. */
static void peer_schedule(struct rstream_peer *peer)
{
	unsigned long delay = 0;

	lockdep_assert_held(&peer->lock);
	if (peer->busy || !peer->active || !peer->have_route ||
	    peer_connecting(peer) || READ_ONCE(peer->ln->exiting) ||
	    READ_ONCE(peer->ln->drained))
		return;
	if (peer->fails && time_before(jiffies, peer->retry_at))
		delay = peer->retry_at - jiffies;
	peer->busy = true;
	rstream_peer_hold(peer);
	queue_delayed_work(rstream_link_wq, &peer->work, delay);
}

static void peer_failed(struct rstream_peer *peer)
{
	unsigned int ms;

	lockdep_assert_held(&peer->lock);
	if (peer->declined && peer->asked) {
		peer->fails = 0;	/* it has changed its mind meanwhile */
		peer->drained = false;
	}
	ms = RETRY_MIN_MS << min(peer->fails, 9U);
	ms = min_t(unsigned int, ms, RETRY_MAX_MS);
	/* so that peers of a host that comes back do not ask all at once */
	ms += get_random_u32() % (ms / 2);
	peer->fails++;
	peer->retry_at = jiffies + msecs_to_jiffies(ms);
	waiters_tell(peer, peer->declined ? RSTREAM_LINK_EV_DECLINED :
					    RSTREAM_LINK_EV_FAILED);
	/* remembers the back-off while no stream holds the peer */
	peer_schedule(peer);
}

/*
 * The peer knows a token for as long as its connection lives: so those of a
 * connection that waits, and not of the last one that asked.
 */
static void fill_tokens(struct rstream_peer *peer,
			struct rstream_peer_route *route)
{
	struct waiter *w;
	int i;

	lockdep_assert_held(&peer->lock);
	hash_for_each(peer->waiters, i, w, node) {
		if (!w->token)
			continue;
		route->token = w->token;
		route->our_token = w->our_token;
		return;
	}
}

static void peer_work(struct work_struct *work)
{
	struct rstream_peer *peer = container_of(to_delayed_work(work),
						 struct rstream_peer, work);
	struct net *net = peer->ln->net;
	struct rstream_peer_route route;
	struct rstream_link *link = NULL;
	bool wanted;

	spin_lock_bh(&peer->lock);
	/* an id must not take hold of a namespace that is about to end */
	wanted = peer->n_waiters && !peer_up_link(peer) &&
		 !READ_ONCE(peer->ln->exiting) &&
		 !READ_ONCE(peer->ln->drained) && maybe_get_net(net);
	route = peer->route;
	fill_tokens(peer, &route);
	peer->declined = false;
	peer->asked = false;
	if (!wanted)
		peer->busy = false;
	spin_unlock_bh(&peer->lock);
	if (wanted) {
		link = rstream_link_new(peer, true);
		spin_lock_bh(&peer->lock);
		peer->busy = false;
		if (!link)
			peer_failed(peer);
		spin_unlock_bh(&peer->lock);
	}
	if (link) {
		rstream_cm_connect(link, &route);
		rstream_link_put(link);
	}
	rstream_peer_put(peer);
	if (wanted)
		put_net(net);
}

void rstream_peer_want_link(struct rstream_peer *peer,
			    const struct rstream_peer_route *route,
			    struct rstream *rs)
{
	struct waiter *w;

	spin_lock_bh(&peer->lock);
	if (peer_up_link(peer)) {
		rstream_link_event(rs, RSTREAM_LINK_EV_UP);
	} else {
		peer->route = *route;
		peer->have_route = true;
		w = waiter_add(peer, rs);
		if (w) {
			w->token = route->token;
			w->our_token = route->our_token;
		}
		peer_schedule(peer);
	}
	spin_unlock_bh(&peer->lock);
}

/* The next try is made now. */
static void peer_hurry(struct rstream_peer *peer)
{
	lockdep_assert_held(&peer->lock);
	peer->fails = 0;
	/* a work that waited goes on with its reference */
	if (peer->busy && cancel_delayed_work(&peer->work))
		queue_delayed_work(rstream_link_wq, &peer->work, 0);
	else if (peer->n_waiters)
		peer_schedule(peer);
}

void rstream_peer_asks(struct rstream_peer *peer)
{
	spin_lock_bh(&peer->lock);
	peer->asked = true;
	if (peer->drained) {
		peer->drained = false;
		peer_hurry(peer);
	}
	spin_unlock_bh(&peer->lock);
}

/* A try of ours was rejected: the peer is drained. */
void rstream_peer_declines(struct rstream_peer *peer)
{
	spin_lock_bh(&peer->lock);
	peer->declined = true;
	peer->drained = true;
	spin_unlock_bh(&peer->lock);
}

/* The peer behind @last, or the first one, referenced; @last is put. */
static struct rstream_peer *peer_next(struct rstream_link_net *ln,
				      struct hlist_head *bucket,
				      struct rstream_peer *last)
{
	struct hlist_node *node;
	struct rstream_peer *peer = NULL;

	spin_lock_bh(&ln->lock);
	for (node = last ? last->node.next : bucket->first; node;
	     node = node->next) {
		peer = hlist_entry(node, struct rstream_peer, node);
		if (refcount_inc_not_zero(&peer->ref))
			break;
		peer = NULL;
	}
	spin_unlock_bh(&ln->lock);
	if (last)
		rstream_peer_put(last);
	return peer;
}

/* Whatever kept us from making links is over. */
void rstream_peers_retry(struct rstream_link_net *ln)
{
	struct rstream_peer *peer;
	int i;

	for (i = 0; i < ARRAY_SIZE(ln->peers); i++) {
		peer = NULL;
		while ((peer = peer_next(ln, &ln->peers[i], peer))) {
			spin_lock_bh(&peer->lock);
			peer_hurry(peer);
			spin_unlock_bh(&peer->lock);
		}
	}
}

/* ---- links come and go ---- */

bool rstream_peer_add_link(struct rstream_peer *peer, struct rstream_link *link)
{
	bool ok;

	spin_lock_bh(&peer->lock);
	ok = peer->n_links < RSTREAM_PEER_LINKS_MAX;
	if (ok) {
		list_add(&link->peer_list, &peer->links);
		peer->n_links++;
	}
	spin_unlock_bh(&peer->lock);
	return ok;
}

void rstream_peer_del_link(struct rstream_peer *peer, struct rstream_link *link)
{
	spin_lock_bh(&peer->lock);
	list_del(&link->peer_list);
	peer->n_links--;
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_link_up(struct rstream_peer *peer)
{
	spin_lock_bh(&peer->lock);
	peer->drained = false;
	waiters_tell(peer, RSTREAM_LINK_EV_UP);
	spin_unlock_bh(&peer->lock);
}

/* @link has left the tables. */
void rstream_peer_link_down(struct rstream_link *link)
{
	struct rstream_peer *peer = link->peer;

	/* the accepting end of a link of ours to ourselves: the other one tells */
	if (peer->active && !link->active)
		return;
	spin_lock_bh(&peer->lock);
	/* a link that comes and goes is made ever less often */
	if (link->was_up &&
	    (link->idle_closed ||
	     time_after(jiffies, link->up_at + msecs_to_jiffies(STABLE_MS))))
		peer->fails = 0;
	if (peer_up_link(peer))
		waiters_tell(peer, RSTREAM_LINK_EV_UP);
	else if (!peer_connecting(peer))
		peer_failed(peer);
	spin_unlock_bh(&peer->lock);
}

/*
 * The peer makes a new link although we have one: it knows that the old one is
 * of no use.
 */
void rstream_peer_replace(struct rstream_peer *peer)
{
	struct rstream_link *link;

	spin_lock_bh(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		if (!link->active && rstream_link_is_up(link))
			rstream_link_break(link, "peer made a new one");
	spin_unlock_bh(&peer->lock);
}

/* Tries that are under way end; the links are the caller's business. */
void rstream_peer_net_exit(struct rstream_link_net *ln)
{
	struct rstream_peer *peer;
	int i;

again:
	spin_lock_bh(&ln->lock);
	for (i = 0; i < ARRAY_SIZE(ln->peers); i++) {
		hlist_for_each_entry(peer, &ln->peers[i], node) {
			if (!READ_ONCE(peer->busy) ||
			    !refcount_inc_not_zero(&peer->ref))
				continue;
			spin_unlock_bh(&ln->lock);
			/* runs at once, sees that the namespace is exiting */
			flush_delayed_work(&peer->work);
			rstream_peer_put(peer);
			goto again;
		}
	}
	spin_unlock_bh(&ln->lock);
}
