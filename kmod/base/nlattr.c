// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes used in both netlink replies and events.  No state.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/rdmastream_netlink.h>

#include "nlattr.h"

static int put_ip4(struct sk_buff *skb, const struct sockaddr_in *sin)
{
	return nla_put_in_addr(skb, RDMASTREAM_A_ENDPOINT_ADDR,
			       sin->sin_addr.s_addr) ||
	       nla_put_be16(skb, RDMASTREAM_A_ENDPOINT_PORT, sin->sin_port);
}

static int put_ip6(struct sk_buff *skb, const struct sockaddr_in6 *sin6)
{
	return nla_put_in6_addr(skb, RDMASTREAM_A_ENDPOINT_ADDR,
				&sin6->sin6_addr) ||
	       nla_put_be16(skb, RDMASTREAM_A_ENDPOINT_PORT,
			    sin6->sin6_port) ||
	       put_u32_if(skb, RDMASTREAM_A_ENDPOINT_SCOPE,
			  sin6->sin6_scope_id);
}

int rstream_nla_put_endpoint(struct sk_buff *skb, int attr,
			     const struct sockaddr *sa)
{
	struct nlattr *nest;
	int err;

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return 0;
	nest = nla_nest_start(skb, attr);
	if (!nest)
		return -EMSGSIZE;
	if (sa->sa_family == AF_INET)
		err = put_ip4(skb, (const struct sockaddr_in *)sa);
	else
		err = put_ip6(skb, (const struct sockaddr_in6 *)sa);
	nla_nest_end(skb, nest);
	return err;
}
