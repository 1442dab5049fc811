/* SPDX-License-Identifier: GPL-2.0-only */
/* A stream on its TCP socket. */
#ifndef RSTREAM_ULP_H
#define RSTREAM_ULP_H

#include <linux/net.h>

struct rstream;
struct sock;

/**
 * rstream_attach() - attach a stream to a TCP socket, until TCP destroys that
 * @rs:		a new stream
 * @sk:		no program has it, or only the caller
 * @tcp_ops:	TCP's for this socket
 */
void rstream_attach(struct rstream *rs, struct sock *sk, const struct proto_ops *tcp_ops);

/* Install our callbacks.  Held. */
void rstream_ulp_hook(struct rstream *rs);

/* Back to the state after socket().  Held. */
void rstream_reset_state(struct rstream *rs);

#endif
