// SPDX-License-Identifier: GPL-2.0-only
/*
 * What IPsec, MACsec or a tunnel protects stays on TCP: RDMA would carry it in clear.
 *
 * Asked before the option is sent or answered, and before a ring is granted or taken up;
 * and again, for a connection that has rings, when the link notices that routes or
 * policies have changed.  Keeps nothing.
 */
#include <net/inet_connection_sock.h>
#include <net/rtnetlink.h>
#include <net/xfrm.h>

#include "link/link.h"
#include "ipsec.h"

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

	rcu_read_lock();	/* the device may be about to go */
	protects = rstream_dev_protects(READ_ONCE(dst->dev));
	rcu_read_unlock();
	return protects;
}

bool rstream_ipsec_route(const struct sock *sk, const struct dst_entry *dst)
{
	if (has_policy(sk))
		return true;
	if (!dst)
		return false;
	/* the last: its keys are still being agreed on, and packets are dropped */
	return dst_xfrm(dst) || dst->lwtstate || dst->flags & DST_XFRM_QUEUE ||
	       device_protects(dst) || (dst->output == dst_discard_out && !dst->error);
}

enum rstream_reason rstream_ipsec(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	rstream_assert_held(rs);
	/* as TCP does before it sends again: keeps the route if it is still good */
	if (inet_csk(sk)->icsk_af_ops->rebuild_header(sk))
		return RSTREAM_R_WAIT_LINK;
	return rstream_ipsec_route(sk, __sk_dst_get(sk)) ? RSTREAM_R_IPSEC : RSTREAM_R_NONE;
}

void rstream_ipsec_look(struct rstream *rs)
{
	if ((!rs->txring && !rs->rxring) || rstream_ipsec(rs) != RSTREAM_R_IPSEC)
		return;
	/* a sender can't leave a ring by itself, and the next grant is refused */
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
