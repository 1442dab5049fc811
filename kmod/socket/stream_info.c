// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snapshots of streams, for netlink.
 *
 * Called by netlink_dump.c without the socket lock, so the values may be slightly old and not
 * consistent with each other.  Changes nothing.
 */
#include <net/ipv6.h>

#include "base/addr.h"
#include "stream.h"

static u8 mode_info(const struct rstream *rs)
{
	switch (rstream_mode(rs)) {
	case RSTREAM_LISTEN:
		return RSTREAM_INFO_LISTEN;
	case RSTREAM_CONNECTING:
		return RSTREAM_INFO_CONNECTING;
	case RSTREAM_ASKED:
		return RSTREAM_INFO_HELLO;
	case RSTREAM_FRAMED:
		if (rstream_closed(rs))
			return RSTREAM_INFO_CLOSED;
		if (rs->hello.in)
			return RSTREAM_INFO_FRAMED;
		if (rs->plain.phase.tx == RSTREAM_PLAIN && rs->plain.phase.rx == RSTREAM_PLAIN)
			return RSTREAM_INFO_FALLBACK;
		return rstream_tx_plain(rs) ? RSTREAM_INFO_PRELUDE : RSTREAM_INFO_HELLO;
	case RSTREAM_GUARDED:
	case RSTREAM_FALLBACK:
		return RSTREAM_INFO_FALLBACK;
	default:
		return RSTREAM_INFO_UNCONNECTED;
	}
}

static void switch_info(const struct rstream_switched *sw,
			struct rstream_dir_info *dir)
{
	unsigned long at;

	dir->switches = READ_ONCE(sw->count);
	dir->switch_to = sw->to;
	dir->switch_reason = sw->reason;
	at = READ_ONCE(sw->at);		/* before jiffies, or the difference may be negative */
	dir->switch_ms = jiffies64_to_msecs(jiffies - at);
}

static void stall_info(const struct rstream_stalls *stalls,
		       struct rstream_dir_info *dir)
{
	u8 why = READ_ONCE(stalls->why);
	u64 since;
	int i;

	for (i = 0; i < RSTREAM_STALLS; i++) {
		dir->stalls[i].count = stalls->count[i];
		dir->stalls[i].us = div_u64(READ_ONCE(stalls->ns[i]),
					    NSEC_PER_USEC);
	}
	if (!why)
		return;
	dir->stall = why;
	since = READ_ONCE(stalls->since);	/* before the clock, likewise */
	dir->stall_us = div_u64(ktime_get_ns() - since, NSEC_PER_USEC);
	dir->stalls[why - RSTREAM_R_STALL_WINDOW].us += dir->stall_us;
}

static void hist_info(const struct rstream *rs, struct rstream_info *info)
{
	/* pairs with hist_of() */
	const struct rstream_hist *hist = smp_load_acquire(&rs->hist);

	if (!hist)
		return;
	info->tx.has_hist = true;
	info->rx.has_hist = true;
	memcpy(info->tx.hist, hist->tx, sizeof(info->tx.hist));
	memcpy(info->rx.hist, hist->rx, sizeof(info->rx.hist));
}

static void dir_info(const struct rstream *rs, struct rstream_info *info)
{
	info->tx.carrier = rs->tx.state == RSTREAM_ON_RING ?
			   RSTREAM_INFO_CARRIER_RING : RSTREAM_INFO_CARRIER_TCP;
	info->tx.epoch = rs->tx.epoch;
	info->tx.link = rs->taken.link;
	info->tx.ring_size = rs->taken.size;
	info->tx.offset = rs->tx.written;
	info->tx.acked = rs->tx.acked;
	info->tx.tcp_bytes = rs->stats.tx.tcp_bytes;
	info->tx.tcp_msgs = rs->stats.tx.tcp_msgs;
	info->tx.ring_bytes = rs->stats.tx.ring_bytes;
	info->tx.ring_msgs = rs->stats.tx.ring_msgs;
	info->rx.carrier = rstream_rx_on_ring(&rs->rx) ?
			   RSTREAM_INFO_CARRIER_RING : RSTREAM_INFO_CARRIER_TCP;
	info->rx.epoch = rs->rx.epoch;
	info->rx.link = rs->granted.link;
	info->rx.ring_size = rs->granted.size;
	info->rx.offset = rs->rx.consumed;
	info->rx.acked = rs->rx.arrived;
	info->rx.tcp_bytes = rs->stats.rx.tcp_bytes;
	info->rx.tcp_msgs = rs->stats.rx.tcp_msgs;
	info->rx.ring_bytes = rs->stats.rx.ring_bytes;
	info->rx.ring_msgs = rs->stats.rx.ring_msgs;
	stall_info(&rs->stats.stalls, &info->tx);
	hist_info(rs, info);
	switch_info(&rs->stats.tx.switched, &info->tx);
	switch_info(&rs->stats.rx.switched, &info->rx);
}

/* The sock may be freed and reused (SLAB_TYPESAFE_BY_RCU).  Under RCU. */
static int dump_one(struct rstream *rs, int (*fn)(const struct rstream_info *info, void *arg),
		    void *arg)
{
	struct sock *sk = rs->sk;
	struct rstream_info info;
	int err = 0;

	if (!refcount_inc_not_zero(&sk->sk_refcnt))
		return 0;
	if (rstream_of(sk) == rs) {
		memset(&info, 0, sizeof(info));
		rstream_addr_of(sk, false, (void *)&info.local);
		rstream_addr_of(sk, true, (void *)&info.remote);
		info.mode = mode_info(rs);
		info.tcp_state = READ_ONCE(sk->sk_state);
		info.reason = READ_ONCE(rs->reason);
		info.uid = from_kuid_munged(current_user_ns(), rstream_sk_uid(sk));
		info.inode = sock_i_ino(sk);
		info.has_peer = rs->hello.in;
		memcpy(info.peer, rs->hello.name.instance, sizeof(info.peer));
		dir_info(rs, &info);
		err = fn(&info, arg);
	}
	sock_gen_put(sk);
	return err;
}

int rstream_info_dump(struct net *net, struct rstream_info_pos *pos,
		      int (*fn)(const struct rstream_info *info, void *arg),
		      void *arg)
{
	struct rstream_net *rn = rstream_net(net);
	struct rstream *rs;
	int err = 0;

	for (; pos->list < ARRAY_SIZE(rn->numbered); pos->list++, pos->number = 0) {
		rcu_read_lock();
		hlist_for_each_entry_rcu(rs, &rn->numbered[pos->list], number_node) {
			if (pos->number && rs->number >= pos->number)
				continue;
			err = dump_one(rs, fn, arg);
			if (err)
				break;
			pos->number = rs->number;
		}
		rcu_read_unlock();
		if (err)
			break;
		cond_resched();
	}
	return err;
}
