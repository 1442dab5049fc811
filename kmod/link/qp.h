/* SPDX-License-Identifier: GPL-2.0-only */
/* Queue pair and completion queues of a link. */
#ifndef RSTREAM_QP_H
#define RSTREAM_QP_H

#include "link_priv.h"

/* Number of completions to request from ib_poll_cq() at once. */
#define RSTREAM_POLL_BATCH	16

int rstream_qp_init(void);
void rstream_qp_exit(void);

/* All may sleep.  Only link->cm.setup_work creates the queue pair. */
int rstream_qp_create(struct rstream_link *link);
void rstream_qp_query(struct rstream_link *link);
bool rstream_qp_is_new(struct rstream_link *link);
void rstream_qp_drain(struct rstream_link *link);
void rstream_qp_destroy(struct rstream_link *link);

#endif
