/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	uapi/rdmastream.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_RDMASTREAM_GEN_H
#define _LINUX_RDMASTREAM_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/rdmastream_netlink.h>

int rdmastream_nl_info_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdmastream_nl_link_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int rdmastream_nl_sock_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int rdmastream_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info);
int rdmastream_nl_drain_set_doit(struct sk_buff *skb, struct genl_info *info);
int rdmastream_nl_peer_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int rdmastream_nl_device_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdmastream_nl_memory_get_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int rdmastream_nl_setting_get_dumpit(struct sk_buff *skb,
				     struct netlink_callback *cb);
int rdmastream_nl_setting_set_doit(struct sk_buff *skb, struct genl_info *info);
int rdmastream_nl_link_make_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	RDMASTREAM_NLGRP_EVENTS,
};

extern struct genl_family rdmastream_nl_family;

#endif /* _LINUX_RDMASTREAM_GEN_H */
