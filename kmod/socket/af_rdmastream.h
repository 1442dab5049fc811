/* SPDX-License-Identifier: GPL-2.0-only */
/* Socket family, socket protocol, and our proto_ops. */
#ifndef RSTREAM_AF_RDMASTREAM_H
#define RSTREAM_AF_RDMASTREAM_H

#include <linux/net.h>

extern const struct proto_ops rstream_proto_ops;

/* TCP's ops for a socket that is, or was, ours. */
const struct proto_ops *rstream_ops_of(const struct socket *sock);

#endif
