// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module init and exit; adding and removing devices.
 *
 *	insmod rs_hca.ko profile=mlx5 dma=bounce
 *	rdma link add hca0 type rs_hca netdev veth0
 *	rdma link del hca0
 *
 * The network device may be in any network namespace: run the command there.
 * The parameters apply to devices that are added afterwards.
 *
 * A device is removed by "rdma link del", with its network device (and so with its network
 * namespace), with the module, or as a fault.  In all cases, ib_core calls
 * dealloc_driver() after the last reference.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/rdma_netlink.h>

#include "rs_hca.h"

static char *profile = "plain";
module_param(profile, charp, 0644);
MODULE_PARM_DESC(profile, "which device it is like: see Documentation/rs_hca.rst");

static char *dma = "virt";
module_param(dma, charp, 0644);
MODULE_PARM_DESC(dma, "virt: the kernel's addresses; iommu: checked ones; bounce: copies");

static int dma_mode(const char *name)
{
	static const char * const names[] = {
		[HCA_DMA_VIRT] = "virt",
		[HCA_DMA_IOMMU] = "iommu",
		[HCA_DMA_BOUNCE] = "bounce",
	};

	return __sysfs_match_string(names, ARRAY_SIZE(names), name);
}

static int newlink(const char *name, struct net_device *ndev)
{
	const struct hca_profile *like;
	int mode, err;

	kernel_param_lock(THIS_MODULE);
	like = hca_profile_find(profile);
	mode = dma_mode(dma);
	kernel_param_unlock(THIS_MODULE);
	if (!like || mode < 0)
		return -EINVAL;
	err = hca_dev_add(name, ndev, like, mode);
	if (err == -EOPNOTSUPP)
		pr_err("rs_hca: this kernel lets no device have DMA operations of its own\n");
	return err;
}

static struct rdma_link_ops link_ops = {
	.type = "rs_hca",
	.newlink = newlink,
};

static struct hca_dev *find(const struct net_device *ndev)
{
	struct hca_dev *dev;

	lockdep_assert_held(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		if (dev->ndev == ndev && ib_device_try_get(&dev->ib))
			return dev;
	return NULL;
}

static int netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(arg);
	struct hca_dev *dev;

	spin_lock_bh(&hca_devs_lock);
	dev = find(ndev);
	spin_unlock_bh(&hca_devs_lock);
	if (!dev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		hca_dev_port_changed(dev);
		break;
	case NETDEV_UNREGISTER:
		hca_dev_remove(dev);
		break;
	}
	ib_device_put(&dev->ib);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_nb = { .notifier_call = netdev_event };

static int __init hca_init(void)
{
	int err = hca_ipoib_init();

	if (err)
		return err;
	err = register_netdevice_notifier(&netdev_nb);
	if (err)
		hca_ipoib_exit();
	else
		rdma_link_register(&link_ops);
	return err;
}

/* Of ours, not of the drivers that they stand for. */
static void own_all(void)
{
	struct hca_dev *dev;

	spin_lock_bh(&hca_devs_lock);
	list_for_each_entry(dev, &hca_devs, list)
		dev->ib.ops.driver_id = HCA_DRIVER;
	spin_unlock_bh(&hca_devs_lock);
}

static void __exit hca_exit(void)
{
	rdma_link_unregister(&link_ops);
	unregister_netdevice_notifier(&netdev_nb);
	own_all();
	ib_unregister_driver(HCA_DRIVER);
	hca_ipoib_exit();
	rcu_barrier();
}

module_init(hca_init);
module_exit(hca_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Software RDMA device that behaves as real ones do, for tests");
MODULE_ALIAS_RDMA_LINK("rs_hca");
