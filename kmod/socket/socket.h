/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interface of socket/ for the rest of the module: the only header that others include.
 */
#ifndef RSTREAM_SOCKET_H
#define RSTREAM_SOCKET_H

#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/net.h"
#include "stream_info.h"

struct rstream_link_ops;

extern int rstream_family;		/* number in use, module parameter */
extern const struct rstream_link_ops rstream_ring_ops;	/* callbacks of links */

int rstream_stream_init(void);
void rstream_stream_exit(void);
void rstream_stream_net_init(struct rstream_net *rn);
void rstream_option_server_init(void);
void rstream_option_server_net_init(struct rstream_net *rn);
void rstream_option_server_net_exit(struct rstream_net *rn);
int rstream_af_init(void);
void rstream_af_exit(void);

/* Links of the namespace, or whether there may be any, have changed.  Process context. */
void rstream_links_changed(struct net *net);

/**
 * rstream_make_link() - request a link to a socket's peer, for an administrator
 * @net:	namespace of the caller
 * @inode:	of the socket
 * @any_user:	the caller may do this for sockets of other users
 *
 * Return: 0, -ENOENT no such socket, -ENOTCONN it has no records, -EPERM.
 */
int rstream_make_link(struct net *net, u64 inode, bool any_user);

#endif
