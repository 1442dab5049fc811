/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers, links, attempts and requests for each remote address.  All with ln->lock held. */
#ifndef RSTREAM_PEER_HOST_H
#define RSTREAM_PEER_HOST_H

#include "link_priv.h"

/* Return: the host at the address of @name, referenced, or NULL if out of memory. */
struct rstream_host *rstream_host_get(struct rstream_link_net *ln,
				      const struct rstream_peer_name *name);
void rstream_host_put(struct rstream_link_net *ln, struct rstream_host *host);

/* Count one more, if that is allowed, or one less. */
bool rstream_host_add_peer(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_peer(struct rstream_link_net *ln, struct rstream_host *host);
bool rstream_host_add_link(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_link(struct rstream_link_net *ln, struct rstream_host *host);
bool rstream_host_add_attempt(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_attempt(struct rstream_link_net *ln, struct rstream_host *host);
bool rstream_host_add_request(struct rstream_link_net *ln, struct rstream_host *host);
void rstream_host_del_request(struct rstream_link_net *ln, struct rstream_host *host);

/* A link that @host has requested has ended young. */
void rstream_host_add_young(struct rstream_link_net *ln, const struct rstream_host *host);

/* An attempt to an address from a HELLO, if that is allowed in this second. */
bool rstream_host_add_named(struct rstream_link_net *ln, struct rstream_host *host);

#endif
