/* SPDX-License-Identifier: GPL-2.0-only */
/* From the TCP option to HELLO: has the connection records, and what is the peer? */
#ifndef RSTREAM_HANDSHAKE_H
#define RSTREAM_HANDSHAKE_H

#include <linux/types.h>

#include "base/stats.h"
#include "link/link.h"

struct rstream;
struct rstream_hello;
struct socket;

/*
 * So long, ms, a server waits for a HELLO although nothing has confirmed the option:
 * one that comes later is reset, so for longer than TCP waits to send it again.
 */
#define RSTREAM_UNCONFIRMED_MS	250U

/* The two HELLOs of a connection. */
struct rstream_handshake {
	struct rstream_peer *peer;	/* from the peer's, referenced; NULL: none */
	struct rstream_peer_name name;	/* its instance, addresses of the connection */
	u32 end;		/* TCP sequence number behind ours */
	u16 cm_port;		/* of the peer's, host order */
	u8 late;		/* so often the timer was over, and the peer's is what is missing */
	bool in;		/* the peer's has been read, or none will come */
	bool urg;		/* the peer understands URG */
	bool plain;		/* both understand PLAIN, and began with a prelude */
	u8 no_peer;		/* enum rstream_reason: why @peer is NULL */
	bool may_speak;		/* no CONFIRM was seen, and no HELLO has come for a while */
	bool guard;		/* FALLBACK, but a late HELLO must be noticed before it is read */
};

/* All with the socket held. */
void rstream_established(struct rstream *rs, bool option);
void rstream_asked(struct rstream *rs);
void rstream_peek(struct rstream *rs);
void rstream_framed_early(struct rstream *rs);
void rstream_fall_back(struct rstream *rs, enum rstream_reason reason);
void rstream_hear_all(struct rstream *rs);
bool rstream_hello_waits(const struct rstream *rs);	/* without the lock, too */
bool rstream_hello_wait_on(struct rstream *rs);
void rstream_hello_wait(struct rstream *rs);
unsigned int rstream_hello_put(struct rstream *rs, u8 *to);
enum rstream_reason rstream_hello_got(struct rstream *rs,
				      const struct rstream_hello *hello);
void rstream_hello_late(struct rstream *rs);

/* A call of a program has found that the connection is TCP's.  Held. */
void rstream_swap_ops(struct rstream *rs, struct socket *sock);

#endif
