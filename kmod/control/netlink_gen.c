// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	uapi/rdmastream.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/linux/rdmastream_netlink.h>

/* RDMASTREAM_CMD_LINK_GET - dump */
static const struct nla_policy rdmastream_link_get_nl_policy[RDMASTREAM_A_LINK_PORT + 1] = {
	[RDMASTREAM_A_LINK_PEER] = NLA_POLICY_EXACT_LEN(RDMASTREAM_INSTANCE_LEN),
	[RDMASTREAM_A_LINK_DEVICE] = { .type = NLA_NUL_STRING, .len = 63, },
	[RDMASTREAM_A_LINK_PORT] = { .type = NLA_U32, },
	[RDMASTREAM_A_LINK_STATE] = NLA_POLICY_MAX(NLA_U32, 3),
};

/* RDMASTREAM_CMD_SOCK_GET - dump */
static const struct nla_policy rdmastream_sock_get_nl_policy[RDMASTREAM_A_SOCK_CARRIER + 1] = {
	[RDMASTREAM_A_SOCK_MODE] = NLA_POLICY_MAX(NLA_U32, 7),
	[RDMASTREAM_A_SOCK_REASON] = NLA_POLICY_MAX(NLA_U32, 48),
	[RDMASTREAM_A_SOCK_INODE] = { .type = NLA_U64, },
	[RDMASTREAM_A_SOCK_PEER] = NLA_POLICY_EXACT_LEN(RDMASTREAM_INSTANCE_LEN),
	[RDMASTREAM_A_SOCK_DEVICE] = { .type = NLA_NUL_STRING, .len = 63, },
	[RDMASTREAM_A_SOCK_PORT] = { .type = NLA_U16, },
	[RDMASTREAM_A_SOCK_LOCAL_PORT] = { .type = NLA_U16, },
	[RDMASTREAM_A_SOCK_REMOTE_PORT] = { .type = NLA_U16, },
	[RDMASTREAM_A_SOCK_CARRIER] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* RDMASTREAM_CMD_DRAIN_SET - do */
static const struct nla_policy rdmastream_drain_set_nl_policy[RDMASTREAM_A_INFO_DRAIN + 1] = {
	[RDMASTREAM_A_INFO_DRAIN] = NLA_POLICY_MAX(NLA_U8, 1),
};

/* RDMASTREAM_CMD_PEER_GET - dump */
static const struct nla_policy rdmastream_peer_get_nl_policy[RDMASTREAM_A_PEER_INSTANCE + 1] = {
	[RDMASTREAM_A_PEER_INSTANCE] = NLA_POLICY_EXACT_LEN(RDMASTREAM_INSTANCE_LEN),
};

/* RDMASTREAM_CMD_DEVICE_GET - dump */
static const struct nla_policy rdmastream_device_get_nl_policy[RDMASTREAM_A_DEVICE_NAME + 1] = {
	[RDMASTREAM_A_DEVICE_NAME] = { .type = NLA_NUL_STRING, .len = 63, },
};

/* RDMASTREAM_CMD_MEMORY_GET - dump */
static const struct nla_policy rdmastream_memory_get_nl_policy[RDMASTREAM_A_RMB_DEVICE + 1] = {
	[RDMASTREAM_A_RMB_LINK] = { .type = NLA_U32, },
	[RDMASTREAM_A_RMB_DEVICE] = { .type = NLA_NUL_STRING, .len = 63, },
};

/* RDMASTREAM_CMD_SETTING_GET - dump */
static const struct nla_policy rdmastream_setting_get_nl_policy[RDMASTREAM_A_SETTING_NAME + 1] = {
	[RDMASTREAM_A_SETTING_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* RDMASTREAM_CMD_SETTING_SET - do */
static const struct nla_policy rdmastream_setting_set_nl_policy[RDMASTREAM_A_SETTING_VALUE + 1] = {
	[RDMASTREAM_A_SETTING_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
	[RDMASTREAM_A_SETTING_VALUE] = { .type = NLA_U64, },
};

/* RDMASTREAM_CMD_LINK_MAKE - do */
static const struct nla_policy rdmastream_link_make_nl_policy[RDMASTREAM_A_SOCK_INODE + 1] = {
	[RDMASTREAM_A_SOCK_INODE] = { .type = NLA_U64, },
};

/* Ops table for rdmastream */
static const struct genl_split_ops rdmastream_nl_ops[] = {
	{
		.cmd	= RDMASTREAM_CMD_INFO_GET,
		.doit	= rdmastream_nl_info_get_doit,
		.flags	= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMASTREAM_CMD_LINK_GET,
		.dumpit		= rdmastream_nl_link_get_dumpit,
		.policy		= rdmastream_link_get_nl_policy,
		.maxattr	= RDMASTREAM_A_LINK_PORT,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMASTREAM_CMD_SOCK_GET,
		.dumpit		= rdmastream_nl_sock_get_dumpit,
		.policy		= rdmastream_sock_get_nl_policy,
		.maxattr	= RDMASTREAM_A_SOCK_CARRIER,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd	= RDMASTREAM_CMD_STATS_GET,
		.doit	= rdmastream_nl_stats_get_doit,
		.flags	= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMASTREAM_CMD_DRAIN_SET,
		.doit		= rdmastream_nl_drain_set_doit,
		.policy		= rdmastream_drain_set_nl_policy,
		.maxattr	= RDMASTREAM_A_INFO_DRAIN,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMASTREAM_CMD_PEER_GET,
		.dumpit		= rdmastream_nl_peer_get_dumpit,
		.policy		= rdmastream_peer_get_nl_policy,
		.maxattr	= RDMASTREAM_A_PEER_INSTANCE,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMASTREAM_CMD_DEVICE_GET,
		.dumpit		= rdmastream_nl_device_get_dumpit,
		.policy		= rdmastream_device_get_nl_policy,
		.maxattr	= RDMASTREAM_A_DEVICE_NAME,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMASTREAM_CMD_MEMORY_GET,
		.dumpit		= rdmastream_nl_memory_get_dumpit,
		.policy		= rdmastream_memory_get_nl_policy,
		.maxattr	= RDMASTREAM_A_RMB_DEVICE,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMASTREAM_CMD_SETTING_GET,
		.dumpit		= rdmastream_nl_setting_get_dumpit,
		.policy		= rdmastream_setting_get_nl_policy,
		.maxattr	= RDMASTREAM_A_SETTING_NAME,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= RDMASTREAM_CMD_SETTING_SET,
		.doit		= rdmastream_nl_setting_set_doit,
		.policy		= rdmastream_setting_set_nl_policy,
		.maxattr	= RDMASTREAM_A_SETTING_VALUE,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= RDMASTREAM_CMD_LINK_MAKE,
		.doit		= rdmastream_nl_link_make_doit,
		.policy		= rdmastream_link_make_nl_policy,
		.maxattr	= RDMASTREAM_A_SOCK_INODE,
		.flags		= GENL_CMD_CAP_DO,
	},
};

static const struct genl_multicast_group rdmastream_nl_mcgrps[] = {
	[RDMASTREAM_NLGRP_EVENTS] = { "events", },
};

struct genl_family rdmastream_nl_family __ro_after_init = {
	.name		= RDMASTREAM_FAMILY_NAME,
	.version	= RDMASTREAM_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= rdmastream_nl_ops,
	.n_split_ops	= ARRAY_SIZE(rdmastream_nl_ops),
	.mcgrps		= rdmastream_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(rdmastream_nl_mcgrps),
};
