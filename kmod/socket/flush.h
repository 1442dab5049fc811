/* SPDX-License-Identifier: GPL-2.0-only */
/* What is due goes out, at the end of each entry. */
#ifndef RSTREAM_FLUSH_H
#define RSTREAM_FLUSH_H

struct rstream;

/* All with the socket held; none sleeps, but for the backlog in rstream_unlock(). */
void rstream_flush(struct rstream *rs);		/* bytes and records, as far as they may go */
void rstream_flush_due(struct rstream *rs);	/* if something but bytes is due; in any mode */
void rstream_unlock(struct rstream *rs);	/* end of a system call: flushes, release_sock() */

#endif
