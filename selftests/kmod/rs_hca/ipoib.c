// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network interfaces of InfiniBand ports: from them, rdma_cm knows the port and the partition of an
 * IP address.
 *
 * Owns the list of all interfaces.  Each port gets one in the default partition, ib0 or the next
 * name, in the network namespace of the device's own interface.  More are made as those of ib_ipoib
 * are, which is not used, because it needs UD queue pairs and multicast groups:
 *
 *	ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001
 *
 * A packet goes to the interface with the hardware address, or to all, of the same partition.
 * Between two ports it arrives if both are up and members.
 *
 * The port's client removes the interfaces before the device goes, with the RTNL lock.  So
 * with that lock, a parent that is found has its device, and with hca_ipoib_lock an interface.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/rtnetlink.h>
#include <rdma/ib_mad.h>

#include "rs_hca.h"

#define MTU		2044	/* of a datagram: 2048 less 4 */
#define FULL		0x8000

/*
 * struct hca_ipoib: an interface
 * @list:	all, the RTNL lock and hca_ipoib_lock for changes
 */
struct hca_ipoib {
	struct list_head list;
	struct net_device *ndev;
	struct hca_dev *dev;
	u16 pkey;
};

/* In front of each packet. */
struct header {
	u8 to[INFINIBAND_ALEN];
	__be16 proto;
	__be16 reserved;
};

static LIST_HEAD(all);
static DEFINE_SPINLOCK(hca_ipoib_lock);
static bool have_kind;

/* ---- packets ---- */

static int create_header(struct sk_buff *skb, struct net_device *ndev, unsigned short type,
			 const void *to, const void *from, unsigned int len)
{
	struct header *h = skb_push(skb, sizeof(*h));

	h->proto = htons(type);
	h->reserved = 0;
	if (!to)
		return -(int)sizeof(*h);
	memcpy(h->to, to, sizeof(h->to));
	return sizeof(*h);
}

static const struct header_ops header_ops = { .create = create_header };

/* Without flags and queue pair: the GID of a port or of a group. */
static const u8 *gid_of(const u8 *addr)
{
	return addr + 4;
}

static bool is_group(const u8 *addr)
{
	return *gid_of(addr) == 0xff;
}

static bool reaches(const struct hca_ipoib *from, const struct hca_ipoib *to)
{
	return from != to && !((from->pkey ^ to->pkey) & ~FULL) && netif_running(to->ndev) &&
	       hca_wire_up(from->dev, to->dev) &&
	       hca_subnet_joins(from->dev, to->dev, from->pkey);
}

static bool is_for(const struct hca_ipoib *ipoib, const u8 *addr)
{
	return is_group(addr) || !memcmp(ipoib->ndev->dev_addr, addr, INFINIBAND_ALEN);
}

static void arrive(struct sk_buff *skb, struct hca_ipoib *to, const struct header *h)
{
	struct net_device *ndev = to->ndev;

	skb_scrub_packet(skb, !net_eq(dev_net(skb->dev), dev_net(ndev)));
	skb->dev = ndev;
	skb->protocol = h->proto;
	skb->pkt_type = !is_group(h->to) ? PACKET_HOST :
			memcmp(h->to, ndev->broadcast, INFINIBAND_ALEN) ? PACKET_MULTICAST :
									  PACKET_BROADCAST;
	skb_reset_mac_header(skb);
	skb_pull(skb, sizeof(*h));
	skb_reset_network_header(skb);
	ndev->stats.rx_packets++;
	ndev->stats.rx_bytes += skb->len;
	netif_rx(skb);
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct hca_ipoib *from = netdev_priv(ndev), *to;
	struct header h;

	if (!pskb_may_pull(skb, sizeof(h)))
		goto drop;
	memcpy(&h, skb->data, sizeof(h));
	ndev->stats.tx_packets++;
	ndev->stats.tx_bytes += skb->len;
	spin_lock_bh(&hca_ipoib_lock);
	list_for_each_entry(to, &all, list) {
		struct sk_buff *copy;

		if (!is_for(to, h.to) || !reaches(from, to))
			continue;
		copy = skb_clone(skb, GFP_ATOMIC);
		if (copy)
			arrive(copy, to, &h);
	}
	spin_unlock_bh(&hca_ipoib_lock);
drop:
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

/* ---- interfaces ---- */

static int init(struct net_device *ndev)
{
	struct hca_ipoib *ipoib = netdev_priv(ndev);

	spin_lock_bh(&hca_ipoib_lock);
	list_add_tail(&ipoib->list, &all);
	spin_unlock_bh(&hca_ipoib_lock);
	return 0;
}

static void uninit(struct net_device *ndev)
{
	struct hca_ipoib *ipoib = netdev_priv(ndev);

	spin_lock_bh(&hca_ipoib_lock);
	list_del(&ipoib->list);
	spin_unlock_bh(&hca_ipoib_lock);
}

static const struct net_device_ops netdev_ops = {
	.ndo_init = init,
	.ndo_uninit = uninit,
	.ndo_start_xmit = start_xmit,
};

static struct rtnl_link_ops link_ops;

static void setup(struct net_device *ndev)
{
	ndev->header_ops = &header_ops;
	ndev->netdev_ops = &netdev_ops;
	ndev->type = ARPHRD_INFINIBAND;
	ndev->addr_len = INFINIBAND_ALEN;
	ndev->hard_header_len = sizeof(struct header);
	ndev->flags = IFF_BROADCAST | IFF_MULTICAST;
	ndev->mtu = MTU;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = MTU;
	ndev->tx_queue_len = 256;
	ndev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA | NETIF_F_VLAN_CHALLENGED;
	ndev->needs_free_netdev = true;
	ndev->rtnl_link_ops = &link_ops;
}

static void set_carrier(struct hca_ipoib *ipoib)
{
	if (hca_dev_port_up(ipoib->dev) && hca_subnet_member(ipoib->dev, ipoib->pkey))
		netif_carrier_on(ipoib->ndev);
	else
		netif_carrier_off(ipoib->ndev);
}

/* RFC 4391, 9.1.1: flags and a queue pair, then the GID.  The group of all contains the P_Key. */
static void set_addresses(struct hca_ipoib *ipoib)
{
	static const u8 group[INFINIBAND_ALEN] = {
		0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b,
		[16] = 0xff, 0xff, 0xff, 0xff,
	};
	union ib_gid gid = hca_subnet_gid(ipoib->dev);
	u8 addr[INFINIBAND_ALEN];
	static u32 last_qpn = 0x800000;

	ASSERT_RTNL();
	put_unaligned_be32(++last_qpn & HCA_QPN_MAX, addr);
	memcpy(addr + 4, gid.raw, sizeof(gid));
	dev_addr_set(ipoib->ndev, addr);
	memcpy(ipoib->ndev->broadcast, group, sizeof(group));
	put_unaligned_be16(ipoib->pkey, ipoib->ndev->broadcast + 8);
}

/* The P_Key of an interface is that of a full member, whatever the port is. */
static int add(struct net_device *ndev, struct hca_dev *dev, u16 pkey)
{
	struct hca_ipoib *ipoib = netdev_priv(ndev);

	ipoib->ndev = ndev;
	ipoib->dev = dev;
	ipoib->pkey = pkey | FULL;
	set_addresses(ipoib);
	set_carrier(ipoib);
	return register_netdevice(ndev);
}

/**
 * hca_ipoib_changed() - a port goes up or down, or gets other P_Keys
 * @dev:	its device
 */
void hca_ipoib_changed(struct hca_dev *dev)
{
	struct hca_ipoib *ipoib;

	spin_lock_bh(&hca_ipoib_lock);
	list_for_each_entry(ipoib, &all, list)
		if (ipoib->dev == dev)
			set_carrier(ipoib);
	spin_unlock_bh(&hca_ipoib_lock);
}

/* ---- those that are asked for ---- */

static const struct nla_policy policy[IFLA_IPOIB_MAX + 1] = {
	[IFLA_IPOIB_PKEY] = { .type = NLA_U16 },
	[IFLA_IPOIB_MODE] = { .type = NLA_U16 },
	[IFLA_IPOIB_UMCAST] = { .type = NLA_U16 },
};

/* By default in the parent's partition. */
static int newlink(HCA_NEWLINK_PARAMS, struct netlink_ext_ack *ack)
{
	struct nlattr **attrs = HCA_NEWLINK_TB, **own = HCA_NEWLINK_DATA;
	struct net_device *parent;
	struct hca_ipoib *ipoib;
	u16 pkey;

	if (!attrs[IFLA_LINK])
		return -EINVAL;
	parent = __dev_get_by_index(HCA_NEWLINK_NET, nla_get_u32(attrs[IFLA_LINK]));
	if (!parent || parent->netdev_ops != &netdev_ops)
		return -ENODEV;
	ipoib = netdev_priv(parent);
	pkey = own && own[IFLA_IPOIB_PKEY] ? nla_get_u16(own[IFLA_IPOIB_PKEY]) : ipoib->pkey;
	if (!(pkey & ~FULL))
		return -EINVAL;
	return add(dev, ipoib->dev, pkey);
}

static struct rtnl_link_ops link_ops = {
	.kind = "ipoib",
	.priv_size = sizeof(struct hca_ipoib),
	.maxtype = IFLA_IPOIB_MAX,
	.policy = policy,
	.setup = setup,
	.newlink = newlink,
};

/* ---- of each port ---- */

static int client_add(struct ib_device *ib)
{
	struct net_device *ndev;
	int err;

	if (ib->ops.owner != THIS_MODULE || !to_hca(ib)->profile->ib)
		return -EOPNOTSUPP;
	ndev = alloc_netdev(sizeof(struct hca_ipoib), "ib%d", NET_NAME_ENUM, setup);
	if (!ndev)
		return -ENOMEM;
	/* without the kind, it goes with the device alone */
	if (!have_kind)
		ndev->rtnl_link_ops = NULL;
	rtnl_lock();
	dev_net_set(ndev, dev_net(to_hca(ib)->ndev));
	err = add(ndev, to_hca(ib), IB_DEFAULT_PKEY_FULL);
	rtnl_unlock();
	if (err)
		free_netdev(ndev);
	return err;
}

static void client_remove(struct ib_device *ib, void *data)
{
	struct hca_ipoib *ipoib;
	LIST_HEAD(gone);

	rtnl_lock();
	list_for_each_entry(ipoib, &all, list)
		if (ipoib->dev == to_hca(ib))
			unregister_netdevice_queue(ipoib->ndev, &gone);
	unregister_netdevice_many(&gone);
	rtnl_unlock();
}

static bool has_ip(struct net_device *ndev, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;
	struct in_device *dev;
	bool found;

	if (addr->sa_family == AF_INET6)
		return ipv6_chk_addr(dev_net(ndev), &in6->sin6_addr, ndev, 1);
	rcu_read_lock();
	dev = __in_dev_get_rcu(ndev);
	found = dev && inet_confirm_addr(dev_net(ndev), dev, 0, in->sin_addr.s_addr, RT_SCOPE_HOST);
	rcu_read_unlock();
	return found;
}

/* The interfaces that a request may be for; the first is held. */
static int candidates(struct ib_device *ib, u16 pkey, const struct sockaddr *addr,
		      struct net_device **found)
{
	struct hca_ipoib *ipoib;
	int n = 0;

	*found = NULL;
	spin_lock_bh(&hca_ipoib_lock);
	list_for_each_entry(ipoib, &all, list) {
		if (&ipoib->dev->ib != ib || (ipoib->pkey ^ pkey) & ~FULL ||
		    (addr && !has_ip(ipoib->ndev, addr)))
			continue;
		if (!n++) {
			*found = ipoib->ndev;
			dev_hold(*found);
		}
	}
	spin_unlock_bh(&hca_ipoib_lock);
	return n;
}

/* For which interface is a request?  By its IP address only if there are several. */
static struct net_device *get_net_dev(struct ib_device *ib, u32 port, u16 pkey,
				      const union ib_gid *gid, const struct sockaddr *addr,
				      void *data)
{
	union ib_gid own = hca_subnet_gid(to_hca(ib));
	struct net_device *found;

	if (gid && memcmp(gid, &own, sizeof(own)))
		return NULL;
	if (candidates(ib, pkey, NULL, &found) <= 1)
		return found;
	dev_put(found);
	candidates(ib, pkey, addr, &found);
	return found;
}

static struct ib_client client = {
	.name = "rs_hca",
	.add = client_add,
	.remove = client_remove,
	.get_net_dev_by_params = get_net_dev,
};

int hca_ipoib_init(void)
{
	int err = rtnl_link_register(&link_ops);

	have_kind = !err;
	if (err)
		pr_info("rs_hca: ib_ipoib is there: ports have one interface each\n");
	err = ib_register_client(&client);
	if (err && have_kind)
		rtnl_link_unregister(&link_ops);
	return err;
}

/* When there are no devices any more. */
void hca_ipoib_exit(void)
{
	ib_unregister_client(&client);
	if (have_kind)
		rtnl_link_unregister(&link_ops);
}
