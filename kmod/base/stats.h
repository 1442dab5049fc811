/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of a namespace, per CPU, and the named reasons.
 *
 * RSTREAM_MIB_LIST and RSTREAM_REASON_LIST are the only places where counters
 * and reasons are listed in the kernel; netlink's attributes have the same
 * order (checked by static_assert in netlink.c).
 */
#ifndef RSTREAM_STATS_H
#define RSTREAM_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>
#include <net/net_namespace.h>

/* X(name, "what it counts") */
#define RSTREAM_MIB_LIST(X) \
	X(ACTIVE_OPENS, "connect() calls that sent the TCP option") \
	X(PASSIVE_OPENS, "accepted connections whose SYN had the TCP option") \
	X(PLAIN_ACCEPTS, "accepted connections that are plain TCP") \
	X(FRAMED, "connections that exchanged HELLOs") \
	X(FALLBACKS, "rdmastream connections that became plain TCP") \
	X(RESETS, "connections that this host reset, for any reason") \
	X(GRANTS_TX, "rings granted to peers") \
	X(GRANTS_RX, "rings granted by peers") \
	X(SWITCHES_TX, "sending directions that switched to another carrier") \
	X(SWITCHES_RX, "receiving directions that switched to another carrier") \
	X(TCP_TX_BYTES, "stream bytes sent on the tcp carrier") \
	X(TCP_TX_MSGS, "DATA records sent on the tcp carrier") \
	X(TCP_RX_BYTES, "stream bytes received on the tcp carrier") \
	X(TCP_RX_MSGS, "DATA records received on the tcp carrier") \
	X(RING_TX_BYTES, "stream bytes sent on ring carriers") \
	X(RING_TX_MSGS, "messages sent on ring carriers") \
	X(RING_RX_BYTES, "stream bytes received on ring carriers") \
	X(RING_RX_MSGS, "messages received on ring carriers") \
	X(CREDITS_SILENT, "credits written without an interrupt") \
	X(CREDITS_INTR, "credits written with an interrupt") \
	X(LINKS_UP, "links that came up") \
	X(LINKS_FAILED, "failed attempts to establish a link") \
	X(LINKS_LOST, "established links that broke") \
	X(LINKS_IDLE, "established links that were closed because they were idle") \
	X(STALL_RING, "sends that found no space in the ring") \
	X(STALL_SLOT, "sends that found no free send-queue slot, or queued behind other streams") \
	X(STALL_CREDIT, "sends that found no receive-queue credit") \
	X(STALL_WINDOW, "sends that found the peer's receive window full") \
	X(LINKS_REJECTED, "link requests from peers that this host refused") \
	X(WR_ERRORS, "work requests that completed with an error") \
	X(PROBES, "liveness probes posted") \
	X(RESUMES, "sending directions that lost a ring and continued over TCP") \
	X(RESENT_BYTES, "stream bytes sent again after a ring was lost") \
	X(REVOKES_TX, "rings that this host took back") \
	X(REVOKES_RX, "rings that peers took back") \
	X(LINKS_DRAINED, "established links that were closed by a drain of this host") \
	X(GRANTS_REFUSED_RX, "rings granted by peers that this host did not use") \
	X(GRANTS_REFUSED_TX, "rings granted to peers that they did not use") \
	X(LINKS_FLAPPED, "links that broke soon, which delays the next attempt") \
	X(LINKS_ALT_PATH, "links that came up between addresses other than those of TCP") \
	X(STALL_WINDOW_US, "microseconds that streams waited for the peer's receive window") \
	X(STALL_RING_US, "microseconds that streams waited for space in a ring") \
	X(STALL_SLOT_US, "microseconds that streams waited for a send slot, or behind others") \
	X(STALL_CREDIT_US, "microseconds that streams waited for a receive-queue credit") \
	X(SENT_PAGE_BYTES, "stream bytes sent in place, without copying") \
	X(SENT_COPY_BYTES, "stream bytes copied to be sent") \
	X(SPLICED_PAGE_BYTES, "stream bytes spliced out without copying") \
	X(SPLICED_COPY_BYTES, "stream bytes copied to be spliced out") \
	X(WRS, "send work requests posted") \
	X(WRS_SIGNALLED, "send work requests posted that were signalled") \
	X(POST_SENDS, "calls of ib_post_send()") \
	X(COMPLETIONS, "work completions processed") \
	X(SPANS, "directions sent without records, because no ring was available") \
	X(RINGS_MOVED, "rings that were busy and moved to a link with fewer rings")

enum rstream_mib_item {
#define X(name, text) RSTREAM_MIB_##name,
	RSTREAM_MIB_LIST(X)
#undef X
	RSTREAM_MIB_MAX
};

/*
 * Why a connection is plain TCP, is framed but not on a ring, has switched a direction to
 * another carrier, waits to send, or was reset; and why a link has ended, or was refused.
 */
/* X(name, "text") */
#define RSTREAM_REASON_LIST(X) \
	X(NONE, "no reason: nothing prevents RDMA") \
	X(OFF, "negotiation is switched off") \
	X(NO_DEVICE, "this namespace has no usable RDMA device") \
	X(FASTOPEN, "TCP Fast Open was used") \
	X(NO_MEMORY, "no memory for the stream") \
	X(NO_OPTION, "peer did not send the TCP option") \
	X(BAD_OPTION, "peer's TCP option is malformed, or an echo of this host's option") \
	X(NO_OPTION_SPACE, "no room for the option in the TCP header") \
	X(NO_HELLO, "peer's first bytes are not a HELLO") \
	X(SPOKE_FIRST, "program sent data before the peer confirmed the option") \
	X(VERSION, "no common protocol version") \
	X(LOOPBACK, "client and server are in the same namespace") \
	X(RING_OFF, "granting rings is switched off") \
	X(WAIT_BYTES, "too few bytes transferred so far") \
	X(WAIT_LINK, "link is being established") \
	X(LINK_FAILED, "link could not be established") \
	X(RMB_LIMIT, "limit on ring memory reached") \
	X(HELLO_TIMEOUT, "peer's HELLO did not arrive in time") \
	X(BAD_HELLO, "peer's HELLO is malformed") \
	X(LATE_HELLO, "peer's HELLO arrived after the decision for plain TCP") \
	X(BAD_RECORD, "peer sent a malformed record") \
	X(BAD_WINDOW, "peer sent beyond the receive window") \
	X(BAD_OFFSET, "peer sent an impossible stream offset") \
	X(BAD_GRANT, "peer granted an impossible ring") \
	X(BAD_SWITCH, "peer switched to an unknown ring") \
	X(BAD_CREDIT, "peer acknowledged data that was never sent") \
	X(RING_OVERRUN, "peer wrote more than the ring has room for") \
	X(TRUNCATED, "TCP ended before the stream did") \
	X(LINK_LOST, "link to which the ring belonged broke") \
	X(BAD_RESUME, "peer sent an impossible count for a lost ring") \
	X(RING_IDLE, "ring was taken back because it was idle") \
	X(RING_REVOKED, "peer took its ring back") \
	X(RING_GRANTED, "a ring was granted and is in use") \
	X(DRAINED, "this host is drained of RDMA") \
	X(PEER_DRAINED, "peer is drained of RDMA") \
	X(GRANT_REFUSED, "peer did not use the ring that it was granted") \
	X(STALL_WINDOW, "peer's receive window is full: its program does not read") \
	X(STALL_RING, "ring is full: the peer's program does not read") \
	X(STALL_SLOT, "link's send queue is full, or other streams are first") \
	X(STALL_CREDIT, "peer has no free receive on the link") \
	X(LINK_MALFORMED, "peer's link request is not one of rdmastream") \
	X(LINK_UNKNOWN, "peer's link request names no existing connection") \
	X(LINK_BUSY, "no memory, no device or too many links for a peer's link request") \
	X(EXCLUDED, "a rule of the program excludes this peer or port") \
	X(LINK_UNAUTHENTICATED, "peer's link request is not authentic") \
	X(PEER_LIMIT, "too many peers, in total or at one address") \
	X(IPSEC, "IPsec, MACsec or a tunnel may protect the connection, but not RDMA") \
	X(ORPHAN_LIMIT, "too many closed sockets with data to send, or no TCP memory") \
	X(NO_COMMON_TRANSPORT, "one host has InfiniBand or RoCE, the other iWARP")

enum rstream_reason {
#define X(name, text) RSTREAM_R_##name,
	RSTREAM_REASON_LIST(X)
#undef X
	RSTREAM_R_MAX
};

/* What a sender may wait for: these reasons are consecutive, and so are the counters of time. */
#define RSTREAM_STALLS	4
static_assert(RSTREAM_R_STALL_CREDIT - RSTREAM_R_STALL_WINDOW ==
	      RSTREAM_STALLS - 1);
static_assert(RSTREAM_MIB_STALL_CREDIT_US - RSTREAM_MIB_STALL_WINDOW_US ==
	      RSTREAM_STALLS - 1);

struct rstream_mib {
	u64 item[RSTREAM_MIB_MAX];
	u64 reason[RSTREAM_R_MAX];	/* connections (and link requests) with this reason */
	u64 switched[RSTREAM_R_MAX];	/* changes of carrier for this reason */
};

u64 rstream_mib_sum(struct net *net, enum rstream_mib_item item);
u64 rstream_mib_reason_sum(struct net *net, enum rstream_reason reason);
u64 rstream_mib_switched_sum(struct net *net, enum rstream_reason reason);

int rstream_mib_net_init(struct net *net);
void rstream_mib_net_exit(struct net *net);

#endif
