/* SPDX-License-Identifier: GPL-2.0-only */
/* Adding the TCP option to segments, and finding it in them. */
#ifndef RSTREAM_OPTION_HOOK_H
#define RSTREAM_OPTION_HOOK_H

#include <linux/types.h>

#include "protocol/option.h"

struct dst_entry;
struct inet_connection_sock_af_ops;
struct net;
struct rstream;
struct sk_buff;
struct sock;
struct tcphdr;

/* Has the peer seen our option? */
enum rstream_confirmed {
	RSTREAM_UNCONFIRMED,
	RSTREAM_UNHEARD,	/* not known, but the server need not wait for HELLO any more */
	RSTREAM_CONFIRMED,	/* client: SYN-ACK had the answer; server: CONFIRM has arrived */
};

/* The options of a connection, and what they agree on.  Set by connect(), SYN and SYN-ACK. */
struct rstream_offer {
	u64 nonce;		/* in the client's option */
	u64 answer;		/* in the server's option */
	u64 confirm;		/* client: in its CONFIRM, from rstream_role_nonce() */
	bool mapped;		/* IPv6 socket that connects to a v4-mapped address */
	u8 confirmed;		/* enum rstream_confirmed; read locklessly */
	bool prelude;		/* begin with a prelude; before the SYN-ACK: we offer that */
};

/**
 * rstream_option_client() - make our SYN and first segments carry the option
 * @rs:	the stream that is about to connect
 *
 * Context: held, before TCP's connect; for v4-mapped addresses, only after it.
 */
void rstream_option_client(struct rstream *rs);

/**
 * rstream_role_nonce() - the nonce in a CONFIRM or HELLO of a connection
 * @rs:	the stream, after both options
 * @role: RSW_ROLE_CONFIRM, or that of the HELLO
 *
 * It depends on the nonces of both options.  No program can see the server's, so none can write
 * a HELLO into its prelude and impersonate its kernel.
 */
u64 rstream_role_nonce(const struct rstream *rs, u8 role);

/* Replace TCP's connection ops by ours, and restore them.  Context: held. */
void rstream_option_client_on(struct rstream *rs, const struct inet_connection_sock_af_ops *ours);
void rstream_option_client_off(struct rstream *rs);

/* May a client's SYN have the option on this route?  If not, rstream.reason says why. */
bool rstream_option_client_serves(struct rstream *rs, const struct dst_entry *dst);

/* Segments.  An skb to which the option is added may start with an IP header. */
bool rstream_option_client_insert(struct sk_buff *skb, const struct rstream_opt *opt);
enum rstream_opt_found rstream_option_client_find(const struct tcphdr *th, struct rstream_opt *opt);
void rstream_option_client_init(void);

/**
 * rstream_option_server_listen() - answer SYNs that have the option
 * @rs:	the listener
 *
 * The first listener of a namespace registers its LOCAL_OUT hook.  May sleep.
 */
int rstream_option_server_listen(struct rstream *rs);
void rstream_option_server_unlisten(struct rstream *rs);

/**
 * rstream_listener_ours() - do all connections of a listener reach its program through us?
 * @sk:	the listener
 *
 * If not, none may have records.
 */
bool rstream_listener_ours(const struct sock *sk);

/* References to the hook of a namespace; may sleep. */
int rstream_option_server_get(struct net *net);
void rstream_option_server_put(struct net *net);

#endif
