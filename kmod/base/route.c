// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes, and what may encrypt the packets that they lead out: tunnels, MACsec, IPsec policies.
 *
 * Nothing is stored here.
 */
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <linux/xfrm.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>

#include "route.h"

/* May @dev encapsulate packets, and encrypt them?  True for unknown kinds of devices. */
static bool is_tunnel(const struct net_device *dev)
{
	static const char *const plain[] = {
		"bond", "bridge", "dsa", "dummy", "hsr", "ipoib", "ipvlan", "ipvtap", "macvlan",
		"macvtap", "netkit", "team", "veth", "vlan", "vrf",
	};

	if (dev->flags & IFF_POINTOPOINT || dev->type == ARPHRD_NONE)
		return true;
	/* hardware devices have no rtnl_link_ops, but L2TP's have none either */
	if (dev->dev.type && dev->dev.type->name && !strcmp(dev->dev.type->name, "l2tpeth"))
		return true;
	return dev->rtnl_link_ops &&
	       match_string(plain, ARRAY_SIZE(plain), dev->rtnl_link_ops->kind) < 0;
}

static int is_macsec(struct net_device *dev, struct netdev_nested_priv *unused)
{
	return netif_is_macsec(dev);
}

bool rstream_route_protects(struct net_device *dev)
{
	return is_tunnel(dev) || (!list_empty(&dev->adj_list.lower) &&
				  netdev_walk_all_lower_dev_rcu(dev, is_macsec, NULL));
}

bool rstream_route_net_protects(struct net *net)
{
	struct net_device *dev;
	bool found = false;

#ifdef CONFIG_XFRM
	if (READ_ONCE(net->xfrm.policy_count[XFRM_POLICY_OUT]) ||
	    READ_ONCE(net->xfrm.policy_count[XFRM_POLICY_IN]))
		return true;
#endif
	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		found = dev->flags & IFF_UP && rstream_route_protects(dev);
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

int rstream_route_genid(const struct net *net)
{
	int genid = rt_genid_ipv4(net);

#if IS_ENABLED(CONFIG_IPV6)
	genid += rt_genid_ipv6(net);
#endif
	return genid;
}
