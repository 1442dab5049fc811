/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state that we attach to a TCP socket: struct rstream.
 *
 * Our sockets *are* TCP sockets.  The struct socket has our proto_ops, and the struct sock
 * carries a struct rstream as upper-layer protocol data (icsk_ulp_data), as kTLS does.  So all
 * options, addresses, errors and wait queues are TCP's, and `ss`, cgroups and LSMs see an
 * ordinary TCP socket.  If a connection becomes plain TCP, we give the struct socket back to
 * TCP's own proto_ops and are out of the way.
 *
 * Lock: everything in struct rstream is protected by the lock of its sock in one of its two
 * forms, "held" below: owned by a process (lock_sock), or its spinlock taken in softirq while
 * no process owns it.  Comments say what is read without it.  See Documentation/locking.rst.
 */
#ifndef RSTREAM_STREAM_H
#define RSTREAM_STREAM_H

#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "base/net.h"
#include "link/link.h"
#include "protocol/carrier.h"
#include "protocol/record.h"
#include "af_rdmastream.h"
#include "carrier_leave.h"
#include "carrier_ring.h"
#include "carrier_tcp.h"
#include "flush.h"
#include "handshake.h"
#include "ipsec.h"
#include "option_hook.h"
#include "plain.h"
#include "plain_recv.h"
#include "probe.h"
#include "rxq.h"
#include "socket.h"
#include "stream_close.h"
#include "stream_opt.h"
#include "stream_page.h"
#include "stream_recv.h"
#include "stream_splice.h"
#include "stream_stats.h"
#include "stream_send.h"
#include "stream_urg.h"
#include "txq.h"
#include "ulp.h"

/*
 * What a connection is at the moment; changed by rstream_set_mode() only.
 *
 *	IDLE ----connect----> CONNECTING ---> FRAMED
 *	 |                        +---------> FALLBACK
 *	 +--connect, no option--------------> FALLBACK
 *	 +-------listen-----> LISTEN
 *	 accepted child:      ASKED --------> FRAMED
 *	                        +-----------> FALLBACK
 *	                        +-> GUARDED ----^
 *
 * FRAMED: records in both directions, the carriers may change; it may begin with a prelude
 * without records (plain.c).  FALLBACK: plain TCP.  GUARDED: likewise, but a HELLO
 * may still arrive.
 */
enum rstream_mode {
	RSTREAM_IDLE,
	RSTREAM_LISTEN,
	RSTREAM_CONNECTING,	/* our SYN carries the option */
	RSTREAM_ASKED,		/* the client's SYN had the option; we wait for its HELLO */
	RSTREAM_FRAMED,
	RSTREAM_GUARDED,	/* plain TCP, but the program must not read a late HELLO */
	RSTREAM_FALLBACK,	/* plain TCP for good */
};

/* Bits of rstream.todo: what the worker has to do; set in any context. */
enum rstream_todo {
	RSTREAM_DO_PUSH,	/* move queued bytes and records */
	RSTREAM_DO_GRANT,	/* see whether a ring can be granted now */
	RSTREAM_DO_LATER,	/* ... in a while: there was no link, or no memory */
	RSTREAM_DO_CREDIT,	/* the sender waits for credit */
	RSTREAM_DO_LINK,	/* an administrator requests a link */
	RSTREAM_DO_IDLE,	/* our ring has not been used for a long time */
	RSTREAM_DO_BUSY,	/* another link would be useful */
	RSTREAM_DO_MOVE,	/* our ring should move to another link */
	RSTREAM_DO_LOOK,	/* routes or IPsec policies have changed */
	RSTREAM_DO_RESET,	/* rstream.reason says why */
	RSTREAM_DO_TIMEOUT,	/* the timer has expired */
	RSTREAM_DO_CLOSE,	/* the program has closed: finish */
};

/* When to retry what failed for lack of memory, and what the program has to change first; ms. */
#define RSTREAM_RETRY_MS	10
#define RSTREAM_PATIENT_MS	250

/* The state of one socket.  Each part belongs to the file whose header explains it. */
struct rstream {
	/* of the socket */
	struct sock *sk;		/* the TCP socket; lives until rstream_ulp_release() */
	struct rstream_net *rn;		/* of its namespace */
	refcount_t ref;			/* one for the socket, one for each queued work */
	u8 mode;			/* enum rstream_mode; read locklessly to choose a path,
					 * then again with the lock held
					 */
	u8 reason;			/* enum rstream_reason: why FALLBACK, why not on a ring, why
					 * reset
					 */
	bool accepted;			/* a program has (had) it: it may be owned by lock_sock() */
	u8 late;			/* how often @work has found the socket owned; if not 0,
					 * @work holds the module.  Written by @work only
					 */
	bool eager;			/* the program wants no prelude */
	u8 user_save_syn;		/* the program's own TCP_SAVE_SYN on a listener */
	bool abort_late;		/* the socket was owned when @abort_work ran */
	const struct proto_ops *tcp_ops;	/* TCP's for this socket */
	const struct inet_connection_sock_af_ops *af_ops;	/* TCP's, while ours are in place */
	const struct inet_connection_sock_af_ops *our_ops;	/* ours, if @af_ops */
	struct rstream_rules *rules;	/* with whom to negotiate; NULL: with all.  Changed only
					 * while IDLE, with the lock held
					 */
	unsigned long todo;		/* bits of enum rstream_todo (atomic) */
	struct delayed_work work;	/* does what @todo says, in process context; holds a @ref
					 * while queued
					 */
	struct work_struct abort_work;	/* tcp_abort(), likewise */
	struct timer_list timer;	/* for HELLO, rings, and close(): see work_timeout() */
	struct timer_list retry_timer;	/* to push and parse again, see rstream_retry() */
	struct hlist_node number_node;	/* in rstream_net.numbered, under its streams_lock */
	struct hlist_nulls_node token_node;	/* in rstream_net.tokens, likewise */
	u64 number;			/* of the namespace's streams, from 1 */
	struct rstream_hist *hist;	/* NULL until "histograms" was on; freed with it */
	struct rcu_head rcu;		/* frees it after lockless readers */

	struct_group(connection,
		     /* of one connection: zeroed by rstream_reset_state() */
		bool server;		/* the accepting side */
		u8 shutdown;		/* the program's RCV_SHUTDOWN, SEND_SHUTDOWN if FRAMED */
		u16 error;		/* positive errno that the program gets for a reset */
		u32 shut_seq;		/* TCP's rcv_nxt when @shutdown became both */
		unsigned long want;	/* bits of enum rstream_want */
		u64 reported;		/* bytes that TCP_INFO has reported as acknowledged */
		struct rstream_tx tx;	/* carrier and offsets of what we send */
		struct rstream_rx rx;	/* and of what we receive */
		struct rstream_txring *txring;	/* that we write to; NULL: none */
		struct rstream_rxring *rxring;	/* that we granted; freed by RCU, for poll() */

		struct rstream_txq txq;
		struct rstream_zerocopy zc;
		struct rstream_out out;
		struct rstream_probe probe;
		struct rstream_taken taken;
		struct rstream_route route;
		struct rstream_rxq rxq;
		struct rstream_in in;
		struct rstream_granted granted;
		struct rstream_leave leave;
		struct rstream_urg urg;
		struct rstream_plain plain;
		struct rstream_plain_rx plain_rx;
		struct rstream_closing close;
		struct rstream_stream_stats stats;

		struct rstream_offer offer;
		struct rstream_handshake hello;
		struct rstream_ticket ticket;	/* of the two HELLOs; theirs.token by
						 * smp_store_release(), last
						 */
	);

	/* not zeroed: out.ctl_len and in.part_len say how much is valid */
	u8 ctl[RSTREAM_CTL_SPACE];	/* record bytes on their way to TCP */
	u8 part[RSW_HELLO_MAX];		/* a header or payload that has arrived only in part */
};

extern struct tcp_ulp_ops rstream_ulp_ops;

/**
 * rstream_of() - our state of a socket, NULL if it is not one of ours
 * @sk:	any TCP socket
 *
 * Context: socket held, or the caller has a program's reference to it.
 */
static inline struct rstream *rstream_of(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	if (READ_ONCE(icsk->icsk_ulp_ops) != &rstream_ulp_ops)
		return NULL;
	return (__force struct rstream *)rcu_access_pointer(icsk->icsk_ulp_data);
}

static inline int rstream_mode(const struct rstream *rs)
{
	return READ_ONCE(rs->mode);
}

/* Is it plain TCP, without a prelude? */
static inline bool rstream_fell_back(const struct rstream *rs)
{
	return rstream_mode(rs) >= RSTREAM_GUARDED;
}

/*
 * Are there records in TCP's queue, or can there be?  May be called without the lock, so it reads
 * the mode once: ASKED may become FRAMED between two reads, which would then miss both.
 */
static inline bool rstream_may_have_records(const struct rstream *rs)
{
	int mode = rstream_mode(rs);

	return mode == RSTREAM_FRAMED || mode == RSTREAM_ASKED || mode == RSTREAM_GUARDED;
}

/* The value of tcp_sock.bytes_acked when all that TCP has now will be acknowledged. */
static inline u64 rstream_tcp_acked_at(const struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	return tp->bytes_acked + (tp->write_seq - tp->snd_una);
}

/* Has the program closed it, so that we finish alone?  Without the lock, too. */
static inline bool rstream_closed(const struct rstream *rs)
{
	return READ_ONCE(rs->close.state) >= RSTREAM_CLOSED;
}

/* Was the sock given to TCP, and has no struct socket any more?  Then don't touch it. */
static inline bool rstream_released(const struct rstream *rs)
{
	return READ_ONCE(rs->close.state) == RSTREAM_RELEASED;
}

/* Has close() begun? */
static inline bool rstream_closing(const struct rstream *rs)
{
	return READ_ONCE(rs->close.state) != RSTREAM_OPEN;
}

/*
 * Is data that ends at @seq on TCP answered with a reset, as TCP does?  After close(), and if it
 * has arrived after both directions were shut down.
 */
static inline bool rstream_refuses(const struct rstream *rs, u32 seq)
{
	return rstream_closing(rs) ||
	       (rs->shutdown == SHUTDOWN_MASK && after(seq, rs->shut_seq));
}

/* Do we send without records, so that HELLO is still to be sent? */
static inline bool rstream_tx_plain(const struct rstream *rs)
{
	return READ_ONCE(rs->plain.phase.tx) != RSTREAM_RECORDS;
}

/* Does the peer send without records, until its next HELLO? */
static inline bool rstream_rx_plain(const struct rstream *rs)
{
	return READ_ONCE(rs->plain.phase.rx) != RSTREAM_RECORDS;
}

/* The last fragment of the transmit queue, or NULL. */
static inline struct rstream_frag *rstream_txq_tail(const struct rstream *rs)
{
	return list_empty(&rs->txq.frags) ? NULL :
	       list_last_entry(&rs->txq.frags, struct rstream_frag, list);
}

/* Is the setting "histograms" on?  See stream_stats.c. */
static inline bool rstream_hist_on(const struct rstream *rs)
{
	return READ_ONCE(rs->rn->set.histograms);
}

/* Do both directions have records, so that nothing is left in TCP's queue on purpose? */
static inline bool rstream_all_records(const struct rstream *rs)
{
	return !rstream_tx_plain(rs) && !rstream_rx_plain(rs) &&
	       rs->in.left != RSTREAM_LEFT_UNREAD;
}

/* Does the program want to know when bytes arrived? */
static inline bool rstream_rx_timed(const struct rstream *rs)
{
	return sock_flag(rs->sk, SOCK_TIMESTAMP) ||
	       sock_flag(rs->sk, SOCK_TIMESTAMPING_RX_SOFTWARE);
}

/* May a call sleep for @timeo?  Return: 0 or the errno with which it ends. */
static inline int rstream_may_sleep(long timeo)
{
	if (!timeo)
		return -EAGAIN;
	return signal_pending(current) ? sock_intr_errno(timeo) : 0;
}

/* Assert "held" in either form. */
static inline void rstream_assert_held(const struct rstream *rs)
{
	sock_owned_by_me(rs->sk);
}

/* Abort the connection; stream.c. */
void rstream_queue_abort(struct rstream *rs);
void rstream_abort_wait(struct rstream *rs);
void rstream_abort_lock(struct rstream *rs);
void rstream_abort_first(struct rstream *rs);

/* Take the socket lock for a call.  Return: false, without the lock, if the call is TCP's. */
static inline bool rstream_lock_ours(struct rstream *rs, struct socket *sock)
{
	if (READ_ONCE(sock->ops) != &rstream_proto_ops)
		return false;
	lock_sock(rs->sk);
	if (unlikely(READ_ONCE(rs->error)) && rs->sk->sk_state != TCP_CLOSE)
		rstream_abort_first(rs);
	if (likely(sock->ops == &rstream_proto_ops))
		return true;
	release_sock(rs->sk);	/* the socket was given back meanwhile */
	return false;
}

/* stream.c */
struct rstream *rstream_new(gfp_t gfp);
void rstream_discard(struct rstream *rs);
void rstream_stream_put(struct rstream *rs);
void rstream_set_mode(struct rstream *rs, enum rstream_mode mode,
		      enum rstream_reason reason);
void rstream_note_fallback(struct rstream *rs, enum rstream_reason reason);
void rstream_unhook(struct sock *sk);
void rstream_set_dummy(struct sock *sk);
void rstream_queue(struct rstream *rs, enum rstream_todo what);
bool rstream_queue_again(struct rstream *rs, unsigned long todo, unsigned long delay);
void rstream_shut(struct rstream *rs, u8 how);	/* RCV_SHUTDOWN, SEND_SHUTDOWN of the program */
void rstream_shutdown_tcp(struct rstream *rs);
void rstream_fail(struct rstream *rs, enum rstream_reason reason, int error);
void rstream_fail_closed(struct rstream *rs, enum rstream_reason reason, int error);
void rstream_wake(struct rstream *rs);
void rstream_wake_sleepers(struct rstream *rs);
void rstream_register(struct rstream *rs);	/* draws token and secret */
static inline bool rstream_registered(const struct rstream *rs)
{
	return !hlist_nulls_unhashed_lockless(&rs->token_node);
}

void rstream_unregister(struct rstream *rs);
void rstream_timers_init(struct rstream *rs);
void rstream_timer(struct rstream *rs, unsigned int ms);
void rstream_timer_soon(struct rstream *rs, unsigned int ms);
void rstream_retry_by(struct rstream *rs, unsigned long at);
void rstream_retry(struct rstream *rs, unsigned int ms);

/* TCP's own callbacks and ops, learnt at load time. */
struct rstream_tcp {
	struct proto *prot;
	const struct proto_ops *ops;
	const struct inet_connection_sock_af_ops *af_ops;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
};

extern struct rstream_tcp rstream_tcp4, rstream_tcp6;	/* prot NULL: no IPv6 */

/* TCP's for the family of @sk. */
static inline const struct rstream_tcp *rstream_tcp_of(const struct sock *sk)
{
	return sk->sk_family == AF_INET ? &rstream_tcp4 : &rstream_tcp6;
}

extern struct socket *rstream_dummy_socket;	/* of all socks that no program has */

/*
 * Is there a connection with these tokens?  See struct rstream_link_ops.
 */
bool rstream_ticket_find(struct net *net, struct rstream_ticket *ticket,
			 struct rstream_peer_name *name);

#endif
