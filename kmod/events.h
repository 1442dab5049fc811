/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens, told to whoever wants to know: tracepoints, and netlink's group
 * "events".  Nothing is made of an event without a listener.
 */
#ifndef RSTREAM_EVENTS_H
#define RSTREAM_EVENTS_H

#include "info.h"

struct rstream;

/**
 * rstream_event_switch() - one direction has changed its carrier
 * @rs:		the socket, held
 * @way:	the direction
 * @to:		the carrier from now on
 * @offset:	of the first byte on it
 * @reason:	why
 *
 * Also counts it, and notes it in @rs.
 */
void rstream_event_switch(struct rstream *rs, enum rstream_way_info way,
			  enum rstream_carrier_info to, u64 offset,
			  enum rstream_reason reason);

/**
 * rstream_event_stall() - what a sender waits for has changed
 * @rs:		the socket, held
 * @why:	STALL_..., or NONE: it goes on
 *
 * Also counts the time, and notes it in @rs.
 */
void rstream_event_stall(struct rstream *rs, enum rstream_reason why);

/**
 * rstream_event_link() - a link has come up or ended
 * @link:	the link, locked; its state is UP or BROKEN
 * @reason:	why it ended, or NONE
 * @why:	the same in words, or ""
 */
void rstream_event_link(const struct rstream_link *link,
			enum rstream_reason reason, const char *why);

/**
 * rstream_event_link_refused() - a peer asked for a link in vain
 * @net:	that it asked
 * @from:	its RDMA address
 * @reason:	why
 *
 * Also counts it.  Process context.
 */
void rstream_event_link_refused(struct net *net,
				const struct sockaddr_storage *from,
				enum rstream_reason reason);

/* The namespace is, or is no longer, drained.  Process context. */
void rstream_event_drain(struct net *net, bool on);

/* A setting of the namespace has changed.  Process context. */
void rstream_event_setting(struct net *net, const char *name, u64 val);

void rstream_events_stop(void);		/* netlink's family is about to go */

#endif
