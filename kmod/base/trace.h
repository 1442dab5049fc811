/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, /sys/kernel/tracing/events/rdmastream/: links that come up and end, grants,
 * switches, and the recovery of a lost ring; connections that become plain TCP, are reset or
 * wait.  See "Tracing" in Documentation/using.rst.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdmastream

#if !defined(RSTREAM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RSTREAM_TRACE_H

#include <linux/in6.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "addr.h"
#include "events.h"
#include "net.h"
#include "stats.h"

struct sock;

/* Make names available to tools that decode the raw records. */
#define RSTREAM_TRACE_ENUM(name, text)	TRACE_DEFINE_ENUM(RSTREAM_R_##name);
RSTREAM_REASON_LIST(RSTREAM_TRACE_ENUM)

#define RSTREAM_TRACE_NAME(name, text)	{ RSTREAM_R_##name, #name },
#define rstream_show_reason(reason) \
	__print_symbolic(reason, RSTREAM_REASON_LIST(RSTREAM_TRACE_NAME) \
			 { RSTREAM_R_MAX, "?" })

TRACE_DEFINE_ENUM(RSTREAM_INFO_CARRIER_TCP);
TRACE_DEFINE_ENUM(RSTREAM_INFO_CARRIER_RING);
#define rstream_show_carrier(carrier) \
	__print_symbolic(carrier, { RSTREAM_INFO_CARRIER_TCP, "tcp" }, \
			 { RSTREAM_INFO_CARRIER_RING, "ring" })

TRACE_DEFINE_ENUM(RSTREAM_DIR_TX);
TRACE_DEFINE_ENUM(RSTREAM_DIR_RX);
#define rstream_show_way(dir) \
	__print_symbolic(dir, { RSTREAM_DIR_TX, "tx" }, { RSTREAM_DIR_RX, "rx" })

DECLARE_EVENT_CLASS(rstream_link,
	TP_PROTO(u32 id, const u8 *peer, const char *device, u8 reason,
		 const char *why),
	TP_ARGS(id, peer, device, reason, why),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(u8, peer, RSTREAM_INSTANCE_LEN)
		__array(char, device, 64)
		__array(char, why, 40)
		__field(u8, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		memcpy(__entry->peer, peer, RSTREAM_INSTANCE_LEN);
		strscpy(__entry->device, device, sizeof(__entry->device));
		strscpy(__entry->why, why, sizeof(__entry->why));
		__entry->reason = reason;
	),
	TP_printk("link=%u peer=%s device=%s reason=%s why=\"%s\"",
		  __entry->id,
		  __print_hex_str(__entry->peer, RSTREAM_INSTANCE_LEN),
		  __entry->device, rstream_show_reason(__entry->reason),
		  __entry->why)
);

DEFINE_EVENT(rstream_link, rstream_link_up,
	TP_PROTO(u32 id, const u8 *peer, const char *device, u8 reason,
		 const char *why),
	TP_ARGS(id, peer, device, reason, why));

DEFINE_EVENT(rstream_link, rstream_link_lost,
	TP_PROTO(u32 id, const u8 *peer, const char *device, u8 reason,
		 const char *why),
	TP_ARGS(id, peer, device, reason, why));

/* a peer's link request was refused */
TRACE_EVENT(rstream_link_refused,
	TP_PROTO(const struct sockaddr_storage *from, u8 reason),
	TP_ARGS(from, reason),
	TP_STRUCT__entry(
		__array(u8, from, sizeof(struct sockaddr_in6))
		__field(u8, reason)
	),
	TP_fast_assign(
		memcpy(__entry->from, from, sizeof(struct sockaddr_in6));
		__entry->reason = reason;
	),
	TP_printk("from=%pISpc reason=%s", __entry->from,
		  rstream_show_reason(__entry->reason))
);

/* Events of one direction of a socket. */
DECLARE_EVENT_CLASS(rstream_dir,
	TP_PROTO(const struct sock *sk, u8 dir, u32 epoch, u64 offset,
		 u8 reason),
	TP_ARGS(sk, dir, epoch, offset, reason),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__array(u8, local, sizeof(struct sockaddr_in6))
		__array(u8, remote, sizeof(struct sockaddr_in6))
		__field(u64, offset)
		__field(u32, epoch)
		__field(u8, dir)
		__field(u8, reason)
	),
	TP_fast_assign(
		__entry->sk = sk;
		rstream_addr_of(sk, false, (void *)__entry->local);
		rstream_addr_of(sk, true, (void *)__entry->remote);
		__entry->offset = offset;
		__entry->epoch = epoch;
		__entry->dir = dir;
		__entry->reason = reason;
	),
	TP_printk("sk=%p local=%pISpc remote=%pISpc %s epoch=%u offset=%llu reason=%s",
		  __entry->sk, __entry->local, __entry->remote,
		  rstream_show_way(__entry->dir), __entry->epoch,
		  __entry->offset, rstream_show_reason(__entry->reason))
);

/* rx: this host granted a ring, tx: the peer did */
DEFINE_EVENT(rstream_dir, rstream_grant,
	TP_PROTO(const struct sock *sk, u8 dir, u32 epoch, u64 offset,
		 u8 reason),
	TP_ARGS(sk, dir, epoch, offset, reason));

/* tx: this host did not use the peer's ring, rx: the peer did not use this host's */
DEFINE_EVENT(rstream_dir, rstream_refuse,
	TP_PROTO(const struct sock *sk, u8 dir, u32 epoch, u64 offset,
		 u8 reason),
	TP_ARGS(sk, dir, epoch, offset, reason));

/* rx: a ring was lost, and data up to @offset has arrived; tx: the peer reports this */
DEFINE_EVENT(rstream_dir, rstream_resume,
	TP_PROTO(const struct sock *sk, u8 dir, u32 epoch, u64 offset,
		 u8 reason),
	TP_ARGS(sk, dir, epoch, offset, reason));

/* Events of a socket as a whole. */
DECLARE_EVENT_CLASS(rstream_sock,
	TP_PROTO(const struct sock *sk, u64 us, u8 reason),
	TP_ARGS(sk, us, reason),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__array(u8, local, sizeof(struct sockaddr_in6))
		__array(u8, remote, sizeof(struct sockaddr_in6))
		__field(u64, us)
		__field(u8, reason)
	),
	TP_fast_assign(
		__entry->sk = sk;
		rstream_addr_of(sk, false, (void *)__entry->local);
		rstream_addr_of(sk, true, (void *)__entry->remote);
		__entry->us = us;
		__entry->reason = reason;
	),
	TP_printk("sk=%p local=%pISpc remote=%pISpc us=%llu reason=%s",
		  __entry->sk, __entry->local, __entry->remote, __entry->us,
		  rstream_show_reason(__entry->reason))
);

/* the connection is plain TCP from now on */
DEFINE_EVENT(rstream_sock, rstream_fallback,
	TP_PROTO(const struct sock *sk, u64 us, u8 reason),
	TP_ARGS(sk, us, reason));

/* this host grants no ring for the peer's data */
DEFINE_EVENT(rstream_sock, rstream_no_ring,
	TP_PROTO(const struct sock *sk, u64 us, u8 reason),
	TP_ARGS(sk, us, reason));

/* this host reset the connection */
DEFINE_EVENT(rstream_sock, rstream_reset,
	TP_PROTO(const struct sock *sk, u64 us, u8 reason),
	TP_ARGS(sk, us, reason));

/* the sender has waited for @us, and now continues or waits for something else */
DEFINE_EVENT(rstream_sock, rstream_stall,
	TP_PROTO(const struct sock *sk, u64 us, u8 reason),
	TP_ARGS(sk, us, reason));

TRACE_EVENT(rstream_switch,
	TP_PROTO(const struct sock *sk, u8 dir, u8 carrier, u32 epoch,
		 u64 offset, u8 reason),
	TP_ARGS(sk, dir, carrier, epoch, offset, reason),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__array(u8, local, sizeof(struct sockaddr_in6))
		__array(u8, remote, sizeof(struct sockaddr_in6))
		__field(u64, offset)
		__field(u32, epoch)
		__field(u8, dir)
		__field(u8, carrier)
		__field(u8, reason)
	),
	TP_fast_assign(
		__entry->sk = sk;
		rstream_addr_of(sk, false, (void *)__entry->local);
		rstream_addr_of(sk, true, (void *)__entry->remote);
		__entry->offset = offset;
		__entry->epoch = epoch;
		__entry->dir = dir;
		__entry->carrier = carrier;
		__entry->reason = reason;
	),
	TP_printk("sk=%p local=%pISpc remote=%pISpc %s to=%s epoch=%u offset=%llu reason=%s",
		  __entry->sk, __entry->local, __entry->remote,
		  rstream_show_way(__entry->dir),
		  rstream_show_carrier(__entry->carrier), __entry->epoch,
		  __entry->offset, rstream_show_reason(__entry->reason))
);

#endif

/* found by -I$(src) of Kbuild */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH kmod/base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
