/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue pair, completion queues and work requests of a link.
 */
#ifndef RSTREAM_VERBS_H
#define RSTREAM_VERBS_H

#include "link_priv.h"

/* Devices: known to ib_core and good enough for links. */
int rstream_verbs_init(void);
void rstream_verbs_exit(void);
int rstream_verbs_attach(struct rstream_link *link, struct ib_device *ib);
void rstream_verbs_detach(struct rstream_link *link);

/* May sleep; link->setup_lock held for create. */
int rstream_verbs_create(struct rstream_link *link);
void rstream_verbs_query(struct rstream_link *link);
void rstream_verbs_drain(struct rstream_link *link);
void rstream_verbs_destroy(struct rstream_link *link);

/*
 * Building and posting, all with link->lock held: begin a work request, add
 * SGEs to it, repeat, post.  rstream_verbs_free() says how many may be begun.
 */
unsigned int rstream_verbs_free(const struct rstream_link *link);
void rstream_verbs_write(struct rstream_link *link, u64 raddr, u32 rkey);
void rstream_verbs_write_imm(struct rstream_link *link, u64 raddr, u32 rkey,
			     enum rstream_imm_type type, u32 id);
void rstream_verbs_retype(struct rstream_link *link, enum rstream_imm_type type);
void rstream_verbs_reg(struct rstream_link *link, struct ib_mr *mr);
void rstream_verbs_sge(struct rstream_link *link, u64 addr, u32 len);
void rstream_verbs_credit(struct rstream_link *link, u64 value);
void rstream_verbs_signal(struct rstream_link *link);
void rstream_verbs_mark(struct rstream_link *link);
int rstream_verbs_post(struct rstream_link *link);

unsigned int rstream_verbs_addrs(struct net *net, struct rstream_addr *to,
				 unsigned int max);
bool rstream_verbs_map(struct rstream_link *link, struct rstream_frag *frag);
void rstream_verbs_unmap(struct rstream_frag *frag);

#endif
