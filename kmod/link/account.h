/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers, links, rings and RMBs of a namespace are charged to a memory control group.  Many
 * sockets share them, so it is the group of the first socket that may use them, and once that
 * group is gone, the next socket's.  The initial namespace is the host's own: the settings
 * bound it, and no group is charged.
 *
 * Nothing is allocated beyond the limit of the group, nor above its memory.high, and all of it
 * is but a part of the limit, so that no process is killed for a link: the streams stay on TCP.
 */
#ifndef RSTREAM_ACCOUNT_H
#define RSTREAM_ACCOUNT_H

#include "link_priv.h"

struct rstream_account {
	struct mem_cgroup *memcg;	/* is charged, or NULL */
	struct mem_cgroup *outer;	/* the group that was charged before */
	gfp_t gfp;			/* how to allocate */
};

/**
 * rstream_account_to() - a socket begins to use the links of its namespace
 * @ln: of that namespace
 * @memcg: the socket's, or NULL
 *
 * Context: any.
 */
void rstream_account_to(struct rstream_link_net *ln, struct mem_cgroup *memcg);

/* The namespace ends, and all that was charged has been freed. */
void rstream_account_end(struct rstream_link_net *ln);

/*
 * Between the two all that is allocated with @account->gfp is charged.  Return: false: there
 * is no memory, and no rstream_account_off().  Any context.
 */
bool rstream_account_on(struct rstream_account *account, const struct rstream_link_net *ln,
			gfp_t gfp);
void rstream_account_off(struct rstream_account *account);

/*
 * Between them: does the group have memory left for its programs?  Allocates it for a
 * moment, since memory that can be reclaimed is no obstacle.  May sleep.
 */
bool rstream_account_leaves(const struct rstream_account *account);

/*
 * Ceiling of the RMBs of a namespace, bytes: the setting rmb_max, or less, if that is more
 * than an eighth of what the group is limited to (memory.max, memory.high, also its
 * parents').  Any context.
 */
unsigned long rstream_account_rmb_max(const struct rstream_link_net *ln);

/*
 * How many of what takes @each bytes there may be: @most, or fewer where that were more than
 * a thirty-second of what the group is limited to.  Any context.
 */
unsigned int rstream_account_most(const struct rstream_link_net *ln, unsigned int most,
				  size_t each);

/* As kzalloc(). */
void *rstream_account_zalloc(const struct rstream_link_net *ln, size_t size, gfp_t gfp);

#endif
