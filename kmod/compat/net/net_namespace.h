/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: registration of a namespace's sysctls. */
#ifndef RSTREAM_COMPAT_NET_NET_NAMESPACE_H
#define RSTREAM_COMPAT_NET_NET_NAMESPACE_H

#include_next <net/net_namespace.h>
#include <linux/version.h>

/* 6.6: the size is an argument; before, an empty entry ended the table (95d4977876dd) */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size) \
	register_net_sysctl(net, path, table)
#endif

#endif
