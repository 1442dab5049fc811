/* SPDX-License-Identifier: GPL-2.0-only */
/* Flushing: sends what is due, at the end of each entry. */
#ifndef RSTREAM_FLUSH_H
#define RSTREAM_FLUSH_H

struct rstream;

/* All with the socket held; none sleeps, except for the backlog in rstream_unlock(). */
void rstream_flush(struct rstream *rs);		/* all bytes and records that may be sent now */
void rstream_flush_due(struct rstream *rs);	/* if more than bytes is due; in any mode */
void rstream_unlock(struct rstream *rs);	/* end of a system call: flush, release_sock() */

#endif
