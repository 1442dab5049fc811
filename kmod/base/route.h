/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RSTREAM_ROUTE_H
#define RSTREAM_ROUTE_H

#include <linux/types.h>

struct net;
struct net_device;

/**
 * rstream_route_protects() - may @dev encrypt packets?
 * @dev:	the device of a route
 *
 * True if it is a tunnel, or if there is MACsec below it.  RDMA would bypass it, and send the
 * data unencrypted.
 *
 * Context: RCU read lock.
 */
bool rstream_route_protects(struct net_device *dev);

/* Is there any device or policy that may encrypt packets, and that a new route may lead to? */
bool rstream_route_net_protects(struct net *net);

/* Changes with routes and IPsec policies.  Any context. */
int rstream_route_genid(const struct net *net);

#endif
