// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the TCP option to HELLO: decides whether a connection has records
 * (FRAMED) or is plain TCP (FALLBACK).
 *
 * The client decides when the SYN-ACK arrives.  Without a prelude, HELLO is the first thing
 * that it sends, if possible together with the program's first bytes.  The server decides when
 * it has received the first bytes, or when its program sends before that.  HELLO is final: from
 * then on, a peer that does not answer as agreed is reset.
 *
 * Called by TCP's callbacks, and by send and receive calls before the decision.  Socket held;
 * never sleeps.
 */
#include <net/ipv6.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "ipsec.h"
#include "option_hook.h"
#include "stream.h"
#include "tcpq.h"

/*
 * HELLO waits up to HELLO_WAIT_MS for the program's first bytes.  A server's first one waits only
 * if 1 to HELLO_WAIT_BYTES bytes have arrived by then.
 */
#define HELLO_WAIT_MS	5
#define HELLO_WAIT_BYTES	4096

/*
 * A peer that does not answer a HELLO which TCP has delivered, or does not complete its own, is
 * broken.  But a lost segment may be retransmitted only after TCP_RTO_MAX, so wait twice as
 * long: this many times the default of hello_timeout_ms.
 */
#define HELLO_PATIENCE	48

static unsigned int hello_timeout(const struct rstream *rs)
{
	return rs->rn->set.hello_timeout_ms;
}

static void set_limits(struct rstream *rs)
{
	rs->rx.limit = rstream_rxq_window(rs);
	rs->tx.limit = rs->server && !rs->offer.prelude ? 0 : RSW_FIRST_WINDOW;
}

/*
 * TCP calls sk_data_ready() only after SO_RCVLOWAT bytes, except after its FIN (SOCK_DONE).
 * While bytes may be records, every arrival must reach us, so set SOCK_DONE as if FIN had arrived.
 * connect() and accept() clear the flag, so it can't be set earlier.
 */
void rstream_hear_all(struct rstream *rs)
{
	if (rs->sk->sk_rcvlowat > 1)
		sock_set_flag(rs->sk, SOCK_DONE);
}

/* Has the peer's FIN arrived, or is the TCP connection closed? */
static bool has_fin(const struct sock *sk)
{
	return (1 << READ_ONCE(sk->sk_state)) &
	       (TCPF_CLOSE_WAIT | TCPF_CLOSING | TCPF_LAST_ACK | TCPF_CLOSE);
}

bool rstream_early_shut(const struct sock *sk)
{
	return READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN && !has_fin(sk);
}

/* The program has shut down its receiving direction: from now on, TCP's bit means FIN. */
static void move_shutdown(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (!(sk->sk_shutdown & RCV_SHUTDOWN) || has_fin(sk))
		return;
	rstream_shut(rs, RCV_SHUTDOWN);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown & ~RCV_SHUTDOWN);
}

static void go_framed(struct rstream *rs)
{
	move_shutdown(rs);
	rstream_set_mode(rs, RSTREAM_FRAMED, RSTREAM_R_NONE);
	set_limits(rs);
	rs->txq.at = jiffies;
	rs->rxq.at = tcp_jiffies32;
	rs->out.small_seq[0] = tcp_sk(rs->sk)->snd_una;
	rs->out.small_seq[1] = rs->out.small_seq[0];
	rstream_hear_all(rs);
	if (rs->offer.prelude)
		rstream_plain_begin(rs);
	else
		rstream_plain_want_hello(rs);
}

/* Plain TCP for good: restore TCP's callbacks. */
static void leave_alone(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	rstream_timer(rs, 0);
	rstream_unhook(sk);
	/* undo rstream_hear_all(), unless TCP's FIN has really arrived: after it, RST is EPIPE */
	if (!has_fin(sk) || (sk->sk_state == TCP_CLOSE && sk->sk_err && sk->sk_err != EPIPE))
		sock_reset_flag(sk, SOCK_DONE);
	if (sk->sk_socket != rstream_dummy_socket)
		return;
	/* not accepted yet: TCP expects such a child to have no socket */
	write_lock_bh(&sk->sk_callback_lock);
	sk_set_socket(sk, NULL);
	RCU_INIT_POINTER(sk->sk_wq, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * The server's program sends, shuts down or closes before the client's HELLO has arrived.  If
 * that is known to be on its way, the client must get HELLO and FIN: otherwise it would see a
 * truncated stream.  Data waits for the client's HELLO, which contains the window.
 */
void rstream_framed_early(struct rstream *rs)
{
	if (rs->mode == RSTREAM_ASKED && rs->offer.confirmed == RSTREAM_CONFIRMED)
		go_framed(rs);
}

static void fall_back(struct rstream *rs, enum rstream_mode mode, enum rstream_reason reason)
{
	rstream_set_mode(rs, mode, reason);
	rstream_note_fallback(rs, reason);
	rstream_option_client_off(rs);
	if (mode == RSTREAM_FALLBACK)
		leave_alone(rs);
	/* wake those who wait for the decision */
	rstream_tcp4.state_change(rs->sk);
}

void rstream_fall_back(struct rstream *rs, enum rstream_reason reason)
{
	fall_back(rs, RSTREAM_FALLBACK, reason);
}

/* Before the client has sent anything: its HELLO may still follow. */
void rstream_fall_back_guarded(struct rstream *rs, enum rstream_reason reason)
{
	fall_back(rs, RSTREAM_GUARDED, reason);
}

void rstream_guard_end(struct rstream *rs)
{
	if (rs->mode != RSTREAM_GUARDED)
		return;
	rstream_set_mode(rs, RSTREAM_FALLBACK, rs->reason);
	leave_alone(rs);
}

void rstream_established(struct rstream *rs, bool option)
{
	if (!option) {
		rstream_fall_back(rs, rs->reason ?: RSTREAM_R_NO_OPTION);
		return;
	}
	go_framed(rs);
	if (!rs->offer.prelude)
		rstream_hello_wait(rs);
}

/*
 * Shall HELLO wait?  Most programs send at once, so it goes together with their first bytes; or
 * alone if the program waits for something else, or after a few milliseconds.  A server waits
 * only if data came with the client's HELLO, because its program may answer that.
 */
bool rstream_hello_waits(const struct rstream *rs)
{
	if (READ_ONCE(rs->want) != BIT(RSTREAM_WANT_HELLO))
		return false;
	if (!rs->server || rs->plain.phase.tx_spans)
		return !rs->hello.in;
	return rs->rx.arrived && rs->rx.arrived <= HELLO_WAIT_BYTES &&
	       !READ_ONCE(rs->rx.fin);
}

void rstream_hello_wait(struct rstream *rs)
{
	rstream_retry(rs, HELLO_WAIT_MS);
}

static enum rstream_hello_state peek_state(struct rstream *rs,
					   unsigned int *have)
{
	struct rstream_hello hello;
	u8 bytes[RSW_HELLO_MAX];
	unsigned int used;

	*have = rstream_tcpq_peek(rs->sk, tcp_sk(rs->sk)->copied_seq, bytes, sizeof(bytes));
	return rstream_record_read_hello(bytes, *have, RSW_ROLE_SYN,
					 rstream_role_nonce(rs, RSW_ROLE_SYN),
					 &hello, &used);
}

/* Reset if a HELLO follows. */
static void peek_guard(struct rstream *rs)
{
	unsigned int have;

	switch (peek_state(rs, &have)) {
	case RSTREAM_HELLO_COMPLETE:
	case RSTREAM_HELLO_BAD:
		rstream_fail(rs, RSTREAM_R_LATE_HELLO, ECONNRESET);
		return;
	case RSTREAM_HELLO_PART:
		if (has_fin(rs->sk))	/* nothing follows */
			break;
		if (have)
			rstream_timer(rs, hello_timeout(rs));
		return;
	case RSTREAM_HELLO_NOT:
		break;
	}
	rstream_guard_end(rs);
}

static void peek_asked(struct rstream *rs)
{
	unsigned int have;

	switch (peek_state(rs, &have)) {
	case RSTREAM_HELLO_NOT:
		rstream_fall_back(rs, RSTREAM_R_NO_HELLO);
		return;
	case RSTREAM_HELLO_BAD:
		rstream_fail(rs, RSTREAM_R_BAD_HELLO, ECONNRESET);
		return;
	case RSTREAM_HELLO_PART:
		/* the client has closed before HELLO was complete */
		if (has_fin(rs->sk))
			rstream_fall_back(rs, RSTREAM_R_NO_HELLO);
		return;
	case RSTREAM_HELLO_COMPLETE:
		go_framed(rs);
		rstream_parse(rs);
		/* wake those who wait to send, too */
		rstream_tcp4.state_change(rs->sk);
		return;
	}
}

void rstream_peek(struct rstream *rs)
{
	if (rs->mode == RSTREAM_ASKED)
		peek_asked(rs);
	else if (rs->mode == RSTREAM_GUARDED)
		peek_guard(rs);
	if (rs->mode != RSTREAM_GUARDED)
		rstream_tcp4.data_ready(rs->sk);
}

/* A server that is not confirmed need not wait for the client's HELLO any more. */
void rstream_hello_unheard(struct rstream *rs)
{
	if (rs->offer.confirmed == RSTREAM_UNCONFIRMED)
		WRITE_ONCE(rs->offer.confirmed, RSTREAM_UNHEARD);
}

/* The peer's HELLO, or its rest, is late.  Return: true if the timer was set once more. */
bool rstream_hello_wait_on(struct rstream *rs)
{
	if (++rs->hello.late > HELLO_PATIENCE)
		return false;
	rstream_timer(rs, hello_timeout(rs));
	return true;
}

/* The peer's HELLO is late, in a FRAMED connection. */
static void framed_late(struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	if (rstream_tx_plain(rs)) {
		rstream_plain_recv_timeout(rs);
		return;
	}
	/* until ours is acked, TCP's timeouts apply; and the peer's may be behind unread data */
	if (test_bit(RSTREAM_WANT_HELLO, &rs->want) ||
	    before(tp->snd_una, rs->hello.end) || rstream_plain_recv_paused(rs)) {
		rs->hello.late = 0;
		rstream_timer(rs, hello_timeout(rs));
	} else if (!rstream_hello_wait_on(rs)) {
		rstream_fail(rs, RSTREAM_R_HELLO_TIMEOUT, ETIMEDOUT);
	}
}

/* We have answered the SYN's option.  Without a prelude, the client has to send first. */
void rstream_asked(struct rstream *rs)
{
	rstream_set_mode(rs, RSTREAM_ASKED, RSTREAM_R_NONE);
	if (rs->offer.prelude) {
		go_framed(rs);
		return;
	}
	rstream_timer(rs, rs->offer.confirmed == RSTREAM_CONFIRMED ? hello_timeout(rs) :
		      min(hello_timeout(rs), RSTREAM_UNCONFIRMED_MS));
}

/* The client's HELLO is late: in the end, fall back to plain TCP without a HELLO of ours. */
static void asked_late(struct rstream *rs)
{
	bool confirmed = rs->offer.confirmed == RSTREAM_CONFIRMED;
	unsigned int have;

	if (rs->offer.confirmed == RSTREAM_UNCONFIRMED) {
		rstream_hello_unheard(rs);
		rstream_timer(rs, hello_timeout(rs));
		rstream_tcp4.state_change(rs->sk);
		sk_wake_async(rs->sk, SOCK_WAKE_SPACE, POLL_OUT);
		return;
	}
	peek_state(rs, &have);
	/* the client has the module, so its HELLO is on its way: wait longer, as framed_late() */
	if ((confirmed || have >= RSW_MAGIC_LEN) &&
	    rstream_hello_wait_on(rs))
		return;
	if (have >= RSW_MAGIC_LEN || (have && confirmed)) {
		rstream_fail(rs, RSTREAM_R_HELLO_TIMEOUT, ETIMEDOUT);
		return;
	}
	fall_back(rs, have ? RSTREAM_FALLBACK : RSTREAM_GUARDED, RSTREAM_R_HELLO_TIMEOUT);
}

static void guard_late(struct rstream *rs)
{
	unsigned int have;

	peek_state(rs, &have);
	if (have >= RSW_MAGIC_LEN) {
		rstream_fail(rs, RSTREAM_R_LATE_HELLO, ECONNRESET);
	} else if (have) {
		rstream_guard_end(rs);
		rstream_tcp4.data_ready(rs->sk);
	}
}

void rstream_hello_late(struct rstream *rs)
{
	if (rs->mode == RSTREAM_FRAMED)
		framed_late(rs);
	else if (rs->mode == RSTREAM_ASKED)
		asked_late(rs);
	else if (rs->mode == RSTREAM_GUARDED)
		guard_late(rs);
}

/* RDMA addresses other than that of the TCP connection, for HELLO. */
static unsigned int other_addrs(const struct rstream *rs,
				struct rstream_hello *hello)
{
	struct in6_addr addrs[RSW_HELLO_ADDRS], own;
	const struct sock *sk = rs->sk;
	unsigned int n;

	if (sk->sk_family == AF_INET6)
		own = inet6_sk(sk)->saddr;
	else
		ipv6_addr_set_v4mapped(inet_sk(sk)->inet_saddr, &own);
	n = rstream_path_addrs(sock_net(sk), &own, addrs, RSW_HELLO_ADDRS);
	memcpy(hello->addr, addrs, n * sizeof(addrs[0]));
	return n;
}

/* Our option has promised a device: if it is gone now, it may come back. */
static u32 transport_caps(struct net *net)
{
	unsigned int has = rstream_dev_transports(net) ?:
			   RSTREAM_TRANSPORT_IB | RSTREAM_TRANSPORT_IWARP;

	return (has & RSTREAM_TRANSPORT_IB ? RSW_CAP_IB : 0) |
	       (has & RSTREAM_TRANSPORT_IWARP ? RSW_CAP_IWARP : 0);
}

unsigned int rstream_hello_put(struct rstream *rs, u8 *to)
{
	const struct rstream_net *rn = rs->rn;
	struct rstream_hello hello = {
		.version_min = RSW_VERSION,
		.version_max = RSW_VERSION,
		.role = rs->server ? RSW_ROLE_SYNACK : RSW_ROLE_SYN,
		.caps = transport_caps(sock_net(rs->sk)) | RSW_CAP_URG,
		.cm_port = rn->set.cm_port,
		.token = rs->ticket.ours.token,
	};
	unsigned int len;

	hello.nonce = rstream_role_nonce(rs, hello.role);
	rs->rx.limit = max(rs->rx.limit, rs->rx.consumed + rs->rxq.window);
	hello.window = rs->rx.limit;
	if (rstream_link_drained(sock_net(rs->sk)))
		hello.caps |= RSW_CAP_DRAINED;
	if (rs->offer.prelude)
		hello.caps |= RSW_CAP_PLAIN;
	memcpy(hello.instance, rn->instance, sizeof(hello.instance));
	memcpy(hello.secret, rs->ticket.ours.secret, sizeof(hello.secret));
	if (READ_ONCE(rn->set.advertise_addrs))
		hello.naddr = other_addrs(rs, &hello);
	len = rstream_record_write_hello(to, &hello);
	rs->hello.end = tcp_sk(rs->sk)->write_seq + len;
	return len;
}

/* HELLO after a span: it must be from the same peer; whether that is drained may have changed. */
static enum rstream_reason hello_again(struct rstream *rs, const struct rstream_hello *hello)
{
	if (hello->token != rs->ticket.theirs.token ||
	    memcmp(hello->secret, rs->ticket.theirs.secret, sizeof(hello->secret)) ||
	    memcmp(hello->instance, rs->hello.name.instance, sizeof(hello->instance)))
		return RSTREAM_R_BAD_HELLO;
	rstream_plain_recv_hello(rs);
	rs->tx.limit = max(rs->tx.limit, hello->window);
	if (rs->hello.peer)
		rstream_peer_set_drained(rs->hello.peer, hello->caps & RSW_CAP_DRAINED);
	rstream_ring_grant_try(rs);
	return RSTREAM_R_NONE;
}

static void name_peer(struct rstream *rs, const u8 *instance)
{
	struct rstream_peer_name *name = &rs->hello.name;
	const struct sock *sk = rs->sk;

	memset(name, 0, sizeof(*name));
	memcpy(name->instance, instance, sizeof(name->instance));
	if (sk->sk_family == AF_INET) {
		ipv6_addr_set_v4mapped(sk->sk_rcv_saddr, &name->local);
		ipv6_addr_set_v4mapped(sk->sk_daddr, &name->remote);
		return;
	}
	name->local = sk->sk_v6_rcv_saddr;
	name->remote = sk->sk_v6_daddr;
	if (ipv6_addr_type(&name->remote) & IPV6_ADDR_LINKLOCAL)
		name->scope = rstream_link_local_dev(sk);
}

/* If links to the peer are possible, look it up; its streams share what is known about it. */
static void hello_peer(struct rstream *rs, u32 caps)
{
	struct net *net = sock_net(rs->sk);
	u32 own = transport_caps(net);

	if (rs->plain.phase.tx == RSTREAM_ENDED)
		return;
	if (!(caps & (RSW_CAP_IB | RSW_CAP_IWARP))) {
		rs->hello.no_peer = RSTREAM_R_NO_DEVICE;
		return;
	}
	if (!(caps & own)) {
		rs->hello.no_peer = RSTREAM_R_NO_COMMON_TRANSPORT;
		return;
	}
	rs->hello.peer = rstream_peer_get(net, &rs->hello.name);
	if (!rs->hello.peer)
		rs->hello.no_peer = RSTREAM_R_PEER_LIMIT;
}

enum rstream_reason rstream_hello_got(struct rstream *rs,
				      const struct rstream_hello *hello)
{
	if (hello->version_min > RSW_VERSION ||
	    hello->version_max < RSW_VERSION)
		return RSTREAM_R_VERSION;
	if (rs->hello.in)
		return hello_again(rs, hello);
	if (rstream_rx_plain(rs))
		rstream_plain_recv_hello(rs);
	rs->hello.in = true;
	rs->hello.cm_port = hello->cm_port;
	name_peer(rs, hello->instance);
	memcpy(rs->ticket.theirs.secret, hello->secret, sizeof(hello->secret));
	/* pairs with rstream_ticket_find() */
	smp_store_release(&rs->ticket.theirs.token, hello->token);
	rs->tx.limit = max(rs->tx.limit, hello->window);
	rs->hello.urg = hello->caps & RSW_CAP_URG;
	rs->hello.plain = rs->offer.prelude && hello->caps & RSW_CAP_PLAIN;
	hello_peer(rs, hello->caps);
	if (rs->hello.peer) {
		rstream_peer_set_drained(rs->hello.peer, hello->caps & RSW_CAP_DRAINED);
		if (!rstream_tunnelled(rs))
			rstream_peer_addrs(rs->hello.peer, hello->addr, hello->naddr,
					   hello->cm_port);
	}
	rstream_option_client_off(rs);
	if (!rstream_closed(rs))
		rstream_timer(rs, 0);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_FRAMED);
	rstream_ring_grant_try(rs);
	return RSTREAM_R_NONE;
}

/*
 * Give the struct socket back to TCP's proto_ops: from now on, the program's calls go to TCP
 * directly.  The stream remains, for rsctl to see, and holds the module.  The socket never gets
 * our ops back, because calls that have begun in TCP's might then find records.
 */
void rstream_swap_ops(struct rstream *rs, struct socket *sock)
{
	rstream_assert_held(rs);
	if (rs->mode != RSTREAM_FALLBACK)
		return;
	if (cmpxchg(&sock->ops, &rstream_proto_ops, rs->tcp_ops) != &rstream_proto_ops)
		return;
	__module_get(rs->tcp_ops->owner);
	module_put(THIS_MODULE);
}
