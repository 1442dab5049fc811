/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: dummy devices, which exist only for NAPI. */
#ifndef RSTREAM_COMPAT_LINUX_NETDEVICE_H
#define RSTREAM_COMPAT_LINUX_NETDEVICE_H

#include_next <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/version.h>

/* 6.10: dummy devices are allocated and freed like others (b209bd6d0bff) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
static inline struct net_device *alloc_netdev_dummy(int priv)
{
	struct net_device *dev = kzalloc(sizeof(*dev) + priv, GFP_KERNEL);

	if (dev)
		init_dummy_netdev(dev);
	return dev;
}

static inline void rstream_free_netdev_dummy(struct net_device *dev)
{
	kfree(dev);
}
#else
static inline void rstream_free_netdev_dummy(struct net_device *dev)
{
	free_netdev(dev);
}
#endif

#endif
