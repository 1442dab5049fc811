/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers, links, rings and RMBs of a namespace are charged to a memory control group.  Many
 * sockets share them, so the group of the first socket that may use them is charged.  When that
 * group is gone, its parent is charged until another socket offers its group.  In the initial
 * namespace, which belongs to the host, only the settings limit the memory, and no group is
 * charged.
 *
 * Nothing is allocated beyond the limit of the group, or while it is above memory.high or
 * memory.swap.high, and the total is only a part of the limit.  So links never cause an OOM
 * kill: streams stay on TCP instead.
 */
#ifndef RSTREAM_ACCOUNT_H
#define RSTREAM_ACCOUNT_H

#include "link_priv.h"

struct rstream_account {
	struct mem_cgroup *memcg;	/* the group to charge, or NULL */
	struct mem_cgroup *outer;	/* the group that was charged before */
	gfp_t gfp;			/* flags for charged allocations */
};

/**
 * rstream_account_to() - a socket starts to use the links of its namespace
 * @ln:		links of that namespace
 * @memcg:	the socket's group, or NULL
 *
 * Context: any.
 */
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg);

/* Called when the namespace is removed and everything charged has been freed. */
void rstream_account_end(struct rstream_link_net *ln);

/*
 * Between the two calls, allocations with @account->gfp are charged to the group.  Return: false
 * if the group is short of memory; then rstream_account_off() must not be called.  Any context.
 */
bool rstream_account_on(struct rstream_account *account, const struct rstream_link_net *ln,
			gfp_t gfp);
void rstream_account_off(struct rstream_account *account);

/*
 * Called between the two: would another @size bytes leave the group memory for its programs?
 * Reads the counters and allocates nothing.  Any context.
 */
bool rstream_account_leaves(const struct rstream_account *account, size_t size);

/*
 * Limit on the RMBs of a namespace, bytes: the setting rmb_max, or an eighth of the limit of the
 * group (memory.max, memory.high, also its parents') if that is less.  Any context.
 */
unsigned long rstream_account_rmb_max(const struct rstream_link_net *ln);

/*
 * Limit on the number of objects of @each bytes: @most, or fewer if these would exceed a
 * thirty-second of the limit of the group.  Any context.
 */
unsigned int rstream_account_most(const struct rstream_link_net *ln, unsigned int most,
				  size_t each);

/* As kzalloc(). */
void *rstream_account_zalloc(const struct rstream_link_net *ln, size_t size, gfp_t gfp);

#endif
