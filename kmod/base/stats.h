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
	X(ACTIVE_OPENS, "connects that sent the option") \
	X(PASSIVE_OPENS, "accepted connections whose SYN had the option") \
	X(PLAIN_ACCEPTS, "accepted connections that are plain TCP") \
	X(FRAMED, "connections whose HELLOs were exchanged") \
	X(RAW, "connections of ours that became plain TCP") \
	X(RESETS, "connections reset by us, all reasons") \
	X(GRANTS_SENT, "rings granted to peers") \
	X(GRANTS_RCVD, "rings granted to us") \
	X(SWITCHES_TX, "streams of ours moved to another carrier") \
	X(SWITCHES_RX, "peers' streams moved to another carrier") \
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
	X(LINKS_FAILED, "tries to make a link that failed") \
	X(LINKS_LOST, "links that were up and broke") \
	X(LINKS_CLOSED, "links closed because idle") \
	X(STALL_RING, "sends that found no space in the ring") \
	X(STALL_SLOT, "sends that found no send-queue slot, or others before them") \
	X(STALL_RQ, "sends that found no receive-queue credit") \
	X(STALL_WINDOW, "sends that found the peer's window closed") \
	X(CM_REJECTED, "link requests of peers that we refused") \
	X(WR_ERRORS, "work requests completed in error") \
	X(PROBES, "liveness probes posted") \
	X(RESUMES, "streams of ours that lost a ring and went on over TCP") \
	X(RESENT_BYTES, "stream bytes sent again after a ring was lost") \
	X(REVOKES_TX, "rings that we took back") \
	X(REVOKES_RX, "rings that peers took back") \
	X(LINKS_DRAINED, "links that were up and ended because this host is drained") \
	X(GRANTS_REFUSED, "rings granted to us that we did not take up") \
	X(GRANTS_UNUSED, "rings granted to peers that they did not take up") \
	X(LINKS_FLAPPED, "links that broke soon: the next one waits longer") \
	X(LINKS_OTHER, "links that came up between other addresses than TCP's") \
	X(STALL_WINDOW_US, "microseconds that streams waited for the peer's window") \
	X(STALL_RING_US, "microseconds that streams waited for space in a ring") \
	X(STALL_SLOT_US, "microseconds that streams waited for a send-queue slot or a turn") \
	X(STALL_CREDIT_US, "microseconds that streams waited for a receive-queue credit") \
	X(SENT_PAGE_BYTES, "stream bytes sent from the pages where they were") \
	X(SENT_COPY_BYTES, "stream bytes that were copied to be sent") \
	X(SPLICED_PAGE_BYTES, "stream bytes spliced out in the pages where they came") \
	X(SPLICED_COPY_BYTES, "stream bytes that were copied to be spliced out") \
	X(WRS, "work requests posted") \
	X(WRS_SIGNALLED, "of these, which tell when they have completed") \
	X(POSTS, "calls of the RDMA device to post work requests") \
	X(COMPLETIONS, "completions of sends and receives")

enum rstream_mib_item {
#define X(name, text) RSTREAM_MIB_##name,
	RSTREAM_MIB_LIST(X)
#undef X
	RSTREAM_MIB_MAX
};

/*
 * Why a connection is plain TCP, why it is framed but not on a ring, why one of
 * its directions has switched to another carrier, what its sender waits for, why it
 * was reset; and why a link has ended, or was refused.
 */
/* X(name, "text") */
#define RSTREAM_REASON_LIST(X) \
	X(NONE, "no reason: as wished") \
	X(OFF, "negotiation is switched off") \
	X(NO_DEVICE, "no RDMA device can be used in this namespace") \
	X(FASTOPEN, "TCP Fast Open was used") \
	X(NO_MEMORY, "no memory for the stream") \
	X(NO_OPTION, "no TCP option came from the peer") \
	X(BAD_OPTION, "peer's TCP option is malformed or an echo of ours") \
	X(NO_ROOM, "no room for the option in the TCP header") \
	X(NO_HELLO, "peer's first bytes are no HELLO") \
	X(SPOKE_FIRST, "program sent before the peer's HELLO was certain") \
	X(VERSION, "no common protocol version") \
	X(SELF, "connection of the host with itself") \
	X(UPGRADE_OFF, "upgrade is switched off") \
	X(WAIT_BYTES, "too few bytes so far") \
	X(WAIT_LINK, "link is being made") \
	X(LINK_FAILED, "link could not be made") \
	X(RMB_LIMIT, "ceiling of ring memory reached") \
	X(HELLO_TIMEOUT, "peer's HELLO did not come in time") \
	X(BAD_HELLO, "peer's HELLO is malformed") \
	X(LATE_HELLO, "peer's HELLO came after the decision for plain TCP") \
	X(BAD_RECORD, "peer sent a malformed record") \
	X(BAD_WINDOW, "peer sent more than its window") \
	X(BAD_OFFSET, "peer named an impossible stream offset") \
	X(BAD_GRANT, "peer granted an impossible ring") \
	X(BAD_SWITCH, "peer switched to an unknown ring") \
	X(BAD_CREDIT, "peer acknowledged what was never sent") \
	X(RING_OVERRUN, "peer wrote more than the ring holds") \
	X(TRUNCATED, "TCP ended before the stream did") \
	X(LINK_LOST, "link of the stream's ring broke") \
	X(BAD_RESUME, "peer resumed a lost ring from an impossible count") \
	X(RING_IDLE, "ring was taken back, because the stream was idle") \
	X(RING_REVOKED, "peer took its ring back") \
	X(UPGRADED, "a ring was granted and taken up") \
	X(DRAINED, "this host is drained of RDMA") \
	X(PEER_DRAINED, "peer is drained of RDMA") \
	X(GRANT_REFUSED, "peer did not take up the ring that it was granted") \
	X(STALL_WINDOW, "peer's window is closed: its program does not read") \
	X(STALL_RING, "no space in the ring: the peer's program does not read") \
	X(STALL_SLOT, "no slot in the send queue of the link, or others before it") \
	X(STALL_CREDIT, "no receive of the peer is free on the link") \
	X(LINK_MALFORMED, "peer's request for a link is none of ours") \
	X(LINK_STRANGER, "peer's request for a link names no living connection") \
	X(LINK_BUSY, "no memory, no device or too many links for a request of the peer") \
	X(EXCLUDED, "program does not want this peer or port") \
	X(LINK_UNPROVEN, "request for a link does not prove whose it is") \
	X(PEER_LIMIT, "too many peers, here or at one address") \
	X(IPSEC, "IPsec protects the connection, and would not protect RDMA") \
	X(CLOSED_LIMIT, "too many closed sockets still send, or TCP is out of memory")

enum rstream_reason {
#define X(name, text) RSTREAM_R_##name,
	RSTREAM_REASON_LIST(X)
#undef X
	RSTREAM_R_MAX
};

/* What a sender may wait for: reasons in a row, and the counters of the time. */
#define RSTREAM_STALLS	4
static_assert(RSTREAM_R_STALL_CREDIT - RSTREAM_R_STALL_WINDOW ==
	      RSTREAM_STALLS - 1);
static_assert(RSTREAM_MIB_STALL_CREDIT_US - RSTREAM_MIB_STALL_WINDOW_US ==
	      RSTREAM_STALLS - 1);

struct rstream_mib {
	u64 item[RSTREAM_MIB_MAX];
	u64 reason[RSTREAM_R_MAX];	/* connections that ended up so */
	u64 switched[RSTREAM_R_MAX];	/* streams that changed their carrier */
};

u64 rstream_mib_sum(struct net *net, enum rstream_mib_item item);
u64 rstream_mib_reason_sum(struct net *net, enum rstream_reason reason);
u64 rstream_mib_switched_sum(struct net *net, enum rstream_reason reason);
const char *rstream_reason_text(enum rstream_reason reason);

int rstream_mib_net_init(struct net *net);
void rstream_mib_net_exit(struct net *net);

#endif
