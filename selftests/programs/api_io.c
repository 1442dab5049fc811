// SPDX-License-Identifier: GPL-2.0-only
/* Sending, receiving, waiting. */
#include "api.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pattern.h"

#define MIB (1 << 20)

struct sink {
	int fd;
	size_t len;
	uint8_t *buf;
	size_t got;
};

static void *sink_read(void *arg)
{
	struct sink *sink = arg;

	while (sink->got < sink->len) {
		ssize_t n = recv(sink->fd, sink->buf + sink->got,
				 sink->len - sink->got, 0);
		if (n <= 0)
			break;
		sink->got += n;
	}
	return NULL;
}

static void send_whole_mib(void)
{
	uint8_t *out = malloc(MIB), *in = malloc(MIB);
	struct sink sink = { .len = MIB, .buf = in };
	pthread_t thread;
	int fd[2];

	pair(fd);
	sink.fd = fd[1];
	pattern_fill(out, MIB, 3, 0);
	pthread_create(&thread, NULL, sink_read, &sink);
	EXPECT(send(fd[0], out, MIB, 0) == MIB);
	pthread_join(thread, NULL);
	EXPECT(sink.got == MIB && !memcmp(in, out, MIB));
}

static void send_nonblock_full(void)
{
	size_t len;
	int fd[2];

	pair(fd);
	len = fill(fd[0]);
	EXPECT(len > 0);
	EXPECT(!(rs_poll(fd[0], POLLOUT, 0) & POLLOUT));
	drain(fd[1], len);
	await(fd[0], POLLOUT);
	len = fill(fd[0]);
	drain(fd[1], len);
}

static void send_timeout(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	static char buf[MIB];
	int fd[2];

	pair(fd);
	EXPECT(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	while (send(fd[0], buf, MIB, 0) > 0)
		;
	EXPECT(errno == EAGAIN);
}

static void recv_timeout(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	int fd[2];
	char c;

	pair(fd);
	EXPECT(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(recv(fd[0], &c, 1, 0), EAGAIN);
	EXPECT_ERRNO(recv(fd[0], &c, 1, MSG_DONTWAIT), EAGAIN);
}

static void recv_peek(void)
{
	char buf[8] = "";
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "abcdef", 6, 0) == 6);
	await(fd[1], POLLIN);
	EXPECT(recv(fd[1], buf, 3, MSG_PEEK) == 3 && !memcmp(buf, "abc", 3));
	EXPECT(recv(fd[1], buf, 6, MSG_PEEK | MSG_WAITALL) == 6);
	EXPECT(!memcmp(buf, "abcdef", 6));
	EXPECT(recv(fd[1], buf, 2, 0) == 2 && !memcmp(buf, "ab", 2));
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK) == 4 && !memcmp(buf, "cdef", 4));
	EXPECT(recv(fd[1], buf, 8, 0) == 4 && !memcmp(buf, "cdef", 4));
	EXPECT_ERRNO(recv(fd[1], buf, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
}

static void *send_in_two(void *arg)
{
	int fd = *(int *)arg;

	send(fd, "abc", 3, 0);
	usleep(100000);
	send(fd, "def", 3, 0);
	usleep(100000);
	send(fd, "gh", 2, 0);
	shutdown(fd, SHUT_WR);
	return NULL;
}

static void recv_waitall(void)
{
	pthread_t thread;
	char buf[8];
	int fd[2];

	pair(fd);
	pthread_create(&thread, NULL, send_in_two, &fd[0]);
	EXPECT(recv(fd[1], buf, 6, MSG_WAITALL) == 6);
	EXPECT(!memcmp(buf, "abcdef", 6));
	EXPECT(recv(fd[1], buf, 6, MSG_WAITALL) == 2);	/* then the end */
	EXPECT(!recv(fd[1], buf, 6, MSG_WAITALL));
}

static void recv_trunc_discards(void)
{
	char buf[4];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "abcdef", 6, 0) == 6);
	EXPECT(recv(fd[1], NULL, 4, MSG_TRUNC | MSG_WAITALL) == 4);
	EXPECT(recv(fd[1], buf, 4, 0) == 2 && !memcmp(buf, "ef", 2));
}

static void recv_lowat(void)
{
	int fd[2], low = 4;
	char buf[8];

	pair(fd);
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)));
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	EXPECT(!rs_poll(fd[1], POLLIN, 100));
	EXPECT(send(fd[0], "cd", 2, 0) == 2);
	await(fd[1], POLLIN);
	EXPECT(recv(fd[1], buf, 8, 0) == 4);
}

static void bad_pointers(void)
{
	char buf[4], *bad = (char *)8;
	struct iovec iov = { bad, 4 };
	int fd[2];

	pair(fd);
	EXPECT_ERRNO(send(fd[0], bad, 4, 0), EFAULT);
	EXPECT_ERRNO(writev(fd[0], &iov, 1), EFAULT);
	EXPECT(send(fd[0], "good", 4, 0) == 4);
	await(fd[1], POLLIN);
	EXPECT_ERRNO(recv(fd[1], bad, 4, 0), EFAULT);
	EXPECT(recv(fd[1], buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "good", 4));
}

static void zero_length(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT(!send(fd[0], NULL, 0, 0));
	EXPECT(!write(fd[0], "", 0));
	EXPECT_ERRNO(recv(fd[1], &c, 0, MSG_DONTWAIT), EAGAIN);
	EXPECT(!rs_poll(fd[1], POLLIN, 50));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	await(fd[1], POLLIN);
	EXPECT(!recv(fd[1], &c, 0, 0));
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLIN);
	EXPECT(!recv(fd[1], &c, 0, 0));
}

static void many_iovecs(void)
{
	struct iovec out[1000], in[700];
	static uint8_t from[7000], to[7000];
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 700 };
	int fd[2];

	for (int i = 0; i < 1000; i++)
		out[i] = (struct iovec){ from + i * 7, 7 };
	for (int i = 0; i < 700; i++)
		in[i] = (struct iovec){ to + i * 10, 10 };
	pattern_fill(from, 7000, 9, 0);
	pair(fd);
	EXPECT(writev(fd[0], out, 1000) == 7000);
	EXPECT(recvmsg(fd[1], &msg, MSG_WAITALL) == 7000);
	EXPECT(!memcmp(from, to, 7000));
	EXPECT(!msg.msg_flags);
}

static void ioctl_inq_outq(void)
{
	int fd[2], n = -1;
	char buf[4];

	pair(fd);
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && n == 0);
	EXPECT(send(fd[0], "abcd", 4, 0) == 4);
	await(fd[1], POLLIN);
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && n == 4);
	EXPECT(!ioctl(fd[1], FIONREAD, &n) && n == 4);
	EXPECT(recv(fd[1], buf, 4, 0) == 4);
	for (int i = 0; i < 100 && !ioctl(fd[0], SIOCOUTQ, &n) && n; i++)
		usleep(20000);
	EXPECT(!n);
	EXPECT(!ioctl(fd[0], SIOCOUTQNSD, &n) && n == 0);
	EXPECT_ERRNO(ioctl(fd[0], 0xdead, &n), ENOTTY);
}

static void ioctl_listener(void)
{
	uint16_t port;
	int l = listener(&port), n;

	EXPECT_ERRNO(ioctl(l, SIOCINQ, &n), EINVAL);
	EXPECT_ERRNO(ioctl(l, SIOCOUTQ, &n), EINVAL);
}

static void poll_states(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT(rs_poll(fd[0], POLLIN | POLLOUT | POLLRDHUP, 0) == POLLOUT);
	EXPECT(send(fd[1], "x", 1, 0) == 1);
	await(fd[0], POLLIN);
	EXPECT(recv(fd[0], &c, 1, 0) == 1);
	EXPECT(!shutdown(fd[1], SHUT_WR));
	await(fd[0], POLLRDHUP);
	EXPECT(rs_poll(fd[0], POLLIN | POLLOUT | POLLRDHUP, 0) ==
	       (POLLIN | POLLOUT | POLLRDHUP));
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[0], POLLHUP);
	await(fd[1], POLLHUP);
}

static void epoll_edge(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0), fd[2];
	char c;

	pair(fd);
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &ev));
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
	for (int i = 0; i < 20; i++) {
		EXPECT(send(fd[0], "x", 1, 0) == 1);
		EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1);
		EXPECT(ev.events == EPOLLIN);
		EXPECT(!epoll_wait(ep, &ev, 1, 0));
		EXPECT(recv(fd[1], &c, 1, 0) == 1);
		EXPECT_ERRNO(recv(fd[1], &c, 1, MSG_DONTWAIT), EAGAIN);
	}
}

static void file_sent(void)
{
	int file = memfd_create("api", 0), fd[2];
	static uint8_t in[20000], out[20000];
	off_t at = 100;

	pattern_fill(out, sizeof(out), 5, 0);
	EXPECT(write(file, out, sizeof(out)) == sizeof(out));
	pair(fd);
	EXPECT(sendfile(fd[0], file, &at, 19900) == 19900);
	EXPECT(at == 20000);
	EXPECT(recv(fd[1], in, 19900, MSG_WAITALL) == 19900);
	EXPECT(!memcmp(in, out + 100, 19900));
	EXPECT(!sendfile(fd[0], file, &at, 100));	/* end of the file */
}

/* A file that is shorter than asked for: nothing follows, so what was read is not held back. */
static void file_ends_early(void)
{
	int file = memfd_create("api", 0), fd[2];
	uint64_t start, took, least = 1000;
	char buf[1000] = "";

	EXPECT(write(file, buf, sizeof(buf)) == sizeof(buf));
	pair(fd);
	for (int i = 0; i < 5; i++) {
		off_t at = 0;

		start = rs_now_ms();
		EXPECT(sendfile(fd[0], file, &at, 5000) == sizeof(buf));
		EXPECT(recv(fd[1], buf, sizeof(buf), MSG_WAITALL) == sizeof(buf));
		took = rs_now_ms() - start;
		if (took < least)
			least = took;
	}
	EXPECT(least < 150);	/* TCP would wait for 200 ms */
}

/* The end of the file is not the end of TCP_CORK. */
static void corked_file_ends_early(void)
{
	int file = memfd_create("api", 0), fd[2], n;
	char buf[1000] = "";
	uint64_t start;
	off_t at = 0;

	EXPECT(write(file, buf, sizeof(buf)) == sizeof(buf));
	pair(fd);
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 1);
	start = rs_now_ms();
	EXPECT(sendfile(fd[0], file, &at, 5000) == sizeof(buf));
	usleep(50000);
	/* unless this machine stood still */
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && (!n || rs_now_ms() - start > 150));
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 0);
	EXPECT(recv(fd[1], buf, sizeof(buf), MSG_WAITALL) == sizeof(buf));
}

static void splice_both_ways(void)
{
	int a[2], b[2], fd[2];
	char buf[16];

	EXPECT(!pipe(a) && !pipe(b));
	pair(fd);
	EXPECT(write(a[1], "through pipes", 13) == 13);
	EXPECT(splice(a[0], NULL, fd[0], NULL, 13, 0) == 13);
	EXPECT(splice(fd[1], NULL, b[1], NULL, 64, 0) == 13);
	EXPECT(read(b[0], buf, 16) == 13 && !memcmp(buf, "through pipes", 13));
	rs_nonblock(fd[1]);
	EXPECT_ERRNO(splice(fd[1], NULL, b[1], NULL, 64, 0), EAGAIN);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLIN);
	EXPECT(!splice(fd[1], NULL, b[1], NULL, 64, 0));
}

static void buffers_set(void)
{
	int v = 65536, fd[2];
	socklen_t len = sizeof(v);
	size_t sent;

	pair(fd);
	EXPECT(!setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVBUF, &v, sizeof(v)));
	EXPECT(!getsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &v, &len));
	EXPECT(v == 131072);
	sent = fill(fd[0]);
	EXPECT(sent >= 32768);
	drain(fd[1], sent);
}

static void read_write(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT(write(fd[0], "x", 1) == 1);
	EXPECT(read(fd[1], &c, 1) == 1 && c == 'x');
	EXPECT_ERRNO(lseek(fd[0], 0, SEEK_SET), ESPIPE);
}

#define CASE(fn) { "io: " #fn, fn }
const struct api_case io_cases[] = {
	CASE(read_write),
	CASE(send_whole_mib),
	CASE(send_nonblock_full),
	CASE(send_timeout),
	CASE(recv_timeout),
	CASE(recv_peek),
	CASE(recv_waitall),
	CASE(recv_trunc_discards),
	CASE(recv_lowat),
	CASE(bad_pointers),
	CASE(zero_length),
	CASE(many_iovecs),
	CASE(ioctl_inq_outq),
	CASE(ioctl_listener),
	CASE(poll_states),
	CASE(epoll_edge),
	CASE(file_sent),
	CASE(file_ends_early),
	CASE(corked_file_ends_early),
	CASE(splice_both_ways),
	CASE(buffers_set),
	{ NULL, NULL },
};
