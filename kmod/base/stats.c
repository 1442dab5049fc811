// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of a namespace.  All parts of the module count (net.h), and netlink.c reads them.
 *
 * Each CPU has its own copy, written with this_cpu_add(), which is atomic with respect to
 * interrupts, so any context may count.  Readers add up the copies without a lock, so a sum may
 * miss concurrent changes.
 */
#include <linux/percpu.h>

#include "net.h"
#include "stats.h"

u64 rstream_mib_sum(struct net *net, enum rstream_mib_item item)
{
	struct rstream_mib __percpu *mib = rstream_net(net)->mib;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(mib, cpu)->item[item]);
	return sum;
}

u64 rstream_mib_reason_sum(struct net *net, enum rstream_reason reason)
{
	struct rstream_mib __percpu *mib = rstream_net(net)->mib;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(mib, cpu)->reason[reason]);
	return sum;
}

u64 rstream_mib_switched_sum(struct net *net, enum rstream_reason reason)
{
	struct rstream_mib __percpu *mib = rstream_net(net)->mib;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(mib, cpu)->switched[reason]);
	return sum;
}

int rstream_mib_net_init(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);

	rn->mib = alloc_percpu_gfp(struct rstream_mib, GFP_KERNEL_ACCOUNT);
	return rn->mib ? 0 : -ENOMEM;
}

void rstream_mib_net_exit(struct net *net)
{
	struct rstream_net *rn = rstream_net(net);

	free_percpu(rn->mib);
	rn->mib = NULL;
}
