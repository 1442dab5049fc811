/* SPDX-License-Identifier: GPL-2.0-only */
/* Statistics of a socket. */
#ifndef RSTREAM_STREAM_STATS_H
#define RSTREAM_STREAM_STATS_H

#include <linux/types.h>

#include "base/events.h"
#include "base/stats.h"
#include "stream_info.h"

struct rstream;

/* The last change of the carrier of one direction, for rsctl. */
struct rstream_switched {
	unsigned long at;	/* jiffies */
	u32 count;		/* of all changes */
	u8 to;			/* enum rstream_carrier_info */
	u8 reason;		/* enum rstream_reason */
};

/* What a sender has waited for, by reason, beginning with STALL_WINDOW. */
struct rstream_stalls {
	u64 since;		/* nanoseconds, if @why */
	u64 ns[RSTREAM_STALLS];	/* not including the present wait */
	u32 count[RSTREAM_STALLS];
	u8 why;			/* enum rstream_reason; NONE: it does not wait */
};

/* What was transferred in one direction. */
struct rstream_dir_stats {
	u64 tcp_bytes, tcp_msgs;	/* of the stream on tcp */
	u64 ring_bytes, ring_msgs;	/* on rings */
	struct rstream_switched switched;
};

struct rstream_stream_stats {
	struct rstream_dir_stats tx, rx;
	struct rstream_stalls stalls;	/* of what we send */
};

/* Bytes that are being timed, up to @end; 0: none are. */
struct rstream_timed {
	u64 end;		/* stream offset */
	u64 at;			/* nanoseconds when they were sent or arrived */
};

/* Sampled latencies of a socket, in buckets of microseconds, see stream_stats.c. */
struct rstream_hist {
	struct rstream_timed sent, came;
	u32 tx[RSTREAM_HIST_BUCKETS];
	u32 rx[RSTREAM_HIST_BUCKETS];
};

/* @n bytes, in a record or plain, were given to TCP or have arrived on it. */
void rstream_count_tcp_tx(struct rstream *rs, size_t n);
void rstream_count_tcp_rx(struct rstream *rs, size_t n);
void rstream_switched(struct rstream *rs, enum rstream_dir dir,
		      enum rstream_carrier_info to, u64 offset,
		      enum rstream_reason reason);
/* The sender now waits for another reason: STALL_..., or NONE: it does not wait. */
void rstream_stalled(struct rstream *rs, enum rstream_reason why);
/* Only if the setting is on.  Return: true: ask for a credit that interrupts */
bool rstream_hist_sent(struct rstream *rs);
/* Only if there is a histogram. */
void rstream_hist_acked(struct rstream *rs);
void rstream_hist_arrived(struct rstream *rs, u64 end);	/* any context */
/* Only if there is one, or the setting is on. */
void rstream_hist_read(struct rstream *rs);

#endif
