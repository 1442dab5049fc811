/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The settings: sysctl net.rdmastream.*, also available through netlink.
 */
#ifndef RSTREAM_SYSCTL_H
#define RSTREAM_SYSCTL_H

#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/net.h"

struct rstream_setting_info {
	const char *name;
	u64 val;
	u64 def, min, max;		/* unset for entries that are read-only everywhere */
	bool pow2;
	bool read_only;			/* cannot be set in this namespace */
};

/* Works like rstream_link_info_dump(). */
int rstream_setting_info_dump(struct net *net, unsigned int skip,
			      int (*fn)(const struct rstream_setting_info *info,
					void *arg),
			      void *arg);

int rstream_sysctl_net_init(struct rstream_net *rn);
void rstream_sysctl_net_exit(struct rstream_net *rn);

/*
 * The caller checks privileges.  Return: 0, -ENOENT: no such setting, -EPERM: the setting is
 * read-only, -ERANGE: @val is out of range, -EINVAL: @val is not a power of two.
 */
int rstream_setting_set(struct net *net, const char *name, u64 val);

#endif
