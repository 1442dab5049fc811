// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: other network namespaces, and the attempts to establish links to them.
 *
 * Owns struct rstream_peer, and decides when links are established; path.c decides over which
 * addresses, and after which pause.  Called by the streams (link.h), by cm.c, and by link_life.c
 * when a link comes up or ends.
 */
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "account.h"
#include "cm.h"
#include "peer_host.h"
#include "rmb.h"
#include "waiter.h"

/* Pause after a further link could not be established. */
#define MORE_PAUSE	(30 * HZ)
/* At least between attempts because a drain is over. */
#define RETRY_PAUSE	(HZ / 10)
/* Delay of an attempt that the peer has requested. */
#define ASKED_MS	100
/* waiter_to_try() looks at this many waiters of each list, peer->notified and peer->asking. */
#define TOKENS_MAX	64U

/* ---- the table ---- */

static struct hlist_head *peer_bucket(struct rstream_link_net *ln,
				      const u8 *instance)
{
	u32 hash = jhash(instance, RSTREAM_INSTANCE_LEN, ln->seed);

	return &ln->peers[hash % ARRAY_SIZE(ln->peers)];
}

static struct rstream_peer *peer_find(struct rstream_link_net *ln,
				      const struct rstream_peer_name *name)
{
	struct rstream_peer *peer;

	lockdep_assert_held(&ln->lock);
	hlist_for_each_entry(peer, peer_bucket(ln, name->instance), node)
		if (!memcmp(&peer->name, name, sizeof(*name)) &&
		    refcount_inc_not_zero(&peer->ref))
			return peer;
	return NULL;
}

static void peer_work(struct work_struct *work);

static struct rstream_peer *peer_new(struct net *net,
				     const struct rstream_peer_name *name)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream_peer *peer = rstream_account_zalloc(rn->links, sizeof(*peer),
							  GFP_ATOMIC);
	int order = memcmp(rn->instance, name->instance, RSTREAM_INSTANCE_LEN);

	if (!peer)
		return NULL;
	refcount_set(&peer->ref, 1);
	spin_lock_init(&peer->lock);
	INIT_LIST_HEAD(&peer->links);
	INIT_LIST_HEAD(&peer->asking);
	INIT_LIST_HEAD(&peer->notified);
	INIT_DELAYED_WORK(&peer->work, peer_work);
	peer->name = *name;
	peer->ln = rn->links;
	peer->active = order >= 0;
	peer->self = !order;
	return peer;
}

/* Return: false if a limit is reached.  Only peers hold references to hosts. */
static bool peer_enlist(struct rstream_link_net *ln, struct rstream_peer *peer)
{
	struct rstream_host *host;

	lockdep_assert_held(&ln->lock);
	if (ln->exiting)
		return false;
	host = rstream_host_get(ln, &peer->name);
	if (!host)
		return false;
	if (!rstream_host_add_peer(ln, host)) {
		rstream_host_put(ln, host);
		return false;
	}
	peer->host = host;
	hlist_add_head(&peer->node, peer_bucket(ln, peer->name.instance));
	return true;
}

struct rstream_peer *rstream_peer_get(struct net *net,
				      const struct rstream_peer_name *name)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_peer *peer, *new;

	spin_lock_bh(&ln->lock);
	peer = peer_find(ln, name);
	spin_unlock_bh(&ln->lock);
	if (peer)
		return peer;
	new = peer_new(net, name);
	if (!new)
		return NULL;
	spin_lock_bh(&ln->lock);
	peer = peer_find(ln, name);
	if (!peer && peer_enlist(ln, new))
		peer = new;
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
	rstream_host_del_peer(ln, peer->host);
	rstream_host_put(ln, peer->host);
	wake_up_all(&ln->wait);
	spin_unlock_bh(&ln->lock);
	kfree(peer);
}

bool rstream_peer_active(const struct rstream_peer *peer)
{
	return peer->active;
}

/* ---- which link ---- */

static bool link_connecting(const struct rstream_link *link)
{
	return READ_ONCE(link->state) == RSTREAM_LINK_CONNECTING;
}

static struct rstream_link *peer_up_link(struct rstream_peer *peer)
{
	struct rstream_link *link;

	lockdep_assert_held(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		if (rstream_link_is_up(link))
			return link;
	return NULL;
}

static unsigned int peer_connecting(struct rstream_peer *peer)
{
	struct rstream_link *link;
	unsigned int n = 0;

	lockdep_assert_held(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		n += link_connecting(link);
	return n;
}

/* The maximum, because the network carries both directions at full speed. */
static unsigned int link_load(const struct rstream_link *link)
{
	return max(READ_ONCE(link->rx.n), READ_ONCE(link->tx.n));
}

/* Is @link better for a new ring of this host than @other, if neither or both have room? */
static bool link_better(const struct rstream_link *link, const struct rstream_link *other)
{
	unsigned int rx = READ_ONCE(link->rx.n), other_rx = READ_ONCE(other->rx.n);

	if (rx != other_rx)
		return rx < other_rx;
	if (link->node != other->node)
		return link->node == numa_node_id();
	return READ_ONCE(link->tx.n) < READ_ONCE(other->tx.n);
}

/* Is there memory for a ring of @size, or can there be? */
static bool link_room(struct rstream_link *link, u32 size)
{
	bool room;

	spin_lock_bh(&link->lock);
	room = rstream_rmb_has(link, RSTREAM_RMB_RINGS, size) ||
	       rstream_rmb_fits(link, size);
	spin_unlock_bh(&link->lock);
	return room;
}

/* Return: the best link for a new ring of @size, or NULL.  @best_room: it has room for the ring. */
static struct rstream_link *best_link(struct rstream_peer *peer, u32 size, bool *best_room)
{
	struct rstream_link *link, *best = NULL;
	bool room;

	lockdep_assert_held(&peer->lock);
	*best_room = false;
	list_for_each_entry(link, &peer->links, peer_list) {
		if (!rstream_link_is_up(link))
			continue;
		room = peer->n_links == 1 || link_room(link, size);
		if (best && (room < *best_room ||
			     (room == *best_room && !link_better(link, best))))
			continue;
		best = link;
		*best_room = room;
	}
	return best;
}

struct rstream_link *rstream_peer_link(struct rstream_peer *peer, u32 size)
{
	struct rstream_link *best;
	bool room;

	spin_lock_bh(&peer->lock);
	best = best_link(peer, size, &room);
	if (best)
		rstream_link_hold(best);
	spin_unlock_bh(&peer->lock);
	return best;
}

bool rstream_peer_has_better_link(struct rstream_peer *peer, const struct rstream_rxring *ring)
{
	struct rstream_link *best;
	bool room;

	spin_lock_bh(&peer->lock);
	best = best_link(peer, ring->size, &room);
	spin_unlock_bh(&peer->lock);
	return best && best != ring->link && room;
}

/* ---- attempts ---- */

/* Result of peer_plan(). */
struct plan {
	unsigned int n;			/* number of links to establish, 0: none */
	struct rstream_path *path;
	unsigned long delay;		/* jiffies until the attempt */
};

static bool peer_may_try(const struct rstream_peer *peer)
{
	return peer->active && !READ_ONCE(peer->ln->exiting) &&
	       !READ_ONCE(peer->ln->drained);
}

/* Number of links over each path. */
static unsigned int peer_wants(const struct rstream_peer *peer)
{
	return max(READ_ONCE(rstream_link_set(peer->ln)->links_per_path), 1);
}

/*
 * All links over a path are established at once.  If that takes long, the next path is tried as
 * well.  Once there is a link, links over further paths are established only if they are wanted.
 */
static struct plan peer_plan(struct rstream_peer *peer)
{
	/* how long a path may take before another one is tried, too */
	unsigned long limit = msecs_to_jiffies(rstream_link_set(peer->ln)->cm_timeout_ms / 2);
	unsigned int up = 0, making = 0, missing, want = peer_wants(peer);
	unsigned long alone = 0, age;
	struct rstream_link *link;
	struct plan plan = {};

	lockdep_assert_held(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list) {
		if (!link->active || !rstream_link_alive(link))
			continue;
		if (rstream_link_is_up(link)) {
			up++;
			continue;
		}
		making++;
		age = jiffies - link->made_at;
		if (age < limit)
			alone = max(alone, limit - age);
	}
	if (!peer_may_try(peer) || (up ? !peer->want_more : !peer->n_waiters))
		return plan;
	plan.path = up ? rstream_path_further(peer, want, &missing) : rstream_path_best(peer);
	if (!plan.path)
		return plan;
	if (!up)
		missing = want;
	plan.n = min(missing, RSTREAM_SLOTS - up - making);
	plan.delay = max(alone, rstream_path_wait(plan.path));
	return plan;
}

/* Tries now, or when the pause of the path ends. */
static void peer_schedule(struct rstream_peer *peer)
{
	struct plan plan;
	unsigned long at;

	lockdep_assert_held(&peer->lock);
	if (!peer_may_try(peer))
		return;
	plan = peer_plan(peer);
	if (!plan.n) {
		peer->want_more = false;
		/* the pending work keeps the peer, and so its history, until no path waits */
		plan.delay = rstream_path_longest(peer);
		if (!plan.delay)
			return;
	}
	at = jiffies + plan.delay;
	if (delayed_work_pending(&peer->work) && !time_before(at, peer->work_at))
		return;
	peer->work_at = at;
	/* the work drops this reference, but takes peer->lock first */
	if (!mod_delayed_work(rstream_wqs[RSTREAM_WQ_REQUESTS], &peer->work, plan.delay))
		rstream_peer_hold(peer);
}

/* Return: a slot without a live link that this host connects, or -1. */
static int free_slot(struct rstream_peer *peer)
{
	struct rstream_link *link;
	unsigned long used = 0;
	int slot;

	spin_lock_bh(&peer->lock);
	list_for_each_entry(link, &peer->links, peer_list)
		if (link->active && rstream_link_alive(link))
			used |= BIT(link->slot);
	spin_unlock_bh(&peer->lock);
	slot = ffz(used);
	return slot < RSTREAM_SLOTS ? slot : -1;
}

/* Only peer_work() creates links, so a free slot remains free. */
static int peer_try(struct rstream_peer *peer, struct rstream_path *path,
		    const struct rstream_peer_route *route)
{
	int slot = free_slot(peer);
	struct rstream_link *link;
	int err;

	if (slot < 0)
		return -EAGAIN;
	link = rstream_life_new(peer, path, slot);
	if (!link)
		return -EAGAIN;	/* at a limit: not the path's fault */
	err = rstream_cm_connect(link, route);
	rstream_link_put(link);
	return err;
}

/* Return: of the last waiters of @list and @best, the one whose token was refused least often. */
static struct rstream_waiter *least_refused(struct list_head *list, struct rstream_waiter *best)
{
	struct rstream_waiter *w;
	unsigned int n = 0;

	list_for_each_entry_reverse(w, list, list) {
		if (n++ == TOKENS_MAX)
			break;
		if (w->ticket.theirs.token && (!best || w->refused < best->refused))
			best = w;
	}
	return best;
}

/*
 * Return: of the connections that wait for a link, the one whose token was refused least often, or
 * NULL.  The peer knows a token only while its end of the connection exists, so those that asked
 * last are preferred.
 */
static struct rstream_waiter *waiter_to_try(struct rstream_peer *peer)
{
	lockdep_assert_held(&peer->lock);
	return least_refused(&peer->notified, least_refused(&peer->asking, NULL));
}

static void fill_route(struct rstream_peer *peer,
		       const struct rstream_path *path,
		       struct rstream_peer_route *route)
{
	struct rstream_waiter *w = waiter_to_try(peer);

	*route = (struct rstream_peer_route){
		.local = path->local,
		.remote = path->remote,
		.ticket = w ? w->ticket : peer->ticket,
	};
}

static void peer_work(struct work_struct *work)
{
	struct rstream_peer *peer = container_of(to_delayed_work(work),
						 struct rstream_peer, work);
	struct net *net = peer->ln->net;
	struct rstream_peer_route route;
	bool tries, named = false;
	struct plan plan;
	int err = 0;

	spin_lock_bh(&peer->lock);
	plan = peer_plan(peer);
	/* no new id in a namespace that is being removed: it would pin it */
	tries = plan.n && !plan.delay && maybe_get_net(net);
	if (!plan.delay)
		peer->want_more = false;
	if (tries) {
		fill_route(peer, plan.path, &route);
		named = !plan.path->own;
		peer->trying = plan.path;
		peer->declined = false;
		peer->asked = false;
	}
	spin_unlock_bh(&peer->lock);
	while (tries && !err && plan.n--) {
		if (named)
			err = rstream_path_may(peer, &route.remote);
		if (!err)
			err = peer_try(peer, plan.path, &route);
	}
	spin_lock_bh(&peer->lock);
	peer->trying = NULL;
	if (err == -EAGAIN)
		rstream_path_again(plan.path);
	else if (err)
		rstream_path_failed(plan.path, false);
	if (err && peer_up_link(peer))
		peer->more_at = get_jiffies_64() + MORE_PAUSE;
	else if (err)
		rstream_waiter_notify_some(peer, RSTREAM_LINK_EV_FAILED, UINT_MAX);
	peer_schedule(peer);
	spin_unlock_bh(&peer->lock);
	rstream_peer_put(peer);
	if (tries)
		put_net(net);
}

static void peer_name(struct rstream_peer *peer,
		      const struct rstream_peer_route *route)
{
	rstream_path_name(peer, &route->local, &route->remote, true);
	peer->ticket = route->ticket;
}

void rstream_peer_want_link(struct rstream_peer *peer,
			    const struct rstream_peer_route *route,
			    struct rstream *rs)
{
	struct rstream_waiter *w;

	spin_lock_bh(&peer->lock);
	if (peer_up_link(peer)) {
		rstream_link_ops->event(rs, RSTREAM_LINK_EV_UP);
	} else {
		peer_name(peer, route);
		w = rstream_waiter_add(peer, rs);
		if (w)
			w->ticket = route->ticket;
		peer_schedule(peer);
	}
	spin_unlock_bh(&peer->lock);
}

/* Are there more rings in one direction than links, none of which is free?  Can one be tried? */
static bool peer_lacks_link(struct rstream_peer *peer)
{
	unsigned int n = 0, rx = 0, tx = 0, missing;
	struct rstream_link *link;
	struct rstream_path *path;

	lockdep_assert_held(&peer->lock);
	if (!peer_may_try(peer) || time_before64(get_jiffies_64(), peer->more_at))
		return false;
	list_for_each_entry(link, &peer->links, peer_list) {
		if (!link->active || !rstream_link_alive(link))
			continue;
		if (!link_load(link) || ++n == RSTREAM_SLOTS)
			return false;
		rx += READ_ONCE(link->rx.n);
		tx += READ_ONCE(link->tx.n);
	}
	if (max(rx, tx) <= n)
		return false;
	path = rstream_path_further(peer, peer_wants(peer), &missing);
	return path && !rstream_path_wait(path);
}

void rstream_peer_want_more(struct rstream_peer *peer,
			    const struct rstream_peer_route *route)
{
	if (!peer->active)
		return;
	spin_lock_bh(&peer->lock);
	peer_name(peer, route);
	if (!peer->want_more && peer_lacks_link(peer)) {
		peer->want_more = true;
		peer_schedule(peer);
	}
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_balance(struct rstream_link *link, struct rstream_balance *balance)
{
	unsigned int n = READ_ONCE(link->rx.n), fewest = n;
	struct rstream_peer *peer = link->peer;
	struct rstream_link *other;

	*balance = (struct rstream_balance){};
	if (link_load(link) < 2)
		return;
	spin_lock_bh(&peer->lock);
	list_for_each_entry(other, &peer->links, peer_list)
		if (rstream_link_is_up(other))
			fewest = min(fewest, READ_ONCE(other->rx.n));
	balance->surplus = (n - fewest) / 2;
	balance->more = !peer->want_more && peer_lacks_link(peer);
	spin_unlock_bh(&peer->lock);
}

/* Can this be the address of a single other host? */
static bool may_be_peer(const u8 *addr)
{
	struct in6_addr in6;
	__be32 in4;

	memcpy(&in6, addr, sizeof(in6));
	in4 = in6.s6_addr32[3];
	if (ipv6_addr_v4mapped(&in6))
		return !ipv4_is_zeronet(in4) && !ipv4_is_loopback(in4) &&
		       !ipv4_is_multicast(in4) && !ipv4_is_lbcast(in4) &&
		       !ipv4_is_linklocal_169(in4);
	return ipv6_addr_type(&in6) & IPV6_ADDR_UNICAST &&
	       !(ipv6_addr_type(&in6) &
		 (IPV6_ADDR_LOOPBACK | IPV6_ADDR_LINKLOCAL));
}

static void put_mapped(const u8 *addr, u16 port, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	memcpy(&sin6->sin6_addr, addr, sizeof(sin6->sin6_addr));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	if (!ipv6_addr_v4mapped(&sin6->sin6_addr))
		return;
	*sin = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = get_unaligned((__be32 *)(addr + 12)),
	};
}

void rstream_peer_addrs(struct rstream_peer *peer, const u8 addrs[][16],
			unsigned int n, u16 port)
{
	static const struct sockaddr_storage any = { .ss_family = AF_UNSPEC };
	struct sockaddr_storage remote;
	unsigned int i;

	if (!peer->active ||
	    !READ_ONCE(rstream_link_set(peer->ln)->accept_addrs))
		return;
	spin_lock_bh(&peer->lock);
	for (i = 0; i < n; i++) {
		if (!may_be_peer(addrs[i]))
			continue;
		put_mapped(addrs[i], port, &remote);
		rstream_path_name(peer, &any, &remote, false);
	}
	spin_unlock_bh(&peer->lock);
}

/* ---- events that expedite an attempt ---- */

/*
 * Makes the next attempt at @at (64-bit jiffies), regardless of earlier failures; @all: as in
 * rstream_paths_hurry().
 */
static void peer_hurry(struct rstream_peer *peer, u64 at, bool all)
{
	lockdep_assert_held(&peer->lock);
	rstream_paths_hurry(peer, at, all);
	peer->more_at = 0;
	peer_schedule(peer);
}

/*
 * A drained peer that requests a link is no longer drained.  It may lie, so the attempts that it
 * can expedite are a second apart.
 */
static void peer_asked(struct rstream_peer *peer)
{
	u64 now = get_jiffies_64();

	lockdep_assert_held(&peer->lock);
	if (!peer->drained)
		return;
	peer->drained = false;
	if (peer->hurried_at > now)	/* one is due */
		return;
	peer->hurried_at = max(now + msecs_to_jiffies(ASKED_MS), peer->hurried_at + HZ);
	peer_hurry(peer, peer->hurried_at, false);
}

/*
 * The drain of this host is over.  The root of a namespace can cause that as often as it likes,
 * hence RETRY_PAUSE.
 */
static void peer_retry(struct rstream_peer *peer)
{
	u64 now = get_jiffies_64();

	if (peer->retried_at <= now)
		peer->retried_at = max(now, peer->retried_at + RETRY_PAUSE);
	peer_hurry(peer, peer->retried_at, true);
}

void rstream_peer_asks(struct rstream_peer *peer)
{
	spin_lock_bh(&peer->lock);
	peer->asked = true;
	peer_asked(peer);
	spin_unlock_bh(&peer->lock);
}

void rstream_peer_set_drained(struct rstream_peer *peer, bool drained)
{
	spin_lock_bh(&peer->lock);
	/* the active side knows better, from the answers to its attempts */
	if (!peer->active)
		peer->drained = drained;
	spin_unlock_bh(&peer->lock);
}

/* The peer has rejected an attempt because it is drained. */
void rstream_peer_declines(struct rstream_peer *peer)
{
	spin_lock_bh(&peer->lock);
	peer->declined = true;
	peer->drained = true;
	spin_unlock_bh(&peer->lock);
}

static void token_refused(struct list_head *list, u64 token)
{
	struct rstream_waiter *w;
	unsigned int n = 0;

	list_for_each_entry_reverse(w, list, list) {
		if (n++ == TOKENS_MAX)
			break;
		if (w->ticket.theirs.token == token && w->refused < U8_MAX)
			w->refused++;
	}
}

/*
 * The peer has rejected an attempt because it does not know the connection of @link's token, yet or
 * any more.  Return: true if another token can be tried, so that the path is not to blame.
 */
bool rstream_peer_bad_token(struct rstream_link *link)
{
	struct rstream_peer *peer = link->peer;
	struct rstream_waiter *w;
	bool again;

	spin_lock_bh(&peer->lock);
	token_refused(&peer->asking, link->ticket.theirs.token);
	token_refused(&peer->notified, link->ticket.theirs.token);
	w = waiter_to_try(peer);
	again = w && !w->refused;
	spin_unlock_bh(&peer->lock);
	return again;
}

/* Return: the peer after @last, or the first one, referenced; or NULL.  Puts @last. */
struct rstream_peer *rstream_peer_next(struct rstream_link_net *ln,
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

/* Retries with all peers, because an obstacle to establishing links is gone. */
void rstream_peers_retry(struct rstream_link_net *ln)
{
	struct rstream_peer *peer;
	int i;

	for (i = 0; i < ARRAY_SIZE(ln->peers); i++) {
		peer = NULL;
		while ((peer = rstream_peer_next(ln, &ln->peers[i], peer))) {
			spin_lock_bh(&peer->lock);
			peer_retry(peer);
			spin_unlock_bh(&peer->lock);
		}
	}
}

/* ---- links come up and end ---- */

void rstream_peer_add_link(struct rstream_peer *peer, struct rstream_link *link)
{
	lockdep_assert_held(&peer->lock);
	list_add(&link->peer_list, &peer->links);
	peer->n_links++;
}

/* Notifies only some waiters, to leave a fair share to links that are still being established. */
static void tell_up(struct rstream_peer *peer)
{
	unsigned int share = peer_connecting(peer) + 1;

	rstream_waiter_notify_some(peer, RSTREAM_LINK_EV_UP,
				   DIV_ROUND_UP(peer->n_waiters, share));
}

/*
 * Breaks older links in the slot of @link: the peer has established @link because these are
 * unusable.
 */
static void replaces(struct rstream_peer *peer, struct rstream_link *link)
{
	struct rstream_link *older = link;

	lockdep_assert_held(&peer->lock);
	if (link->active)
		return;
	list_for_each_entry_continue(older, &peer->links, peer_list)
		if (!older->active && older->slot == link->slot)
			rstream_link_break(older, RSTREAM_END_REPLACED);
}

void rstream_peer_link_up(struct rstream_link *link)
{
	struct rstream_peer *peer = link->peer;

	spin_lock_bh(&peer->lock);
	replaces(peer, link);
	peer->drained = false;
	if (link->path)
		rstream_path_works(link->path);
	tell_up(peer);
	spin_unlock_bh(&peer->lock);
}

/* Updates the history of the path of @link, which has just left the table. */
static void judge(struct rstream_peer *peer, struct rstream_link *link)
{
	lockdep_assert_held(&peer->lock);
	if (!link->path)
		return;
	if (link->was_up)
		rstream_path_broke(link);
	else if (rstream_path_has_link(link))
		/* another link is up, so the peer refuses further ones: not the path's fault */
		peer->more_at = get_jiffies_64() + MORE_PAUSE;
	else if (rstream_link_ended(link) == RSTREAM_END_KIND_AGAIN)
		rstream_path_again(link->path);
	else
		rstream_path_failed(link->path,
				    rstream_link_ended(link) == RSTREAM_END_KIND_REFUSED);
}

void rstream_peer_link_down(struct rstream_link *link)
{
	struct rstream_peer *peer = link->peer;

	spin_lock_bh(&peer->lock);
	list_del(&link->peer_list);
	peer->n_links--;
	peer->why = link->why;
	peer->why_at = get_jiffies_64();
	judge(peer, link);
	if (peer_up_link(peer))
		tell_up(peer);
	else if (!peer_connecting(peer))
		rstream_waiter_notify_some(peer, peer->declined ? RSTREAM_LINK_EV_DECLINED :
								  RSTREAM_LINK_EV_FAILED,
					   UINT_MAX);
	if (peer->declined && peer->asked)
		peer_asked(peer);
	peer_schedule(peer);
	spin_unlock_bh(&peer->lock);
}

/* Ends pending attempts; the caller ends the links. */
void rstream_peer_net_exit(struct rstream_link_net *ln)
{
	struct rstream_peer *peer = NULL;
	int i;

	/* after this, code that has not seen ln->exiting has queued its work */
	for (i = 0; i < ARRAY_SIZE(ln->peers); i++) {
		while ((peer = rstream_peer_next(ln, &ln->peers[i], peer))) {
			spin_lock_bh(&peer->lock);
			spin_unlock_bh(&peer->lock);
		}
	}
again:
	spin_lock_bh(&ln->lock);
	for (i = 0; i < ARRAY_SIZE(ln->peers); i++) {
		hlist_for_each_entry(peer, &ln->peers[i], node) {
			if (!delayed_work_pending(&peer->work) ||
			    !refcount_inc_not_zero(&peer->ref))
				continue;
			spin_unlock_bh(&ln->lock);
			/* makes the work run at once; it sees ln->exiting */
			flush_delayed_work(&peer->work);
			rstream_peer_put(peer);
			goto again;
		}
	}
	spin_unlock_bh(&ln->lock);
}
