/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who pays for what the links of a namespace are made of: peers, links, rings, RMBs.  Many
 * sockets share them, so it is the first socket's memory control group, for all of them, and
 * when that group is gone the next socket's.  The initial namespace is the host's own: its
 * bounds are the settings, and nobody is charged.
 *
 * What does not fit into the group is not had: at its limit none of its programs is killed
 * for a link, and none goes beyond it; streams stay on TCP.
 */
#ifndef RSTREAM_ACCOUNT_H
#define RSTREAM_ACCOUNT_H

#include "link_priv.h"

struct rstream_account {
	struct mem_cgroup *memcg;	/* is charged, or NULL */
	struct mem_cgroup *outer;	/* who was before */
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

/* Between the two all that is allocated with @account->gfp is charged.  Any context. */
void rstream_account_on(struct rstream_account *account, const struct rstream_link_net *ln,
			gfp_t gfp);
void rstream_account_off(struct rstream_account *account);

/*
 * Between them: is there still memory for the programs of who pays?  Tried, not computed:
 * what can be reclaimed is no obstacle.  May sleep.
 */
bool rstream_account_leaves(const struct rstream_account *account);

/* As kzalloc(). */
void *rstream_account_zalloc(const struct rstream_link_net *ln, size_t size, gfp_t gfp);

#endif
