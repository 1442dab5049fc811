/* SPDX-License-Identifier: GPL-2.0-only */
/* close(), and what is left to do when the program is gone. */
#ifndef RSTREAM_STREAM_CLOSE_H
#define RSTREAM_STREAM_CLOSE_H

#include <linux/types.h>

struct rstream;
struct sock;
struct socket;

/* How far the close of a connection with records has come; each state follows the last one. */
enum rstream_close_state {
	RSTREAM_OPEN,
	RSTREAM_CLOSING,	/* in close(), which may linger */
	RSTREAM_CLOSED,		/* no program has it: everything is sent, then TCP's FIN */
	RSTREAM_FIN_WAIT,	/* TCP is in FIN_WAIT2; the timer runs as long as TCP's would */
	RSTREAM_ORPHANED,	/* that has expired: TCP may have the sock */
	RSTREAM_RELEASED,	/* TCP has the sock, or soon will; from any state */
};

struct rstream_closing {
	u64 progress;		/* close_progress() at the last check */
	u8 looks;		/* checks in a row that saw no progress */
	u8 unanswered;		/* likewise, and TCP got no answer, either */
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
void rstream_close_tcp(struct sock *sk, const struct proto_ops *ops);

#endif
