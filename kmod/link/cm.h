/* SPDX-License-Identifier: GPL-2.0-only */
/* The connection manager: connects, accepts and disconnects links. */
#ifndef RSTREAM_CM_H
#define RSTREAM_CM_H

#include "link_priv.h"

/* All in process context. */
int rstream_cm_connect(struct rstream_link *link,
		       const struct rstream_peer_route *route);
void rstream_cm_setup_work(struct work_struct *work);
void rstream_cm_disconnect(struct rstream_link *link);
void rstream_cm_destroy(struct rstream_link *link);
int rstream_cm_listen(struct rstream_link_net *ln);
void rstream_cm_unlisten(struct rstream_link_net *ln);

#endif
