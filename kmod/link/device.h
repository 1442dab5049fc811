/* SPDX-License-Identifier: GPL-2.0-only */
/* RDMA devices that links can use. */
#ifndef RSTREAM_DEVICE_H
#define RSTREAM_DEVICE_H

#include "link_priv.h"

int rstream_dev_init(void);
void rstream_dev_exit(void);

/* Return: depth of each queue of a link, or -EOPNOTSUPP if the device does not allow enough. */
int rstream_dev_depth(const struct ib_device_attr *attr);

/*
 * May @net listen?  rdma_cm would listen on the devices of other namespaces, too, which does not
 * matter for those that tell its listeners apart by namespace.  iWARP devices do not: on one of the
 * host, the listener would take a TCP port of the host.
 */
bool rstream_dev_may_listen(const struct net *net);

/*
 * Is the RoCE address in @net that rdma_cm has bound @id to?  Other transports: true, except for
 * loopback addresses outside the initial namespace.
 */
bool rstream_dev_is_of(const struct rdma_cm_id *id, const struct net *net);

/* After this, the removal of the device waits for rstream_dev_detach().  Return: 0 or -ENODEV. */
int rstream_dev_attach(struct rstream_link *link, struct ib_device *ib);
void rstream_dev_detach(struct rstream_link *link);

/* RDMA addresses that @net can use.  Return: their number. */
unsigned int rstream_dev_addrs(struct net *net, struct rstream_addr *to,
			       unsigned int max);

#endif
