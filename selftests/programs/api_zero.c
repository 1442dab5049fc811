// SPDX-License-Identifier: GPL-2.0-only
/* Without copies: MSG_ZEROCOPY, and pages that travel through pipes. */
#include "api.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pattern.h"

#define PAGE 4096

static void recv_all(int fd, uint8_t *buf, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, buf, len, 0);

		EXPECT(n > 0);
		buf += n;
		len -= n;
	}
}

static void read_all(int fd, uint8_t *buf, size_t len)
{
	while (len) {
		ssize_t n = read(fd, buf, len);

		EXPECT(n > 0);
		buf += n;
		len -= n;
	}
}

/* One note of the error queue: calls ee_info to ee_data are complete. */
static struct sock_extended_err completion(int fd)
{
	char control[256];
	struct msghdr msg = { .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct sock_extended_err *e;

	/* where the connection has ended poll() does not wait */
	EXPECT_SOON(rs_poll(fd, POLLERR, 0) & POLLERR);
	EXPECT(!recvmsg(fd, &msg, MSG_ERRQUEUE));
	EXPECT(CMSG_FIRSTHDR(&msg));
	e = (void *)CMSG_DATA(CMSG_FIRSTHDR(&msg));
	EXPECT(!e->ee_errno && e->ee_origin == SO_EE_ORIGIN_ZEROCOPY);
	EXPECT(e->ee_data >= e->ee_info);
	return *e;
}

/* In order: calls @from to the one returned. */
static unsigned int completed(int fd, unsigned int from)
{
	struct sock_extended_err e = completion(fd);

	EXPECT(e.ee_info == from);
	return e.ee_data;
}

static void completions_in_order(void)
{
	static uint8_t out[20 * 3000], in[sizeof(out)];
	unsigned int next = 0;
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	pattern_fill(out, sizeof(out), 2, 0);
	for (int i = 0; i < 20; i++) {
		EXPECT(send(fd[0], out + i * 3000, 3000, MSG_ZEROCOPY) == 3000);
		if (i == 10)
			turn();
		recv_all(fd[1], in + i * 3000, 3000);
	}
	EXPECT(!memcmp(in, out, sizeof(in)));
	while (next < 20)
		next = completed(fd[0], next) + 1;
	EXPECT(next == 20);
	EXPECT(!(rs_poll(fd[0], POLLIN, 50) & POLLERR));
}

/* Failed calls have no number, those of nothing neither. */
static void completions_counted(void)
{
	char buf[10] = "";
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	EXPECT_ERRNO(send(fd[0], (void *)8, 10, MSG_ZEROCOPY), EFAULT);
	EXPECT(!send(fd[0], buf, 0, MSG_ZEROCOPY));
	EXPECT(send(fd[0], buf, 10, MSG_ZEROCOPY) == 10);
	recv_all(fd[1], (uint8_t *)buf, 10);
	EXPECT(completed(fd[0], 0) == 0);
	EXPECT_ERRNO(send(fd[0], (void *)8, 10, MSG_ZEROCOPY), EFAULT);
	EXPECT(send(fd[0], buf, 10, MSG_ZEROCOPY) == 10);
	recv_all(fd[1], (uint8_t *)buf, 10);
	EXPECT(completed(fd[0], 1) == 1);
}

static void memory_gone(void)
{
	size_t len = 40 * PAGE;
	uint8_t *out = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *in = malloc(len);
	int fd[2];

	EXPECT(out != MAP_FAILED);
	pattern_fill(out, len, 4, 0);
	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	len = send(fd[0], out, len, MSG_ZEROCOPY | MSG_DONTWAIT);
	EXPECT((ssize_t)len > 0);
	EXPECT(!munmap(out, 40 * PAGE));
	turn();
	recv_all(fd[1], in, len);
	EXPECT(pattern_check(in, len, 4, 0) == len);
}

static void locked_memory(void)
{
	static uint8_t buf[64 * PAGE];
	struct rlimit none = {};
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	EXPECT(!setrlimit(RLIMIT_MEMLOCK, &none));
	EXPECT(!setuid(65534));
	note("%zd", send(fd[0], buf, sizeof(buf), MSG_ZEROCOPY));
	note("%s", strerrorname_np(errno));
	EXPECT(send(fd[0], buf, 10, 0) == 10);
}

/* Pages come back, in any order, when there is no connection any more. */
static void reset_before_complete(void)
{
	static uint8_t buf[64 * PAGE];
	unsigned int calls = 0, done = 0;
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	while (calls < 200 && send(fd[0], buf, sizeof(buf), MSG_ZEROCOPY | MSG_DONTWAIT) > 0)
		calls++;
	EXPECT(calls);
	reset(fd[1]);
	await(fd[0], POLLHUP);
	EXPECT_ERRNO(recv(fd[0], buf, 1, 0), ECONNRESET);
	while (done < calls) {
		struct sock_extended_err e = completion(fd[0]);

		done += e.ee_data - e.ee_info + 1;
	}
	EXPECT(done == calls);
}

static void closed_before_complete(void)
{
	static uint8_t out[30000], in[sizeof(out)];
	int fd[2];

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	pattern_fill(out, sizeof(out), 6, 0);
	EXPECT(send(fd[0], out, sizeof(out), MSG_ZEROCOPY) == sizeof(out));
	EXPECT(!close(fd[0]));
	turn();
	recv_all(fd[1], in, sizeof(in));
	EXPECT(!memcmp(in, out, sizeof(in)));
	EXPECT(!recv(fd[1], in, 1, 0));
}

/* Pages of ours, by way of a pipe; some of them twice. */
static void user_pages(void)
{
	uint8_t *out = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[3] = {
		{ out + 100, 3 * PAGE }, { out, 1 }, { out + 4 * PAGE, 2 * PAGE },
	};
	static uint8_t in[5 * PAGE + 1];
	int a[2], b[2], fd[2];

	EXPECT(out != MAP_FAILED && !pipe(a) && !pipe(b));
	pattern_fill(out, 8 * PAGE, 8, 0);
	pair(fd);
	EXPECT(vmsplice(a[1], iov, 3, 0) == sizeof(in));
	EXPECT(tee(a[0], b[1], sizeof(in), 0) == sizeof(in));
	for (int i = 0; i < 2; i++) {
		int from = i ? b[0] : a[0];

		for (size_t n = 0; n < sizeof(in);) {
			ssize_t m = splice(from, NULL, fd[0], NULL,
					   sizeof(in) - n, 0);

			EXPECT(m > 0);
			n += m;
		}
		turn();
		recv_all(fd[1], in, sizeof(in));
		EXPECT(!memcmp(in, out + 100, 3 * PAGE) && in[3 * PAGE] == out[0]);
		EXPECT(!memcmp(in + 3 * PAGE + 1, out + 4 * PAGE, 2 * PAGE));
	}
}

/* What is in a pipe stays as it is, whatever comes behind it. */
static void pipe_kept(void)
{
	static uint8_t out[200000], in[sizeof(out)];
	int a[2], b[2], fd[2];
	ssize_t kept;

	EXPECT(!pipe(a) && !pipe(b));
	pattern_fill(out, sizeof(out), 10, 0);
	pair(fd);
	EXPECT(send(fd[0], out, 9000, 0) == 9000);
	await_bytes(fd[1], 9000);
	kept = splice(fd[1], NULL, a[1], NULL, 5000, 0);
	EXPECT(kept == 5000);
	EXPECT(tee(a[0], b[1], kept, 0) == kept);
	turn();
	recv_all(fd[1], in + kept, 9000 - kept);
	for (size_t at = 9000; at < sizeof(out); at += 1000) {
		EXPECT(send(fd[0], out + at, 1000, 0) == 1000);
		recv_all(fd[1], in + at, 1000);
	}
	read_all(a[0], in, kept);
	EXPECT(!memcmp(in, out, sizeof(in)));
	EXPECT(!close(fd[0]) && !close(fd[1]));
	memset(in, 0, kept);
	read_all(b[0], in, kept);
	EXPECT(!memcmp(in, out, kept));
}

/* All that a reader has read is in a pipe when it closes: who sends on is told. */
static void closed_with_pipe(void)
{
	static uint8_t out[1 << 20];
	int p[2], fd[2];

	EXPECT(!pipe(p) && fcntl(p[1], F_SETPIPE_SZ, sizeof(out)) > 0);
	pair(fd);
	EXPECT(send(fd[0], out, sizeof(out), MSG_DONTWAIT) > 0);
	await(fd[1], POLLIN);
	rs_nonblock(fd[1]);
	while (splice(fd[1], NULL, p[1], NULL, sizeof(out), SPLICE_F_NONBLOCK) > 0)
		;
	EXPECT(errno == EAGAIN);
	EXPECT(!close(fd[1]));
	EXPECT_SOON(send(fd[0], out, PAGE, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 &&
		    errno != EAGAIN);
}

static void through_pipe(const int from[2], const int to[2])
{
	static uint8_t out[60000], in[sizeof(out)];
	size_t moved = 0;
	int p[2];

	EXPECT(!pipe(p));
	pattern_fill(out, sizeof(out), 12, 0);
	EXPECT(send(from[0], out, sizeof(out), MSG_DONTWAIT) == sizeof(out));
	while (moved < sizeof(out)) {
		ssize_t n = splice(from[1], NULL, p[1], NULL, 30000, 0);

		EXPECT(n > 0);
		for (ssize_t left = n; left;) {
			ssize_t m = splice(p[0], NULL, to[0], NULL, left, 0);

			EXPECT(m > 0);
			left -= m;
		}
		recv_all(to[1], in + moved, n);
		moved += n;
	}
	EXPECT(!memcmp(in, out, sizeof(in)));
	close(p[0]);
	close(p[1]);
}

/* From one socket to another, and back. */
static void relayed(void)
{
	int fd[2], to[2];

	pair(fd);
	pair(to);
	for (int i = 0; i < 5; i++)
		through_pipe(fd, to);
	turn();
	through_pipe(to, fd);
}

/* A file behind the same pipe for long. */
static void file_behind_pipe(void)
{
	int file = memfd_create("api", 0), p[2], fd[2];
	static uint8_t out[16 * PAGE], in[sizeof(out)];
	off_t at = 0;

	pattern_fill(out, sizeof(out), 14, 0);
	EXPECT(write(file, out, sizeof(out)) == sizeof(out));
	EXPECT(!pipe(p));
	pair(fd);
	EXPECT(splice(file, &at, p[1], NULL, sizeof(out), 0) > 0);
	EXPECT(!ftruncate(file, 0));	/* the pages are the pipe's now */
	for (off_t n = 0; n < at;) {
		ssize_t m = splice(p[0], NULL, fd[0], NULL, 5000, SPLICE_F_MORE);

		EXPECT(m > 0);
		n += m;
	}
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	recv_all(fd[1], in, at);
	EXPECT(!memcmp(in, out, at));
	EXPECT(recv(fd[1], in, 1, 0) == 1 && *in == 'x');
}

#define CASE(fn) { "zero: " #fn, fn }
const struct api_case zero_cases[] = {
	CASE(completions_in_order),
	CASE(completions_counted),
	CASE(memory_gone),
	CASE(locked_memory),
	CASE(reset_before_complete),
	CASE(closed_before_complete),
	CASE(user_pages),
	CASE(pipe_kept),
	CASE(closed_with_pipe),
	CASE(relayed),
	CASE(file_behind_pipe),
	{ NULL, NULL },
};
