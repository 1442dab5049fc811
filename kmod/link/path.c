// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths: pairs of addresses over which links can be established, and when each is tried.
 *
 * Owns the paths of a peer, and the list of the host's own RDMA addresses.  A path is the
 * pair of addresses of a TCP connection, or an address from the peer's HELLO with the local
 * address that routing chooses.  Called by peer.c with peer->lock held, and by the streams for
 * HELLO.  It never creates a link.
 *
 * Damping.  Failures delay the next attempt over a path, each one twice as long: consecutive
 * failed or refused attempts, reset when a link comes up; and links that broke, of which one is
 * removed for each link_flap_decay_ms that a later link was up.  So a path whose links flap is
 * used less and less often, even if they come up quickly.  What is not the path's fault, such as
 * a limit of this host, delays the next attempt for less time, but also longer each time.
 */
#include <linux/random.h>
#include <net/ip6_fib.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "device.h"
#include "peer_host.h"

#define RETRY_MIN_MS	100
#define RETRY_MAX_MS	30000
#define AGAINS_MAX	5U	/* further ones do not count: 1.6 s */
#define ADDRS_AGE	HZ	/* own addresses are looked up again after this */

/* ---- of a peer ---- */

static bool same_addr(const struct sockaddr_storage *a,
		      const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

static void any_port(struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = 0;
	else if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = 0;
}

/* ---- addresses advertised by a peer ---- */

/* Where an address is, according to routing. */
enum where {
	WHERE_NOWHERE,		/* unreachable, or not a single host */
	WHERE_HERE,		/* local */
	WHERE_NEAR,		/* on a network of this host */
	WHERE_FAR,		/* behind a gateway */
};

static enum where where4(struct net *net, __be32 addr)
{
	struct flowi4 fl4 = { .daddr = addr };
	struct rtable *rt = ip_route_output_key(net, &fl4);
	enum where where = WHERE_NOWHERE;

	if (IS_ERR(rt))
		return where;
	if (rt->rt_type == RTN_LOCAL)
		where = WHERE_HERE;
	else if (rt->rt_type == RTN_UNICAST)
		where = rt->rt_uses_gateway ? WHERE_FAR : WHERE_NEAR;
	ip_rt_put(rt);
	return where;
}

static enum where where6(struct net *net, const struct in6_addr *addr)
{
	struct flowi6 fl6 = { .daddr = *addr };
	enum where where = WHERE_NOWHERE;
	const struct rt6_info *rt;
	struct dst_entry *dst;

	dst = rstream_ip6_lookup(net, &fl6);
	if (IS_ERR(dst))
		return where;
	rt = container_of(dst, struct rt6_info, dst);
	if (rt->rt6i_flags & RTF_LOCAL)
		where = WHERE_HERE;
	else if (!dst->error && !(rt->rt6i_flags & (RTF_REJECT | RTF_ANYCAST)))
		where = rt->rt6i_flags & RTF_GATEWAY ? WHERE_FAR : WHERE_NEAR;
	dst_release(dst);
	return where;
}

static bool not_too_often(struct rstream_peer *peer)
{
	bool may;

	spin_lock_bh(&peer->ln->lock);
	may = rstream_host_add_named(peer->ln, peer->host);
	spin_unlock_bh(&peer->ln->lock);
	return may;
}

/*
 * May a link be tried to an address advertised by a peer?  The peer can advertise any address, so
 * this limits where requests are sent, and how often.
 * Return: 0, -EAGAIN (try later), -EHOSTUNREACH
 */
int rstream_path_may(struct rstream_peer *peer,
		     const struct sockaddr_storage *remote)
{
	int most = READ_ONCE(rstream_link_set(peer->ln)->accept_addrs);
	enum where where;

	if (remote->ss_family == AF_INET)
		where = where4(peer->ln->net,
			       ((const struct sockaddr_in *)remote)->sin_addr.s_addr);
	else
		where = where6(peer->ln->net,
			       &((const struct sockaddr_in6 *)remote)->sin6_addr);
	if (where == WHERE_NOWHERE || !most ||
	    (where == WHERE_HERE && !peer->self) ||
	    (where == WHERE_FAR && most < 2))
		return -EHOSTUNREACH;
	return not_too_often(peer) ? 0 : -EAGAIN;
}

/* Return: jiffies until @path may be tried. */
unsigned long rstream_path_wait(const struct rstream_path *path)
{
	u64 now = get_jiffies_64();

	return path->retry_at > now ? path->retry_at - now : 0;
}

/* Importance of a path, ascending: the least important one is replaced. */
enum path_rank {
	PATH_FREE,
	PATH_NAMED,	/* advertised by the peer */
	PATH_OWN,	/* of a TCP connection */
	PATH_WAITS,	/* its failures must not be forgotten */
	PATH_TRYING,	/* being tried, or has a link */
};

/*
 * Return: number of links of @path that are up, or if !@up, of the others: those being established,
 * and those that have ended and are not yet in the path's history.
 */
static unsigned int path_links(const struct rstream_peer *peer, const struct rstream_path *path,
			       bool up)
{
	const struct rstream_link *link;
	unsigned int n = 0;

	list_for_each_entry(link, &peer->links, peer_list)
		n += link->path == path && rstream_link_is_up(link) == up;
	return n;
}

static enum path_rank path_rank(const struct rstream_peer *peer,
				const struct rstream_path *path)
{
	if (path->remote.ss_family == AF_UNSPEC)
		return PATH_FREE;
	if (path == peer->trying || path_links(peer, path, true) || path_links(peer, path, false))
		return PATH_TRYING;
	if (rstream_path_wait(path))
		return PATH_WAITS;
	return path->own ? PATH_OWN : PATH_NAMED;
}

/*
 * Return: the entry of the path, or a cleared one for it, or NULL if none may be replaced.  Of the
 * least important entries, it replaces the one that has not been mentioned for the longest time.
 * An advertised path replaces neither paths of connections nor paths that must wait, and nothing
 * replaces a path that has a link.
 */
static struct rstream_path *path_entry(struct rstream_peer *peer,
				       const struct sockaddr_storage *local,
				       const struct sockaddr_storage *remote,
				       bool own)
{
	enum path_rank rank, least = own ? PATH_WAITS : PATH_NAMED;
	struct rstream_path *path, *found = NULL;
	int i;

	lockdep_assert_held(&peer->lock);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++) {
		path = &peer->paths[i];
		/* connections may use several local addresses with the same remote one */
		if (same_addr(&path->remote, remote) &&
		    (!own || !path->own || same_addr(&path->local, local)))
			return path;
		rank = path_rank(peer, path);
		if (rank > least)
			continue;
		if (!found || rank < least ||
		    time_before(path->named_at, found->named_at))
			found = path;
		least = rank;
	}
	if (!found)
		return NULL;
	*found = (struct rstream_path){};
	return found;
}

void rstream_path_name(struct rstream_peer *peer,
		       const struct sockaddr_storage *local,
		       const struct sockaddr_storage *remote, bool own)
{
	struct rstream_path *path = path_entry(peer, local, remote, own);

	if (!path)
		return;
	path->named_at = jiffies;
	/* an advertisement does not change the path of a connection */
	if (path->own && !own)
		return;
	path->remote = *remote;
	path->own = own;
	path->local = *local;
	any_port(&path->local);
}

/*
 * How long @path will probably take to work, in jiffies: each earlier failure counts as a second of
 * waiting.
 */
static unsigned long path_cost(const struct rstream_path *path)
{
	return rstream_path_wait(path) + (path->fails + path->flaps) * HZ;
}

/*
 * Return: the path that will probably work soonest, or NULL if there is none, or all are being
 * tried.  An advertised address counts as half a second of waiting, so that the path does not
 * change just because the peer is not ready yet.
 */
struct rstream_path *rstream_path_best(struct rstream_peer *peer)
{
	struct rstream_path *path, *best = NULL;
	unsigned long cost, least = 0;
	int i;

	lockdep_assert_held(&peer->lock);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++) {
		path = &peer->paths[i];
		if (path->remote.ss_family == AF_UNSPEC ||
		    path_links(peer, path, false))
			continue;
		cost = path_cost(path) + (path->own ? 0 : HZ / 2);
		if (best && cost >= least)
			continue;
		best = path;
		least = cost;
	}
	return best;
}

/*
 * Return: the path for a further link, or NULL if all have @most links or are being tried.  Prefers
 * the path that will probably work soonest, then the one with the fewest links.  @missing: how many
 * more links it may have.
 */
struct rstream_path *rstream_path_further(struct rstream_peer *peer, unsigned int most,
					  unsigned int *missing)
{
	struct rstream_path *path, *best = NULL;
	unsigned long cost, least = 0;
	unsigned int n, fewest = most;
	int i;

	lockdep_assert_held(&peer->lock);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++) {
		path = &peer->paths[i];
		if (path->remote.ss_family == AF_UNSPEC || path_links(peer, path, false))
			continue;
		n = path_links(peer, path, true);
		cost = path_cost(path);
		if (n >= most || (best && (cost != least ? cost > least : n >= fewest)))
			continue;
		best = path;
		fewest = n;
		least = cost;
	}
	*missing = most - fewest;
	return best;
}

/* Is another link up over the path of @link? */
bool rstream_path_has_link(struct rstream_link *link)
{
	lockdep_assert_held(&link->peer->lock);
	return path_links(link->peer, link->path, true);
}

/* Return: jiffies until no path has to wait. */
unsigned long rstream_path_longest(struct rstream_peer *peer)
{
	unsigned long longest = 0;
	int i;

	lockdep_assert_held(&peer->lock);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++)
		longest = max(longest, rstream_path_wait(&peer->paths[i]));
	return longest;
}

static void count(unsigned int *failures)
{
	*failures = min(*failures + 1, RSTREAM_FAILURES_MAX);
}

/* Starts the pause that is due after @n failures, at least one. */
static void path_pause_for(struct rstream_path *path, unsigned int n)
{
	unsigned int ms = min(RETRY_MIN_MS << (n - 1), RETRY_MAX_MS);

	/* jitter, so that the peers of a host that comes back do not all connect at once */
	ms += get_random_u32() % (ms / 2);
	path->retry_at = get_jiffies_64() + msecs_to_jiffies(ms);
}

static void path_pause(struct rstream_path *path)
{
	path_pause_for(path, clamp(path->fails + path->refused + path->flaps, 1U,
				   RSTREAM_FAILURES_MAX));
}

/* A link has come up. */
void rstream_path_works(struct rstream_path *path)
{
	path->agains = 0;
	path->fails = 0;
	path->refused = 0;
}

/* An attempt has failed.  Links that fail together count as one failure. */
void rstream_path_failed(struct rstream_path *path, bool refused)
{
	if (rstream_path_wait(path))
		return;
	if (refused)
		count(&path->refused);
	else
		count(&path->fails);
	path_pause(path);
}

/* An attempt has failed, but not through the path's fault: retry soon. */
void rstream_path_again(struct rstream_path *path)
{
	if (rstream_path_wait(path))
		return;
	path->agains = min(path->agains + 1, AGAINS_MAX);
	path_pause_for(path, path->agains);
}

/*
 * Lets all paths be tried at @at (64-bit jiffies), and forgets failures.  @all: also links that
 * broke, and what may be tried before @at remains so; otherwise, only what is due.
 */
void rstream_paths_hurry(struct rstream_peer *peer, u64 at, bool all)
{
	struct rstream_path *path;
	int i;

	lockdep_assert_held(&peer->lock);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++) {
		path = &peer->paths[i];
		path->agains = 0;
		path->fails = 0;
		path->refused = 0;
		if (all)
			path->flaps = 0;
		/* an attempt that is due earlier remains so */
		if (path->retry_at > at || (!all && !rstream_path_wait(path)))
			path->retry_at = at;
	}
}

/* @link has ended, and was up. */
void rstream_path_broke(struct rstream_link *link)
{
	unsigned int ms = READ_ONCE(rstream_link_set(link->ln)->link_flap_decay_ms);
	unsigned long decay = max(msecs_to_jiffies(ms), 1UL);
	unsigned long up = jiffies - link->up_at;
	struct rstream_path *path = link->path;

	lockdep_assert_held(&link->peer->lock);
	if (rstream_path_wait(path))
		return;
	path->flaps -= min_t(unsigned long, path->flaps, up / decay);
	if (rstream_link_flaps(link)) {
		count(&path->flaps);
		if (up < decay)
			rstream_link_count(link, RSTREAM_MIB_LINKS_FLAPPED);
	}
	path_pause(path);
}

/* ---- own addresses ---- */

/* Looks up addresses only when the cached ones are old: there may be many connections. */
static void look_up(struct rstream_link_net *ln)
{
	lockdep_assert_held(&ln->addr_lock);
	if (time_before(jiffies, ln->addrs_at + ADDRS_AGE))
		return;
	ln->addrs_at = jiffies;
	ln->n_addrs = rstream_dev_addrs(ln->net, ln->addrs, RSTREAM_ADDRS_MAX);
}

/*
 * Does @ifindex already have an address in @advertised, or @own?  A second address of an interface
 * is not another path.
 */
static bool same_dev(const struct rstream_link_net *ln, int ifindex,
		     const struct in6_addr *advertised, unsigned int n_advertised,
		     const struct in6_addr *own)
{
	unsigned int i, j;

	for (i = 0; i < ln->n_addrs; i++) {
		if (ln->addrs[i].ifindex != ifindex)
			continue;
		if (ipv6_addr_equal(&ln->addrs[i].addr, own))
			return true;
		for (j = 0; j < n_advertised; j++)
			if (ipv6_addr_equal(&ln->addrs[i].addr, &advertised[j]))
				return true;
	}
	return false;
}

unsigned int rstream_path_addrs(struct net *net, const struct in6_addr *own,
				struct in6_addr *addrs, unsigned int max)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	const struct rstream_addr *a;
	unsigned int i, n = 0;
	int v4;

	spin_lock_bh(&ln->addr_lock);
	look_up(ln);
	for (v4 = 1; v4 >= 0; v4--) {
		for (i = 0; i < ln->n_addrs && n < max; i++) {
			a = &ln->addrs[i];
			if (ipv6_addr_v4mapped(&a->addr) == v4 &&
			    !same_dev(ln, a->ifindex, addrs, n, own))
				addrs[n++] = a->addr;
		}
	}
	spin_unlock_bh(&ln->addr_lock);
	return n;
}
