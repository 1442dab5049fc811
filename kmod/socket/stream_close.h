/* SPDX-License-Identifier: GPL-2.0-only */
/* close(), and what is left to do when the program is gone. */
#ifndef RSTREAM_STREAM_CLOSE_H
#define RSTREAM_STREAM_CLOSE_H

#include <linux/types.h>

struct rstream;
struct sock;
struct socket;

/* How far the end of a connection with records has come; each from the one before. */
enum rstream_close_state {
	RSTREAM_OPEN,
	RSTREAM_CLOSING,	/* close() is at work, and may linger */
	RSTREAM_CLOSED,		/* no program has it: all goes out, then TCP's FIN */
	RSTREAM_FIN_WAIT,	/* TCP is in FIN_WAIT2: the timer is TCP's */
	RSTREAM_ORPHANED,	/* that timer is over: TCP may have the sock */
	RSTREAM_RELEASED,	/* it has, or soon will: nothing is left to do; from each */
};

struct rstream_closing {
	u64 progress;		/* close_progress() when it was last looked at */
	u8 looks;		/* in a row that saw none */
	u8 deaf;		/* of these: TCP was not answered, either */
	u8 state;		/* enum rstream_close_state; read locklessly */
};

/* All with the socket held. */
bool rstream_close(struct rstream *rs, struct socket *sock);
void rstream_close_step(struct rstream *rs);
void rstream_close_look(struct rstream *rs);
void rstream_close_late(struct rstream *rs);
void rstream_close_release(struct rstream *rs);
bool rstream_close_over(struct rstream *rs);
bool rstream_close_end(struct rstream *rs);

void rstream_close_unlocked(struct sock *sk);	/* process context */

#endif
