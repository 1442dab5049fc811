/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attributes used in both netlink replies and events.
 */
#ifndef RSTREAM_NLATTR_H
#define RSTREAM_NLATTR_H

#include <linux/socket.h>
#include <net/netlink.h>

/* Adds a nest of the set "endpoint"; AF_UNSPEC is left out.  Return: 0 or an error. */
int rstream_nla_put_endpoint(struct sk_buff *skb, int attr,
			     const struct sockaddr *sa);

static inline int put_u64(struct sk_buff *skb, int attr, u64 val)
{
	return nla_put_u64_64bit(skb, attr, val, 0);	/* 0: the pad attribute of each set */
}

/* 0 means "none", and is left out. */
static inline int put_u32_if(struct sk_buff *skb, int attr, u32 val)
{
	return val ? nla_put_u32(skb, attr, val) : 0;
}

#endif
