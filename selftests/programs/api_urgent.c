// SPDX-License-Identifier: GPL-2.0-only
/* Urgent data. */
#include "api.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

static bool at_mark(int fd)
{
	int n = -1;

	EXPECT(!ioctl(fd, SIOCATMARK, &n));
	return n;
}

/* "ab", urgent "c", "d". */
static void send_marked(const int fd[2])
{
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	turn();
	EXPECT(send(fd[0], "c", 1, MSG_OOB) == 1);
	EXPECT(send(fd[0], "d", 1, 0) == 1);
	await(fd[1], POLLPRI);
}

static void none(void)
{
	int fd[2];
	char c;

	pair(fd);
	EXPECT_ERRNO(recv(fd[1], &c, 1, MSG_OOB), EINVAL);
	EXPECT(send(fd[0], "a", 1, 0) == 1);
	await_bytes(fd[1], 1);
	EXPECT_ERRNO(recv(fd[1], &c, 1, MSG_OOB | MSG_DONTWAIT), EINVAL);
	EXPECT(!at_mark(fd[1]));
	EXPECT(!(rs_poll(fd[1], POLLIN | POLLPRI, 0) & POLLPRI));
}

static void out_of_band(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	send_marked(fd);
	EXPECT(!at_mark(fd[1]));
	await_bytes(fd[1], 2);				/* up to the mark */
	EXPECT(recv(fd[1], buf, 8, 0) == 2 && !memcmp(buf, "ab", 2));
	EXPECT(at_mark(fd[1]));
	turn();
	EXPECT(recv(fd[1], buf, 8, MSG_OOB | MSG_PEEK) == 1 && *buf == 'c');
	EXPECT(recv(fd[1], buf, 8, MSG_OOB) == 1 && *buf == 'c');
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), EINVAL);
	EXPECT(!(rs_poll(fd[1], POLLIN | POLLPRI, 0) & POLLPRI));
	EXPECT(recv(fd[1], buf, 8, 0) == 1 && *buf == 'd');
	EXPECT(!at_mark(fd[1]));
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_DONTWAIT), EAGAIN);
}

static void in_line(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	set_int(fd[1], SOL_SOCKET, SO_OOBINLINE, 1);
	send_marked(fd);
	await_bytes(fd[1], 4);
	EXPECT(recv(fd[1], buf, 8, 0) == 2 && !memcmp(buf, "ab", 2));
	EXPECT(at_mark(fd[1]));
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), EINVAL);
	EXPECT(recv(fd[1], buf, 8, 0) == 2 && !memcmp(buf, "cd", 2));
	EXPECT(!at_mark(fd[1]));
}

static void passed_by(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	send_marked(fd);
	EXPECT(recv(fd[1], buf, 8, 0) == 2);
	EXPECT(recv(fd[1], buf, 8, 0) == 1 && *buf == 'd');
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), EINVAL);
}

/* Peeking and waiting for all stop at the mark, too. */
static void stops(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	send_marked(fd);
	note("peek %zd", recv(fd[1], buf, 8, MSG_PEEK));
	note("all %zd", recv(fd[1], buf, 4, MSG_WAITALL | MSG_DONTWAIT));
	note("peek %zd", recv(fd[1], buf, 8, MSG_PEEK));
	note("trunc %zd", recv(fd[1], buf, 8, MSG_TRUNC));
	note("mark %d", at_mark(fd[1]));
}

static void last_of_many(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "xyz", 3, MSG_OOB) == 3);
	await(fd[1], POLLPRI);
	EXPECT(recv(fd[1], buf, 8, MSG_OOB) == 1 && *buf == 'z');
	EXPECT(recv(fd[1], buf, 8, 0) == 2 && !memcmp(buf, "xy", 2));
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_DONTWAIT), EAGAIN);
}

static void second(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "1a", 2, MSG_OOB) == 2);
	await(fd[1], POLLPRI);
	EXPECT(send(fd[0], "2b", 2, MSG_OOB) == 2);
	await_bytes(fd[1], 3);		/* "a" is like any other byte now */
	EXPECT(recv(fd[1], buf, 8, 0) == 3 && !memcmp(buf, "1a2", 3));
	EXPECT(recv(fd[1], buf, 8, MSG_OOB) == 1 && *buf == 'b');
}

/* One that is unread at the mark is dropped when the next comes. */
static void second_at_mark(void)
{
	char buf[8];
	int fd[2], n;

	pair(fd);
	EXPECT(send(fd[0], "1a", 2, MSG_OOB) == 2);
	await(fd[1], POLLPRI);
	EXPECT(recv(fd[1], buf, 1, 0) == 1);
	EXPECT(at_mark(fd[1]));
	EXPECT(send(fd[0], "2b", 2, MSG_OOB) == 2);
	await_bytes(fd[1], 1);
	n = recv(fd[1], buf, 8, 0);
	note("then %d %c", n, *buf);
	n = recv(fd[1], buf, 8, MSG_OOB);
	note("urgent %d %c", n, *buf);
}

static void no_room(void)
{
	struct iovec iov = {};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[8];
	int fd[2], n;

	pair(fd);
	send_marked(fd);
	n = recvmsg(fd[1], &msg, MSG_OOB);
	note("empty %d %x", n, msg.msg_flags);
	note("then %zd", recv(fd[1], buf, 8, MSG_OOB));
}

static volatile sig_atomic_t urgents;

static void on_urgent(int sig)
{
	(void)sig;
	urgents++;
}

static void signals(void)
{
	char buf[8];
	int fd[2];

	signal(SIGURG, on_urgent);
	pair(fd);
	EXPECT(!fcntl(fd[1], F_SETOWN, getpid()));
	EXPECT(send(fd[0], "a", 1, 0) == 1);
	await_bytes(fd[1], 1);
	EXPECT(!urgents);
	EXPECT(send(fd[0], "b", 1, MSG_OOB) == 1);
	EXPECT_SOON(urgents == 1);
	await(fd[1], POLLPRI);		/* the byte may come later */
	EXPECT(recv(fd[1], buf, 8, MSG_OOB) == 1 && *buf == 'b');
	EXPECT(recv(fd[1], buf, 8, 0) == 1 && *buf == 'a');
}

static void selects(void)
{
	struct timeval tv = { .tv_sec = 2 };
	int fd[2];
	fd_set set;

	pair(fd);
	EXPECT(send(fd[0], "b", 1, MSG_OOB) == 1);
	FD_ZERO(&set);
	FD_SET(fd[1], &set);
	EXPECT(select(fd[1] + 1, NULL, NULL, &set, &tv) == 1);
	note("poll %x", rs_poll(fd[1], POLLIN | POLLPRI | POLLRDBAND, 0));
}

static void then_the_end(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "ab", 2, MSG_OOB) == 2);
	close(fd[0]);
	await(fd[1], POLLRDHUP);
	note("poll %x", rs_poll(fd[1], POLLIN | POLLPRI | POLLRDHUP, 0));
	EXPECT(recv(fd[1], buf, 8, MSG_WAITALL) == 1 && *buf == 'a');
	note("end %zd", recv(fd[1], buf, 8, 0));
	note("urgent %zd", recv(fd[1], buf, 8, MSG_OOB));
}

/* A reset loses it, unless the end has arrived before. */
static void then_a_reset(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "ab", 2, MSG_OOB) == 2);
	await(fd[1], POLLPRI);
	reset(fd[0]);
	await(fd[1], POLLHUP);
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), ENOTCONN);
	set_int(fd[1], SOL_SOCKET, SO_OOBINLINE, 1);
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), EINVAL);
	set_int(fd[1], SOL_SOCKET, SO_OOBINLINE, 0);
	note("error %d", get_int(fd[1], SOL_SOCKET, SO_ERROR));
	EXPECT_ERRNO(recv(fd[1], buf, 8, MSG_OOB), ENOTCONN);
}

static void then_the_end_and_a_reset(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	EXPECT(send(fd[0], "ab", 2, MSG_OOB) == 2);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLPRI);
	await(fd[1], POLLRDHUP);
	reset(fd[0]);
	await(fd[1], POLLERR);
	note("urgent %zd", recv(fd[1], buf, 8, MSG_OOB));
}

static void both_ways(void)
{
	char buf[8];
	int fd[2];

	pair(fd);
	for (int i = 0; i < 8; i++) {
		turn();
		EXPECT(send(fd[i & 1], "q!", 2, MSG_OOB) == 2);
		await(fd[!(i & 1)], POLLPRI);
		EXPECT(recv(fd[!(i & 1)], buf, 8, MSG_OOB) == 1 && *buf == '!');
		EXPECT(recv(fd[!(i & 1)], buf, 8, 0) == 1 && *buf == 'q');
	}
}

static void not_any_more(void)
{
	int fd[2];

	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT_ERRNO(send(fd[0], "x", 1, MSG_OOB | MSG_NOSIGNAL), EPIPE);
}

#define CASE(fn) { "urgent: " #fn, fn }
const struct api_case urgent_cases[] = {
	CASE(none),
	CASE(out_of_band),
	CASE(in_line),
	CASE(passed_by),
	CASE(stops),
	CASE(last_of_many),
	CASE(second),
	CASE(second_at_mark),
	CASE(no_room),
	CASE(signals),
	CASE(selects),
	CASE(then_the_end),
	CASE(then_a_reset),
	CASE(then_the_end_and_a_reset),
	CASE(both_ways),
	CASE(not_any_more),
	{ NULL, NULL },
};
