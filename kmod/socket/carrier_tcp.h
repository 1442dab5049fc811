/* SPDX-License-Identifier: GPL-2.0-only */
/* Sending and receiving records on TCP. */
#ifndef RSTREAM_CARRIER_TCP_H
#define RSTREAM_CARRIER_TCP_H

#include <linux/types.h>

#include "protocol/record.h"

struct rstream;

/* Room for a HELLO and records after it. */
#define RSTREAM_CTL_SPACE	(RSW_HELLO_MAX + 2 * RSTREAM_RECORD_MAX)

/* Bits of rstream.want: control records to be sent, in this order. */
enum rstream_want {
	RSTREAM_WANT_HELLO,
	RSTREAM_WANT_URG,
	RSTREAM_WANT_LINK,
	RSTREAM_WANT_BROKEN,
	RSTREAM_WANT_RESUME,
	RSTREAM_WANT_STOPPED,
	RSTREAM_WANT_SWITCH,
	RSTREAM_WANT_ACK,
	RSTREAM_WANT_GRANT,
	RSTREAM_WANT_REVOKE,
	RSTREAM_WANT_PLAIN,
	RSTREAM_WANT_FIN,
};

/* What records or bytes for TCP wait for. */
enum rstream_out_waits {
	RSTREAM_OUT_READY,	/* nothing */
	RSTREAM_OUT_CORKED,	/* autocorking: until TCP has delivered others */
	RSTREAM_OUT_BLOCKED,	/* room in TCP's send queue */
};

/* Is a flush, or TCP's send, at work, which may call us? */
enum rstream_out_flush {
	RSTREAM_FLUSH_IDLE,
	RSTREAM_FLUSH_BUSY,
	RSTREAM_FLUSH_AGAIN,	/* it is, and messages have completed meanwhile */
};

/* State between a stream and TCP's send. */
struct rstream_out {
	u16 ctl_len;		/* bytes in rstream.ctl, on their way to TCP */
	u16 ctl_off;		/* how many of them TCP has taken */
	u32 rec_left;		/* payload bytes of the last DATA header that TCP has not got yet */
	u64 payload_end;	/* tcp_sock.bytes_acked when TCP has delivered the last payload or
				 * FIN that it was given; valid once HELLO is sent
				 */
	u64 urg_end;		/* likewise of URG */
	u64 asked_end;		/* likewise of the last record that the peer has to answer */
	u32 small_seq[2];	/* TCP sequence numbers after the last two small DATA records */
	bool due;		/* a flush is due, although @want and the queue may not show it */
	bool nagle;		/* the program has not set TCP_NODELAY; valid while @flush */
	u8 waits;		/* enum rstream_out_waits */
	int flush;		/* enum rstream_out_flush; atomic */
};

/* Why is there something in TCP's receive queue? */
enum rstream_in_left {
	RSTREAM_LEFT_NONE,	/* it has arrived just now; or @plain_rx.in_tcp says how much */
	RSTREAM_LEFT_SCARCE,	/* we lack memory until rxq has been read, or a retry */
	RSTREAM_LEFT_UNREAD,	/* we take it when the program has read what precedes it */
};

/* State between TCP's receive queue and a stream. */
struct rstream_in {
	u32 data_left;		/* payload bytes of the present DATA record still to arrive */
	u32 skip_left;		/* payload bytes to skip */
	u32 seq;		/* TCP sequence number after the last record */
	u16 part_len;		/* bytes in rstream.part: an incomplete header or payload */
	u8 left;		/* enum rstream_in_left, of what parsing stopped at */
};

/* With the socket held. */
void rstream_tcp_push(struct rstream *rs);
bool rstream_parse(struct rstream *rs);	/* true: all was plain, and its reader knows */
void rstream_parse_at_fin(struct rstream *rs);	/* TCP wakes those that wait for the end */

#endif
