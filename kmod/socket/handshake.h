/* SPDX-License-Identifier: GPL-2.0-only */
/* From the TCP option to HELLO: does the connection have records, and who is the peer? */
#ifndef RSTREAM_HANDSHAKE_H
#define RSTREAM_HANDSHAKE_H

#include <linux/types.h>
#include <net/sock.h>

#include "base/stats.h"
#include "link/link.h"

struct rstream;
struct rstream_hello;
struct socket;

/*
 * How long, ms, a server whose option was not confirmed waits for a HELLO before its program may
 * send.  A later HELLO is reset, so this is longer than TCP takes to retransmit one.
 */
#define RSTREAM_UNCONFIRMED_MS	250U

/* The two HELLOs of a connection. */
struct rstream_handshake {
	struct rstream_peer *peer;	/* that the peer's names, referenced; NULL: none */
	struct rstream_waiter *waiter;	/* for links, see struct rstream_link_ops; peer->lock */
	struct rstream_peer_name name;	/* its instance, addresses of the connection */
	u32 end;		/* TCP sequence number after ours */
	u16 cm_port;		/* in the peer's, host order */
	u8 late;		/* how often the timer has expired while we waited for the peer's */
	bool in;		/* the peer's has been read, or none will come */
	bool urg;		/* the peer understands URG */
	bool plain;		/* both understand PLAIN, and began with a prelude */
	u8 no_peer;		/* enum rstream_reason: why @peer is NULL */
};

/* The interface of a connection's link-local addresses. */
static inline int rstream_link_local_dev(const struct sock *sk)
{
	return sk->sk_bound_dev_if ?: sk->sk_rx_dst_ifindex;
}

/* All with the socket held. */
void rstream_established(struct rstream *rs, bool option);
void rstream_asked(struct rstream *rs);
void rstream_peek(struct rstream *rs);
void rstream_framed_early(struct rstream *rs);
void rstream_fall_back(struct rstream *rs, enum rstream_reason reason);
void rstream_fall_back_guarded(struct rstream *rs, enum rstream_reason reason);
void rstream_guard_end(struct rstream *rs);
void rstream_hear_all(struct rstream *rs);
bool rstream_hello_waits(const struct rstream *rs);	/* without the lock, too */

/*
 * Has the program shut down its receiving direction before the mode was decided?  Later, TCP's bit
 * is the peer's FIN.  Without the lock, too.
 */
bool rstream_early_shut(const struct sock *sk);
void rstream_hello_unheard(struct rstream *rs);
bool rstream_hello_wait_on(struct rstream *rs);
void rstream_hello_wait(struct rstream *rs);
unsigned int rstream_hello_put(struct rstream *rs, u8 *to);
enum rstream_reason rstream_hello_got(struct rstream *rs,
				      const struct rstream_hello *hello);
void rstream_hello_late(struct rstream *rs);

/* When a program's call finds that the connection is TCP's.  Held. */
void rstream_swap_ops(struct rstream *rs, struct socket *sock);

#endif
