// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA devices: which exist, whether links can use them, their addresses.
 *
 * Owns the list of devices, and for each the list of its links: the removal of a device waits for
 * its links.  Called by cm.c and link_life.c (attach, detach) and path.c (addresses).
 */
#include <linux/if_infiniband.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "device.h"

static LIST_HEAD(rstream_devs);
static DEFINE_SPINLOCK(rstream_devs_lock);	/* bh; outside link->lock; the list: also RCU */

/* ---- the list ---- */

/*
 * Both queues have depth slots, and one more for ib_drain_qp().
 *
 *   depth + 1 <= max_qp_wr, max_cqe     each queue has a CQ of its own that
 *                                       holds a completion of every slot
 *   depth % SIGNAL_EVERY == 0           signalled slots are evenly spaced, also
 *                                       where the queue wraps
 *   depth >= 2 * SIGNAL_EVERY + SQ_CTRL + 1
 *       Of any SIGNAL_EVERY successive requests, one is signalled.  So when all
 *       signalled ones have completed, fewer than SIGNAL_EVERY slots are taken,
 *       and data (which leaves SQ_CTRL free) has room even for a message that
 *       takes two (wr.h): a full queue always makes progress by a completion.
 *   depth / 4 >= 1, depth > RQ_RESERVE  see msg.c on receive credits
 */
int rstream_dev_depth(const struct ib_device_attr *attr)
{
	int depth = min3(RSTREAM_DEPTH_MAX, attr->max_qp_wr - 1,
			 attr->max_cqe - 1);

	static_assert(RSTREAM_DEPTH_MIN >=
		      2 * RSTREAM_SIGNAL_EVERY + RSTREAM_SQ_CTRL + 1);
	static_assert(RSTREAM_DEPTH_MIN / 4 > RSTREAM_RQ_RESERVE);
	depth = rounddown(depth, RSTREAM_SIGNAL_EVERY);
	return depth < RSTREAM_DEPTH_MIN ? -EOPNOTSUPP : depth;
}

static enum rstream_dev_problem dev_problem(struct ib_device *ib)
{
	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return RSTREAM_DEV_NO_REG;
	if (rstream_dev_depth(&ib->attrs) < 0)
		return RSTREAM_DEV_SMALL;
	return RSTREAM_DEV_GOOD;
}

static struct rstream_dev *dev_of(const struct ib_device *ib)
{
	struct rstream_dev *dev;

	lockdep_assert_held(&rstream_devs_lock);
	list_for_each_entry(dev, &rstream_devs, list)
		if (dev->ib == ib)
			return dev;
	return NULL;
}

/* Unusable devices are listed, too, so that netlink can report why. */
static int client_add(struct ib_device *ib)
{
	struct rstream_dev *dev;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	dev->problem = dev_problem(ib);
	/* a device may have both InfiniBand and RoCE ports, but then no iWARP ports */
	dev->iwarp = rdma_protocol_iwarp(ib, rdma_start_port(ib));
	INIT_LIST_HEAD(&dev->links);
	init_completion(&dev->empty);
	spin_lock_bh(&rstream_devs_lock);
	list_add_tail_rcu(&dev->list, &rstream_devs);
	spin_unlock_bh(&rstream_devs_lock);
	return 0;
}

/*
 * Waits only for the module's workers and a grace period.  This runs before rdma_cm's own removal,
 * which waits for all ids of the device that have not been destroyed by then.
 */
static void client_remove(struct ib_device *ib, void *data)
{
	struct rstream_dev *dev;
	struct rstream_link *link;
	bool empty;

	spin_lock_bh(&rstream_devs_lock);
	dev = dev_of(ib);
	if (!dev) {
		spin_unlock_bh(&rstream_devs_lock);
		return;
	}
	dev->gone = true;
	list_del_rcu(&dev->list);
	list_for_each_entry(link, &dev->links, dev_list)
		rstream_link_break(link, RSTREAM_END_DEVICE);
	empty = list_empty(&dev->links);
	spin_unlock_bh(&rstream_devs_lock);
	if (!empty)
		wait_for_completion(&dev->empty);
	synchronize_rcu();	/* those without the lock may still look at @dev and @ib */
	kfree(dev);
}

/*
 * The link may be shown meanwhile.  ib->name is an array; the name that dev_name() returns is
 * freed when the device is renamed.
 */
static void set_name(struct rstream_link *link, const struct ib_device *ib)
{
	spin_lock(&link->lock);
	strscpy(link->dev_name, ib->name, sizeof(link->dev_name));
	spin_unlock(&link->lock);
}

static void client_rename(struct ib_device *ib, void *data)
{
	struct rstream_link *link;
	struct rstream_dev *dev;

	spin_lock_bh(&rstream_devs_lock);
	dev = dev_of(ib);
	if (dev)
		list_for_each_entry(link, &dev->links, dev_list)
			set_name(link, ib);
	spin_unlock_bh(&rstream_devs_lock);
}

static struct ib_client rstream_ib_client = {
	.name = "rdmastream",
	.add = client_add,
	.remove = client_remove,
	.rename = client_rename,
};

/* The interface of an iWARP port, if it is in @net, or NULL.  Under RCU. */
static struct net_device *iwarp_netdev(struct ib_device *ib, u32 port, const struct net *net)
{
	struct net_device *ndev = rcu_dereference(ib->port_data[port].netdev);

	return ndev && net_eq(dev_net(ndev), net) ? ndev : NULL;
}

static bool iwarp_in(struct ib_device *ib, const struct net *net)
{
	bool in = false;
	u32 port;

	rcu_read_lock();
	rdma_for_each_port(ib, port)
		in |= !!iwarp_netdev(ib, port, net);
	rcu_read_unlock();
	return in;
}

/* The interface of a RoCE address, if it is in @net, or NULL.  Under RCU. */
static struct net_device *roce_netdev(const struct ib_gid_attr *attr, const struct net *net)
{
	struct net_device *ndev = rdma_read_gid_attr_ndev_rcu(attr);

	return !IS_ERR(ndev) && net_eq(dev_net(ndev), net) ? ndev : NULL;
}

/*
 * The connections of an iWARP device are TCP connections of its interface or (siw) of
 * the host, whichever namespace asks for them, so it serves only that of its interface.
 */
static bool dev_serves(const struct rstream_dev *dev, const struct net *net)
{
	return !dev->problem && rdma_dev_access_netns(dev->ib, net) &&
	       (!dev->iwarp || iwarp_in(dev->ib, net));
}

bool rstream_dev_may_listen(const struct net *net)
{
	struct rstream_dev *dev;
	bool may = true;

	if (net_eq(net, &init_net))
		return true;
	rcu_read_lock();
	list_for_each_entry_rcu(dev, &rstream_devs, list)
		may &= !dev->iwarp || !iwarp_in(dev->ib, &init_net);
	rcu_read_unlock();
	return may;
}

bool rstream_dev_is_of(const struct rdma_cm_id *id, const struct net *net)
{
	const struct ib_gid_attr *attr = id->route.addr.dev_addr.sgid_attr;
	bool is_of;

	/* to a loopback address, rdma_cm takes any device */
	if (!attr)
		return net_eq(net, &init_net);
	/* see dev_serves() for iWARP; an IPoIB interface is in @net if its address was found */
	if (!rdma_protocol_roce(id->device, attr->port_num))
		return true;
	rcu_read_lock();
	is_of = roce_netdev(attr, net);
	rcu_read_unlock();
	return is_of;
}

unsigned int rstream_dev_transports(struct net *net)
{
	struct rstream_dev *dev;
	unsigned int has = 0;

	/* streams that start while the device is gone should move to RDMA later, too */
	if (READ_ONCE(rstream_net(net)->links->drained_dev))
		return RSTREAM_TRANSPORT_IB | RSTREAM_TRANSPORT_IWARP;
	/* without the lock, because each connection asks */
	rcu_read_lock();
	list_for_each_entry_rcu(dev, &rstream_devs, list)
		if (dev_serves(dev, net))
			has |= dev->iwarp ? RSTREAM_TRANSPORT_IWARP : RSTREAM_TRANSPORT_IB;
	rcu_read_unlock();
	return has;
}

/* ---- addresses ---- */

/* Stores the IP address of @attr in @to.  Return: false if it is not an address of @net. */
static bool gid_addr(const struct ib_gid_attr *attr, struct net *net,
		     struct rstream_addr *to)
{
	struct net_device *ndev;
	bool ok;

	memcpy(&to->addr, &attr->gid, sizeof(to->addr));
	rcu_read_lock();
	ndev = roce_netdev(attr, net);
	ok = ndev && !(ipv6_addr_type(&to->addr) & IPV6_ADDR_LINKLOCAL);
	if (ok)
		to->ifindex = ndev->ifindex;
	rcu_read_unlock();
	return ok;
}

/* The GIDs of a RoCE port are the IP addresses of its interfaces. */
static unsigned int roce_addrs(struct ib_device *ib, u32 port, struct net *net,
			       struct rstream_addr *to, unsigned int max)
{
	int i, len = ib->port_data[port].immutable.gid_tbl_len;
	const struct ib_gid_attr *attr;
	unsigned int n = 0;

	for (i = 0; i < len && n < max; i++) {
		attr = rdma_get_gid_attr(ib, port, i);
		if (IS_ERR(attr))
			continue;
		n += gid_addr(attr, net, &to[n]);
		rdma_put_gid_attr(attr);
	}
	return n;
}

static unsigned int netdev_addrs(struct net_device *dev,
				 struct rstream_addr *to, unsigned int max)
{
	struct inet6_dev *in6_dev = __in6_dev_get(dev);
	struct in_device *in_dev = __in_dev_get_rcu(dev);
	const struct inet6_ifaddr *ifa6;
	const struct in_ifaddr *ifa;
	unsigned int n = 0;

	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			if (n == max)
				break;
			ipv6_addr_set_v4mapped(ifa->ifa_local, &to[n].addr);
			to[n++].ifindex = dev->ifindex;
		}
	}
	if (in6_dev) {
		list_for_each_entry_rcu(ifa6, &in6_dev->addr_list, if_list) {
			if (n == max)
				break;
			if (ipv6_addr_type(&ifa6->addr) & IPV6_ADDR_LINKLOCAL)
				continue;
			to[n].addr = ifa6->addr;
			to[n++].ifindex = dev->ifindex;
		}
	}
	return n;
}

/* Does the IPoIB interface @dev belong to this port?  Its hardware address contains the GID. */
static bool ipoib_on_port(const struct net_device *dev, struct ib_device *ib,
			  u32 port)
{
	const struct ib_gid_attr *attr;
	union ib_gid gid;

	memcpy(&gid, dev->dev_addr + INFINIBAND_ALEN - sizeof(gid), sizeof(gid));
	attr = rdma_find_gid_by_port(ib, &gid, IB_GID_TYPE_IB, port, NULL);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

/*
 * The GIDs of an InfiniBand port are not IP addresses: rdma_cm maps the addresses of its IPoIB
 * interfaces to them.
 */
static unsigned int ipoib_addrs(struct ib_device *ib, u32 port, struct net *net,
				struct rstream_addr *to, unsigned int max)
{
	struct net_device *dev;
	unsigned int n = 0;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev)
		if (dev->type == ARPHRD_INFINIBAND && dev->flags & IFF_UP &&
		    ipoib_on_port(dev, ib, port))
			n += netdev_addrs(dev, to + n, max - n);
	rcu_read_unlock();
	return n;
}

/* An iWARP port has the addresses of its interface and of the VLANs on it. */
static unsigned int iwarp_addrs(struct ib_device *ib, u32 port, struct net *net,
				struct rstream_addr *to, unsigned int max)
{
	struct net_device *ndev, *dev;
	unsigned int n = 0;

	rcu_read_lock();
	ndev = iwarp_netdev(ib, port, net);
	for_each_netdev_rcu(net, dev)
		if (ndev && (dev == ndev || (is_vlan_dev(dev) && vlan_dev_real_dev(dev) == ndev)))
			n += netdev_addrs(dev, to + n, max - n);
	rcu_read_unlock();
	return n;
}

static unsigned int port_addrs(struct ib_device *ib, u32 port, struct net *net,
			       struct rstream_addr *to, unsigned int max)
{
	if (rdma_protocol_roce(ib, port))
		return roce_addrs(ib, port, net, to, max);
	if (rdma_protocol_iwarp(ib, port))
		return iwarp_addrs(ib, port, net, to, max);
	return ipoib_addrs(ib, port, net, to, max);
}

unsigned int rstream_dev_addrs(struct net *net, struct rstream_addr *to,
			       unsigned int max)
{
	struct rstream_dev *dev;
	unsigned int n = 0;
	u32 port;

	/* without the lock, which all namespaces share: @net may have many interfaces */
	rcu_read_lock();
	list_for_each_entry_rcu(dev, &rstream_devs, list) {
		if (!dev_serves(dev, net))
			continue;
		rdma_for_each_port(dev->ib, port)
			n += port_addrs(dev->ib, port, net, to + n, max - n);
	}
	rcu_read_unlock();
	return n;
}

/* ---- for netlink ---- */

static void port_info(const struct rstream_dev *dev, u32 port, struct net *net,
		      struct rstream_addr *addrs, struct rstream_dev_info *info)
{
	enum ib_port_state state;
	struct rstream_link *link;
	unsigned int i;

	memset(info, 0, sizeof(*info));
	strscpy(info->name, dev->ib->name, sizeof(info->name));
	info->port = port;
	info->problem = dev->problem;
	spin_lock_bh(&rstream_devs_lock);
	list_for_each_entry(link, &dev->links, dev_list)
		info->links += net_eq(rstream_link_netns(link), net);
	spin_unlock_bh(&rstream_devs_lock);
	info->n_addrs = port_addrs(dev->ib, port, net, addrs, RSTREAM_INFO_ADDRS);
	for (i = 0; i < info->n_addrs; i++)
		info->addrs[i] = addrs[i].addr;
	if (info->n_addrs)
		info->ifindex = addrs[0].ifindex;
	if (info->problem)
		return;
	if (ib_get_cached_port_state(dev->ib, port, &state) ||
	    state != IB_PORT_ACTIVE)
		info->problem = RSTREAM_DEV_DOWN;
	else if (!info->n_addrs)
		info->problem = RSTREAM_DEV_NO_ADDR;
}

int rstream_dev_info_dump(struct net *net, unsigned int skip,
			  int (*fn)(const struct rstream_dev_info *info,
				    void *arg),
			  void *arg)
{
	struct {
		struct rstream_dev_info info;
		struct rstream_addr addrs[RSTREAM_INFO_ADDRS];
	} *room;
	struct rstream_dev *dev;
	int err = 0;
	u32 port;

	room = kmalloc(sizeof(*room), GFP_KERNEL);
	if (!room)
		return -ENOMEM;
	rcu_read_lock();
	list_for_each_entry_rcu(dev, &rstream_devs, list) {
		if (!rdma_dev_access_netns(dev->ib, net))
			continue;
		rdma_for_each_port(dev->ib, port) {
			if (skip) {
				skip--;
				continue;
			}
			port_info(dev, port, net, room->addrs, &room->info);
			err = fn(&room->info, arg);
			if (err)
				goto out;
		}
	}
out:
	rcu_read_unlock();
	kfree(room);
	return err;
}

/* ---- links on it ---- */

int rstream_dev_attach(struct rstream_link *link, struct ib_device *ib)
{
	struct rstream_dev *dev;
	int err = -ENODEV;

	spin_lock_bh(&rstream_devs_lock);
	dev = dev_of(ib);
	if (dev && dev_serves(dev, rstream_link_netns(link))) {
		link->dev = dev;
		link->iwarp = dev->iwarp;
		link->node = ibdev_to_node(ib);
		list_add(&link->dev_list, &dev->links);
		set_name(link, ib);
		err = 0;
	}
	spin_unlock_bh(&rstream_devs_lock);
	return err;
}

void rstream_dev_detach(struct rstream_link *link)
{
	struct rstream_dev *dev = link->dev;

	if (!dev)
		return;
	spin_lock_bh(&rstream_devs_lock);
	list_del(&link->dev_list);
	link->dev = NULL;
	if (dev->gone && list_empty(&dev->links))
		complete(&dev->empty);
	spin_unlock_bh(&rstream_devs_lock);
}

int rstream_dev_init(void)
{
	return ib_register_client(&rstream_ib_client);
}

void rstream_dev_exit(void)
{
	ib_unregister_client(&rstream_ib_client);
}
