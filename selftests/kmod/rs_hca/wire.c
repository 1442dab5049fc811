// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addressing.
 *
 * Owns the list of all devices.  A packet goes to the device with its destination MAC address,
 * as on an Ethernet, or, if that is a router's, to the device with the GID; on InfiniBand to the
 * device with the LID.  Only datagrams need this: connected queue pairs know each other by number.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>

#include "rs_hca.h"

LIST_HEAD(hca_devs);
DEFINE_SPINLOCK(hca_devs_lock);

static bool has_gid(struct hca_dev *dev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;

	attr = rdma_find_gid(&dev->ib, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

static struct hca_dev *find_lid(u16 lid)
{
	struct hca_dev *dev;

	lockdep_assert_held(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		if (dev->profile->ib && dev->port.lid == lid && ib_device_try_get(&dev->ib))
			return dev;
	return NULL;
}

static struct hca_dev *find(const struct hca_av *av, bool by_mac)
{
	struct hca_dev *dev;

	lockdep_assert_held(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list) {
		if (dev->profile->ib)
			continue;
		if (by_mac && !ether_addr_equal(dev->ndev->dev_addr, av->dmac))
			continue;
		/* a device that is not registered has no table of GIDs */
		if (!ib_device_try_get(&dev->ib))
			continue;
		if (has_gid(dev, &av->dgid))
			return dev;
		ib_device_put(&dev->ib);
	}
	return NULL;
}

/**
 * hca_wire_find() - the device that an address leads to
 * @av:		the address
 *
 * Return: it, to be put by ib_device_put(), or NULL.
 */
struct hca_dev *hca_wire_find(const struct hca_av *av)
{
	struct hca_dev *dev;

	spin_lock_bh(&hca_devs_lock);
	dev = av->dlid ? find_lid(av->dlid) : find(av, true) ?: find(av, false);
	spin_unlock_bh(&hca_devs_lock);
	return dev;
}

static bool dev_up(struct hca_dev *dev)
{
	return !READ_ONCE(dev->dead) && hca_dev_port_up(dev);
}

/* Can a packet get from @a to @b? */
bool hca_wire_up(struct hca_dev *a, struct hca_dev *b)
{
	return dev_up(a) && dev_up(b);
}
