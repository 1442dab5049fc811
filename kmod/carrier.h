/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which carrier moves a stream's bytes, and where it changes: the rules, as a
 * pure state machine for each direction.
 *
 * Offsets are 64-bit counts of stream bytes.  Every function that takes values
 * from the peer checks them against what was sent or granted before, changes
 * nothing if they are wrong, and returns the reason.  carrier_tcp.c and
 * carrier_ring.c act on what is decided here; unit tests run it in user space.
 *
 *  receiver:  TCP --grant--> GRANTED --switch(X == arrived)--> RING
 *  sender:    TCP --grant--> OFFERED --switch-->               RING
 */
#ifndef RSTREAM_CARRIER_H
#define RSTREAM_CARRIER_H

#ifdef __KERNEL__
#include "stats.h"
#else
#include "host.h"
#include "stats.h"
#endif

enum rstream_carrier {
	RSTREAM_ON_TCP,
	RSTREAM_GRANTED,	/* tcp still; the switch may come any time */
	RSTREAM_ON_RING,
};

/**
 * struct rstream_rx - the direction towards us
 * @arrived:	bytes that came on the tcp carrier or were landed and counted
 * @consumed:	bytes given to the program
 * @limit:	offset we have allowed the peer to send up to on tcp
 * @base:	offset of the ring's first byte
 * @fin_at:	offset of the end, if @fin
 * @epoch:	of the last grant; 0 before the first
 * @state:	enum rstream_carrier
 * @fin:	FIN has come: @fin_at counts
 */
struct rstream_rx {
	u64 arrived;
	u64 consumed;
	u64 limit;
	u64 base;
	u64 fin_at;
	u32 epoch;
	u8 state;		/* enum rstream_carrier */
	bool fin;
};

/**
 * struct rstream_tx - the direction towards the peer
 * @written:	bytes taken from the program
 * @sent:	bytes handed to a carrier
 * @acked:	bytes that the peer's program has consumed, as told by ACK
 * @limit:	offset that we may send up to on tcp
 * @base:	offset of the ring's first byte
 * @epoch:	of the last grant taken or refused
 * @state:	enum rstream_carrier; RSTREAM_GRANTED: offered, not taken up
 * @fin:	FIN is out: nothing may follow
 */
struct rstream_tx {
	u64 written;
	u64 sent;
	u64 acked;
	u64 limit;
	u64 base;
	u32 epoch;
	u8 state;		/* enum rstream_carrier */
	bool fin;		/* FIN is out: nothing may follow */
};

/* @len bytes of a DATA record begin to arrive */
enum rstream_reason rstream_rx_data(struct rstream_rx *rx, u32 len);
/* we grant a ring. Return: its epoch, 0 if there is one already */
u32 rstream_rx_grant(struct rstream_rx *rx);
/* the grant is not sent after all */
void rstream_rx_ungrant(struct rstream_rx *rx);
enum rstream_reason rstream_rx_switch(struct rstream_rx *rx, u64 offset,
				      u32 epoch);
/* the ring of the present epoch now holds @landed bytes in all */
enum rstream_reason rstream_rx_landed(struct rstream_rx *rx, u64 landed);
enum rstream_reason rstream_rx_fin(struct rstream_rx *rx, u64 offset);
bool rstream_rx_eof(const struct rstream_rx *rx);

enum rstream_reason rstream_tx_ack(struct rstream_tx *tx, u64 consumed,
				   u64 limit);
enum rstream_reason rstream_tx_grant(struct rstream_tx *tx, u32 epoch);
/* take up the grant from @sent on */
void rstream_tx_switch(struct rstream_tx *tx);
/* leave the grant alone */
void rstream_tx_refuse(struct rstream_tx *tx);
/* how many bytes the tcp carrier may send now, 0 if it is not the carrier */
u64 rstream_tx_window(const struct rstream_tx *tx);

#endif
