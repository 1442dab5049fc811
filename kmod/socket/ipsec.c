// SPDX-License-Identifier: GPL-2.0-only
/*
 * What IPsec, MACsec or a tunnel protects stays on TCP: RDMA would carry it unencrypted.
 *
 * Checked before the option is sent or answered, and before a ring is granted or taken up.
 * The route that was found then is stored.  A sender on a ring checks again if its route is
 * another one; a stream that only receives, when the link notices that routes or policies
 * have changed.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>

#include <net/inet_connection_sock.h>
#include <net/rtnetlink.h>
#include <net/xfrm.h>

#include "base/route.h"
#include "link/link.h"
#include "ipsec.h"
#include "stream.h"

/* setsockopt(IP_XFRM_POLICY) */
static bool has_policy(const struct sock *sk)
{
#ifdef CONFIG_XFRM
	return rcu_access_pointer(sk->sk_policy[0]) ||
	       rcu_access_pointer(sk->sk_policy[1]);
#else
	return false;
#endif
}

static bool device_protects(const struct dst_entry *dst)
{
	bool protects;

	rcu_read_lock();	/* the device may be going away */
	protects = rstream_route_protects(READ_ONCE(dst->dev));
	rcu_read_unlock();
	return protects;
}

bool rstream_ipsec_route(const struct sock *sk, const struct dst_entry *dst)
{
	if (has_policy(sk))
		return true;
	if (!dst)
		return false;
	/* dst_discard_out: packets are dropped while IKE negotiates keys */
	return dst_xfrm(dst) || dst->lwtstate || dst->flags & DST_XFRM_QUEUE ||
	       device_protects(dst) || (dst->output == dst_discard_out && !dst->error);
}

#ifdef CONFIG_XFRM
/* What the peer's next packet looks like to policies.  Return: NULL without memory */
static struct sk_buff *next_packet(const struct sock *sk, const struct dst_entry *dst)
{
	bool v6 = sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr);
	struct sk_buff *skb = alloc_skb(sizeof(struct ipv6hdr) + sizeof(struct tcphdr), GFP_ATOMIC);
	const struct inet_sock *inet = inet_sk(sk);
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reset_network_header(skb);
	if (v6) {
		*(struct ipv6hdr *)skb_put_zero(skb, sizeof(struct ipv6hdr)) = (struct ipv6hdr) {
			.version = 6,
			.nexthdr = IPPROTO_TCP,
			.payload_len = htons(sizeof(*th)),
			.saddr = sk->sk_v6_daddr,
			.daddr = sk->sk_v6_rcv_saddr,
		};
	} else {
		*(struct iphdr *)skb_put_zero(skb, sizeof(struct iphdr)) = (struct iphdr) {
			.version = 4,
			.ihl = sizeof(struct iphdr) / 4,
			.protocol = IPPROTO_TCP,
			.tot_len = htons(sizeof(struct iphdr) + sizeof(*th)),
			.saddr = inet->inet_daddr,
			.daddr = inet->inet_rcv_saddr,
		};
	}
	skb->protocol = htons(v6 ? ETH_P_IPV6 : ETH_P_IP);
	skb_set_transport_header(skb, skb->len);
	th = skb_put_zero(skb, sizeof(*th));
	th->source = inet->inet_dport;
	th->dest = inet->inet_sport;
	th->doff = sizeof(*th) / 4;
	skb->dev = dst->dev;
	skb->skb_iif = dst->dev->ifindex;
	return skb;
}

/*
 * Does a policy for incoming packets drop the peer's, because they are not encrypted or not allowed
 * at all?  It counts them as dropped.
 */
static bool drops_clear(struct sock *sk, const struct dst_entry *dst)
{
	const struct net *net = sock_net(sk);
	struct sk_buff *skb;
	bool passes;

	if (!READ_ONCE(net->xfrm.policy_count[XFRM_POLICY_IN]) &&
	    READ_ONCE(net->xfrm.policy_default[XFRM_POLICY_IN]) == XFRM_USERPOLICY_ACCEPT)
		return false;
	rcu_read_lock();	/* the device may be going away */
	skb = next_packet(sk, dst);
	passes = skb && (skb->protocol == htons(ETH_P_IP) ?
			 xfrm4_policy_check(sk, XFRM_POLICY_IN, skb) :
			 xfrm6_policy_check(sk, XFRM_POLICY_IN, skb));
	rcu_read_unlock();
	kfree_skb(skb);
	return !passes;
}
#else
static bool drops_clear(struct sock *sk, const struct dst_entry *dst)
{
	return false;
}
#endif

/* There is no route: is that because a policy blocks it, or asks for what is impossible now? */
static bool refused(const struct sock *sk, int err)
{
#ifdef CONFIG_XFRM
	if (READ_ONCE(sock_net(sk)->xfrm.policy_count[XFRM_POLICY_OUT]) || has_policy(sk))
		return true;
#endif
	return err == -EPERM;
}

/* A route that is found now, without its @dst and @genid. */
static struct rstream_route route_now(const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct rstream_route now = {
		.ip = rcu_access_pointer(inet->inet_opt),
		.uid = READ_ONCE(sk->sk_uid),
		.mark = READ_ONCE(sk->sk_mark),
		.device = READ_ONCE(sk->sk_bound_dev_if),
		.tos = READ_ONCE(inet->tos),
	};

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		const struct ipv6_pinfo *np = inet6_sk(sk);

		now.ip = rcu_access_pointer(np->opt);
		now.label = READ_ONCE(np->flow_label);
		now.tclass = READ_ONCE(np->tclass);
	}
#endif
	return now;
}

/* Has the program set such an option since the route was found? */
static bool options_changed(const struct rstream *rs)
{
	const struct rstream_route *was = &rs->route;
	struct rstream_route is = route_now(rs->sk);

	return is.ip != was->ip || !uid_eq(is.uid, was->uid) || is.mark != was->mark ||
	       is.device != was->device || is.label != was->label || is.tos != was->tos ||
	       is.tclass != was->tclass;
}

void rstream_ipsec_forget(struct rstream *rs)
{
	dst_release(rs->route.dst);
	rs->route.dst = NULL;
}

enum rstream_reason rstream_ipsec(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	struct dst_entry *dst;
	int genid, err;

	rstream_assert_held(rs);
	genid = rstream_route_genid(sock_net(sk));	/* first: may be older than the route */
	/* as TCP before a retransmission: keeps the route if it is still valid */
	err = inet_csk(sk)->icsk_af_ops->rebuild_header(sk);
	if (err) {
		rstream_ipsec_forget(rs);
		return refused(sk, err) ? RSTREAM_R_IPSEC : RSTREAM_R_WAIT_LINK;
	}
	dst = __sk_dst_get(sk);
	if (rstream_ipsec_route(sk, dst) || drops_clear(sk, dst)) {
		rstream_ipsec_forget(rs);
		return RSTREAM_R_IPSEC;
	}
	rstream_ipsec_forget(rs);
	rs->route = route_now(sk);
	rs->route.dst = dst_clone(dst);
	rs->route.genid = genid;
	return RSTREAM_R_NONE;
}

bool rstream_ipsec_moved(const struct rstream *rs)
{
	struct sock *sk = rs->sk;
	u32 cookie = 0;

	rstream_assert_held(rs);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		cookie = inet6_sk(sk)->dst_cookie;
#endif
	return !rs->route.dst || __sk_dst_check(sk, cookie) != rs->route.dst;
}

void rstream_ipsec_look(struct rstream *rs)
{
	const struct sock *sk = rs->sk;
	bool own = rs->route.genid == rstream_route_genid(sock_net(sk)) || has_policy(sk) ||
		   options_changed(rs);

	if ((!rs->txring && !rs->rxring) || rstream_ipsec(rs) != RSTREAM_R_IPSEC)
		return;
	/* by an option of the program, which does not concern other streams of the link */
	if (own) {
		rstream_fail(rs, RSTREAM_R_IPSEC, ENETUNREACH);
		return;
	}
	/* without a REVOKE, a sender can leave a ring only this way; the next grant is refused */
	if (rs->txring)
		rstream_link_break(rs->txring->link, RSTREAM_END_IPSEC);
	if (rs->rxring)
		rstream_link_break(rs->rxring->link, RSTREAM_END_IPSEC);
}

bool rstream_tunnelled(const struct rstream *rs)
{
	const struct dst_entry *dst = __sk_dst_get(rs->sk);

	rstream_assert_held(rs);
	return !dst || device_protects(dst);
}
