/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: generic netlink. */
#ifndef RSTREAM_COMPAT_NET_GENETLINK_H
#define RSTREAM_COMPAT_NET_GENETLINK_H

#include_next <net/genetlink.h>
#include <linux/version.h>

/*
 * 6.2: separate table entries for do and dump (b8fd60c36a44).  No command of the
 * module has both, so the table is also valid with struct genl_ops.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define genl_split_ops	genl_ops
#define split_ops	ops
#define n_split_ops	n_ops
#endif

/* Return: attributes of the request of a dump.  6.7 moved them (7288dd2fd488). */
static inline struct nlattr **rstream_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
	return genl_dumpit_info(cb)->attrs;
#else
	return genl_dumpit_info(cb)->info.attrs;
#endif
}

#endif
