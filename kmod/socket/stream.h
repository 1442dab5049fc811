/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state we hang on a TCP socket: struct rstream.
 *
 * A socket of ours *is* a TCP socket.  Its struct socket has our proto_ops,
 * and its struct sock carries a struct rstream as upper-layer protocol data
 * (icsk_ulp_data), as kTLS does.  So all options, addresses, errors, wait
 * queues, `ss`, cgroups and LSMs see an ordinary TCP socket; and where a
 * connection ends up as plain TCP we hand the struct socket back to TCP's own
 * proto_ops and are out of the way.
 *
 * Lock: everything in struct rstream is guarded by the lock of its sock in one
 * of its two forms, "held" below: owned by a process (lock_sock), or its
 * spinlock taken in softirq while no process owns it.  What is read without it
 * says so.  The whole strategy is in Documentation/locking.rst.
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
#include "socket.h"

struct pipe_inode_info;

/*
 * What a connection is at the moment; changed by rstream_set_mode() only.
 *
 *	IDLE ----connect----> CONNECTING ---> FRAMED
 *	 |                        +---------> RAW
 *	 +-------listen-----> LISTEN
 *	 accepted child:      ASKED --------> FRAMED
 *	                        +-----------> RAW
 *
 * FRAMED: records both ways, the carriers may change; first there may be a prelude
 * without records (prelude.c).  RAW: plain TCP.
 */
enum rstream_mode {
	RSTREAM_IDLE,
	RSTREAM_LISTEN,
	RSTREAM_CONNECTING,	/* our SYN carries the option */
	RSTREAM_ASKED,		/* the client's SYN had it; its HELLO is awaited */
	RSTREAM_FRAMED,
	RSTREAM_RAW,
};

/* Bits of rstream.want: control records to be sent, in this order. */
enum rstream_want {
	RSTREAM_WANT_HELLO,
	RSTREAM_WANT_URG,
	RSTREAM_WANT_LINK,
	RSTREAM_WANT_BROKEN,
	RSTREAM_WANT_RESUME,
	RSTREAM_WANT_STOPPED,
	RSTREAM_WANT_SWITCH,
	RSTREAM_WANT_ACK,
	RSTREAM_WANT_GRANT,
	RSTREAM_WANT_REVOKE,
	RSTREAM_WANT_FIN,
};

/* The urgent byte of a receiver. */
enum rstream_urgent {
	RSTREAM_URG_NONE,
	RSTREAM_URG_NEW,	/* announced; it need not be here yet */
	RSTREAM_URG_READ,	/* read out of band, the mark is still ahead */
};

/* Bits of rstream.todo: what the worker has to do; set in any context. */
enum rstream_todo {
	RSTREAM_DO_PUSH,	/* move queued bytes and records */
	RSTREAM_DO_GRANT,	/* see whether a ring can be granted now */
	RSTREAM_DO_LATER,	/* ... in a while: there was no link, or no memory */
	RSTREAM_DO_CREDIT,	/* the sender wants to hear of space */
	RSTREAM_DO_LINK,	/* an administrator wants to see a link */
	RSTREAM_DO_IDLE,	/* our ring has not been used for long */
	RSTREAM_DO_LOOK,	/* routes or IPsec policies have changed */
	RSTREAM_DO_RESET,	/* rstream.reason says why */
	RSTREAM_DO_TIMEOUT,	/* the HELLO is late */
	RSTREAM_DO_CLOSE,	/* the program has closed: finish */
};

/* The last change of the carrier of one direction, for rsctl. */
struct rstream_switched {
	unsigned long at;	/* jiffies */
	u32 count;		/* of all changes */
	u8 to;			/* enum rstream_carrier_info */
	u8 reason;		/* enum rstream_reason */
};

/* What a sender has waited for; by reason, STALL_WINDOW first. */
struct rstream_stalls {
	u64 since;		/* nanoseconds, if @why */
	u64 ns[RSTREAM_STALLS];	/* without what it waits for now */
	u32 count[RSTREAM_STALLS];
	u8 why;			/* enum rstream_reason; NONE: it does not wait */
};

/* Bytes that are being timed, up to @end; 0: none are. */
struct rstream_timed {
	u64 end;		/* stream offset */
	u64 at;			/* nanoseconds when they were sent or came */
};

/* Samples of a socket's times, in buckets of microseconds, see stream_stats.c. */
struct rstream_hist {
	struct rstream_timed sent, came;
	u32 tx[RSTREAM_HIST_BUCKETS];
	u32 rx[RSTREAM_HIST_BUCKETS];
};

/*
 * So long, ms, a server waits for a HELLO although nothing has confirmed the option:
 * one that comes later is reset, so for longer than TCP waits to send it again.
 */
#define RSTREAM_UNCONFIRMED_MS	250U
/* How long to wait for memory that softirq did not get, ms. */
#define RSTREAM_RETRY_MS	10
/* Room for a HELLO and records behind it. */
#define RSTREAM_CTL_SPACE	(RSW_HELLO_MAX + 2 * RSTREAM_RECORD_MAX)

/**
 * struct rstream - what we keep for one socket
 * @sk:		the TCP socket; lives until rstream_ulp_release()
 * @rn:		of its namespace
 * @ref:	one of the socket, one of each queued work
 * @mode:	enum rstream_mode; read locklessly to choose a path, then again
 *		with the lock held
 * @reason:	enum rstream_reason: why RAW, why not on a ring, why reset
 * @server:	the accepting side
 * @confirmed:	the other side's option was seen: SYN-ACK's by the client,
 *		CONFIRM by the server
 * @hello_in:	the peer's HELLO has been read
 * @guard:	RAW, but a late HELLO must be noticed before it is read
 * @accepted:	a program has (had) it: the lock may be taken by lock_sock
 * @closed:	the program has closed it, we finish
 * @counted:	among the closed sockets of the host
 * @close_looks: in a row that saw no progress of a close
 * @registered:	in the tables of its namespace, has a token
 * @mapped:	IPv6 socket that connects to a v4-mapped address
 * @pushing:	rstream_push() is at work (it may call itself by way of TCP)
 * @parsing:	rstream_parse() is at work, likewise
 * @may_speak:	ASKED, but no CONFIRM was seen, and no HELLO has come for a while
 * @closing:	the program closes: TCP's FIN follows that of the stream
 * @user_save_syn: the program's own TCP_SAVE_SYN on a listener
 * @shutdown:	RCV_SHUTDOWN, SEND_SHUTDOWN of the program on FRAMED
 * @error:	what a reset is told to the program as, positive errno
 * @blocked:	records or bytes wait for room in TCP's send queue
 * @room_asked:	somebody has found no room to write, and wants to be woken
 * @fin_wait:	closed, and TCP is in FIN_WAIT2: the timer is TCP's
 * @forsaken:	that timer is over: TCP may have the sock
 * @link_asked:	the peer, who makes the links, has been asked for one
 * @peer_urg:	the peer understands URG
 * @nagle:	the program has not set TCP_NODELAY; valid while @pushing
 * @held:	corked: what is queued waits for more, see rstream_hold()
 * @awaited:	pages were sent as they are: somebody waits for their end
 * @zc_on_tcp:	TCP may still have pages up to @zc_seq
 * @zc_acked:	it has acknowledged them
 * @urg:	enum rstream_urgent
 * @prelude:	the options agree that the connection begins without records; of a
 *		socket that is not connected: offer that
 * @eager:	the program wants none
 * @tx_plain:	our HELLO has not been said, nor will it be next
 * @rx_plain:	nor has the peer's come
 * @tx_on:	we go on without HELLO behind the prelude
 * @rx_on:	the peer does
 * @mute:	our FIN was sent in the prelude, but the peer has records
 * @crowded:	there was no room for another peer
 * @unanswered:	the other way round
 * @part_back:	bytes in @part are the program's, there was no memory for them
 * @hello_held:	TCP had not delivered our HELLO when the timer was last over
 * @tx_start:	TCP sequence number of the first byte that we send
 * @rx_start:	likewise, of the first that comes
 * @rx_lazy:	bytes of the prelude that are in TCP's queue; read locklessly
 * @nonce:	of the client's option
 * @answer:	of the server's, its nonce
 * @tcp_ops:	TCP's proto_ops for this socket
 * @af_ops:	TCP's connection ops, while ours are in place
 * @rules:	with whom to negotiate; NULL: with all.  Under the lock while IDLE,
 *		fixed from then on
 * @want:	bits of enum rstream_want
 * @todo:	bits of enum rstream_todo (atomic)
 * @work:	does what @todo says, in process context; holds a @ref while queued
 * @late:	@work waits for the owner of a child, and holds the module; of @work alone
 * @timer:	late HELLO, or a close that takes long
 * @retry_timer: no memory in softirq, or HELLO waits for bytes: push
 * @hello_end:	TCP sequence number behind our HELLO
 * @close_acked: close_progress() when a close was last looked at
 *
 * @ticket:	of the two HELLOs; theirs.token by smp_store_release(), last
 * @token_node:	in rstream_net.tokens, under its streams_lock
 * @node:	in rstream_net.streams, likewise
 * @peer:	from the peer's HELLO, referenced; NULL: none
 * @peer_name:	instance of its HELLO, addresses of the connection
 * @peer_cm_port: of the peer's HELLO, host order
 * @tx_link:	id of the link of @txring; a copy for rsctl, read locklessly
 * @tx_ring_size: bytes of @txring, likewise
 * @rx_link:	id of the link of @rxring, likewise
 * @rx_ring_size: bytes of @rxring, likewise
 *
 * @ctl:	record bytes on their way to TCP: @ctl_off to @ctl_len
 * @ctl_len:	bytes in @ctl
 * @ctl_off:	bytes of @ctl that TCP has taken
 * @rec_left:	payload bytes that TCP is still owed for the last DATA header
 * @txq:	struct rstream_frag, bytes not yet handed to a carrier
 * @tx_mem:	bytes in @txq and in frags in flight on @txring, charged
 * @tx_cost:	charged for these frags themselves, bytes
 * @tx:		carrier and offsets of what we send
 * @txring:	ring that we write to; NULL: none
 * @txring_new:	granted, SWITCH not yet out
 * @tx_why:	enum rstream_reason of the SWITCH to tcp that is wanted
 * @zc_seq:	TCP sequence number behind the last of MSG_ZEROCOPY
 * @tx_urg:	offset behind our last urgent byte
 * @urg_end:	tcp_sock.bytes_acked when TCP has delivered our last URG: 64 bits, as
 *		sequence numbers that are 2 GiB old seem to be new
 * @held_at:	jiffies when the oldest of what is held was queued
 * @tx_at:	jiffies when bytes were last given to a carrier
 * @tx_heard:	bytes that had come when we last sent on @txring
 * @small_seq:	TCP sequence numbers behind the last two small DATA records
 * @gathers:	bytes are queued until TCP has delivered others
 * @tx_told:	bytes that TCP_INFO has told to be acknowledged
 * @asked:	an interrupting credit was asked for and has not come
 * @asked_at:	jiffies when that was last
 *
 * @rxq:	skbs with bytes of DATA records (struct rstream_skb_cb)
 * @rxq_bytes:	bytes in @rxq
 * @rx_mem:	bytes charged for @rxq; until accept() in sk_rmem_alloc, too
 * @rx_held:	no more is taken from TCP until some of @rxq is read, or there is memory
 * @part:	a header or payload that has come in part, @part_len bytes
 * @part_len:	bytes in @part
 * @data_left:	payload bytes to come of the present DATA record
 * @skip_left:	payload bytes to pass over
 * @window:	bytes that the peer may be ahead of the program on tcp
 * @rx:		carrier and offsets of what we receive
 * @rx_urg:	offset of the urgent byte, if @urg
 * @rx_at:	jiffies when bytes last came
 * @rx_stamp:	when the ring's last bytes came, if the program wants to know
 * @rxring:	ring that we granted; freed by RCU, for poll(); NULL: none
 * @credited:	ring bytes whose consumption the sender has been told
 * @rx_landed:	@rxring's landed as the last callback of the link saw it
 * @grant:	the GRANT of @rxring, while it is wanted
 * @rx_moved:	stream offset up to which ring bytes were moved to @rxq
 * @ring_next:	bytes of the next ring we grant, 0: the first
 * @ring_fills:	how often @rxring was half full and then read to its end
 * @filled_at:	jiffies when that was last
 * @ring_filled: it was half full and has not been read to its end since
 * @revoked_for: enum rstream_reason: RING_IDLE, or NONE: a ring of another size
 * @idle_msgs:	DATA records since the ring was taken back, while RING_IDLE
 * @rx_full:	@rxq has more than the window: no ring until that is read
 * @leaving:	the sender has left @rxring, what is unread is still in it; read
 *		locklessly
 * @lent:	waits for pages of @rxring that pipes have
 * @lent_to:	ring offset behind the last byte that was lent
 * @lent_first:	ring offset of the first of them when it was last looked at
 * @lent_since:	since when the sender waits for them, in jiffies; 0: it doesn't
 * @refused:	grants in a row that the peer did not take up
 * @end_told:	the sender was told of the credit at the end of its stream
 * @lost_at:	jiffies when the peer was told of what it owes RESUME or SWITCH; 0:
 *		it owes nothing
 *
 * @tx_tcp_bytes: stream bytes sent on tcp; this and the next are statistics
 * @tx_tcp_msgs: DATA records sent on tcp
 * @tx_ring_bytes: stream bytes sent on rings
 * @tx_ring_msgs: messages sent on rings
 * @rx_tcp_bytes: stream bytes received on tcp
 * @rx_tcp_msgs: DATA records received on tcp
 * @rx_ring_bytes: stream bytes received on rings
 * @rx_ring_msgs: messages received on rings
 * @tx_switched: last switch of what we send
 * @rx_switched: last switch of what we receive
 * @stalls:	of what we send
 * @hist:	NULL until the setting "histograms" was on; freed with it
 * @rcu:	frees it after lockless readers
 */
struct rstream {
	struct sock *sk;
	struct rstream_net *rn;
	refcount_t ref;
	u8 mode;
	u8 reason;
	bool accepted;
	bool eager;
	bool late;
	u8 user_save_syn;
	const struct proto_ops *tcp_ops;
	const struct inet_connection_sock_af_ops *af_ops;
	struct rstream_rules *rules;
	unsigned long todo;
	struct delayed_work work;
	struct timer_list timer;
	struct timer_list retry_timer;	/* no memory in softirq: try again */
	struct hlist_node token_node;
	struct list_head node;
	struct list_head txq;
	struct sk_buff_head rxq;
	struct rstream_lent lent;
	struct rstream_hist *hist;
	struct rcu_head rcu;

	/* above: of the socket */
	struct_group(connection,
		     /* of one connection: zeroed by rstream_reset_state() */
		u64 nonce, answer;
		bool server:1;
		bool confirmed:1;
		bool hello_in:1;
		bool registered:1;
		bool mapped:1;
		bool pushing:1;
		bool parsing:1;
		bool closing:1;
		bool prelude:1;
		bool tx_on:1;
		bool rx_on:1;
		bool mute:1;
		bool crowded:1;
		bool unanswered:1;
		bool part_back:1;
		bool hello_held:1;
		bool tx_plain;
		bool rx_plain;
		bool may_speak;
		bool asked;
		bool blocked;
		bool room_asked;
		bool fin_wait;
		bool forsaken;
		bool link_asked;
		bool closed;
		bool counted;
		u8 close_looks;
		bool peer_urg;
		bool held;
		bool gathers;
		bool nagle;
		bool awaited;
		bool zc_on_tcp;
		bool zc_acked;
		u8 urg;
		bool guard;
		u8 shutdown;
		u16 error;
		u32 tx_start, rx_start;
		u64 rx_lazy;
		unsigned long want;
		u32 hello_end;		/* TCP sequence number behind our HELLO */
		u64 close_acked;	/* progress of a close, see stream_close.c */

		struct rstream_ticket ticket;
		struct rstream_peer *peer;
		struct rstream_peer_name peer_name;
		u16 peer_cm_port;
		u32 tx_link, tx_ring_size;	/* copies for rsctl, read locklessly */
		u32 rx_link, rx_ring_size;

		u16 ctl_len;
		u16 ctl_off;
		u32 rec_left;
		u32 zc_seq;
		u64 tx_urg;
		u64 urg_end;
		unsigned long held_at, tx_at, asked_at;
		u64 tx_heard;
		u32 small_seq[2];
		u64 tx_told;
		u64 tx_mem, tx_cost;
		struct rstream_tx tx;
		struct rstream_txring *txring;
		struct rstream_txring *txring_new;	/* granted, SWITCH not yet out */

		u64 rxq_bytes;
		u64 rx_mem;
		u16 part_len;
		u32 data_left;
		u32 skip_left;
		u64 window;
		struct rstream_rx rx;
		u64 rx_urg;
		unsigned long rx_at;
		ktime_t rx_stamp;
		struct rstream_rxring *rxring;
		u64 credited;
		u64 rx_landed;	/* as the last callback of the link saw it */
		struct rstream_record grant;
		u64 rx_moved;
		u32 ring_next;
		unsigned long filled_at;
		u8 ring_fills;
		bool ring_filled;
		u8 revoked_for;
		u8 idle_msgs;
		bool leaving;
		bool rx_held;
		bool rx_full;
		u64 lent_to;
		u64 lent_first;
		unsigned long lent_since;
		u8 refused;
		bool end_told;
		u8 tx_why;
		unsigned long lost_at;

		u64 tx_tcp_bytes, tx_tcp_msgs, tx_ring_bytes, tx_ring_msgs;
		u64 rx_tcp_bytes, rx_tcp_msgs, rx_ring_bytes, rx_ring_msgs;
		struct rstream_switched tx_switched, rx_switched;
		struct rstream_stalls stalls;
	);

	/* not zeroed */
	u8 ctl[RSTREAM_CTL_SPACE];
	u8 part[RSW_HELLO_MAX];
};

/* In skb->cb of rxq: which bytes of the skb are the stream's. */
struct rstream_skb_cb {
	u32 off;
	u32 len;
	u32 charged;	/* bytes of socket memory */
	bool own;	/* not a clone of TCP's: more can be added */
	ktime_t stamp;	/* when the last of them came, 0: nobody knows */
};

static inline struct rstream_skb_cb *rstream_skb_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct rstream_skb_cb) > sizeof(skb->cb));
	return (struct rstream_skb_cb *)skb->cb;
}

extern struct tcp_ulp_ops rstream_ulp_ops;

/**
 * rstream_of() - our state of a socket, NULL if it is none of ours
 * @sk:	any TCP socket
 *
 * Context: socket held or a program's reference to it.
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

/*
 * Are there records in TCP's queue, or can there be?  Who is not holding the socket must
 * look at the mode once: between two looks ASKED becomes FRAMED, and neither is seen.
 */
static inline bool rstream_may_have_records(const struct rstream *rs)
{
	int mode = rstream_mode(rs);

	return mode == RSTREAM_FRAMED || mode == RSTREAM_ASKED ||
	       (mode == RSTREAM_RAW && READ_ONCE(rs->guard));
}

/* Bytes that TCP has for us; tcp_inq() is misled by rstream_hear_all(). */
static inline bool rstream_tcp_unread(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 n = tp->rcv_nxt - tp->copied_seq;

	return n > (sk->sk_shutdown & RCV_SHUTDOWN ? 1 : 0);
}

/* Assert "held" in either form. */
static inline void rstream_assert_held(const struct rstream *rs)
{
	sock_owned_by_me(rs->sk);
}

/* stream.c: life */
struct rstream *rstream_new(gfp_t gfp);
void rstream_discard(struct rstream *rs);
void rstream_attach(struct rstream *rs, struct sock *sk,
		    const struct proto_ops *tcp_ops);
void rstream_set_mode(struct rstream *rs, enum rstream_mode mode,
		      enum rstream_reason reason);
void rstream_reset_state(struct rstream *rs);	/* as after socket() */
void rstream_hook_callbacks(struct rstream *rs);
void rstream_unhook_callbacks(struct sock *sk);
void rstream_queue(struct rstream *rs, enum rstream_todo what);
void rstream_fail(struct rstream *rs, enum rstream_reason reason, int error);
void rstream_wake(struct rstream *rs);
void rstream_wake_readers(struct rstream *rs);
void rstream_wake_writers(struct rstream *rs);
void rstream_register(struct rstream *rs);	/* draws token and secret */
void rstream_timer(struct rstream *rs, unsigned int ms);
void rstream_retry_by(struct rstream *rs, unsigned long at);
void rstream_retry(struct rstream *rs, unsigned int ms);

/* What TCP's own callbacks and ops are, learnt at load time. */
struct rstream_tcp {
	struct proto *prot;
	const struct proto_ops *ops;
	const struct inet_connection_sock_af_ops *af_ops;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
};

extern struct rstream_tcp rstream_tcp4, rstream_tcp6;	/* prot NULL: no IPv6 */
extern struct socket *rstream_nobody;	/* stands in where no program has it */

/* handshake.c: from option to HELLO */
void rstream_established(struct rstream *rs, bool option);
void rstream_peek(struct rstream *rs);
enum rstream_reason rstream_hello_got(struct rstream *rs,
				      const struct rstream_hello *hello);
bool rstream_hello_waits(const struct rstream *rs);
void rstream_hello_wait(struct rstream *rs);
unsigned int rstream_hello_put(struct rstream *rs, u8 *to);
void rstream_asked(struct rstream *rs);
void rstream_hello_late(struct rstream *rs);
void rstream_hear_all(struct rstream *rs);
void rstream_framed_early(struct rstream *rs);
void rstream_go_raw(struct rstream *rs, enum rstream_reason reason);
void rstream_swap_ops(struct rstream *rs, struct socket *sock);

/* prelude.c: the first bytes, without records */
void rstream_prelude_begin(struct rstream *rs);
bool rstream_prelude_only(const struct rstream *rs);
u64 rstream_prelude_room(const struct rstream *rs);
void rstream_hello_say(struct rstream *rs);
void rstream_prelude_look(struct rstream *rs);
void rstream_prelude_late(struct rstream *rs);
void rstream_prelude_fin(struct rstream *rs);
ssize_t rstream_prelude_send(struct rstream *rs, struct msghdr *msg);
u32 rstream_prelude_data(struct rstream *rs);
bool rstream_prelude_ready(struct rstream *rs);
void rstream_prelude_over(struct rstream *rs);
unsigned int rstream_prelude_parse(struct rstream *rs, struct sk_buff *skb,
				   unsigned int off, unsigned int len,
				   bool *hello);
void rstream_prelude_no_hello(struct rstream *rs, bool none);
void rstream_prelude_heard(struct rstream *rs);
void rstream_prelude_more(struct rstream *rs);
void rstream_prelude_cut(struct rstream *rs);
bool rstream_prelude_full(const struct rstream *rs);
bool rstream_prelude_pull(struct rstream *rs, u64 end);
int rstream_prelude_copy(struct rstream *rs, struct msghdr *msg, size_t len);

/* carrier_tcp.c: records on TCP */
void rstream_push(struct rstream *rs);
void rstream_parse(struct rstream *rs);

/*
 * Is there a living connection with these tokens?  See struct rstream_link_ops.
 */
bool rstream_ticket_find(struct net *net, struct rstream_ticket *ticket,
			 struct rstream_peer_name *name);

/* carrier_ring.c: rings */
void rstream_push_ring(struct rstream *rs);
bool rstream_ring_gathers(const struct rstream *rs);
void rstream_no_ring(struct rstream *rs, enum rstream_reason why);
void rstream_grant_try(struct rstream *rs);
enum rstream_reason rstream_grant_got(struct rstream *rs, const struct rstream_record *rec);
enum rstream_reason rstream_switch_got(struct rstream *rs, const struct rstream_record *rec);
u64 rstream_switch_proof(const struct rstream *rs,
			 const struct rstream_record *rec);	/* to txring */
void rstream_ring_read(struct rstream *rs, size_t len);
void rstream_tx_waits(struct rstream *rs);
void rstream_ring_answer(struct rstream *rs);
void rstream_ring_landed(struct rstream *rs);
void rstream_rings_close(struct rstream *rs);
bool rstream_ring_ended(const struct rstream *rs);
u64 rstream_ring_at(const struct rstream *rs);
void rstream_ring_idle(struct rstream *rs);
void rstream_grant_look(struct rstream *rs);
void rstream_peer_fill(struct rstream *rs, const u8 *instance);
void rstream_link_wanted(struct rstream *rs);
void rstream_link_try(struct rstream *rs);
void rstream_link_asked(struct rstream *rs);
size_t rstream_tx_reap(struct rstream *rs);

/* carrier_leave.c: from rings back to tcp */
void rstream_ring_check(struct rstream *rs);
void rstream_ring_tick(struct rstream *rs);
void rstream_ring_later(struct rstream *rs);
bool rstream_ring_leave(struct rstream *rs);
bool rstream_ring_move(struct rstream *rs);
void rstream_ring_revoke(struct rstream *rs, enum rstream_reason why);
enum rstream_reason rstream_revoke_got(struct rstream *rs, u32 epoch);
void rstream_grant_refuse(struct rstream *rs, enum rstream_reason reason);
enum rstream_reason rstream_stopped_got(struct rstream *rs, u32 epoch);
enum rstream_reason rstream_switch_back_got(struct rstream *rs, u64 offset);
enum rstream_reason rstream_broken_got(struct rstream *rs, u32 epoch);
enum rstream_reason rstream_resume_got(struct rstream *rs, u32 epoch, u64 count);

/* stream_tx.c */
int rstream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
ssize_t rstream_sendpage(struct socket *sock, struct page *page, int off,
			 size_t len, int flags);
void rstream_tx_queued(struct rstream *rs, struct rstream_frag *frag, size_t n,
		       enum rstream_mib_item how);
size_t rstream_tx_schedule(struct rstream *rs, size_t n, unsigned int frags);
void rstream_tx_gone(struct rstream *rs, size_t n, size_t cost);
void rstream_hold(struct rstream *rs, bool more);
void rstream_held_look(struct rstream *rs);
u64 rstream_tx_limit(const struct rstream *rs);
void rstream_ask_room(struct rstream *rs);
bool rstream_may_gather(const struct rstream *rs, u64 queued);
u64 rstream_tx_unsent(const struct rstream *rs);
bool rstream_tx_room(const struct rstream *rs);
bool rstream_tx_done(struct rstream *rs);
u64 rstream_tx_unacked(struct rstream *rs);
void rstream_tx_free(struct rstream *rs);

/* stream_page.c: what is sent without a copy */
ssize_t rstream_tx_refer(struct rstream *rs, struct msghdr *msg, u64 max);
ssize_t rstream_tx_pin(struct rstream *rs, struct msghdr *msg, u64 max,
		       struct ubuf_info *uarg);
struct ubuf_info *rstream_zerocopy_begin(struct rstream *rs, struct msghdr *msg);
void rstream_zerocopy_end(struct ubuf_info *uarg, bool sent);
bool rstream_zerocopy_waits(struct rstream *rs);
bool rstream_tx_awaited(struct rstream *rs);

/* stream_close.c */
bool rstream_close(struct rstream *rs, struct socket *sock);
void rstream_close_step(struct rstream *rs);
void rstream_close_look(struct rstream *rs);
void rstream_close_late(struct rstream *rs);
void rstream_close_uncount(struct rstream *rs);	/* it is TCP's now */
bool rstream_close_end(struct rstream *rs);

/* stream_splice.c */
ssize_t rstream_splice_read(struct socket *sock, loff_t *ppos,
			    struct pipe_inode_info *pipe, size_t len,
			    unsigned int flags);
u64 rstream_lent_until(struct rstream *rs, u64 consumed);
bool rstream_lent_look(struct rstream *rs);
void rstream_lent_init(struct rstream *rs);
void rstream_lent_end(struct rstream *rs);

/* stream_rx.c */
int rstream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		    int flags);
int rstream_rx_begin(struct rstream *rs, struct socket *sock, int flags);
size_t rstream_rx_next(struct rstream *rs, size_t len, u64 *ahead, bool peek);
int rstream_rx_status(struct rstream *rs, bool *eof);
int rstream_rx_wait(struct rstream *rs, long *timeo, u64 more_than);
void rstream_rx_ack(struct rstream *rs);
void rstream_rx_accepted(struct rstream *rs);
u32 rstream_rx_add(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len);
bool rstream_rx_add_bytes(struct rstream *rs, const u8 *bytes, u32 len);
bool rstream_rx_save(struct rstream *rs, const u8 *mem, u32 size, u64 from,
		     u64 to);
u64 rstream_window_most(const struct rstream *rs);
bool rstream_ring_owes(const struct rstream *rs);
bool rstream_rx_timed(const struct rstream *rs);
u64 rstream_rx_ready(const struct rstream *rs);
bool rstream_rx_enough(const struct rstream *rs);
bool rstream_rx_over(const struct rstream *rs);
int rstream_rx_copy(struct rstream *rs, struct msghdr *msg, size_t len,
		    u64 skip, bool trunc);
void rstream_rx_consume(struct rstream *rs, size_t len);
void rstream_rx_free(struct rstream *rs);

/* stream_stats.c: what is noted for those who watch */
void rstream_switched(struct rstream *rs, enum rstream_way_info way,
		      enum rstream_carrier_info to, u64 offset,
		      enum rstream_reason reason);
/* What the sender waits for has changed: STALL_..., or NONE: it goes on. */
void rstream_stalled(struct rstream *rs, enum rstream_reason why);
bool rstream_hist_sent(struct rstream *rs);	/* true: an interrupting credit is wanted */
void rstream_hist_acked(struct rstream *rs);
void rstream_hist_read(struct rstream *rs);
void rstream_hist_arrived(struct rstream *rs, u64 end);	/* any context */

/* stream_urg.c: urgent data */
bool rstream_urg_at_mark(const struct rstream *rs, u64 at);
bool rstream_urg_here(const struct rstream *rs);
u64 rstream_urg_inq(const struct rstream *rs);
void rstream_urg_send(struct rstream *rs);
bool rstream_urg_heard(struct rstream *rs);
enum rstream_reason rstream_urg_got(struct rstream *rs, u64 offset);
void rstream_urg_mark(struct rstream *rs, u64 at);
int rstream_urg_recv(struct rstream *rs, struct msghdr *msg, size_t len,
		     int flags);

/* stream_opt.c: options and ioctls */
int rstream_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
int rstream_setsockopt(struct socket *sock, int level, int optname,
		       sockptr_t optval, unsigned int optlen);
int rstream_getsockopt(struct socket *sock, int level, int optname,
		       char __user *optval, int __user *optlen);
int rstream_set_rcvlowat(struct sock *sk, int val);
void rstream_uncork(struct rstream *rs, bool now);

#endif
