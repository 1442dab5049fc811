/* SPDX-License-Identifier: GPL-2.0-only */
/* Getting the TCP option into segments and seeing it in them. */
#ifndef RSTREAM_OPTION_HOOK_H
#define RSTREAM_OPTION_HOOK_H

#include <linux/types.h>

#include "protocol/option.h"

struct dst_entry;
struct inet_connection_sock_af_ops;
struct net;
struct request_sock;
struct rstream;
struct sk_buff;
struct tcphdr;

/* What the options of a connection say, and agree on.  Set by connect(), and from SYN, SYN-ACK. */
struct rstream_offer {
	u64 nonce;		/* of the client's option */
	u64 answer;		/* of the server's */
	u64 confirm;		/* of its CONFIRM: rstream_role_nonce(); of a client */
	bool mapped;		/* IPv6 socket that connects to a v4-mapped address */
	bool confirmed;		/* the peer's was seen: in the SYN-ACK, or as CONFIRM */
	bool prelude;		/* both: begin without records; not connected: offer that */
};

/**
 * rstream_option_client() - our SYN and first segments shall carry the option
 * @rs:	the stream that is about to connect
 *
 * Context: held, before (and for v4-mapped addresses once more after) TCP's
 * connect.
 */
void rstream_option_client(struct rstream *rs);

/**
 * rstream_role_nonce() - what a CONFIRM or a HELLO of a connection states
 * @rs:	the stream, its options agree
 * @role: RSW_ROLE_CONFIRM, or that of the HELLO
 *
 * It depends on both nonces.  A program does not know its own host's nonce, which is only
 * sent, so it can't write a HELLO into its prelude and be taken for its kernel.
 */
u64 rstream_role_nonce(const struct rstream *rs, u8 role);

/* Put connection ops of ours in place of TCP's, and TCP's back.  Context: held. */
void rstream_option_on(struct rstream *rs, const struct inet_connection_sock_af_ops *ours);
void rstream_option_off(struct rstream *rs);

/* May the SYN of a client go with the option by this route?  If not rstream.reason says why. */
bool rstream_route_serves(struct rstream *rs, const struct dst_entry *dst);

/* Segments.  An skb to which the option is added may start with an IP header. */
bool rstream_opt_insert(struct sk_buff *skb, const struct rstream_opt *opt);
enum rstream_opt_found rstream_opt_of_header(const struct tcphdr *th, struct rstream_opt *opt);
void rstream_option_client_init(void);

/**
 * rstream_option_listen() - answer SYNs that have the option
 * @rs:	the listener
 *
 * The first listener of a namespace registers its LOCAL_OUT hook, may sleep.
 */
int rstream_option_listen(struct rstream *rs);
void rstream_option_unlisten(struct rstream *rs);

/* The hook of a namespace; may sleep. */
int rstream_hook_get(struct net *net);
void rstream_hook_put(struct net *net);

/* Does the SYN that made this request carry a client's option? */
bool rstream_syn_option(const struct request_sock *req, struct rstream_opt *opt);

#endif
