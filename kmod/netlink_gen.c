// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	uapi/rdmastream.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/linux/rdmastream_netlink.h>

/* RDMASTREAM_CMD_DRAIN_SET - do */
static const struct nla_policy rdmastream_drain_set_nl_policy[RDMASTREAM_A_INFO_DRAIN + 1] = {
	[RDMASTREAM_A_INFO_DRAIN] = NLA_POLICY_MAX(NLA_U8, 1),
};

/* Ops table for rdmastream */
static const struct genl_split_ops rdmastream_nl_ops[] = {
	{
		.cmd	= RDMASTREAM_CMD_INFO_GET,
		.doit	= rdmastream_nl_info_get_doit,
		.flags	= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= RDMASTREAM_CMD_LINK_GET,
		.dumpit	= rdmastream_nl_link_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd	= RDMASTREAM_CMD_SOCK_GET,
		.dumpit	= rdmastream_nl_sock_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
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
