// SPDX-License-Identifier: GPL-2.0-only
#include "half.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"

#define PIECES 16
#define FILE_WINDOW (512 * 1024)
#define PIPE_MAX (64 * 1024)
#define ZC_CALLS 64	/* MSG_ZEROCOPY: calls that may be under way */

void half_init(struct half *h)
{
	h->pipe[0] = -1;
	h->pipe[1] = -1;
	h->file = -1;
	if (h->how == HALF_SPLICE) {
		if (pipe2(h->pipe, O_CLOEXEC))
			rs_die("pipe: %m");
		if (h->chunk > PIPE_MAX)
			h->chunk = PIPE_MAX;
	}
	if (h->how == HALF_ZEROCOPY &&
	    setsockopt(h->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){ 1 }, sizeof(int)))
		rs_die("SO_ZEROCOPY: %m");
	h->buf = malloc(h->how == HALF_SENDFILE ? FILE_WINDOW :
			h->how == HALF_ZEROCOPY ? h->chunk * ZC_CALLS : h->chunk);
	if (!h->buf)
		rs_die("no memory");
}

void half_free(struct half *h)
{
	if (h->how == HALF_SPLICE) {
		close(h->pipe[0]);
		close(h->pipe[1]);
	}
	if (h->file >= 0)
		close(h->file);
	free(h->buf);
}

static int fail(struct half *h, int err, const char *what)
{
	if (err != EAGAIN) {
		h->err = err;
		h->what = what;
	}
	return -1;
}

static size_t chunk_size(struct half *h, uint64_t goal)
{
	size_t len = 1 + pattern_random(&h->random) % h->chunk;

	return len < goal - h->offset ? len : goal - h->offset;
}

/* Cut @len bytes of @buf into pieces, some of them empty. */
static int cut(struct half *h, size_t len, struct iovec *iov)
{
	size_t at = 0;
	int i;

	for (i = 0; i < PIECES - 1; i++) {
		iov[i].iov_base = h->buf + at;
		iov[i].iov_len = pattern_random(&h->random) % (len - at + 1);
		if (iov[i].iov_len > len / 4)
			iov[i].iov_len /= 8;
		at += iov[i].iov_len;
	}
	iov[i].iov_base = h->buf + at;
	iov[i].iov_len = len - at;
	return PIECES;
}

static ssize_t send_buffer(struct half *h, size_t len)
{
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_iov = iov };

	pattern_fill(h->buf, len, h->seed, h->offset);
	if (h->how == HALF_PLAIN)
		return send(h->fd, h->buf, len, MSG_NOSIGNAL);
	msg.msg_iovlen = cut(h, len, iov);
	return sendmsg(h->fd, &msg, MSG_NOSIGNAL);
}

/* What a full socket did not take stays in the pipe. */
static ssize_t send_pipe(struct half *h, size_t len)
{
	int flags = h->blocking ? 0 : SPLICE_F_NONBLOCK;
	ssize_t n;

	if (!h->piped) {
		pattern_fill(h->buf, len, h->seed, h->offset);
		n = write(h->pipe[1], h->buf, len);
		if (n < 0)
			return n;
		h->piped = n;
	}
	n = splice(h->pipe[0], NULL, h->fd, NULL, h->piped, flags);
	if (n > 0)
		h->piped -= n;
	return n;
}

/* A new file for each window: the old one's pages may still be on their way. */
static void next_window(struct half *h, uint64_t goal)
{
	size_t len = goal - h->offset;

	if (len > FILE_WINDOW)
		len = FILE_WINDOW;
	if (h->file >= 0)
		close(h->file);
	h->file = memfd_create("rs_stream", MFD_CLOEXEC);
	pattern_fill(h->buf, len, h->seed, h->offset);
	if (h->file < 0 || write(h->file, h->buf, len) != (ssize_t)len)
		rs_die("memfd: %m");
	h->file_start = h->offset;
	h->file_end = h->offset + len;
}

static ssize_t send_file(struct half *h, size_t len, uint64_t goal)
{
	off_t at;

	if (h->file < 0 || h->offset == h->file_end)
		next_window(h, goal);
	at = h->offset - h->file_start;
	if (len > h->file_end - h->offset)
		len = h->file_end - h->offset;
	return sendfile(h->fd, h->file, &at, len);
}

/*
 * Take one note of the error queue.  As with TCP they may come out of order when something
 * was sent again; each call has one.  Return: 1, or -1 if there is none.
 */
static int zc_take(struct half *h)
{
	char control[256];
	struct msghdr msg = { .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct sock_extended_err *e;
	struct cmsghdr *c;

	if (recvmsg(h->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return fail(h, errno, "error queue");
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		return fail(h, EPROTO, "error queue without a note");
	e = (void *)CMSG_DATA(c);
	if (e->ee_errno || e->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
		return fail(h, EPROTO, "error queue: another note");
	if (e->ee_data - e->ee_info >= ZC_CALLS)
		return fail(h, EPROTO, "completions of what was not sent");
	for (uint32_t call = e->ee_info; call != e->ee_data + 1; call++) {
		uint64_t bit = 1ull << call % ZC_CALLS;

		if (call - h->zc_done >= h->zc_sent - h->zc_done || h->zc_early & bit)
			return fail(h, EPROTO, "completion that was not due");
		h->zc_early |= bit;
	}
	for (; h->zc_early & 1ull << h->zc_done % ZC_CALLS; h->zc_done++)
		h->zc_early &= ~(1ull << h->zc_done % ZC_CALLS);
	return 1;
}

/*
 * Each call has memory of its own, which changes when the call is told to be
 * complete: what is sent again after that would be seen.
 */
static ssize_t send_zerocopy(struct half *h, size_t len)
{
	struct pollfd pfd = { .fd = h->fd };
	uint8_t *buf = h->buf + h->zc_sent % ZC_CALLS * h->chunk;
	ssize_t n;

	while (h->zc_sent - h->zc_done == ZC_CALLS || (h->zc_sent & 1)) {
		if (zc_take(h) > 0)
			continue;
		if (h->err || h->zc_sent - h->zc_done < ZC_CALLS)
			break;
		if (!h->blocking)
			return -1;
		poll(&pfd, 1, -1);
	}
	if (h->err)
		return -1;
	pattern_fill(buf, len, h->seed, h->offset);
	for (;;) {
		n = send(h->fd, buf, len, MSG_NOSIGNAL | MSG_ZEROCOPY);
		/* too many under way for net.core.optmem_max or RLIMIT_MEMLOCK? */
		if (n >= 0 || errno != ENOBUFS || h->zc_sent == h->zc_done)
			break;
		h->zc_refused++;
		errno = EAGAIN;
		if (zc_take(h) < 0 && (h->err || !h->blocking))
			break;
		poll(&pfd, 1, 100);
	}
	h->zc_sent += n > 0;
	return n;
}

static int zc_finish(struct half *h)
{
	struct pollfd pfd = { .fd = h->fd };
	uint64_t end = rs_now_ms() + 20000;

	while (h->zc_done != h->zc_sent) {
		if (zc_take(h) > 0)
			continue;
		if (h->err || !h->blocking)
			return -1;
		if (rs_now_ms() > end)
			return fail(h, ETIMEDOUT, "completions are missing");
		/* when both have ended POLLHUP is there all the time */
		if (poll(&pfd, 1, 100) > 0 && !(pfd.revents & POLLERR))
			usleep(10000);
	}
	return 0;
}

static int tx_step(struct half *h, uint64_t goal)
{
	size_t len = chunk_size(h, goal);
	ssize_t n;

	if (h->how == HALF_SENDFILE)
		n = send_file(h, len, goal);
	else if (h->how == HALF_SPLICE)
		n = send_pipe(h, len);
	else if (h->how == HALF_ZEROCOPY)
		n = send_zerocopy(h, len);
	else
		n = send_buffer(h, len);
	if (n < 0)
		return h->err ? -1 : fail(h, errno, "send");
	if (!n)
		return fail(h, EIO, "send returned 0");
	if (h->was_short)
		return fail(h, EIO, "short blocking send, and no error after it");
	h->was_short = h->blocking && h->how <= HALF_IOV && (size_t)n < len;
	h->offset += n;
	return 1;
}

static int rx_check(struct half *h, size_t len)
{
	size_t good = pattern_check(h->buf, len, h->seed, h->offset);

	if (good == len)
		return 0;
	h->offset += good;
	h->belongs = pattern_locate(h->buf + good, len - good, h->seed);
	return fail(h, EBADMSG, "wrong byte");
}

static void rx_moved(struct half *h)
{
	uint64_t now = rs_now_ms();

	if (h->moved_at && now - h->moved_at > h->pause)
		h->pause = now - h->moved_at;
	h->moved_at = now;
}

static ssize_t recv_pieces(struct half *h, size_t len)
{
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_iov = iov };

	msg.msg_iovlen = cut(h, len, iov);
	return recvmsg(h->fd, &msg, 0);
}

static ssize_t recv_pipe(struct half *h, size_t len)
{
	int flags = h->blocking ? 0 : SPLICE_F_NONBLOCK;
	ssize_t n = splice(h->fd, NULL, h->pipe[1], NULL, len, flags);

	if (n <= 0)
		return n;
	return read(h->pipe[0], h->buf, n);
}

/* Look, look again, then take: all three must agree. */
static ssize_t recv_peeking(struct half *h, size_t len)
{
	ssize_t n = recv(h->fd, h->buf, len, MSG_PEEK);

	if (n <= 0)
		return n;
	if (rx_check(h, n))
		return -1;
	if (recv(h->fd, h->buf, n, MSG_PEEK) != n || rx_check(h, n)) {
		fail(h, EBADMSG, "second peek differs");
		return -1;
	}
	if (recv(h->fd, h->buf, n, 0) != n) {
		fail(h, EBADMSG, "less received than peeked");
		return -1;
	}
	return n;
}

static int rx_step(struct half *h, uint64_t goal)
{
	size_t len = chunk_size(h, goal);
	ssize_t n;

	if (h->how == HALF_PEEK)
		n = recv_peeking(h, len);
	else if (h->how == HALF_SPLICE)
		n = recv_pipe(h, len);
	else if (h->how == HALF_IOV)
		n = recv_pieces(h, len);
	else
		n = recv(h->fd, h->buf, len,
			 h->how == HALF_WAITALL ? MSG_WAITALL : 0);
	if (h->err)
		return -1;
	if (n < 0)
		return fail(h, errno, "recv");
	if (!n)
		return fail(h, ENODATA, "early end");
	if (rx_check(h, n))
		return -1;
	rx_moved(h);
	h->offset += n;
	if (h->how == HALF_WAITALL && (size_t)n < len)
		return fail(h, EIO, "short MSG_WAITALL");
	return 1;
}

int half_step(struct half *h, uint64_t goal)
{
	if (h->err)
		return -1;
	if (h->offset >= goal)
		return 0;
	return h->tx ? tx_step(h, goal) : rx_step(h, goal);
}

int half_end(struct half *h)
{
	ssize_t n;

	if (h->err)
		return -1;
	if (h->tx && !h->ended && shutdown(h->fd, SHUT_WR))
		return fail(h, errno, "shutdown");
	h->ended = true;
	if (h->tx)
		return h->how == HALF_ZEROCOPY ? zc_finish(h) : 0;
	n = recv(h->fd, h->buf, 1, 0);
	if (n < 0)
		return fail(h, errno, "recv");
	return n ? fail(h, EMSGSIZE, "bytes after the end") : 0;
}
