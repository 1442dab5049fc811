/* SPDX-License-Identifier: GPL-2.0-only */
/* A stream on its TCP socket. */
#ifndef RSTREAM_ULP_H
#define RSTREAM_ULP_H

#include <linux/net.h>

struct rstream;
struct sock;

/**
 * rstream_attach() - hang a stream on a TCP socket, until TCP destroys that
 * @rs:		new
 * @sk:		of no program, or of the caller alone
 * @tcp_ops:	TCP's for this socket
 */
void rstream_attach(struct rstream *rs, struct sock *sk, const struct proto_ops *tcp_ops);

/* From now on TCP calls us.  Held. */
void rstream_hook_callbacks(struct rstream *rs);

/* As after socket().  Held. */
void rstream_reset_state(struct rstream *rs);

#endif
