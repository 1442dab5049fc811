/* SPDX-License-Identifier: GPL-2.0-only */
/* From rings back to tcp. */
#ifndef RSTREAM_CARRIER_LEAVE_H
#define RSTREAM_CARRIER_LEAVE_H

#include <linux/types.h>

#include "base/stats.h"

struct rstream;

/* Rings that were lost, refused or taken back. */
struct rstream_leave {
	unsigned long owed_since;	/* jiffies when the peer was told that it owes RESUME or
					 * SWITCH; 0: it owes nothing
					 */
	u64 lost;		/* bytes in flight on a ring when TCP closed: perhaps not arrived */
	u8 revoked_for;		/* enum rstream_reason, as for rstream_leave_revoke() */
	u8 idle_msgs;		/* DATA records since the ring was taken back, while RING_IDLE */
	u8 tx_why;		/* enum rstream_reason: why we switch to tcp */
};

/* All with the socket held. */
void rstream_leave_check(struct rstream *rs);
void rstream_leave_tick(struct rstream *rs);
bool rstream_leave_save(struct rstream *rs);

/* receiving end */
bool rstream_leave_move(struct rstream *rs);
void rstream_leave_keep(struct rstream *rs, u64 n);
bool rstream_leave_ring(struct rstream *rs);
void rstream_leave_revoke(struct rstream *rs, enum rstream_reason why);
bool rstream_leave_over(struct rstream *rs);
enum rstream_reason rstream_leave_stopped_got(struct rstream *rs, u32 epoch);
enum rstream_reason rstream_leave_switch_got(struct rstream *rs, u64 offset);
enum rstream_reason rstream_leave_broken_got(struct rstream *rs, u32 epoch);

/* sending end */
void rstream_leave_sent(struct rstream *rs);
void rstream_leave_refuse(struct rstream *rs, enum rstream_reason reason);
enum rstream_reason rstream_leave_revoke_got(struct rstream *rs, u32 epoch);
enum rstream_reason rstream_leave_resume_got(struct rstream *rs, u32 epoch, u64 count);

#endif
