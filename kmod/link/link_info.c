// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snapshots of links, peers and registered memory, for netlink.
 *
 * Called in process context.  Takes the lock of one object at a time to copy its values, so a
 * dump is not a consistent snapshot of all objects.  Changes nothing.
 */
#include <linux/jhash.h>
#include <linux/slab.h>

#include "account.h"
#include "rmb.h"

/* ---- links ---- */

static void link_info(struct rstream_link *link, struct rstream_link_info *info)
{
	memset(info, 0, sizeof(*info));
	spin_lock_bh(&link->lock);
	info->id = link->id;
	info->state = link->state;
	info->active = link->active;
	info->was_up = link->was_up;
	memcpy(info->peer, link->peer->name.instance, RSTREAM_INSTANCE_LEN);
	strscpy(info->dev, link->dev_name, sizeof(info->dev));
	info->port = link->port;
	info->qpn = link->qp.num;
	info->peer_qpn = link->qp.peer_num;
	info->path_mtu = link->qp.path_mtu;
	info->local = link->local;
	info->remote = link->remote;
	info->tx_bytes = link->tx.bytes;
	info->tx_msgs = link->tx.msgs;
	info->rx_bytes = link->rx.bytes;
	info->rx_msgs = link->rx.msgs;
	if (link->was_up)
		info->up_ms = jiffies64_to_msecs(jiffies - link->up_at);
	info->tx_rings = link->tx.n;
	info->rx_rings = link->rx.n;
	rstream_rmb_usage(link, &info->rmb_bytes, &info->rmb_used);
	info->rq_credits = link->msg.credits;
	info->sq_free = link->qp.depth - (link->wr.posted - link->wr.done);
	info->rtt_us = link->probe.rtt_us;
	spin_unlock_bh(&link->lock);
}

int rstream_link_info_dump(struct net *net, unsigned int skip,
			   int (*fn)(const struct rstream_link_info *info,
				     void *arg), void *arg)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_link_info *info;
	struct rstream_link *link;
	int err = 0, id = 0;

	info = kmalloc(sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	while (!err && (link = rstream_link_next(ln, id))) {
		id = link->id;
		if (skip) {
			skip--;
		} else {
			link_info(link, info);
			rcu_read_lock();
			err = fn(info, arg);
			rcu_read_unlock();
		}
		rstream_link_put(link);
	}
	kfree(info);
	return err;
}

bool rstream_link_info_on_device(struct net *net, u32 id, const char *name)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_link *link;
	bool yes;

	spin_lock_bh(&ln->lock);
	link = idr_find(&ln->ids, id);
	yes = link && !strcmp(link->dev_name, name);
	spin_unlock_bh(&ln->lock);
	return yes;
}

/* ---- peers ---- */

static void path_info(const struct rstream_path *path,
		      struct rstream_path_info *info)
{
	info->local = path->local;
	info->remote = path->remote;
	info->own = path->own;
	info->fails = path->fails;
	info->refused = path->refused;
	info->flaps = path->flaps;
	info->retry_ms = jiffies_to_msecs(rstream_path_wait(path));
}

static void peer_info(struct rstream_peer *peer, struct rstream_peer_info *info)
{
	const struct rstream_link *link;
	int i;

	static_assert(RSTREAM_INFO_PATHS == RSTREAM_PATHS_MAX);
	memset(info, 0, sizeof(*info));
	/* real ids are random, but a peer may claim any id */
	memcpy(&info->key, peer->name.instance, sizeof(info->key));
	info->key ^= jhash(&peer->name, sizeof(peer->name), 0);
	memcpy(info->instance, peer->name.instance, sizeof(info->instance));
	info->active = peer->active;
	info->self = peer->self;
	spin_lock_bh(&peer->lock);
	info->drained = peer->drained;
	list_for_each_entry(link, &peer->links, peer_list) {
		info->links += READ_ONCE(link->state) == RSTREAM_LINK_UP;
		info->connecting += READ_ONCE(link->state) ==
				    RSTREAM_LINK_CONNECTING;
	}
	info->waiting = peer->n_waiters;
	info->why = peer->why;
	info->why_ms = jiffies64_to_msecs(get_jiffies_64() - peer->why_at);
	for (i = 0; i < RSTREAM_PATHS_MAX; i++)
		if (peer->paths[i].remote.ss_family != AF_UNSPEC)
			path_info(&peer->paths[i], &info->paths[info->n_paths++]);
	spin_unlock_bh(&peer->lock);
}

int rstream_link_info_dump_peers(struct net *net, unsigned int skip,
				 int (*fn)(const struct rstream_peer_info *info,
					   void *arg), void *arg)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_peer_info *info;
	struct rstream_peer *peer;
	int i, err = 0;

	info = kmalloc(sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(ln->peers) && !err; i++) {
		peer = NULL;
		while ((peer = rstream_peer_next(ln, &ln->peers[i], peer))) {
			if (skip) {
				skip--;
				continue;
			}
			peer_info(peer, info);
			err = fn(info, arg);
			if (err) {
				rstream_peer_put(peer);
				break;
			}
		}
	}
	kfree(info);
	return err;
}

/* ---- memory ---- */

int rstream_link_info_dump_rmbs(struct net *net, unsigned int skip,
				int (*fn)(const struct rstream_rmb_info *info,
					  void *arg), void *arg)
{
	struct rstream_link_net *ln = rstream_net(net)->links;
	struct rstream_rmb_info info;
	struct rstream_link *link;
	int err = 0, id = 0;
	unsigned int n;

	while (!err && (link = rstream_link_next(ln, id))) {
		id = link->id;
		for (n = 0; !err && rstream_rmb_info(link, n, &info); n++) {
			if (skip)
				skip--;
			else
				err = fn(&info, arg);
		}
		rstream_link_put(link);
	}
	return err;
}

u64 rstream_link_info_rmb_total(struct net *net, u64 *max, bool *is_short)
{
	struct rstream_link_net *ln = rstream_net(net)->links;

	*max = rstream_account_rmb_max(ln);
	*is_short = rstream_rmb_short(ln);
	return atomic_long_read(&ln->rmb_bytes);
}
