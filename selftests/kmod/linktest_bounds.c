// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reaches the bounds that are numbers: peers, requests for links, sending ends of rings, and
 * memory for cells beyond rmb_max.  The host has links with itself, as its peers at addresses
 * that no host has.
 *
 * Stands in for the streams as linktest.c does, with one for each address, but no ring is
 * ever granted: a sending end is opened as if its GRANT had come.
 */
#include <linux/inet.h>
#include <linux/random.h>
#include <net/ipv6.h>

#include "base/net.h"
#include "link/link_priv.h"
#include "link/peer_host.h"
#include "link/ring.h"
#include "linktest.h"

#define HOSTS		6		/* with links at the same time */
#define LINKS		6		/* with each: three that we make, and their other ends */
#define PATIENCE	(60 * HZ)

/* Both ends of a connection with the host at an address. */
struct rstream {
	wait_queue_head_t wait;
	atomic_t up, failed;
	struct rstream_waiter *waiter;
	struct rstream_ticket ticket;
	struct rstream_peer_name name;
	struct rstream_peer_route route;
	struct rstream_peer *peer;
};

static struct rstream hosts[HOSTS];
static struct rstream_txring **opened;
static unsigned int n_opened, last_id;

static void is(unsigned long has, unsigned long wanted, const char *what)
{
	if (has != wanted)
		pr_info("linktest: # %lu, not %lu\n", has, wanted);
	linktest_ok(has == wanted, "%s", what);
}

/* ---- what the link side calls ---- */

static void ring_data(struct rstream *rs, struct rstream_rxring *ring, bool bad)
{
}

static void ring_space(struct rstream *rs, struct rstream_txring *ring, bool credit)
{
}

static void ring_sent(struct rstream *rs)
{
}

static void link_event(struct rstream *rs, enum rstream_link_event ev)
{
	if (ev == RSTREAM_LINK_EV_UP)
		atomic_inc(&rs->up);
	else if (ev == RSTREAM_LINK_EV_FAILED)
		atomic_inc(&rs->failed);
	wake_up(&rs->wait);
}

static struct rstream_waiter **link_waiter(struct rstream *rs)
{
	return &rs->waiter;
}

static bool ticket_find(struct net *net, struct rstream_ticket *ticket,
			struct rstream_peer_name *name)
{
	struct rstream_ticket found;
	int i;

	for (i = 0; i < HOSTS; i++) {
		found = hosts[i].ticket;
		if (found.ours.token != ticket->ours.token)
			swap(found.ours, found.theirs);
		if (!ticket->ours.token || found.ours.token != ticket->ours.token ||
		    found.theirs.token != ticket->theirs.token)
			continue;
		*ticket = found;
		*name = hosts[i].name;
		return true;
	}
	return false;
}

const struct rstream_link_ops linktest_bounds_ops = {
	.data = ring_data,
	.space = ring_space,
	.sent = ring_sent,
	.event = link_event,
	.waiter = link_waiter,
	.find = ticket_find,
};

/* ---- peers ---- */

static void set_v4(struct in6_addr *addr, u32 host)
{
	ipv6_addr_set_v4mapped(htonl(0x0ac80000 + host), addr);	/* 10.200.0.0 */
}

static void set_v6(struct in6_addr *addr, u32 prefix, u32 subnet, u32 host)
{
	ipv6_addr_set(addr, htonl(prefix), htonl(subnet), 0, htonl(host));
}

static struct rstream_peer **peers;
static unsigned int n_peers;

/* One more, with an instance id of its own. */
static bool more(const struct in6_addr *local, const struct in6_addr *remote, u32 scope)
{
	struct rstream_peer_name name = { .local = *local, .remote = *remote, .scope = scope };
	struct rstream_peer *peer;

	get_random_bytes(name.instance, sizeof(name.instance));
	peer = rstream_peer_get(&init_net, &name);
	if (peer)
		peers[n_peers++] = peer;
	return peer;
}

/* As many as an address may have. */
static unsigned int most(const struct in6_addr *local, const struct in6_addr *remote, u32 scope)
{
	unsigned int n = 0;

	while (n_peers < 2 * RSTREAM_PEERS_MAX && more(local, remote, scope))
		n++;
	return n;
}

/* Is @n an eighth of what is left then, and not one more? */
static bool is_share(unsigned int n)
{
	unsigned int left = RSTREAM_PEERS_MAX - n_peers;

	return n == 256 || (n >= DIV_ROUND_UP(left, 8) && n - 1 < DIV_ROUND_UP(left + 1, 8));
}

static void no_peers(void)
{
	while (n_peers)
		rstream_peer_put(peers[--n_peers]);
}

static void peers_of_all(void)
{
	struct rstream_link_net *ln = rstream_net(&init_net)->links;
	unsigned int n, addresses = 0, shares = 0;
	struct in6_addr local, remote;

	set_v4(&local, 1);
	set_v4(&remote, 2);
	is(most(&local, &remote, 0), 256, "peers: so many of one address");
	while (addresses < RSTREAM_PEERS_MAX) {
		set_v4(&remote, 3 + addresses);
		n = most(&local, &remote, 0);
		if (!n)
			break;
		shares += is_share(n);
		addresses++;
	}
	is(n_peers, 4096, "peers: so many of all");
	is(shares, addresses, "peers: each address leaves some for the next one");
	is(ln->n_peers, 4096, "peers: as many are counted");
	no_peers();
	is(ln->n_peers, 0, "peers: none is left");
	is(most(&local, &remote, 0), 256, "peers: and all can be there again");
	no_peers();
}

static void peers_of_ipv6(void)
{
	struct in6_addr local, remote;
	unsigned int i, n = 0;

	set_v6(&local, 0x20010db8, 1, 1);
	for (i = 1; i <= 300; i++) {
		set_v6(&remote, 0x20010db8, 2, i);
		n += more(&local, &remote, 0);
	}
	is(n, 256, "IPv6: a network of others is one address");
	set_v6(&remote, 0x20010db8, 3, 1);
	linktest_ok(more(&local, &remote, 0), "IPv6: another one is another");
	set_v6(&remote, 0x20010db8, 1, 2);
	is(most(&local, &remote, 0), 256, "IPv6: so many of one neighbour");
	set_v6(&remote, 0x20010db8, 1, 3);
	is(most(&local, &remote, 0), 256, "IPv6: neighbours do not share");
	set_v6(&remote, 0xfe800000, 0, 2);
	is(most(&local, &remote, 1), 256, "IPv6: so many of a neighbour's link-local address");
	linktest_ok(!more(&local, &remote, 1) && more(&local, &remote, 2),
		    "IPv6: the same at another interface is another");
	no_peers();
}

/* ---- requests for links ---- */

static struct rstream_host *address(struct rstream_link_net *ln, u32 host)
{
	struct rstream_peer_name name = {};

	set_v4(&name.local, 1);
	set_v4(&name.remote, host);
	return rstream_host_get(ln, &name);
}

/* As many as @host may have. */
static unsigned int ask(struct rstream_link_net *ln, struct rstream_host *host)
{
	unsigned int n = 0;

	while (n <= RSTREAM_REQUESTS_MAX && rstream_host_add_request(ln, host))
		n++;
	return n;
}

static void requests_of_all(struct rstream_link_net *ln)
{
	struct rstream_host *host, *asking[32];
	unsigned int i, n = 0, first = 0, all = 0, again = 0;

	spin_lock_bh(&ln->lock);
	while (n < ARRAY_SIZE(asking) && all < 256) {
		host = address(ln, 2 + n);
		if (!host)
			break;
		asking[n++] = host;
		all += ask(ln, host);
		if (n == 1)
			first = all;
	}
	is(first, 86, "requests: a third for one address, half of what it leaves");
	is(all, 256, "requests: so many of all addresses");
	is(ln->n_requests, 256, "requests: as many are counted");
	host = address(ln, 1000);
	linktest_ok(host && !rstream_host_add_request(ln, host),
		    "requests: then none of another address is accepted");
	for (i = 0; i < n; i++) {
		while (asking[i]->n_requests)
			rstream_host_del_request(ln, asking[i]);
		rstream_host_put(ln, asking[i]);
	}
	if (host) {
		again = ask(ln, host);
		while (host->n_requests)
			rstream_host_del_request(ln, host);
		rstream_host_put(ln, host);
	}
	is(again, 86, "requests: and all can be there again");
	is(ln->n_requests, 0, "requests: none is left");
	spin_unlock_bh(&ln->lock);
}

/* ---- links ---- */

static bool link_of(const struct rstream_link *link, const struct rstream *rs)
{
	return link->peer == rs->peer && rstream_link_is_up(link);
}

static unsigned int links_up(const struct rstream *rs)
{
	struct rstream_link_net *ln = rstream_net(&init_net)->links;
	struct rstream_link *link;
	unsigned int n = 0;
	int id = 0;

	while ((link = rstream_link_next(ln, id))) {
		id = link->id;
		n += link_of(link, rs);
		rstream_link_put(link);
	}
	return n;
}

/* The @n-th one with the host, referenced, or NULL. */
static struct rstream_link *nth_link(const struct rstream *rs, unsigned int n)
{
	struct rstream_link_net *ln = rstream_net(&init_net)->links;
	struct rstream_link *link;
	int id = 0;

	while ((link = rstream_link_next(ln, id))) {
		id = link->id;
		if (link_of(link, rs) && !n--)
			break;
		rstream_link_put(link);
	}
	return link;
}

static bool links_come(struct rstream *rs, unsigned int wanted)
{
	unsigned long until = jiffies + PATIENCE;

	while (links_up(rs) < wanted && time_before(jiffies, until)) {
		if (wanted > 2)
			rstream_peer_want_more(rs->peer, &rs->route);
		else
			rstream_peer_want_link(rs->peer, &rs->route, rs);
		msleep(20);
	}
	return links_up(rs) >= wanted;
}

static bool meet(struct rstream *rs, u32 host, const char *addr, int cm_port)
{
	struct sockaddr_in *local = (struct sockaddr_in *)&rs->route.local;
	struct sockaddr_in *remote = (struct sockaddr_in *)&rs->route.remote;

	memset(rs, 0, sizeof(*rs));
	init_waitqueue_head(&rs->wait);
	get_random_bytes(&rs->ticket, sizeof(rs->ticket));
	rs->ticket.ours.token |= 1;
	rs->ticket.theirs.token |= 1;
	memcpy(rs->name.instance, rstream_net(&init_net)->instance, RSTREAM_INSTANCE_LEN);
	set_v4(&rs->name.local, 1);
	set_v4(&rs->name.remote, host);
	local->sin_family = AF_INET;
	local->sin_addr.s_addr = in_aton(addr);
	*remote = *local;
	remote->sin_port = htons(cm_port);
	rs->route.ticket = rs->ticket;
	rs->peer = rstream_peer_get(&init_net, &rs->name);
	return rs->peer && links_come(rs, 2);
}

/* ---- sending ends ---- */

/* Return: 0; -ENOMEM: there are too many; -ENOBUFS: no memory for a cell. */
static int open_end(struct rstream *rs, struct rstream_link *link)
{
	struct rstream_txring *end;
	int up, failed;

	for (;;) {
		up = atomic_read(&rs->up);
		failed = atomic_read(&rs->failed);
		end = rstream_txring_open(link, ++last_id, 1, SZ_4K, SZ_16K, rs);
		if (!IS_ERR(end)) {
			opened[n_opened++] = end;
			return 0;
		}
		if (PTR_ERR(end) != -EAGAIN)
			return PTR_ERR(end);
		if (!wait_event_timeout(rs->wait, up != atomic_read(&rs->up) ||
					failed != atomic_read(&rs->failed), PATIENCE))
			return -ETIMEDOUT;
		if (failed != atomic_read(&rs->failed))
			return -ENOBUFS;
	}
}

/* As many as a link may have.  @err: why there is not one more. */
static unsigned int fill_link(struct rstream *rs, unsigned int nth, int *err)
{
	struct rstream_link *link = nth_link(rs, nth);
	unsigned int n = 0;

	*err = -ENOLINK;
	while (link && n <= RSTREAM_TX_MAX) {
		*err = open_end(rs, link);
		if (*err)
			break;
		n++;
		cond_resched();
	}
	if (link)
		rstream_link_put(link);
	return n;
}

/* As many as all links with a host may have. */
static unsigned int fill_host(struct rstream *rs, int *err)
{
	unsigned int nth, n = fill_link(rs, 0, err);

	/* one that is in use lets others be made */
	if (n && links_come(rs, LINKS))
		for (nth = 1; nth < LINKS; nth++)
			n += fill_link(rs, nth, err);
	return n;
}

/* All links end, with them what was opened. */
static void no_links(struct rstream_link_net *ln)
{
	unsigned long until = jiffies + PATIENCE;
	struct rstream_link *link;
	int i, id = 0;

	for (i = 0; i < HOSTS; i++)
		if (hosts[i].peer)
			rstream_waiter_forget(hosts[i].peer, &hosts[i]);
	while ((link = rstream_link_next(ln, id))) {
		id = link->id;
		rstream_link_break(link, RSTREAM_END_NET_RINGS);
		rstream_link_put(link);
	}
	while (rstream_link_net_count(&init_net) && time_before(jiffies, until))
		msleep(20);
	while (n_opened) {
		rstream_txring_close(opened[--n_opened]);
		cond_resched();
	}
	while (READ_ONCE(ln->n_links) && time_before(jiffies, until))
		msleep(20);
	for (i = 0; i < HOSTS; i++) {
		if (hosts[i].peer)
			rstream_peer_put(hosts[i].peer);
		hosts[i].peer = NULL;
	}
	last_id = 0;
}

static void nothing_is_left(struct rstream_link_net *ln, const char *what)
{
	no_links(ln);
	is(atomic_read(&ln->n_ends) + ln->n_links + atomic_long_read(&ln->rmb_bytes), 0, what);
}

/* One that is closed counts until FREED has come: no completion does, meanwhile. */
static int instead_of_closed(struct rstream *rs)
{
	struct rstream_link *link = nth_link(rs, 0);
	int err;

	local_bh_disable();
	rstream_txring_close(opened[--n_opened]);
	err = open_end(rs, link);
	local_bh_enable();
	rstream_link_put(link);
	return err;
}

/* How long so many sweeps of the first link take, ns; the least of some. */
#define SWEEPS	20

static u64 sweeps_ns(struct rstream *rs)
{
	struct rstream_link *link = nth_link(rs, 0);
	struct rstream_balance none = {};
	u64 least = U64_MAX, since;
	int i, j;

	for (i = 0; link && i < 10; i++) {
		spin_lock_bh(&link->lock);
		since = ktime_get_ns();
		for (j = 0; j < SWEEPS; j++)
			rstream_txring_sweep(link, &none);
		least = min(least, ktime_get_ns() - since);
		spin_unlock_bh(&link->lock);
	}
	if (link)
		rstream_link_put(link);
	return least;
}

static void ends_of_link(struct rstream_link_net *ln, const char *addr, int cm_port)
{
	u64 none, all;
	int err;

	linktest_ok(meet(&hosts[0], 100, addr, cm_port), "ends: a link");
	none = sweeps_ns(&hosts[0]);
	is(fill_link(&hosts[0], 0, &err), 16384, "ends: so many of one link");
	all = sweeps_ns(&hosts[0]);
	pr_info("linktest: # %d sweeps without ends: %llu ns, with all: %llu ns\n",
		SWEEPS, none, all);
	linktest_ok(all <= 8 * none + 100 * NSEC_PER_USEC,
		    "ends: a sweep does not walk through them");
	is(-err, ENOMEM, "ends: then none is opened");
	if (n_opened)
		is(-instead_of_closed(&hosts[0]), ENOMEM, "ends: nor for one that is not freed");
	nothing_is_left(ln, "ends: nothing of it is left");
}

static void ends_of_all(struct rstream_link_net *ln, const char *addr, int cm_port)
{
	unsigned int i;
	int err;

	for (i = 0; i < 4; i++) {
		if (!meet(&hosts[i], 101 + i, addr, cm_port))
			break;
		is(fill_host(&hosts[i], &err), 65536, "ends: so many of one address");
		is(-err, ENOMEM, "ends: then none is opened");
	}
	is(atomic_read(&ln->n_ends), 262144, "ends: so many of all addresses");
	linktest_ok(meet(&hosts[4], 105, addr, cm_port) && !fill_link(&hosts[4], 0, &err) &&
		    err == -ENOMEM, "ends: then none of another address is opened");
	if (n_opened)
		rstream_txring_close(opened[--n_opened]);
	nothing_is_left(ln, "ends: nothing of them is left");
}

/* Without what rmb_max allows. */
static void cells_beyond(struct rstream_link_net *ln, const char *addr, int cm_port)
{
	unsigned long *rmb_max = &rstream_net(&init_net)->set.rmb_max, old = *rmb_max;
	unsigned int i, n, refused = 0, served = 0;
	long bytes;
	int err;

	*rmb_max = SZ_64K;
	for (i = 0; i < HOSTS; i++) {
		if (!meet(&hosts[i], 110 + i, addr, cm_port))
			break;
		n = fill_host(&hosts[i], &err);
		served += n >= PAGE_SIZE / RSTREAM_CELL_SIZE;
		refused += err == -ENOBUFS;
	}
	bytes = atomic_long_read(&ln->rmb_bytes);
	pr_info("linktest: # %ld bytes, %u of %u without memory\n", bytes, refused, HOSTS);
	is(served, HOSTS, "cells: each address gets some");
	linktest_ok(refused >= HOSTS - 1, "cells: none gets as many as it wants");
	linktest_ok(bytes > SZ_4M && bytes <= SZ_8M + SZ_64K, "cells: 8 MiB at most");
	*rmb_max = old;
	nothing_is_left(ln, "cells: nothing of them is left");
}

void linktest_bounds(const char *addr, int cm_port)
{
	struct rstream_link_net *ln = rstream_net(&init_net)->links;

	peers = kvcalloc(2 * RSTREAM_PEERS_MAX, sizeof(*peers), GFP_KERNEL);
	opened = kvcalloc(2 * RSTREAM_NET_TX_MAX, sizeof(*opened), GFP_KERNEL);
	if (peers && opened) {
		rstream_link_net_use(&init_net, NULL);
		peers_of_all();
		peers_of_ipv6();
		requests_of_all(ln);
		ends_of_link(ln, addr, cm_port);
		ends_of_all(ln, addr, cm_port);
		cells_beyond(ln, addr, cm_port);
		rstream_link_net_unuse(&init_net);
		linktest_done();
	}
	kvfree(opened);
	kvfree(peers);
}
