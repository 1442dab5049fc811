/* SPDX-License-Identifier: GPL-2.0-only */
/* One direction of a connection: sends the pattern, or receives and checks. */
#ifndef HALF_H
#define HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum half_how {
	HALF_PLAIN,	/* send, recv */
	HALF_IOV,	/* sendmsg, recvmsg with many odd pieces */
	HALF_SPLICE,	/* through a pipe */
	HALF_SENDFILE,	/* tx only */
	HALF_ZEROCOPY,	/* tx only: MSG_ZEROCOPY */
	HALF_PEEK,	/* rx only: everything is read twice */
	HALF_WAITALL,	/* rx only, blocking only */
};

/**
 * struct half - one direction
 * @fd:		the socket
 * @tx:		we send
 * @blocking:	@fd is; a short send is an error then
 * @how:	enum half_how
 * @chunk:	greatest size of one call
 * @seed:	of the pattern
 * @random:	state of the generator of sizes
 * @offset:	bytes sent or received so far
 * @moved_at:	rx: rs_now_ms() of the last byte, 0 before the first
 * @pause:	rx: the longest time between two reads that got something, ms
 * @was_short: the last call took less than it was given; an error must follow
 * @ended:	shut down, or the end has been looked for
 * @err:	errno that ended it, EBADMSG if the content is wrong, 0 so far
 * @what:	what failed, static text
 */
struct half {
	int fd;
	bool tx;
	bool blocking;
	enum half_how how;
	size_t chunk;
	uint64_t seed;
	uint64_t random;
	uint64_t offset;
	uint64_t moved_at, pause;
	bool was_short;
	bool ended;
	int err;
	const char *what;
	int64_t belongs;	/* a wrong byte: offset that it is from, -1: none */

	uint8_t *buf;
	int pipe[2];
	size_t piped;
	int file;
	uint64_t file_start, file_end;
	uint32_t zc_sent, zc_done;	/* calls, and those all of which were told to be complete */
	uint64_t zc_early;		/* bit N: that with number N of ZC_CALLS, out of order */
	unsigned int zc_refused;	/* calls that failed with ENOBUFS while others were under way */
};

void half_init(struct half *half);
void half_free(struct half *half);

/*
 * One system call's worth towards @goal. Return: 1 moved on, 0 @goal reached,
 * -1 it would block or has failed (then half->err is set).
 */
int half_step(struct half *half, uint64_t goal);

/*
 * tx: shut down; rx: nothing but EOF may follow. Return: 0 done, -1 as above.
 */
int half_end(struct half *half);

#endif
