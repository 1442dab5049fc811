/* SPDX-License-Identifier: GPL-2.0-only */
/* Totals of the peers at one address.  All with ln->lock held. */
#ifndef RSTREAM_PEER_HOST_H
#define RSTREAM_PEER_HOST_H

#include "link_priv.h"

/* The host with the address of @name, or NULL without memory.  For rstream_host_put(). */
struct rstream_host *rstream_host_get(struct rstream_link_net *ln,
				      const struct rstream_peer_name *name);
void rstream_host_put(struct rstream_link_net *ln, struct rstream_host *host);

/* One more, if that is allowed; and one less. */
bool rstream_host_add_peer(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_peer(struct rstream_link_net *ln, struct rstream_host *host);
bool rstream_host_add_link(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_link(struct rstream_link_net *ln, struct rstream_host *host);

#endif
