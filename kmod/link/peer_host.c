// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits per address: on the number of peers, links, attempts and requests of one remote host.
 *
 * A host can claim any number of instance ids, so limits per peer do not limit a host; but it
 * cannot use arbitrary addresses.  IPv6 addresses are counted by /64, because a host can have any
 * number of addresses in one; but not in this host's own /64, which all neighbours share.
 *
 * Owns the table of addresses.  Called by peer.c, link_life.c and cm.c.  It never waits, and only
 * decides whether one more is allowed.
 */
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "account.h"
#include "peer_host.h"

static struct hlist_head *bucket(struct rstream_link_net *ln,
				 const struct in6_addr *key)
{
	u32 hash = jhash2((const u32 *)key->s6_addr32, 4, ln->seed);

	return &ln->hosts[hash % ARRAY_SIZE(ln->hosts)];
}

static void host_key(const struct rstream_peer_name *name, struct in6_addr *key)
{
	*key = name->remote;
	if (ipv6_addr_v4mapped(key))
		return;
	if (ipv6_addr_type(key) & IPV6_ADDR_LINKLOCAL)
		key->s6_addr32[1] = (__force __be32)name->scope;
	else if (!ipv6_prefix_equal(key, &name->local, 64))
		ipv6_addr_prefix(key, &name->remote, 64);
}

struct rstream_host *rstream_host_get(struct rstream_link_net *ln,
				      const struct rstream_peer_name *name)
{
	struct rstream_host *host;
	struct in6_addr key;

	lockdep_assert_held(&ln->lock);
	host_key(name, &key);
	hlist_for_each_entry(host, bucket(ln, &key), node) {
		if (ipv6_addr_equal(&host->addr, &key)) {
			host->users++;
			return host;
		}
	}
	host = rstream_account_zalloc(ln, sizeof(*host), GFP_ATOMIC);
	if (!host)
		return NULL;
	host->addr = key;
	host->users = 1;
	hlist_add_head(&host->node, bucket(ln, &key));
	return host;
}

void rstream_host_put(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	if (--host->users)
		return;
	hlist_del(&host->node);
	kfree(host);
}

/* What one address may have, if all have @all of @most together: 1/@part of what is left. */
static unsigned int host_share(unsigned int all, unsigned int most, unsigned int part)
{
	return DIV_ROUND_UP(most - min(most, all), part);
}

bool rstream_host_add_peer(struct rstream_link_net *ln, struct rstream_host *host)
{
	unsigned int most = rstream_account_most(ln, RSTREAM_PEERS_MAX,
						 sizeof(struct rstream_peer));

	lockdep_assert_held(&ln->lock);
	if (host->n_peers >= min(RSTREAM_HOST_PEERS_MAX, host_share(ln->n_peers, most, 8)))
		return false;
	ln->n_peers++;
	host->n_peers++;
	return true;
}

void rstream_host_del_peer(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	ln->n_peers--;
	host->n_peers--;
}

bool rstream_host_add_link(struct rstream_link_net *ln, struct rstream_host *host)
{
	const struct rstream_settings *set = rstream_link_set(ln);
	unsigned int max = READ_ONCE(set->links_max), each = READ_ONCE(set->links_per_address);
	unsigned int most = rstream_account_most(ln, max, RSTREAM_LINK_BYTES);

	lockdep_assert_held(&ln->lock);
	if (most < max)		/* the group is too small for the settings */
		each = min(each, host_share(ln->n_attached, most, 2));
	if (ln->n_attached >= most || host->n_links >= each)
		return false;
	host->n_links++;
	return true;
}

void rstream_host_del_link(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	host->n_links--;
}

bool rstream_host_add_attempt(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	if (host->n_connecting >= host_share(ln->n_connecting, RSTREAM_CONNECTING_MAX, 2))
		return false;
	ln->n_connecting++;
	host->n_connecting++;
	return true;
}

void rstream_host_del_attempt(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	ln->n_connecting--;
	host->n_connecting--;
}

/*
 * The number of links that a host requested and that ended young, since that was last reset.  Other
 * limits are on what exists at once, but a link also takes work of this host and of its device.
 * Counted for each bucket of the table, because a host exists only while it has connections: others
 * in the bucket of one that is at the limit have to wait, too.
 */
static u16 *host_young(struct rstream_link_net *ln, const struct rstream_host *host)
{
	u64 now = get_jiffies_64();

	static_assert(ARRAY_SIZE(ln->n_young) == ARRAY_SIZE(ln->hosts));
	lockdep_assert_held(&ln->lock);
	if (time_after64(now, ln->young_since + RSTREAM_YOUNG)) {
		ln->young_since = now;
		memset(ln->n_young, 0, sizeof(ln->n_young));
	}
	return &ln->n_young[bucket(ln, &host->addr) - ln->hosts];
}

/* Twice as many as an address may have at once. */
static unsigned int young_most(const struct rstream_link_net *ln)
{
	unsigned int each = READ_ONCE(rstream_link_set(ln)->links_per_address);

	return clamp(2 * each, RSTREAM_YOUNG_MAX, U16_MAX);
}

void rstream_host_add_young(struct rstream_link_net *ln, const struct rstream_host *host)
{
	u16 *n = host_young(ln, host);

	if (*n < U16_MAX)
		++*n;
}

bool rstream_host_add_request(struct rstream_link_net *ln, struct rstream_host *host)
{
	unsigned int most = rstream_account_most(ln, RSTREAM_REQUESTS_MAX, RSTREAM_REQUEST_BYTES);

	lockdep_assert_held(&ln->lock);
	if (*host_young(ln, host) >= young_most(ln))
		return false;
	if (host->n_requests >= host_share(ln->n_requests, most, 2))
		return false;
	ln->n_requests++;
	host->n_requests++;
	return true;
}

void rstream_host_del_request(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	ln->n_requests--;
	host->n_requests--;
}

bool rstream_host_add_named(struct rstream_link_net *ln, struct rstream_host *host)
{
	lockdep_assert_held(&ln->lock);
	if (time_after(jiffies, ln->named_since + HZ)) {
		ln->named_since = jiffies;
		ln->n_named = 0;
	}
	if (host->named_since != ln->named_since) {
		host->named_since = ln->named_since;
		host->n_named = 0;
	}
	if (host->n_named >= host_share(ln->n_named, RSTREAM_NAMED_MAX, 2))
		return false;
	ln->n_named++;
	host->n_named++;
	return true;
}
