// SPDX-License-Identifier: GPL-2.0-only
/*
 * The InfiniBand subnet: LIDs and P_Keys, and what its manager does with the ports.
 *
 * Owns where the subnet manager is; each device has its port.  All ports are on one subnet.
 * There are no management packets: a write to the parameter "sm" does what the subnet manager
 * would, and the users of the port get the same event:
 *
 *	echo "hca0 lid 99" >/sys/module/rs_hca/parameters/sm
 *	hca0 pkeys 0xffff 0x8001	its table, from the first entry on
 *	hca0 port 0|1			down, up
 *	hca0 reregister			clients shall register anew
 *	sm lid 2			another subnet manager takes over
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_mad.h>

#include "rs_hca.h"

#define PREFIX		0xfe80000000000000ULL
#define FULL		0x8000
#define FIRST_LID	16

static u16 sm_lid = 1, last_lid = FIRST_LID - 1;	/* hca_devs_lock for changes */

static bool has_lid(u16 lid)
{
	struct hca_dev *dev;

	lockdep_assert_held(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		if (dev->profile->ib && dev->port.lid == lid)
			return true;
	return false;
}

/* A device comes: it gets a LID and the default partition. */
void hca_subnet_join(struct hca_dev *dev)
{
	spin_lock_bh(&hca_devs_lock);
	do {
		if (++last_lid >= be16_to_cpu(IB_MULTICAST_LID_BASE))
			last_lid = FIRST_LID;
	} while (has_lid(last_lid));
	dev->port.lid = last_lid;
	dev->port.old_lid = last_lid;
	dev->port.sm_lid = sm_lid;
	dev->port.pkeys[0] = IB_DEFAULT_PKEY_FULL;
	spin_unlock_bh(&hca_devs_lock);
}

union ib_gid hca_subnet_gid(const struct hca_dev *dev)
{
	return (union ib_gid){
		.global.subnet_prefix = cpu_to_be64(PREFIX),
		.global.interface_id = dev->ib.node_guid,
	};
}

bool hca_subnet_is_sm(u16 lid)
{
	return lid == READ_ONCE(sm_lid);
}

/* ---- partitions ---- */

/* The same partition, and one is a full member (IB specification, volume 1, 10.9.3). */
static bool fit(u16 a, u16 b)
{
	return a & ~FULL && !((a ^ b) & ~FULL) && (a | b) & FULL;
}

static u16 pkey_at(const struct hca_dev *dev, unsigned int index)
{
	return index < HCA_PKEYS ? READ_ONCE(dev->port.pkeys[index]) : 0;
}

/* The P_Key of a datagram that is sent with this index. */
u16 hca_subnet_pkey(const struct hca_dev *dev, unsigned int index)
{
	return pkey_at(dev, index);
}

/* The index with which a port takes a datagram with this P_Key, or -1. */
int hca_subnet_accepts(const struct hca_dev *dev, u16 pkey)
{
	int i;

	for (i = 0; i < HCA_PKEYS; i++)
		if (fit(pkey_at(dev, i), pkey))
			return i;
	return -1;
}

/* As what is the port a member of this partition?  0: it is none. */
static u16 member(const struct hca_dev *dev, u16 pkey)
{
	u16 found = 0;
	int i;

	for (i = 0; i < HCA_PKEYS; i++)
		if (!((pkey_at(dev, i) ^ pkey) & ~FULL))
			found |= pkey_at(dev, i);
	return found;
}

bool hca_subnet_member(const struct hca_dev *dev, u16 pkey)
{
	return member(dev, pkey);
}

/* May the two talk in the partition? */
bool hca_subnet_joins(const struct hca_dev *a, const struct hca_dev *b, u16 pkey)
{
	return fit(member(a, pkey), member(b, pkey));
}

/**
 * hca_subnet_carries() - does a packet of a connection arrive?
 * @from:	its sender
 * @to:		its receiver
 *
 * Each end has the LID of the other, and the index of a P_Key (IB specification, volume 1, 9.6.1).
 */
bool hca_subnet_carries(const struct hca_qp *from, const struct hca_qp *to)
{
	return from->av.dlid == READ_ONCE(to->dev->port.lid) &&
	       to->av.dlid == READ_ONCE(from->dev->port.lid) &&
	       fit(pkey_at(from->dev, from->attr.pkey_index),
		   pkey_at(to->dev, to->attr.pkey_index));
}

/* ---- what the subnet manager does ---- */

static int set_lid(struct hca_dev *dev, char *args)
{
	u16 lid;
	int err = kstrtou16(args, 0, &lid);

	if (err)
		return err;
	spin_lock_bh(&hca_devs_lock);
	if (!lid || lid == sm_lid || has_lid(lid))
		err = -EADDRINUSE;
	if (!err) {
		dev->port.old_lid = dev->port.lid;
		WRITE_ONCE(dev->port.lid, lid);
	}
	spin_unlock_bh(&hca_devs_lock);
	if (!err)
		hca_dev_event(dev, IB_EVENT_LID_CHANGE);
	return err;
}

static int set_pkeys(struct hca_dev *dev, char *args)
{
	u16 pkeys[HCA_PKEYS] = {};
	char *word;
	int i = 0, err;

	while ((word = strsep(&args, " "))) {
		if (i == HCA_PKEYS)
			return -E2BIG;
		err = kstrtou16(word, 0, &pkeys[i++]);
		if (err)
			return err;
	}
	for (i = 0; i < HCA_PKEYS; i++)
		WRITE_ONCE(dev->port.pkeys[i], pkeys[i]);
	hca_ipoib_changed(dev);
	hca_dev_event(dev, IB_EVENT_PKEY_CHANGE);
	return 0;
}

static int set_port(struct hca_dev *dev, char *args)
{
	bool up;
	int err = kstrtobool(args, &up);

	if (err)
		return err;
	WRITE_ONCE(dev->port.off, !up);
	hca_dev_port_changed(dev);
	return 0;
}

static int move_sm(char *args)
{
	struct hca_dev *dev;
	u16 lid;
	int err = kstrtou16(args, 0, &lid);

	if (err)
		return err;
	spin_lock_bh(&hca_devs_lock);
	WRITE_ONCE(sm_lid, lid);
	list_for_each_entry(dev, &hca_devs, list) {
		if (!dev->profile->ib || !ib_device_try_get(&dev->ib))
			continue;
		WRITE_ONCE(dev->port.sm_lid, lid);
		/* from any context */
		hca_dev_event(dev, IB_EVENT_SM_CHANGE);
		ib_device_put(&dev->ib);
	}
	spin_unlock_bh(&hca_devs_lock);
	return 0;
}

static struct hca_dev *get(const char *name)
{
	struct hca_dev *dev, *found = NULL;

	spin_lock_bh(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		if (dev->profile->ib && !strcmp(dev_name(&dev->ib.dev), name) &&
		    ib_device_try_get(&dev->ib)) {
			found = dev;
			break;
		}
	spin_unlock_bh(&hca_devs_lock);
	return found;
}

static int act(const char *name, const char *what, char *args)
{
	struct hca_dev *dev;
	int err = 0;

	if (!strcmp(name, "sm"))
		return strcmp(what, "lid") || !args ? -EINVAL : move_sm(args);
	dev = get(name);
	if (!dev)
		return -ENODEV;
	if (!strcmp(what, "reregister"))
		hca_dev_event(dev, IB_EVENT_CLIENT_REREGISTER);
	else if (!args)
		err = -EINVAL;
	else if (!strcmp(what, "lid"))
		err = set_lid(dev, args);
	else if (!strcmp(what, "pkeys"))
		err = set_pkeys(dev, args);
	else if (!strcmp(what, "port"))
		err = set_port(dev, args);
	else
		err = -EINVAL;
	ib_device_put(&dev->ib);
	return err;
}

static int sm_set(const char *val, const struct kernel_param *kp)
{
	char *line = kstrdup(val, GFP_KERNEL), *name, *what, *args;
	int err = -EINVAL;

	if (!line)
		return -ENOMEM;
	args = strim(line);
	name = strsep(&args, " ");
	what = strsep(&args, " ");
	if (what)
		err = act(name, what, args);
	kfree(line);
	return err;
}

/* Ports: lines of device, LID, LID of the subnet manager, P_Keys. */
static int sm_get(char *buf, const struct kernel_param *kp)
{
	struct hca_dev *dev;
	int i, n = 0;

	spin_lock_bh(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list) {
		if (!dev->profile->ib)
			continue;
		n += sysfs_emit_at(buf, n, "%s %u %u", dev_name(&dev->ib.dev), dev->port.lid,
				   dev->port.sm_lid);
		for (i = 0; i < HCA_PKEYS && dev->port.pkeys[i]; i++)
			n += sysfs_emit_at(buf, n, " 0x%04x", dev->port.pkeys[i]);
		n += sysfs_emit_at(buf, n, "\n");
	}
	spin_unlock_bh(&hca_devs_lock);
	return n;
}

static const struct kernel_param_ops sm_ops = { .set = sm_set, .get = sm_get };
module_param_cb(sm, &sm_ops, NULL, 0644);
MODULE_PARM_DESC(sm, "what the subnet manager of InfiniBand ports does");
