// SPDX-License-Identifier: GPL-2.0-only
/* Flags, messages with control data, and calls that take more than a buffer. */
#include "api.h"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pattern.h"

#ifndef TCP_CM_INQ
#define TCP_CM_INQ TCP_INQ
#endif

static void result(const char *what, ssize_t n)
{
	note("%s %zd %d", what, n, n < 0 ? errno : 0);
}

/* Where the good bytes before a bad pointer go. */
static void partly_bad(void)
{
	char buf[16] = "";
	struct iovec iov[2] = { { "good", 4 }, { (void *)8, 4 } };
	int fd[2];

	pair(fd);
	turn();
	result("send", writev(fd[0], iov, 2));
	EXPECT(send(fd[0], "12345678", 8, 0) == 8);
	EXPECT_SOON(recv(fd[1], buf, 16, MSG_PEEK) >= 8);
	iov[0].iov_base = buf;
	result("recv", readv(fd[1], iov, 2));
	result("then", recv(fd[1], buf, 16, MSG_DONTWAIT));
}

static void flags(void)
{
	static const int out[] = {
		MSG_CONFIRM, MSG_DONTROUTE, MSG_EOR, MSG_TRUNC, MSG_CTRUNC,
		MSG_PROXY, MSG_WAITALL, MSG_PEEK, MSG_SYN, MSG_FIN, MSG_RST,
		MSG_ERRQUEUE, 1 << 22,
	};
	static const int in[] = {
		MSG_CONFIRM, MSG_EOR, MSG_CTRUNC, MSG_CMSG_CLOEXEC, MSG_NOSIGNAL,
		MSG_MORE, MSG_DONTROUTE, 1 << 22,
	};
	char buf[4];
	int fd[2];

	pair(fd);
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		ssize_t n = send(fd[0], "x", 1, out[i] | MSG_NOSIGNAL);

		result("send", n);
		if (n > 0)
			EXPECT(recv(fd[1], buf, 1, 0) == 1);
	}
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		EXPECT(send(fd[0], "x", 1, 0) == 1);
		await(fd[1], POLLIN);
		result("recv", recv(fd[1], buf, 4, in[i]));
	}
	result("queue", recv(fd[1], buf, 4, MSG_ERRQUEUE));
}

static void message_names(void)
{
	union rs_addr addr;
	char buf[4], control[64];
	struct iovec iov = { buf, 4 };
	struct msghdr msg = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = &iov,
		.msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	socklen_t len = sizeof(addr);
	int fd[2];

	pair(fd);
	result("sendto", sendto(fd[0], "abcd", 4, 0, &addr.sa,
				rs_addr(&kind, host, 9, &addr)));
	EXPECT(send(fd[0], "efgh", 4, 0) == 4);
	await_bytes(fd[1], 8);
	EXPECT(recvmsg(fd[1], &msg, 0) == 4);
	note("name %d control %zu flags %x", msg.msg_namelen,
	     msg.msg_controllen, msg.msg_flags);
	result("recvfrom", recvfrom(fd[1], buf, 4, 0, &addr.sa, &len));
	note("len %d", len);
}

/* One byte in @msg, and a control message of SOL_SOCKET with an int, 0.  Return: that one */
static struct cmsghdr *byte_with_int(struct msghdr *msg)
{
	static char control[CMSG_SPACE(sizeof(int))];
	static struct iovec iov = { "x", 1 };
	struct cmsghdr *c;

	*msg = (struct msghdr){
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_len = CMSG_LEN(sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	return c;
}

static void control_sent(void)
{
	struct msghdr msg;
	struct cmsghdr *c = byte_with_int(&msg);
	int fd[2];

	pair(fd);
	c->cmsg_type = 9999;
	result("unknown", sendmsg(fd[0], &msg, 0));
	c->cmsg_level = IPPROTO_TCP;
	result("level", sendmsg(fd[0], &msg, 0));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SO_TIMESTAMPING;
	result("stamp", sendmsg(fd[0], &msg, 0));
	c->cmsg_len = 1;
	result("short", sendmsg(fd[0], &msg, 0));
}

/* The error of a control message that is not for everybody. */
static void control_forbidden(void)
{
	struct msghdr msg;
	struct cmsghdr *c = byte_with_int(&msg);
	int fd[2];

	pair(fd);
	c->cmsg_type = SO_MARK;
	result("root", sendmsg(fd[0], &msg, 0));
	EXPECT(!setuid(65534));
	result("nobody", sendmsg(fd[0], &msg, 0));
}

static void many_messages(void)
{
	static char out[64], in[64];
	struct iovec iov[8];
	struct mmsghdr msg[8] = {};
	int fd[2], n;

	pair(fd);
	pattern_fill((uint8_t *)out, 64, 1, 0);
	for (int i = 0; i < 8; i++) {
		iov[i] = (struct iovec){ out + i * 8, 8 };
		msg[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
						  .msg_iovlen = 1 };
	}
	EXPECT(sendmmsg(fd[0], msg, 4, MSG_MORE) == 4);
	turn();
	EXPECT(sendmmsg(fd[0], msg + 4, 4, 0) == 4);
	EXPECT(msg[7].msg_len == 8);
	await_bytes(fd[1], 64);
	for (int i = 0; i < 8; i++)
		iov[i].iov_base = in + i * 8;
	n = recvmmsg(fd[1], msg, 8, MSG_WAITFORONE, NULL);
	EXPECT(n == 8 && !memcmp(in, out, 64));
	iov[0].iov_base = (void *)8;
	result("bad", sendmmsg(fd[0], msg, 2, 0));
	iov[0].iov_base = out;
	iov[1].iov_base = (void *)8;
	result("second bad", sendmmsg(fd[0], msg, 2, 0));
}

static void more_held(void)
{
	uint64_t start;
	char buf[16];
	int fd[2], n;

	pair(fd);
	start = rs_now_ms();
	EXPECT(send(fd[0], "ab", 2, MSG_MORE) == 2);
	EXPECT(send(fd[0], "cd", 2, MSG_MORE) == 2);
	/* unless this machine stood still */
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && (!n || rs_now_ms() - start > 150));
	EXPECT(send(fd[0], "ef", 2, 0) == 2);
	await_bytes(fd[1], 6);
	EXPECT(recv(fd[1], buf, 16, 0) == 6 && !memcmp(buf, "abcdef", 6));
	EXPECT(send(fd[0], "gh", 2, MSG_MORE) == 2);
	await_bytes(fd[1], 2);		/* not for ever */
	EXPECT(send(fd[0], "ij", 2, MSG_MORE) == 2);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT(recv(fd[1], buf, 16, MSG_WAITALL) == 4);
}

static void corked(void)
{
	char buf[16];
	int fd[2], n;
	uint64_t start;

	pair(fd);
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 1);
	EXPECT(get_int(fd[0], IPPROTO_TCP, TCP_CORK) == 1);
	turn();
	start = rs_now_ms();
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	EXPECT(send(fd[0], "cd", 2, 0) == 2);
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && (!n || rs_now_ms() - start > 150));
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 0);
	await_bytes(fd[1], 4);
	EXPECT(!get_int(fd[0], IPPROTO_TCP, TCP_CORK));
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 1);
	EXPECT(send(fd[0], "ef", 2, 0) == 2);
	set_int(fd[0], IPPROTO_TCP, TCP_NODELAY, 1);	/* pushes once */
	await_bytes(fd[1], 6);
	EXPECT(send(fd[0], "gh", 2, 0) == 2);
	await_bytes(fd[1], 8);				/* not for ever */
	EXPECT(send(fd[0], "ij", 2, 0) == 2);
	close(fd[0]);
	EXPECT(recv(fd[1], buf, 16, MSG_WAITALL) == 10);
	EXPECT(!memcmp(buf, "abcdefghij", 10));
}

/* The end does not wait, although TCP sends it later, at the rate that the program allows. */
static void corked_until_end(void)
{
	int fd[2];
	char buf[4];

	pair(fd);
	for (int i = 0; i < 24; i++) {	/* the first ten segments are sent at once */
		EXPECT(send(fd[i & 1], "x", 1, 0) == 1);
		EXPECT(recv(fd[!(i & 1)], buf, 1, 0) == 1);
	}
	set_int(fd[0], SOL_SOCKET, SO_MAX_PACING_RATE, 500);
	EXPECT(send(fd[0], "a", 1, 0) == 1);
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 1);
	EXPECT(send(fd[0], "b", 1, 0) == 1);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT(rs_poll(fd[1], POLLRDHUP, 150) & POLLRDHUP);
	EXPECT(recv(fd[1], buf, 4, MSG_WAITALL) == 2 && !memcmp(buf, "ab", 2));
}

/* It is for TCP_NODELAY to push, not for its absence. */
static void corked_without_nodelay(void)
{
	uint64_t start;
	int fd[2], n;

	pair(fd);
	set_int(fd[0], IPPROTO_TCP, TCP_CORK, 1);
	start = rs_now_ms();
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	set_int(fd[0], IPPROTO_TCP, TCP_NODELAY, 0);
	turn();
	usleep(50000);
	EXPECT(!ioctl(fd[1], SIOCINQ, &n) && (!n || rs_now_ms() - start > 150));
	await_bytes(fd[1], 2);
}

/* More than a ring holds at first, but less than TCP's first window. */
#define MANY 60000

/* A program that waits for many bytes before it reads any. */
static void peek_many(void)
{
	static uint8_t out[MANY], in[MANY];
	struct timeval limit = { .tv_sec = SOON_SECONDS };
	int fd[2];

	pair(fd);
	pattern_fill(out, MANY, 1, 0);
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	EXPECT(recv(fd[1], in, MANY, MSG_PEEK | MSG_WAITALL) == MANY && !memcmp(in, out, MANY));
	turn();
	EXPECT(recv(fd[1], in, MANY, MSG_WAITALL) == MANY && !memcmp(in, out, MANY));
}

/* Likewise with calls that take what there is, and only when something comes. */
static void peek_many_in_parts(void)
{
	static uint8_t out[MANY], in[MANY];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int fd[2], epoll = epoll_create1(0);
	ssize_t n = 0;

	pair(fd);
	pattern_fill(out, MANY, 1, 0);
	EXPECT(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd[1], &ev));
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	while (n < MANY) {
		EXPECT(epoll_wait(epoll, &ev, 1, 1000 * SOON_SECONDS) == 1);
		n = recv(fd[1], in, MANY, MSG_PEEK);
		EXPECT(n > 0 && !memcmp(in, out, n));
	}
	drain(fd[1], MANY);
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	EXPECT_SOON(recv(fd[1], in, MANY, MSG_PEEK) == MANY);
	EXPECT(recv(fd[1], in, MANY, MSG_WAITALL) == MANY);
}

static void await_many(void)
{
	static uint8_t out[MANY];
	int fd[2];

	pair(fd);
	pattern_fill(out, MANY, 1, 0);
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	turn();
	await_bytes(fd[1], MANY);
	drain(fd[1], MANY);
	/* after a part that is not worth a credit */
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	EXPECT(recv(fd[1], out, 2000, MSG_WAITALL) == 2000);
	await_bytes(fd[1], MANY - 2000);
	EXPECT(recv(fd[1], out, MANY - 2000, MSG_WAITALL) == MANY - 2000);
	pattern_fill(out, MANY, 1, MANY);
	EXPECT(send(fd[0], out, MANY, 0) == MANY);
	EXPECT(recv(fd[1], out, MANY, MSG_WAITALL) == MANY);
}

/* Both write before either reads: buffers and window hold what both write. */
static void write_before_read(void)
{
	static uint8_t out[100000], in[100000];
	struct timeval limit = { .tv_sec = SOON_SECONDS };
	int fd[2];

	pair(fd);
	turn();
	pattern_fill(out, sizeof(out), 1, 0);
	for (int i = 0; i < 2; i++) {
		EXPECT(!setsockopt(fd[i], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
		EXPECT(send(fd[i], out, sizeof(out), 0) == sizeof(out));
	}
	for (int i = 0; i < 2; i++)
		EXPECT(recv(fd[i], in, sizeof(in), MSG_WAITALL) == sizeof(in) &&
		       !memcmp(in, out, sizeof(in)));
}

/* It waits for nothing but what is corked before it. */
static void urgent_after_corked_file(void)
{
	int fd[2], a[2];
	uint64_t start;
	char buf[4];

	EXPECT(!pipe(a));
	pair(fd);
	EXPECT(write(a[1], "ab", 2) == 2);
	EXPECT(splice(a[0], NULL, fd[0], NULL, 2, SPLICE_F_MORE) == 2);
	start = rs_now_ms();
	EXPECT(send(fd[0], "!", 1, MSG_OOB | MSG_DONTWAIT) == 1);
	EXPECT(rs_now_ms() - start < 100);
	await(fd[1], POLLPRI);
	EXPECT(recv(fd[1], buf, 1, MSG_OOB) == 1 && buf[0] == '!');
	EXPECT(recv(fd[1], buf, 2, MSG_WAITALL) == 2 && !memcmp(buf, "ab", 2));
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *signal_soon(void *arg)
{
	for (int i = 0; i < 100; i++) {
		usleep(50000);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	}
	return NULL;
}

/* A signal in the middle: a count, and that many bytes. */
static void send_interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	static uint8_t buf[1 << 24];
	pthread_t thread, self = pthread_self();
	size_t sum = 0;
	ssize_t n;
	int fd[2];

	pair(fd);
	sigaction(SIGUSR1, &sa, NULL);
	pattern_fill(buf, sizeof(buf), 1, 0);
	pthread_create(&thread, NULL, signal_soon, &self);
	n = send(fd[0], buf, sizeof(buf), 0);
	EXPECT(n > 0 && n < (ssize_t)sizeof(buf));
	do {
		sum += n;
		n = send(fd[0], buf + sum, sizeof(buf) - sum, 0);
	} while (n > 0);
	EXPECT(n == -1 && errno == EINTR);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	turn();
	drain(fd[1], sum);
}

static void recv_interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t thread, self = pthread_self();
	char buf[8];
	int fd[2];

	pair(fd);
	sigaction(SIGUSR1, &sa, NULL);
	EXPECT(send(fd[0], "abc", 3, 0) == 3);
	pthread_create(&thread, NULL, signal_soon, &self);
	EXPECT(recv(fd[1], buf, 8, MSG_WAITALL) == 3);
	EXPECT_ERRNO(recv(fd[1], buf, 8, 0), EINTR);
	struct timeval tv = { .tv_sec = 30 };
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(recv(fd[1], buf, 8, 0), EINTR);
}

static void send_timeout_counts(void)
{
	struct timeval tv = { .tv_usec = 200000 };
	static uint8_t buf[1 << 24];
	ssize_t n;
	int fd[2];

	pair(fd);
	pattern_fill(buf, sizeof(buf), 1, 0);
	EXPECT(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	n = send(fd[0], buf, sizeof(buf), 0);
	EXPECT(n > 0 && n < (ssize_t)sizeof(buf));
	turn();
	drain(fd[1], n);
}

static void peek_offset(void)
{
	int off = 2, fd[2], r;
	socklen_t len = sizeof(off);
	char buf[8];

	pair(fd);
	EXPECT(send(fd[0], "abcdef", 6, 0) == 6);
	await_bytes(fd[1], 6);
	r = setsockopt(fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off));
	result("set", r);
	result("get", getsockopt(fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, &len));
	if (r)
		return;		/* a kernel that does not have it */
	EXPECT(recv(fd[1], buf, 2, MSG_PEEK) == 2 && !memcmp(buf, "cd", 2));
	turn();
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK) == 2 && !memcmp(buf, "ef", 2));
	result("beyond", recv(fd[1], buf, 8, MSG_PEEK | MSG_DONTWAIT));
	EXPECT(recv(fd[1], buf, 3, 0) == 3 && !memcmp(buf, "abc", 3));
	note("now %d", get_int(fd[1], SOL_SOCKET, SO_PEEK_OFF));
	EXPECT(send(fd[0], "gh", 2, 0) == 2);
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK) == 2 && !memcmp(buf, "gh", 2));
	off = -1;
	result("off", setsockopt(fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, len));
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK) == 5 && !memcmp(buf, "defgh", 5));
}

#define MUCH (2 << 20)

static void *send_much(void *fd)
{
	static uint8_t out[MUCH];

	pattern_fill(out, MUCH, 1, 0);
	EXPECT(send(*(int *)fd, out, MUCH, 0) == MUCH);
	return NULL;
}

/* Peek on from @seen, which sk_peek_off follows, until nothing new comes.  Return: up to where. */
static size_t peek_on_from(int fd, size_t seen)
{
	static uint8_t buf[65536];
	ssize_t n;

	for (int pauses = 0; pauses < 30;) {
		n = recv(fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);
		if (n < 0) {
			EXPECT(errno == EAGAIN);
			pauses++;
			usleep(5000);
			continue;
		}
		EXPECT(n && pattern_check(buf, n, 1, seen) == (size_t)n);
		seen += n;
		pauses = 0;
	}
	return seen;
}

/* A program that peeks on and on, and reads nothing. */
static void peek_until_full(void)
{
	struct timeval limit = { .tv_usec = 50000 };
	int off = 0, fd[2];
	pthread_t thread;
	size_t seen;
	char c;

	pair(fd);
	set_int(fd[1], SOL_SOCKET, SO_RCVBUF, 65536);
	if (setsockopt(fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)))
		api_skip("a kernel without SO_PEEK_OFF for TCP");
	EXPECT(!pthread_create(&thread, NULL, send_much, &fd[0]));
	seen = peek_on_from(fd[1], 0);
	turn();
	seen = peek_on_from(fd[1], seen);
	EXPECT(seen >= 32768 && seen < MUCH);
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	EXPECT_ERRNO(recv(fd[1], &c, 1, MSG_PEEK), EAGAIN);
	limit.tv_usec = 0;
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	drain(fd[1], MUCH);
	pthread_join(thread, NULL);
}

/* Likewise up to the end. */
static void peek_until_end(void)
{
	int off = 0, fd[2];
	char buf[8];

	pair(fd);
	EXPECT(send(fd[0], "abc", 3, 0) == 3);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLRDHUP);
	turn();
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK | MSG_WAITALL) == 3 && !memcmp(buf, "abc", 3));
	if (setsockopt(fd[1], SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)))
		api_skip("a kernel without SO_PEEK_OFF for TCP");
	EXPECT(recv(fd[1], buf, 8, MSG_PEEK) == 3 && !memcmp(buf, "abc", 3));
	EXPECT(!recv(fd[1], buf, 8, MSG_PEEK));
	EXPECT(!recv(fd[1], buf, 8, MSG_PEEK | MSG_DONTWAIT));
	EXPECT(recv(fd[1], buf, 8, MSG_WAITALL) == 3);
	EXPECT(!recv(fd[1], buf, 8, MSG_PEEK));
}

/* Receive, and note which control messages came along. */
static void note_control(int fd, size_t len, int how)
{
	char buf[64], control[256];
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t n;

	n = recvmsg(fd, &msg, how);
	note("recv %zd %x", n, msg.msg_flags);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_TCP)
			note("%d: %d", c->cmsg_type, *(int *)CMSG_DATA(c));
		else
			note("%d/%d %zu", c->cmsg_level, c->cmsg_type,
			     c->cmsg_len);
}

static void inq_told(void)
{
	int fd[2];

	pair(fd);
	set_int(fd[1], IPPROTO_TCP, TCP_INQ, 1);
	EXPECT(get_int(fd[1], IPPROTO_TCP, TCP_INQ) == 1);
	EXPECT(send(fd[0], "abcdefgh", 8, 0) == 8);
	await_bytes(fd[1], 8);
	turn();
	note_control(fd[1], 3, 0);
	note_control(fd[1], 2, MSG_PEEK);
	note_control(fd[1], 5, 0);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLRDHUP);
	note_control(fd[1], 1, 0);
}

/* The end counts as a byte. */
static void inq_told_before_end(void)
{
	int fd[2];

	pair(fd);
	set_int(fd[1], IPPROTO_TCP, TCP_INQ, 1);
	turn();
	EXPECT(send(fd[0], "abcdefgh", 8, 0) == 8);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLRDHUP);
	note_control(fd[1], 3, 0);
	turn();
	note_control(fd[1], 2, MSG_PEEK);
	note_control(fd[1], 4, 0);
	note_control(fd[1], 1, 0);
	note_control(fd[1], 1, 0);
	note_control(fd[1], 1, 0);
}

static void inq_told_beside_urgent(void)
{
	int fd[2];

	pair(fd);
	set_int(fd[1], IPPROTO_TCP, TCP_INQ, 1);
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	EXPECT(send(fd[0], "x", 1, MSG_OOB) == 1);
	await(fd[1], POLLPRI);
	turn();
	note_control(fd[1], 1, MSG_OOB);
}

/* TCP's sockets have no time of their own. */
static void no_time_of_socket(void)
{
	struct timeval tv;
	int fd[2];
	char c;

	pair(fd);
	for (int i = 0; i < 2; i++) {
		EXPECT_ERRNO(ioctl(fd[1], SIOCGSTAMP, &tv), ENOENT);
		EXPECT(send(fd[0], "x", 1, 0) == 1);
		turn();
		EXPECT(recv(fd[1], &c, 1, 0) == 1);
	}
}

static bool stamped(const int fd[2])
{
	char c, control[64];
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};

	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recvmsg(fd[1], &msg, 0) == 1);
	return CMSG_FIRSTHDR(&msg);
}

static void time_told(void)
{
	static const int options[] = {
		SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING,
	};
	struct timeval tv;
	struct timespec now;
	char c[4], control[64];
	struct iovec iov = { c, 4 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd[2], keep = rs_socket(&kind, 0);

	/* as long as somebody wants stamps packets have them, soon */
	set_int(keep, SOL_SOCKET, SO_TIMESTAMP, 1);
	pair(fd);
	set_int(fd[1], SOL_SOCKET, SO_TIMESTAMP, 1);
	EXPECT_SOON(stamped(fd));
	for (int i = 0; i < 3; i++) {
		set_int(fd[1], SOL_SOCKET, options[i], i < 2 ? 1 :
			SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
		EXPECT(send(fd[0], "abc", 3, 0) == 3);
		await_bytes(fd[1], 3);
		note_control(fd[1], 1, MSG_PEEK);
		note_control(fd[1], 2, 0);
		turn();
		note_control(fd[1], 2, 0);
		set_int(fd[1], SOL_SOCKET, options[i], 0);
	}
	set_int(fd[1], SOL_SOCKET, SO_TIMESTAMP, 1);
	EXPECT(send(fd[0], "abc", 3, 0) == 3);
	msg.msg_controllen = sizeof(control);
	EXPECT(recvmsg(fd[1], &msg, 0) == 3 && CMSG_FIRSTHDR(&msg));
	memcpy(&tv, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(tv));
	clock_gettime(CLOCK_REALTIME, &now);
	EXPECT(tv.tv_sec <= now.tv_sec && tv.tv_sec >= now.tv_sec - 5);
}

/* Completed sends, as the error queue tells. */
static void zero_copy(void)
{
	static char buf[100000], in[sizeof(buf)];
	char control[256];
	struct msghdr msg = {};
	struct sock_extended_err *e;
	struct cmsghdr *c;
	unsigned int next = 0;
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], buf, 1, MSG_ZEROCOPY) == 1);	/* not asked for */
	EXPECT(recv(fd[1], in, 1, 0) == 1);
	set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1);
	EXPECT(get_int(fd[0], SOL_SOCKET, SO_ZEROCOPY) == 1);
	for (int i = 0; i < 3; i++) {
		ssize_t n = send(fd[0], buf, sizeof(buf), MSG_ZEROCOPY);

		EXPECT(n > 0);
		EXPECT(recv(fd[1], in, n, MSG_WAITALL) == n);
		turn();
	}
	while (next < 3) {
		await(fd[0], POLLERR);
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		msg.msg_flags = 0;
		EXPECT(!recvmsg(fd[0], &msg, MSG_ERRQUEUE));
		c = CMSG_FIRSTHDR(&msg);
		EXPECT(c && (c->cmsg_level == SOL_IP || c->cmsg_level == SOL_IPV6));
		e = (void *)CMSG_DATA(c);
		EXPECT(e->ee_errno == 0);
		EXPECT(e->ee_origin == SO_EE_ORIGIN_ZEROCOPY);
		EXPECT(e->ee_info == next && e->ee_data >= next);
		next = e->ee_data + 1;
	}
	/* whether TCP copies depends on the way; over RDMA to oneself we need not */
	note("flags %x", msg.msg_flags);
	EXPECT_ERRNO(recvmsg(fd[0], &msg, MSG_ERRQUEUE), EAGAIN);
	EXPECT(!(rs_poll(fd[0], POLLIN, 0) & POLLERR));
}

/*
 * Packets come back with the time when they were sent.  What this host has said to the
 * other one about the connection must not be in them: whoever knows it speaks for the host.
 */
static void no_packet_tells_of_hello(void)
{
	const char magic[] = "\xd5RSTRM\r\n";
	static char in[1 << 16], out[1 << 16], back[1 << 16];
	int fd[2];
	ssize_t n;

	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_TIMESTAMPING,
		SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE |
		SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE);
	for (int i = 0; i < 3; i++) {
		EXPECT(send(fd[0], out, sizeof(out) / 4, 0) == sizeof(out) / 4);
		EXPECT(recv(fd[1], in, sizeof(out) / 4, MSG_WAITALL) == sizeof(out) / 4);
		EXPECT(send(fd[1], out, 1, 0) == 1);
		EXPECT(recv(fd[0], in, 1, MSG_WAITALL) == 1);
		turn();
		while ((n = recv(fd[0], back, sizeof(back), MSG_ERRQUEUE)) >= 0)
			EXPECT(!memmem(back, n, magic, 8));
	}
}

static void file_to_full_socket(void)
{
	int file = memfd_create("api", 0), fd[2];
	static uint8_t out[1 << 24];
	size_t sum = 0;
	off_t at = 0;
	ssize_t n;

	pattern_fill(out, sizeof(out), 1, 0);
	EXPECT(write(file, out, sizeof(out)) == sizeof(out));
	pair(fd);
	rs_nonblock(fd[0]);
	do {
		n = sendfile(fd[0], file, &at, sizeof(out) - sum);
		sum += n > 0 ? n : 0;
	} while (n > 0 && sum < sizeof(out));
	EXPECT(n == -1 && errno == EAGAIN);
	EXPECT((size_t)at == sum && sum < sizeof(out));
	turn();
	drain(fd[1], sum);
	result("from", sendfile(file, fd[1], NULL, 10));
}

static void splice_more(void)
{
	static char page[4096];
	int a[2], fd[2];
	char buf[16];

	EXPECT(!pipe(a));
	pair(fd);
	EXPECT(write(a[1], "ab", 2) == 2);
	EXPECT(splice(a[0], NULL, fd[0], NULL, 2, SPLICE_F_MORE) == 2);
	await_bytes(fd[1], 2);			/* held, but not for ever */
	EXPECT(write(a[1], "cd", 2) == 2);
	EXPECT(splice(a[0], NULL, fd[0], NULL, 9, 0) == 2);
	EXPECT(recv(fd[1], buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "abcd", 4));
	off_t at = 0;
	result("at", splice(fd[1], &at, a[1], NULL, 4, 0));
	rs_nonblock(fd[1]);
	EXPECT_ERRNO(splice(fd[1], NULL, a[1], NULL, 4, SPLICE_F_NONBLOCK),
		     EAGAIN);
	EXPECT(!splice(fd[1], NULL, a[1], NULL, 0, 0));
	rs_nonblock(a[1]);
	while (write(a[1], page, sizeof(page)) > 0)
		;
	EXPECT(send(fd[0], "ef", 2, 0) == 2);
	await(fd[1], POLLIN);
	result("full pipe", splice(fd[1], NULL, a[1], NULL, 4, SPLICE_F_NONBLOCK));
	EXPECT(recv(fd[1], buf, 4, 0) == 2);
}

#define CASE(fn) { "msg: " #fn, fn }
const struct api_case msg_cases[] = {
	CASE(partly_bad),
	CASE(flags),
	CASE(message_names),
	CASE(control_sent),
	CASE(control_forbidden),
	CASE(many_messages),
	CASE(more_held),
	CASE(corked),
	CASE(corked_until_end),
	CASE(corked_without_nodelay),
	CASE(peek_many),
	CASE(peek_many_in_parts),
	CASE(await_many),
	CASE(write_before_read),
	CASE(urgent_after_corked_file),
	CASE(send_interrupted),
	CASE(recv_interrupted),
	CASE(send_timeout_counts),
	CASE(peek_offset),
	CASE(peek_until_full),
	CASE(peek_until_end),
	CASE(inq_told),
	CASE(inq_told_before_end),
	CASE(inq_told_beside_urgent),
	CASE(no_time_of_socket),
	CASE(time_told),
	CASE(zero_copy),
	CASE(no_packet_tells_of_hello),
	CASE(file_to_full_socket),
	CASE(splice_more),
	{ NULL, NULL },
};
