/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between kernels: lookup of IPv6 routes. */
#ifndef RSTREAM_COMPAT_NET_IPV6_H
#define RSTREAM_COMPAT_NET_IPV6_H

#include_next <net/ipv6.h>

/* Since 7.x, IPv6 cannot be a module, so it needs no stubs (see flags.mk). */
#ifdef RSTREAM_HAVE_IPV6_STUBS
#include <net/ipv6_stubs.h>

static inline struct dst_entry *rstream_ip6_lookup(struct net *net, struct flowi6 *fl6)
{
	return ipv6_stub->ipv6_dst_lookup_flow(net, NULL, fl6, NULL);
}
#else
static inline struct dst_entry *rstream_ip6_lookup(struct net *net, struct flowi6 *fl6)
{
	return ip6_dst_lookup_flow(net, NULL, fl6, NULL);
}
#endif

#endif
