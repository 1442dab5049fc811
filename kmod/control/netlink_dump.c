// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps of the netlink family: sockets, links, peers, devices, memory, settings.
 *
 * Reports the snapshots (link_info.h, stream_info.h) that match the request.  Takes no lock of
 * its own.
 */
#include <linux/jhash.h>
#include <net/genetlink.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "base/nlattr.h"
#include "link/link.h"
#include "link/link_info.h"
#include "socket/socket.h"
#include "netlink_gen.h"
#include "sysctl.h"

static_assert((int)RDMASTREAM_MODE_PRELUDE == (int)RSTREAM_INFO_PRELUDE);
static_assert((int)RDMASTREAM_CARRIER_RING == (int)RSTREAM_INFO_CARRIER_RING);
static_assert((int)RDMASTREAM_DIR_RX == (int)RSTREAM_DIR_RX);
static_assert((int)RDMASTREAM_LINK_STATE_DEAD == (int)RSTREAM_LINK_DEAD);
static_assert((int)RDMASTREAM_DEVICE_PROBLEM_NO_ADDRESS ==
	      (int)RSTREAM_DEV_NO_ADDR);
static_assert((int)RDMASTREAM_RMB_KIND_CELLS == (int)RSTREAM_INFO_RMB_CELLS);

static int put_addr(struct sk_buff *skb, int attr,
		    const struct sockaddr_storage *ss)
{
	return rstream_nla_put_endpoint(skb, attr, (const struct sockaddr *)ss);
}

/*
 * Kept in cb->ctx.  A dump that does not fit into one message continues at entry number @done.
 * To detect that earlier entries were added or removed meanwhile, it first visits the last entry
 * again.  If that is now another one, cb->seq changes, which flags the dump with NLM_F_DUMP_INTR,
 * and user space repeats it.  Entries that do not match the request are counted, too.
 *
 * A dump of sockets continues at @socks instead, and need not be repeated.
 */
struct dump_state {
	u64 last;		/* key of entry @done - 1 */
	unsigned int done;
	struct rstream_info_pos socks;
};

struct dump {
	struct dump_state *state;
	struct netlink_callback *cb;
	struct sk_buff *skb;
	struct nlattr **filter;	/* attributes of the request; NULL: it has none */
	bool revisit;		/* the next entry was already reported */
	u8 cmd;
};

static void dump_start(struct dump *dump, struct sk_buff *skb,
		       struct netlink_callback *cb, u8 cmd)
{
	static_assert(sizeof(struct dump_state) <= sizeof(cb->ctx));
	dump->state = (struct dump_state *)cb->ctx;
	dump->cb = cb;
	dump->skb = skb;
	dump->filter = rstream_dump_attrs(cb);
	dump->revisit = dump->state->done;
	dump->cmd = cmd;
	if (!cb->seq)
		cb->seq = 1;	/* 0 would disable the check */
}

static unsigned int dump_skip(const struct dump *dump)
{
	return dump->state->done ? dump->state->done - 1 : 0;
}

/* Return: true if the entry was only visited again, to check its position. */
static bool dump_revisited(struct dump *dump, u64 key)
{
	if (!dump->revisit)
		return false;
	dump->revisit = false;
	if (key != dump->state->last)
		dump->cb->seq++;
	return true;
}

static void *dump_entry_start(struct dump *dump)
{
	struct netlink_callback *cb = dump->cb;
	void *hdr = genlmsg_put(dump->skb, NETLINK_CB(cb->skb).portid,
				cb->nlh->nlmsg_seq, &rdmastream_nl_family,
				NLM_F_MULTI, dump->cmd);

	if (hdr)
		genl_dump_check_consistent(cb, hdr);
	return hdr;
}

static void dump_passed(struct dump *dump, u64 key)
{
	dump->state->last = key;
	dump->state->done++;
}

static int dump_entry_put(struct dump *dump, void *hdr, int err)
{
	if (err) {
		genlmsg_cancel(dump->skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, hdr);
	return 0;
}

static int dump_entry_end(struct dump *dump, void *hdr, int err, u64 key)
{
	err = dump_entry_put(dump, hdr, err);
	if (!err)
		dump_passed(dump, key);
	return err;
}

static int dump_end(struct dump *dump, int err)
{
	if (dump->revisit)	/* there are fewer entries than were reported */
		dump->cb->seq++;
	if (err && !dump->skb->len)
		return err;
	return dump->skb->len;
}

/* ---- filters: attributes that are not in the request match anything ---- */

static const struct nlattr *wanted(const struct dump *dump, int attr)
{
	return dump->filter ? dump->filter[attr] : NULL;
}

static bool wants_u32(const struct dump *dump, int attr, u32 val)
{
	const struct nlattr *want = wanted(dump, attr);

	return !want || nla_get_u32(want) == val;
}

static bool wants_str(const struct dump *dump, int attr, const char *val)
{
	const struct nlattr *want = wanted(dump, attr);

	return !want || !nla_strcmp(want, val);
}

/* @val is NULL if the entry has no id. */
static bool wants_id(const struct dump *dump, int attr, const u8 *val)
{
	const struct nlattr *want = wanted(dump, attr);

	return !want || (val && !memcmp(nla_data(want), val,
					RSTREAM_INSTANCE_LEN));
}

/* ---- sockets ---- */

static int put_switch(struct sk_buff *skb, const struct rstream_dir_info *dir)
{
	if (!dir->switches)
		return 0;
	return nla_put_u32(skb, RDMASTREAM_A_DIRECTION_SWITCHES,
			   dir->switches) ||
	       nla_put_u32(skb, RDMASTREAM_A_DIRECTION_SWITCH_TO,
			   dir->switch_to) ||
	       nla_put_u32(skb, RDMASTREAM_A_DIRECTION_SWITCH_REASON,
			   dir->switch_reason) ||
	       put_u64(skb, RDMASTREAM_A_DIRECTION_SWITCH_MS, dir->switch_ms);
}

static int put_stall(struct sk_buff *skb, const struct rstream_dir_info *dir,
		     unsigned int i)
{
	struct nlattr *nest;

	if (!dir->stalls[i].count)
		return 0;
	nest = nla_nest_start(skb, RDMASTREAM_A_DIRECTION_STALLS);
	if (!nest ||
	    nla_put_u32(skb, RDMASTREAM_A_STALL_REASON,
			RSTREAM_R_STALL_WINDOW + i) ||
	    nla_put_u32(skb, RDMASTREAM_A_STALL_COUNT, dir->stalls[i].count) ||
	    put_u64(skb, RDMASTREAM_A_STALL_US, dir->stalls[i].us))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_stalls(struct sk_buff *skb, const struct rstream_dir_info *dir)
{
	unsigned int i;

	if (dir->stall &&
	    (nla_put_u32(skb, RDMASTREAM_A_DIRECTION_STALL, dir->stall) ||
	     put_u64(skb, RDMASTREAM_A_DIRECTION_STALL_US, dir->stall_us)))
		return -EMSGSIZE;
	for (i = 0; i < RSTREAM_STALLS; i++)
		if (put_stall(skb, dir, i))
			return -EMSGSIZE;
	return 0;
}

static int put_direction(struct sk_buff *skb, int attr,
			 const struct rstream_dir_info *dir)
{
	struct nlattr *nest = nla_nest_start(skb, attr);

	if (!nest ||
	    nla_put_u32(skb, RDMASTREAM_A_DIRECTION_CARRIER, dir->carrier) ||
	    put_u32_if(skb, RDMASTREAM_A_DIRECTION_EPOCH, dir->epoch) ||
	    put_u32_if(skb, RDMASTREAM_A_DIRECTION_LINK, dir->link) ||
	    put_u32_if(skb, RDMASTREAM_A_DIRECTION_RING_SIZE,
		       dir->ring_size) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_OFFSET, dir->offset) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_ACKED, dir->acked) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_TCP_BYTES, dir->tcp_bytes) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_RING_BYTES,
		    dir->ring_bytes) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_TCP_MSGS, dir->tcp_msgs) ||
	    put_u64(skb, RDMASTREAM_A_DIRECTION_RING_MSGS, dir->ring_msgs) ||
	    put_switch(skb, dir) || put_stalls(skb, dir) ||
	    (dir->has_hist && nla_put(skb, RDMASTREAM_A_DIRECTION_HIST,
				      sizeof(dir->hist), dir->hist)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Are there counts to report?  The bytes of a connection that fell back are counted only by TCP. */
static bool info_counted(const struct rstream_info *info)
{
	return info->mode == RSTREAM_INFO_FRAMED || info->tx.link || info->rx.link ||
	       info->tx.tcp_bytes || info->tx.ring_bytes ||
	       info->rx.tcp_bytes || info->rx.ring_bytes;
}

static int put_sock(struct sk_buff *skb, const struct rstream_info *info)
{
	return put_addr(skb, RDMASTREAM_A_SOCK_LOCAL, &info->local) ||
	       put_addr(skb, RDMASTREAM_A_SOCK_REMOTE, &info->remote) ||
	       nla_put_u32(skb, RDMASTREAM_A_SOCK_MODE, info->mode) ||
	       nla_put_u8(skb, RDMASTREAM_A_SOCK_TCP_STATE, info->tcp_state) ||
	       nla_put_u32(skb, RDMASTREAM_A_SOCK_REASON, info->reason) ||
	       nla_put_u32(skb, RDMASTREAM_A_SOCK_UID, info->uid) ||
	       (info->inode &&
		put_u64(skb, RDMASTREAM_A_SOCK_INODE, info->inode)) ||
	       (info->has_peer &&
		nla_put(skb, RDMASTREAM_A_SOCK_PEER, sizeof(info->peer),
			info->peer)) ||
	       (info_counted(info) &&
		(put_direction(skb, RDMASTREAM_A_SOCK_TX, &info->tx) ||
		 put_direction(skb, RDMASTREAM_A_SOCK_RX, &info->rx)));
}

static __be16 port_of(const struct sockaddr_storage *ss)
{
	/* the port is at the same place for both families */
	return ss->ss_family == AF_UNSPEC ?
	       0 : ((const struct sockaddr_in *)ss)->sin_port;
}

static bool wants_ports(const struct dump *dump, const struct rstream_info *info)
{
	const struct nlattr *either = wanted(dump, RDMASTREAM_A_SOCK_PORT);
	const struct nlattr *local = wanted(dump, RDMASTREAM_A_SOCK_LOCAL_PORT);
	const struct nlattr *remote = wanted(dump, RDMASTREAM_A_SOCK_REMOTE_PORT);

	return (!either || nla_get_be16(either) == port_of(&info->local) ||
		nla_get_be16(either) == port_of(&info->remote)) &&
	       (!local || nla_get_be16(local) == port_of(&info->local)) &&
	       (!remote || nla_get_be16(remote) == port_of(&info->remote));
}

static bool wants_carrier(const struct dump *dump,
			  const struct rstream_info *info)
{
	const struct nlattr *want = wanted(dump, RDMASTREAM_A_SOCK_CARRIER);

	return !want || (info->mode == RSTREAM_INFO_FRAMED &&
			 (nla_get_u32(want) == info->tx.carrier ||
			  nla_get_u32(want) == info->rx.carrier));
}

static bool wants_device(const struct dump *dump,
			 const struct rstream_info *info)
{
	const struct nlattr *want = wanted(dump, RDMASTREAM_A_SOCK_DEVICE);
	struct net *net = sock_net(dump->cb->skb->sk);

	return !want ||
	       (info->tx.link &&
		rstream_link_info_on_device(net, info->tx.link, nla_data(want))) ||
	       (info->rx.link &&
		rstream_link_info_on_device(net, info->rx.link, nla_data(want)));
}

static bool wants_sock(const struct dump *dump, const struct rstream_info *info)
{
	const struct nlattr *inode = wanted(dump, RDMASTREAM_A_SOCK_INODE);

	return wants_u32(dump, RDMASTREAM_A_SOCK_MODE, info->mode) &&
	       wants_u32(dump, RDMASTREAM_A_SOCK_REASON, info->reason) &&
	       wants_id(dump, RDMASTREAM_A_SOCK_PEER,
			info->has_peer ? info->peer : NULL) &&
	       (!inode || nla_get_u64(inode) == info->inode) &&
	       wants_ports(dump, info) && wants_carrier(dump, info) &&
	       wants_device(dump, info);
}

static int dump_sock(const struct rstream_info *info, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (!wants_sock(dump, info))
		return 0;
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_put(dump, hdr, put_sock(dump->skb, info));
}

int rdmastream_nl_sock_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_SOCK_GET);
	err = rstream_info_dump(sock_net(cb->skb->sk), &dump.state->socks, dump_sock, &dump);
	return dump_end(&dump, err);
}

/* ---- links ---- */

static int put_link(struct sk_buff *skb, const struct rstream_link_info *info)
{
	return nla_put_u32(skb, RDMASTREAM_A_LINK_ID, info->id) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_STATE, info->state) ||
	       (info->active && nla_put_flag(skb, RDMASTREAM_A_LINK_ACTIVE)) ||
	       nla_put(skb, RDMASTREAM_A_LINK_PEER, sizeof(info->peer),
		       info->peer) ||
	       (info->dev[0] &&
		nla_put_string(skb, RDMASTREAM_A_LINK_DEVICE, info->dev)) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_PORT, info->port) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_QPN, info->qpn) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_PEER_QPN, info->peer_qpn) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_PATH_MTU, info->path_mtu) ||
	       put_addr(skb, RDMASTREAM_A_LINK_LOCAL, &info->local) ||
	       put_addr(skb, RDMASTREAM_A_LINK_REMOTE, &info->remote) ||
	       put_u64(skb, RDMASTREAM_A_LINK_TX_BYTES, info->tx_bytes) ||
	       put_u64(skb, RDMASTREAM_A_LINK_TX_MSGS, info->tx_msgs) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RX_BYTES, info->rx_bytes) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RX_MSGS, info->rx_msgs) ||
	       (info->was_up &&
		put_u64(skb, RDMASTREAM_A_LINK_UP_MS, info->up_ms)) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_TX_RINGS, info->tx_rings) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_RX_RINGS, info->rx_rings) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RMB_BYTES, info->rmb_bytes) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RMB_USED, info->rmb_used) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_RQ_CREDITS,
			   info->rq_credits) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_SQ_FREE, info->sq_free) ||
	       put_u32_if(skb, RDMASTREAM_A_LINK_RTT_US, info->rtt_us);
}

static int dump_link(const struct rstream_link_info *info, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, info->id))
		return 0;
	if (!wants_u32(dump, RDMASTREAM_A_LINK_STATE, info->state) ||
	    !wants_id(dump, RDMASTREAM_A_LINK_PEER, info->peer) ||
	    !wants_str(dump, RDMASTREAM_A_LINK_DEVICE, info->dev) ||
	    !wants_u32(dump, RDMASTREAM_A_LINK_PORT, info->port)) {
		dump_passed(dump, info->id);
		return 0;
	}
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_link(dump->skb, info), info->id);
}

int rdmastream_nl_link_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_LINK_GET);
	err = rstream_link_info_dump(sock_net(cb->skb->sk), dump_skip(&dump),
				     dump_link, &dump);
	return dump_end(&dump, err);
}

/* ---- peers ---- */

static int put_path(struct sk_buff *skb, const struct rstream_path_info *path)
{
	struct nlattr *nest = nla_nest_start(skb, RDMASTREAM_A_PEER_PATH);

	if (!nest ||
	    put_addr(skb, RDMASTREAM_A_PATH_LOCAL, &path->local) ||
	    put_addr(skb, RDMASTREAM_A_PATH_REMOTE, &path->remote) ||
	    (path->own && nla_put_flag(skb, RDMASTREAM_A_PATH_TCP)) ||
	    nla_put_u32(skb, RDMASTREAM_A_PATH_FAILS, path->fails) ||
	    nla_put_u32(skb, RDMASTREAM_A_PATH_REFUSED, path->refused) ||
	    nla_put_u32(skb, RDMASTREAM_A_PATH_FLAPS, path->flaps) ||
	    (path->retry_ms &&
	     put_u64(skb, RDMASTREAM_A_PATH_RETRY_MS, path->retry_ms)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_peer(struct sk_buff *skb, const struct rstream_peer_info *info)
{
	unsigned int i;

	if (nla_put(skb, RDMASTREAM_A_PEER_INSTANCE, sizeof(info->instance),
		    info->instance) ||
	    (info->active && nla_put_flag(skb, RDMASTREAM_A_PEER_ACTIVE)) ||
	    (info->self && nla_put_flag(skb, RDMASTREAM_A_PEER_SELF)) ||
	    (info->drained && nla_put_flag(skb, RDMASTREAM_A_PEER_DRAINED)) ||
	    nla_put_u32(skb, RDMASTREAM_A_PEER_LINKS, info->links) ||
	    nla_put_u32(skb, RDMASTREAM_A_PEER_CONNECTING, info->connecting) ||
	    nla_put_u32(skb, RDMASTREAM_A_PEER_WAITING, info->waiting))
		return -EMSGSIZE;
	if (info->why &&
	    (nla_put_string(skb, RDMASTREAM_A_PEER_END_TEXT, info->why) ||
	     put_u64(skb, RDMASTREAM_A_PEER_END_MS, info->why_ms)))
		return -EMSGSIZE;
	for (i = 0; i < info->n_paths; i++)
		if (put_path(skb, &info->paths[i]))
			return -EMSGSIZE;
	return 0;
}

static int dump_peer(const struct rstream_peer_info *info, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, info->key))
		return 0;
	if (!wants_id(dump, RDMASTREAM_A_PEER_INSTANCE, info->instance)) {
		dump_passed(dump, info->key);
		return 0;
	}
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_peer(dump->skb, info),
			      info->key);
}

int rdmastream_nl_peer_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_PEER_GET);
	err = rstream_link_info_dump_peers(sock_net(cb->skb->sk), dump_skip(&dump),
					   dump_peer, &dump);
	return dump_end(&dump, err);
}

/* ---- devices ---- */

static int put_in6(struct sk_buff *skb, int attr, const struct in6_addr *addr)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = *addr,
	};
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = addr->s6_addr32[3],
	};

	return ipv6_addr_v4mapped(addr) ?
	       rstream_nla_put_endpoint(skb, attr, (struct sockaddr *)&sin) :
	       rstream_nla_put_endpoint(skb, attr, (struct sockaddr *)&sin6);
}

static int put_port(struct sk_buff *skb, const struct rstream_dev_info *info)
{
	unsigned int i;

	if (nla_put_string(skb, RDMASTREAM_A_DEVICE_NAME, info->name) ||
	    nla_put_u32(skb, RDMASTREAM_A_DEVICE_PORT, info->port) ||
	    nla_put_u32(skb, RDMASTREAM_A_DEVICE_PROBLEM, info->problem) ||
	    put_u32_if(skb, RDMASTREAM_A_DEVICE_IFINDEX, info->ifindex) ||
	    nla_put_u32(skb, RDMASTREAM_A_DEVICE_LINKS, info->links))
		return -EMSGSIZE;
	for (i = 0; i < info->n_addrs; i++)
		if (put_in6(skb, RDMASTREAM_A_DEVICE_ADDR, &info->addrs[i]))
			return -EMSGSIZE;
	return 0;
}

static int dump_device(const struct rstream_dev_info *info, void *arg)
{
	u64 key = jhash(info->name, strlen(info->name), info->port);
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, key))
		return 0;
	if (!wants_str(dump, RDMASTREAM_A_DEVICE_NAME, info->name)) {
		dump_passed(dump, key);
		return 0;
	}
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_port(dump->skb, info), key);
}

int rdmastream_nl_device_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_DEVICE_GET);
	err = rstream_dev_info_dump(sock_net(cb->skb->sk), dump_skip(&dump),
				    dump_device, &dump);
	return dump_end(&dump, err);
}

/* ---- memory ---- */

static int put_rmb(struct sk_buff *skb, const struct rstream_rmb_info *info)
{
	return nla_put_u32(skb, RDMASTREAM_A_RMB_LINK, info->link) ||
	       nla_put_string(skb, RDMASTREAM_A_RMB_DEVICE, info->dev) ||
	       nla_put_u32(skb, RDMASTREAM_A_RMB_KIND, info->kind) ||
	       put_u64(skb, RDMASTREAM_A_RMB_BYTES, info->bytes) ||
	       put_u64(skb, RDMASTREAM_A_RMB_USED, info->used);
}

static int dump_rmb(const struct rstream_rmb_info *info, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, info->serial))
		return 0;
	if (!wants_u32(dump, RDMASTREAM_A_RMB_LINK, info->link) ||
	    !wants_str(dump, RDMASTREAM_A_RMB_DEVICE, info->dev)) {
		dump_passed(dump, info->serial);
		return 0;
	}
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_rmb(dump->skb, info), info->serial);
}

int rdmastream_nl_memory_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_MEMORY_GET);
	err = rstream_link_info_dump_rmbs(sock_net(cb->skb->sk), dump_skip(&dump),
					  dump_rmb, &dump);
	return dump_end(&dump, err);
}

/* ---- settings ---- */

static int put_setting(struct sk_buff *skb,
		       const struct rstream_setting_info *info)
{
	if (nla_put_string(skb, RDMASTREAM_A_SETTING_NAME, info->name) ||
	    put_u64(skb, RDMASTREAM_A_SETTING_VALUE, info->val) ||
	    (info->pow2 &&
	     nla_put_flag(skb, RDMASTREAM_A_SETTING_POWER_OF_TWO)) ||
	    (info->read_only && nla_put_flag(skb, RDMASTREAM_A_SETTING_READ_ONLY)))
		return -EMSGSIZE;
	if (info->read_only)
		return 0;
	return put_u64(skb, RDMASTREAM_A_SETTING_DEFAULT, info->def) ||
	       put_u64(skb, RDMASTREAM_A_SETTING_MINIMUM, info->min) ||
	       put_u64(skb, RDMASTREAM_A_SETTING_MAXIMUM, info->max);
}

static int dump_setting(const struct rstream_setting_info *info, void *arg)
{
	u64 key = (uintptr_t)info->name;
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, key))
		return 0;
	if (!wants_str(dump, RDMASTREAM_A_SETTING_NAME, info->name)) {
		dump_passed(dump, key);
		return 0;
	}
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_setting(dump->skb, info), key);
}

int rdmastream_nl_setting_get_dumpit(struct sk_buff *skb,
				     struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_SETTING_GET);
	err = rstream_setting_info_dump(sock_net(cb->skb->sk),
					dump_skip(&dump), dump_setting, &dump);
	return dump_end(&dump, err);
}
