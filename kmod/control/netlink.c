// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family of uapi/rdmastream.yaml.
 *
 * Reports versions, state and counters (stats.h), and changes settings.  Dumps are in
 * netlink_dump.c; tables and policies are generated, netlink_gen.c; events are sent by events.c.
 */
#include <linux/module.h>
#include <linux/rdmastream.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "base/events.h"
#include "base/net.h"
#include "base/nlattr.h"
#include "base/stats.h"
#include "link/link.h"
#include "link/link_info.h"
#include "protocol/wire.h"
#include "socket/socket.h"
#include "netlink.h"
#include "netlink_gen.h"
#include "sysctl.h"

/* The lists of the kernel and of the spec must have the same order. */
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

static_assert(RDMASTREAM_INSTANCE_LEN == RSTREAM_INSTANCE_LEN);

/* ---- info and stats ---- */

/* Return: a reply with room for @attr_size bytes of attributes, or NULL.  @hdr: its header. */
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

static int put_memory(struct sk_buff *skb, const struct rstream_net *rn)
{
	bool is_short;
	u64 bytes, max;

	bytes = rstream_link_info_rmb_total(rn->net, &max, &is_short);
	return put_u64(skb, RDMASTREAM_A_INFO_RMB_BYTES, bytes) ||
	       put_u64(skb, RDMASTREAM_A_INFO_RMB_MAX, max) ||
	       (is_short && nla_put_flag(skb, RDMASTREAM_A_INFO_RMB_SHORT));
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
			   rstream_link_net_count(rn->net)) ||
	       put_memory(skb, rn);
}

/* Rejects attributes: netlink does not check them for commands without a policy. */
static int takes_none(const struct genl_info *info)
{
	const struct nlattr *first = nlmsg_attrdata(info->nlhdr, GENL_HDRLEN);
	int len = nlmsg_attrlen(info->nlhdr, GENL_HDRLEN);

	if (!len)
		return 0;
	NL_SET_ERR_MSG(info->extack, "the command takes no attributes");
	if (nla_ok(first, len))
		NL_SET_BAD_ATTR(info->extack, first);
	return -EINVAL;
}

int rdmastream_nl_info_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	void *hdr;
	int err;

	err = takes_none(info);
	if (err)
		return err;
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
	int err;

	err = takes_none(info);
	if (err)
		return err;
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

/* ---- changes ---- */

static bool may_change(struct sk_buff *skb, struct genl_info *info)
{
	return netlink_ns_capable(skb, genl_info_net(info)->user_ns,
				  CAP_NET_ADMIN);
}

/* The last event is of the last change, and links of one change are not ended by another. */
static DEFINE_MUTEX(drain_lock);

int rdmastream_nl_drain_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	bool on;

	/* checked here, because netlink's own check sets no extack message */
	if (!may_change(skb, info)) {
		NL_SET_ERR_MSG(info->extack,
			       "draining requires CAP_NET_ADMIN in the network namespace");
		return -EPERM;
	}
	if (GENL_REQ_ATTR_CHECK(info, RDMASTREAM_A_INFO_DRAIN)) {
		NL_SET_ERR_MSG(info->extack, "attribute \"drain\" is missing");
		return -EINVAL;
	}
	on = nla_get_u8(info->attrs[RDMASTREAM_A_INFO_DRAIN]);
	mutex_lock(&drain_lock);
	if (on != rstream_link_drained(net))
		rstream_event_drain(net, on);
	rstream_link_net_drain(net, on);
	mutex_unlock(&drain_lock);
	rstream_links_changed(net);
	return 0;
}

/* Sets @info's extack for an error of rstream_setting_set(). */
static void setting_refused(struct genl_info *info, int err)
{
	const struct nlattr *name = info->attrs[RDMASTREAM_A_SETTING_NAME];
	const struct nlattr *val = info->attrs[RDMASTREAM_A_SETTING_VALUE];
	struct netlink_ext_ack *extack = info->extack;

	switch (err) {
	case -ENOENT:
		NL_SET_ERR_MSG_ATTR(extack, name, "there is no such setting");
		break;
	case -EPERM:
		NL_SET_ERR_MSG_ATTR(extack, name,
				    "this setting is read-only in this network namespace");
		break;
	case -ERANGE:
		NL_SET_ERR_MSG_ATTR(extack, val,
				    "the value is out of the setting's range");
		break;
	case -EINVAL:
		NL_SET_ERR_MSG_ATTR(extack, val,
				    "the value must be a power of two");
		break;
	}
}

int rdmastream_nl_setting_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *name = info->attrs[RDMASTREAM_A_SETTING_NAME];
	const struct nlattr *val = info->attrs[RDMASTREAM_A_SETTING_VALUE];
	int err;

	if (!may_change(skb, info)) {
		NL_SET_ERR_MSG(info->extack,
			       "changing a setting requires CAP_NET_ADMIN in the network namespace");
		return -EPERM;
	}
	if (GENL_REQ_ATTR_CHECK(info, RDMASTREAM_A_SETTING_NAME) ||
	    GENL_REQ_ATTR_CHECK(info, RDMASTREAM_A_SETTING_VALUE)) {
		NL_SET_ERR_MSG(info->extack,
			       "attributes \"name\" and \"value\" are both needed");
		return -EINVAL;
	}
	err = rstream_setting_set(genl_info_net(info), nla_data(name),
				  nla_get_u64(val));
	setting_refused(info, err);
	return err;
}

int rdmastream_nl_link_make_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *inode = info->attrs[RDMASTREAM_A_SOCK_INODE];
	int err;

	if (GENL_REQ_ATTR_CHECK(info, RDMASTREAM_A_SOCK_INODE)) {
		NL_SET_ERR_MSG(info->extack, "attribute \"inode\" is missing");
		return -EINVAL;
	}
	/* sockets that no program holds have inode 0 */
	err = nla_get_u64(inode) ?
	      rstream_make_link(genl_info_net(info), nla_get_u64(inode),
				may_change(skb, info)) : -ENOENT;
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, inode,
				    "no socket of rdmastream has this inode");
	else if (err == -ENOTCONN)
		NL_SET_ERR_MSG_ATTR(info->extack, inode,
				    "the connection has no records");
	else if (err == -EPERM)
		NL_SET_ERR_MSG_ATTR(info->extack, inode,
				    "the socket belongs to another user; this requires CAP_NET_ADMIN");
	return err;
}

int rstream_netlink_init(void)
{
	int err = genl_register_family(&rdmastream_nl_family);

	if (!err)
		rstream_events_start(&rdmastream_nl_family, RDMASTREAM_NLGRP_EVENTS);
	return err;
}

void rstream_netlink_exit(void)
{
	rstream_events_stop();
	genl_unregister_family(&rdmastream_nl_family);
}
