// SPDX-License-Identifier: GPL-2.0-only
/*
 * What user space sees: the generic netlink family of uapi/rdmastream.yaml.
 *
 * Reads snapshots (info.h) and counters (stats.h), has a namespace drained, and
 * takes no lock of its own.  Tables and policies are generated, netlink_gen.c;
 * events are sent by events.c.
 */
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/rdmastream.h>
#include <net/genetlink.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "af_rdmastream.h"
#include "events.h"
#include "info.h"
#include "net.h"
#include "netlink.h"
#include "netlink_gen.h"
#include "stats.h"
#include "stream.h"
#include "wire.h"

/* The kernel's lists and the spec's have the same order. */
#define X(name, text)							\
	static_assert((int)RDMASTREAM_A_COUNTERS_##name ==		\
		      (int)RSTREAM_MIB_##name + 1);
RSTREAM_MIB_LIST(X)
#undef X
static_assert((int)RDMASTREAM_A_COUNTERS_MAX == (int)RSTREAM_MIB_MAX);

#define X(name, text)							\
	static_assert((int)RDMASTREAM_A_REASON_COUNTERS_##name ==	\
		      (int)RSTREAM_R_##name + 1 &&			\
		      (int)RDMASTREAM_REASON_##name ==			\
		      (int)RSTREAM_R_##name);
RSTREAM_REASON_LIST(X)
#undef X
static_assert((int)RDMASTREAM_A_REASON_COUNTERS_MAX == (int)RSTREAM_R_MAX);

static_assert((int)RDMASTREAM_MODE_CLOSED == (int)RSTREAM_INFO_CLOSED);
static_assert((int)RDMASTREAM_CARRIER_RING == (int)RSTREAM_INFO_CARRIER_RING);
static_assert((int)RDMASTREAM_WAY_RX == (int)RSTREAM_WAY_RX);
static_assert((int)RDMASTREAM_LINK_STATE_DEAD == (int)RSTREAM_LINK_DEAD);
static_assert(RDMASTREAM_INSTANCE_LEN == RSTREAM_INSTANCE_LEN);

static int put_ip4(struct sk_buff *skb, const struct sockaddr_in *sin)
{
	return nla_put_in_addr(skb, RDMASTREAM_A_ENDPOINT_ADDR,
			       sin->sin_addr.s_addr) ||
	       nla_put_be16(skb, RDMASTREAM_A_ENDPOINT_PORT, sin->sin_port);
}

static int put_ip6(struct sk_buff *skb, const struct sockaddr_in6 *sin6)
{
	return nla_put_in6_addr(skb, RDMASTREAM_A_ENDPOINT_ADDR,
				&sin6->sin6_addr) ||
	       nla_put_be16(skb, RDMASTREAM_A_ENDPOINT_PORT,
			    sin6->sin6_port) ||
	       put_u32_if(skb, RDMASTREAM_A_ENDPOINT_SCOPE,
			  sin6->sin6_scope_id);
}

int rstream_nl_put_endpoint(struct sk_buff *skb, int attr,
			    const struct sockaddr *sa)
{
	struct nlattr *nest;
	int err;

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return 0;
	nest = nla_nest_start(skb, attr);
	if (!nest)
		return -EMSGSIZE;
	if (sa->sa_family == AF_INET)
		err = put_ip4(skb, (const struct sockaddr_in *)sa);
	else
		err = put_ip6(skb, (const struct sockaddr_in6 *)sa);
	nla_nest_end(skb, nest);
	return err;
}

static int put_addr(struct sk_buff *skb, int attr,
		    const struct sockaddr_storage *ss)
{
	return rstream_nl_put_endpoint(skb, attr, (const struct sockaddr *)ss);
}

/* ---- info and stats ---- */

/* A reply of @attr_size bytes, its header in *@hdr. */
static struct sk_buff *reply_new(struct genl_info *info, size_t attr_size,
				 void **hdr)
{
	struct sk_buff *skb = genlmsg_new(attr_size, GFP_KERNEL);

	if (!skb)
		return NULL;
	*hdr = genlmsg_put(skb, info->snd_portid, info->snd_seq,
			   &rdmastream_nl_family, 0, info->genlhdr->cmd);
	if (*hdr)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

static int put_info(struct sk_buff *skb, const struct rstream_net *rn)
{
	const char *version = THIS_MODULE->version;

	return (version &&
		nla_put_string(skb, RDMASTREAM_A_INFO_VERSION, version)) ||
	       nla_put_u8(skb, RDMASTREAM_A_INFO_WIRE_VERSION, RSW_VERSION) ||
	       nla_put_u32(skb, RDMASTREAM_A_INFO_FAMILY, rstream_family) ||
	       nla_put_u32(skb, RDMASTREAM_A_INFO_PROTOCOL,
			   IPPROTO_RDMASTREAM) ||
	       nla_put_u16(skb, RDMASTREAM_A_INFO_CM_PORT,
			   READ_ONCE(rn->set.cm_port)) ||
	       nla_put(skb, RDMASTREAM_A_INFO_INSTANCE, sizeof(rn->instance),
		       rn->instance) ||
	       nla_put_u32(skb, RDMASTREAM_A_INFO_SOCKETS,
			   READ_ONCE(rn->n_streams)) ||
	       nla_put_u8(skb, RDMASTREAM_A_INFO_DRAIN,
			  rstream_link_drained(rn->net)) ||
	       nla_put_u32(skb, RDMASTREAM_A_INFO_LINKS,
			   rstream_link_count(rn->net));
}

int rdmastream_nl_info_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	void *hdr;

	reply = reply_new(info, GENLMSG_DEFAULT_SIZE, &hdr);
	if (!reply)
		return -ENOMEM;
	if (put_info(reply, rstream_net(genl_info_net(info)))) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

static int put_counters(struct sk_buff *skb, struct net *net)
{
	struct nlattr *nest;
	int i;

	nest = nla_nest_start(skb, RDMASTREAM_A_STATS_COUNTERS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < RSTREAM_MIB_MAX; i++)
		if (put_u64(skb, i + 1, rstream_mib_sum(net, i)))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_reasons(struct sk_buff *skb, int attr, struct net *net,
		       u64 (*sum)(struct net *net, enum rstream_reason reason))
{
	struct nlattr *nest;
	int i;

	nest = nla_nest_start(skb, attr);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < RSTREAM_R_MAX; i++)
		if (put_u64(skb, i + 1, sum(net, i)))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int rdmastream_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	size_t n = RSTREAM_MIB_MAX + 2 * RSTREAM_R_MAX;
	struct net *net = genl_info_net(info);
	struct sk_buff *reply;
	void *hdr;

	reply = reply_new(info, n * nla_total_size_64bit(sizeof(u64)) +
				3 * nla_total_size(0), &hdr);
	if (!reply)
		return -ENOMEM;
	if (put_counters(reply, net) ||
	    put_reasons(reply, RDMASTREAM_A_STATS_REASONS, net,
			rstream_mib_reason_sum) ||
	    put_reasons(reply, RDMASTREAM_A_STATS_SWITCHES, net,
			rstream_mib_switched_sum)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

/* ---- drain ---- */

int rdmastream_nl_drain_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[RDMASTREAM_A_INFO_DRAIN];
	struct net *net = genl_info_net(info);
	bool on;

	/* netlink's own check says no word */
	if (!netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(info->extack,
			       "draining wants CAP_NET_ADMIN in the network namespace");
		return -EPERM;
	}
	if (!attr) {
		NL_SET_ERR_MSG(info->extack, "attribute \"drain\" is missing");
		return -EINVAL;
	}
	on = nla_get_u8(attr);
	if (on != rstream_link_drained(net))
		rstream_event_drain(net, on);
	rstream_link_drain(net, on);
	rstream_links_changed(net);
	return 0;
}

/* ---- dumps ---- */

/*
 * Kept in cb->ctx.  A dump that does not fit one message goes on at entry
 * number @done.  To see whether entries before it have come or gone meanwhile,
 * it first visits the last entry again: if it is not where it was, the dump is
 * flagged NLM_F_DUMP_INTR by a new cb->seq, and user space asks again.
 */
struct dump_state {
	u64 last;		/* key of entry @done - 1 */
	unsigned int done;
};

struct dump {
	struct dump_state *state;
	struct netlink_callback *cb;
	struct sk_buff *skb;
	bool revisit;		/* the next entry was told already */
	u8 cmd;
};

static void dump_start(struct dump *dump, struct sk_buff *skb,
		       struct netlink_callback *cb, u8 cmd)
{
	static_assert(sizeof(struct dump_state) <= sizeof(cb->ctx));
	dump->state = (struct dump_state *)cb->ctx;
	dump->cb = cb;
	dump->skb = skb;
	dump->revisit = dump->state->done;
	dump->cmd = cmd;
	if (!cb->seq)
		cb->seq = 1;	/* 0 would switch the check off */
}

static unsigned int dump_skip(const struct dump *dump)
{
	return dump->state->done ? dump->state->done - 1 : 0;
}

/* Return: was the entry only visited to see whether it is still there? */
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

static int dump_entry_end(struct dump *dump, void *hdr, int err, u64 key)
{
	if (err) {
		genlmsg_cancel(dump->skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, hdr);
	dump->state->last = key;
	dump->state->done++;
	return 0;
}

static int dump_end(struct dump *dump, int err)
{
	if (dump->revisit)	/* there are fewer entries than told */
		dump->cb->seq++;
	if (err && !dump->skb->len)
		return err;
	return dump->skb->len;
}

/* Nothing to tell before the first one. */
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
	    put_switch(skb, dir))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* On a raw connection we do not see the bytes: only TCP counts them. */
static bool info_counted(const struct rstream_info *info)
{
	return info->mode == RSTREAM_INFO_FRAMED ||
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

static int dump_sock(const struct rstream_info *info, void *arg)
{
	u64 key = info->inode ^ jhash(&info->local, 2 * sizeof(info->local), 0);
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, key))
		return 0;
	hdr = dump_entry_start(dump);
	if (!hdr)
		return -EMSGSIZE;
	return dump_entry_end(dump, hdr, put_sock(dump->skb, info), key);
}

int rdmastream_nl_sock_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	dump_start(&dump, skb, cb, RDMASTREAM_CMD_SOCK_GET);
	err = rstream_info_dump(sock_net(cb->skb->sk), dump_skip(&dump),
				dump_sock, &dump);
	return dump_end(&dump, err);
}

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
	       (info->state != RSTREAM_LINK_CONNECTING &&
		put_u64(skb, RDMASTREAM_A_LINK_UP_MS, info->up_ms)) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_TX_RINGS, info->tx_rings) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_RX_RINGS, info->rx_rings) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RMB_BYTES, info->rmb_bytes) ||
	       put_u64(skb, RDMASTREAM_A_LINK_RMB_USED, info->rmb_used) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_RQ_CREDITS,
			   info->rq_credits) ||
	       nla_put_u32(skb, RDMASTREAM_A_LINK_SQ_FREE, info->sq_free);
}

static int dump_link(const struct rstream_link_info *info, void *arg)
{
	struct dump *dump = arg;
	void *hdr;

	if (dump_revisited(dump, info->id))
		return 0;
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

int rstream_netlink_init(void)
{
	return genl_register_family(&rdmastream_nl_family);
}

void rstream_netlink_exit(void)
{
	rstream_events_stop();
	genl_unregister_family(&rdmastream_nl_family);
}
