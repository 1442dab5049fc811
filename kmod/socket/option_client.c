// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP option of a client.  A module can't extend TCP's own option code, so we replace the
 * connection's icsk_af_ops from connect() until the first bytes or HELLO of the server.
 * queue_xmit adds the option to the SYN and the first segments before they get an IP header,
 * and sk_rx_dst_set sees the SYN-ACK.  Other connections pay nothing.
 *
 * If an IPv6 socket connects to a v4-mapped address, TCP replaces icsk_af_ops before it sends
 * the SYN, so the hook of option_server.c adds the option to that.
 *
 * A segment without room for the option, or without headroom, is sent without it.  If that is
 * the SYN, the connection becomes plain TCP.
 */
#include <linux/siphash.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "protocol/option.h"
#include "ipsec.h"
#include "option_hook.h"
#include "stream.h"

/* Our replacements of TCP's ops: for IPv4, IPv6, and IPv6 with a v4-mapped peer. */
static struct inet_connection_sock_af_ops client4, client6, client_mapped;
static const struct inet_connection_sock_af_ops *mapped_orig;
static DEFINE_SPINLOCK(mapped_lock);	/* protects the initialization of client_mapped */

/* ---- segments ---- */

#define TCP_HEADER_MAX	60

/* TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925) have signed the header, which must not change. */
static bool is_signed(const struct tcphdr *th)
{
	const u8 *opt = (const u8 *)(th + 1);
	const u8 *end = (const u8 *)th + th->doff * 4;

	while (opt < end && *opt) {
		if (*opt == 19 || *opt == 29)
			return true;
		opt += *opt == 1 || end - opt < 2 ? 1 : max_t(u8, opt[1], 2);
	}
	return false;
}

/* Append @opt to the TCP header.  The skb may start with an IP header. */
bool rstream_option_client_insert(struct sk_buff *skb, const struct rstream_opt *opt)
{
	unsigned int front = skb_transport_offset(skb);
	unsigned int th_len = tcp_hdrlen(skb);
	unsigned int tcp_len = skb->len - front;
	struct tcphdr *th;

	if (skb->ip_summed != CHECKSUM_PARTIAL || is_signed(tcp_hdr(skb)) ||
	    th_len + RSW_OPT_LEN > TCP_HEADER_MAX ||
	    skb_cow_head(skb, RSW_OPT_LEN))
		return false;

	skb_push(skb, RSW_OPT_LEN);
	memmove(skb->data, skb->data + RSW_OPT_LEN, front + th_len);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, front);
	th = tcp_hdr(skb);
	rstream_option_write((u8 *)th + th_len, opt);
	th->doff += RSW_OPT_LEN / 4;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	/* the pseudo header contains TCP's length */
	inet_proto_csum_replace2(&th->check, skb, htons(tcp_len),
				 htons(tcp_len + RSW_OPT_LEN), true);
	return true;
}

u64 rstream_role_nonce(const struct rstream *rs, u8 role)
{
	siphash_key_t key = { { rs->offer.nonce, rs->offer.answer } };

	return siphash_1u64(role, &key) & RSW_NONCE_MASK;
}

enum rstream_opt_found rstream_option_client_find(const struct tcphdr *th,
						  struct rstream_opt *opt)
{
	return rstream_option_find((const u8 *)(th + 1),
				   th->doff * 4 - sizeof(*th), opt);
}

/* ---- the client's connection ops ---- */

/* SYNs with the option that were not answered; perhaps the network drops them: go on without. */
#define SYNS_MAX	2

/*
 * Why a connection by this route must not have the option, and stays plain TCP; or NONE.  Within
 * one host, no carrier is faster than TCP over the loopback device.
 */
static enum rstream_reason route_excludes(const struct rstream *rs, const struct dst_entry *dst)
{
	if (inet_csk(rs->sk)->icsk_retransmits >= SYNS_MAX)
		return RSTREAM_R_NO_OPTION;
	if (dst && dst->dev->flags & IFF_LOOPBACK && !READ_ONCE(rs->rn->set.loopback))
		return RSTREAM_R_LOOPBACK;
	return rstream_ipsec_route(rs->sk, dst) ? RSTREAM_R_IPSEC : RSTREAM_R_NONE;
}

/* May a client's SYN have the option on this route? */
bool rstream_option_client_serves(struct rstream *rs, const struct dst_entry *dst)
{
	rs->reason = route_excludes(rs, dst);
	return !rs->reason;
}

/* The role for the option in this segment of a client; 0: no option. */
static u8 client_role(struct rstream *rs, const struct sk_buff *skb)
{
	const struct tcphdr *th = tcp_hdr(skb);

	if (th->rst)
		return 0;
	if (th->syn)
		return rs->mode == RSTREAM_CONNECTING && !th->ack &&
		       rstream_option_client_serves(rs, __sk_dst_get(rs->sk)) ?
		       RSW_ROLE_SYN : 0;
	if (rs->mode != RSTREAM_FRAMED || rs->hello.in || skb_is_gso(skb) ||
	    (rstream_tx_plain(rs) && tcp_sk(rs->sk)->snd_una != rs->plain.tx_start) ||
	    skb->len + RSW_OPT_LEN > tcp_sk(rs->sk)->mss_cache)
		return 0;
	return RSW_ROLE_CONFIRM;
}

static int opt_queue_xmit(struct sock *sk, struct sk_buff *skb,
			  struct flowi *fl)
{
	const struct inet_connection_sock_af_ops *orig = rstream_tcp_of(sk)->af_ops;
	struct rstream *rs = rstream_of(sk);
	struct rstream_opt opt = { .version = RSW_VERSION };
	bool room;

	if (rs && rs->af_ops) {
		orig = rs->af_ops;
		opt.prelude = rs->offer.prelude;
		opt.role = client_role(rs, skb);
		opt.nonce = opt.role == RSW_ROLE_SYN ? rs->offer.nonce : rs->offer.confirm;
		room = opt.role && rstream_option_client_insert(skb, &opt);
		if (opt.role == RSW_ROLE_SYN)
			rs->reason = room ? RSTREAM_R_NONE : RSTREAM_R_NO_OPTION_SPACE;
	}
	return orig->queue_xmit(sk, skb, fl);
}

/* Called by TCP for the SYN-ACK while the connection is being established. */
static void opt_sk_rx_dst_set(struct sock *sk, const struct sk_buff *skb)
{
	const struct inet_connection_sock_af_ops *orig = rstream_tcp_of(sk)->af_ops;
	struct rstream *rs = rstream_of(sk);
	const struct tcphdr *th = tcp_hdr(skb);
	struct rstream_opt opt;

	if (rs && rs->af_ops) {
		orig = rs->af_ops;
		if (rs->mode == RSTREAM_CONNECTING && th->syn && th->ack) {
			switch (rstream_option_client_find(th, &opt)) {
			case RSTREAM_OPT_GOOD:
				if (rs->reason)		/* our SYN had none */
					break;
				rs->offer.answer = opt.nonce;
				rs->offer.confirm = rstream_role_nonce(rs, RSW_ROLE_CONFIRM);
				rs->offer.prelude = rs->offer.prelude && opt.prelude;
				if (opt.role == RSW_ROLE_SYNACK) {
					rs->offer.confirmed = RSTREAM_CONFIRMED;
					break;
				}
				fallthrough;
			case RSTREAM_OPT_BAD:
				rs->reason = RSTREAM_R_BAD_OPTION;
				break;
			case RSTREAM_OPT_NONE:
				break;
			}
		}
	}
	orig->sk_rx_dst_set(sk, skb);
}

static void make_client(struct inet_connection_sock_af_ops *ours,
			const struct inet_connection_sock_af_ops *orig)
{
	*ours = *orig;
	ours->queue_xmit = opt_queue_xmit;
	ours->sk_rx_dst_set = opt_sk_rx_dst_set;
}

static const struct inet_connection_sock_af_ops *
mapped_ops(const struct inet_connection_sock_af_ops *orig)
{
	spin_lock_bh(&mapped_lock);
	if (!mapped_orig) {
		make_client(&client_mapped, orig);
		mapped_orig = orig;
	}
	spin_unlock_bh(&mapped_lock);
	return orig == mapped_orig ? &client_mapped : NULL;
}

void rstream_option_client_on(struct rstream *rs, const struct inet_connection_sock_af_ops *ours)
{
	struct inet_connection_sock *icsk = inet_csk(rs->sk);

	rstream_assert_held(rs);
	rs->af_ops = icsk->icsk_af_ops;
	rs->our_ops = ours;
	WRITE_ONCE(icsk->icsk_af_ops, ours);
}

void rstream_option_client(struct rstream *rs)
{
	const struct inet_connection_sock_af_ops *now = inet_csk(rs->sk)->icsk_af_ops, *ours;

	rstream_assert_held(rs);
	if (rs->af_ops && now == rs->our_ops)
		return;
	if (now == rstream_tcp4.af_ops)
		ours = &client4;
	else if (now == rstream_tcp6.af_ops)
		ours = &client6;
	else
		ours = mapped_ops(now);
	if (ours)
		rstream_option_client_on(rs, ours);
}

/* TCP may have replaced our ops. */
void rstream_option_client_off(struct rstream *rs)
{
	struct inet_connection_sock *icsk = inet_csk(rs->sk);

	if (!rs->af_ops)
		return;
	if (icsk->icsk_af_ops == rs->our_ops)
		WRITE_ONCE(icsk->icsk_af_ops, rs->af_ops);
	rs->af_ops = NULL;
}

void rstream_option_client_init(void)
{
	make_client(&client4, rstream_tcp4.af_ops);
	if (rstream_tcp6.prot)
		make_client(&client6, rstream_tcp6.af_ops);
}
