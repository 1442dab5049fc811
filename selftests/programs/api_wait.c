// SPDX-License-Identifier: GPL-2.0-only
/* poll, select, epoll, signals: who is woken, when, and with what. */
#include "api.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#define ALL (POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | \
	     POLLRDBAND | POLLWRNORM | POLLWRBAND)

static void events(const char *what, int fd)
{
	note("%s %x", what, rs_poll(fd, ALL, 0));
}

static void every_state(void)
{
	uint16_t port;
	int fd[2], l;
	char c;

	fd[0] = rs_socket(&kind, 0);
	events("fresh", fd[0]);
	EXPECT_ERRNO(connect_to(fd[0], 1), ECONNREFUSED);
	events("refused", fd[0]);
	l = listener(&port);
	events("listens", l);
	EXPECT(!connect_to(fd[0], port));
	await(l, POLLIN);
	events("has one", l);
	pair(fd);
	events("connected", fd[0]);
	EXPECT(send(fd[1], "x", 1, 0) == 1);
	await(fd[0], POLLIN);
	events("data", fd[0]);
	turn();
	EXPECT(!shutdown(fd[1], SHUT_WR));
	events("shut", fd[1]);
	await(fd[0], POLLRDHUP);
	events("data and end", fd[0]);
	EXPECT(recv(fd[0], &c, 1, 0) == 1);
	events("end", fd[0]);
	EXPECT(!shutdown(fd[0], SHUT_RD));
	events("no reading", fd[0]);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLHUP);
	events("both shut", fd[0]);
	events("both shut", fd[1]);

	pair(fd);
	EXPECT(!shutdown(fd[0], SHUT_RD));
	events("no reading", fd[0]);
	EXPECT(send(fd[1], "x", 1, 0) == 1);
	await_bytes(fd[0], 1);
	events("no reading but data", fd[0]);
	note("%zd", recv(fd[0], &c, 1, 0));
	EXPECT(!shutdown(fd[0], SHUT_RDWR));
	events("shut", fd[0]);
	await(fd[1], POLLRDHUP);
	events("they did", fd[1]);

	pair(fd);
	EXPECT(send(fd[1], "x", 1, 0) == 1);
	await_bytes(fd[0], 1);
	reset(fd[1]);
	await(fd[0], POLLERR);
	events("reset", fd[0]);
	note("%zd", recv(fd[0], &c, 1, 0));
	note("%zd", recv(fd[0], &c, 1, 0));
	events("told", fd[0]);
	EXPECT(send(fd[0], &c, 1, MSG_NOSIGNAL) == -1);
	note("%d", errno);
}

static void take(int fd, size_t len)
{
	static char buf[65536];

	while (len) {
		ssize_t n = recv(fd, buf, len < sizeof(buf) ? len : sizeof(buf), 0);

		EXPECT(n > 0);
		len -= n;
	}
}

/* Full is full until a good part is free again. */
static void writable_late(void)
{
	size_t len;
	int fd[2];

	pair(fd);
	len = fill(fd[0]);
	take(fd[1], 1);
	EXPECT(!(rs_poll(fd[0], POLLOUT, 100) & POLLOUT));
	turn();
	take(fd[1], len - 1);
	await(fd[0], POLLOUT);
}

static void edge_of_room(void)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int ep = epoll_create1(0), fd[2];
	size_t len;

	pair(fd);
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1 && ev.events == EPOLLOUT);
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
	for (int i = 0; i < 3; i++) {
		len = 0;
		do
			len += fill(fd[0]);
		while (epoll_wait(ep, &ev, 1, 50));
		if (i)
			turn();
		take(fd[1], len);
		EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1);
		EXPECT(ev.events == EPOLLOUT);
	}
}

/* Who has always found room is not told of room. */
static void no_edge_unasked(void)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int ep = epoll_create1(0), fd[2];
	char buf[64] = "";

	pair(fd);
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1 && ev.events == EPOLLOUT);
	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < 5; j++)
			EXPECT(send(fd[0], buf, sizeof(buf), 0) == sizeof(buf));
		take(fd[1], 5 * sizeof(buf));
		EXPECT(!epoll_wait(ep, &ev, 1, 0));
	}
	EXPECT(!epoll_wait(ep, &ev, 1, 100));
}

static void level_and_once(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP };
	int ep = epoll_create1(0), fd[2];
	char c;

	pair(fd);
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &ev));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	for (int i = 0; i < 3; i++)
		EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1 && ev.events == EPOLLIN);
	EXPECT(recv(fd[1], &c, 1, 0) == 1);
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
	ev.events = EPOLLIN | EPOLLONESHOT;
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &ev));
	turn();
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1);
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
	ev.events = EPOLLRDHUP;
	EXPECT(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &ev));
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT(epoll_wait(ep, &ev, 1, 1000 * SOON_SECONDS) == 1 && ev.events == EPOLLRDHUP);
	close(fd[0]);
	close(fd[1]);		/* leaves the set by itself */
	EXPECT(!epoll_wait(ep, &ev, 1, 0));
}

static void nested(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int inner = epoll_create1(0), outer = epoll_create1(0), fd[2];

	pair(fd);
	EXPECT(!epoll_ctl(inner, EPOLL_CTL_ADD, fd[1], &ev));
	EXPECT(!epoll_ctl(outer, EPOLL_CTL_ADD, inner, &ev));
	EXPECT(!epoll_wait(outer, &ev, 1, 0));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(epoll_wait(outer, &ev, 1, 1000 * SOON_SECONDS) == 1);
	EXPECT(rs_poll(inner, POLLIN, 0) == POLLIN);
	EXPECT(epoll_wait(inner, &ev, 1, 0) == 1);
}

static void *wait_in(void *arg)
{
	return (void *)(long)(rs_poll(*(int *)arg, POLLIN, 5000) & POLLIN);
}

static void all_waiters(void)
{
	pthread_t thread[4];
	void *seen;
	int fd[2];

	pair(fd);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, wait_in, &fd[1]);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &seen);
		EXPECT(seen == (void *)POLLIN);
	}
}

static void *read_one(void *arg)
{
	char c;

	return (void *)recv(*(int *)arg, &c, 1, 0);
}

static void all_readers(void)
{
	pthread_t thread[3];
	void *got;
	int fd[2];

	pair(fd);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, read_one, &fd[1]);
	turn();
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	long sum = 0;
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &got);
		sum += (long)got;
	}
	EXPECT(sum == 2);
}

static void selects(void)
{
	struct timeval tv = { .tv_sec = 2 };
	fd_set r, w;
	int fd[2];

	pair(fd);
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(fd[1], &r);
	FD_SET(fd[1], &w);
	EXPECT(select(fd[1] + 1, &r, &w, NULL, &tv) == 1 && FD_ISSET(fd[1], &w));
	FD_SET(fd[1], &r);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(select(fd[1] + 1, &r, NULL, NULL, &tv) == 1);
}

static void low_water(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	char buf[16];
	int fd[2];

	pair(fd);
	EXPECT(get_int(fd[1], SOL_SOCKET, SO_RCVLOWAT) == 1);
	set_int(fd[1], SOL_SOCKET, SO_RCVLOWAT, 4);
	EXPECT(get_int(fd[1], SOL_SOCKET, SO_RCVLOWAT) == 4);
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	await_bytes(fd[1], 2);
	events("two of four", fd[1]);
	EXPECT(recv(fd[1], buf, 16, MSG_DONTWAIT) == 2);
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	await_bytes(fd[1], 2);
	turn();
	EXPECT(!setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT(recv(fd[1], buf, 16, 0) == 2);		/* in time */
	EXPECT(send(fd[0], "ab", 2, 0) == 2);
	EXPECT(recv(fd[1], buf, 2, 0) == 2);		/* no more wanted */
	EXPECT(send(fd[0], "cd", 2, 0) == 2);
	await_bytes(fd[1], 2);
	set_int(fd[1], SOL_SOCKET, SO_RCVLOWAT, 2);	/* enough now */
	await(fd[1], POLLIN);
	set_int(fd[1], SOL_SOCKET, SO_RCVLOWAT, 8);
	EXPECT(!rs_poll(fd[1], POLLIN, 0));
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLIN);				/* the end */
	EXPECT(recv(fd[1], buf, 16, 0) == 2);
	set_int(fd[1], SOL_SOCKET, SO_RCVLOWAT, 0);
	EXPECT(get_int(fd[1], SOL_SOCKET, SO_RCVLOWAT) == 1);
	set_int(fd[1], SOL_SOCKET, SO_RCVLOWAT, 1 << 30);
	note("most %d", get_int(fd[1], SOL_SOCKET, SO_RCVLOWAT));
}

/* On a listener: for those it accepts. */
static void low_water_inherited(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);

	set_int(l, SOL_SOCKET, SO_RCVLOWAT, 3);
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 5);
	l = connect_accept(fd, l, port);
	EXPECT(get_int(l, SOL_SOCKET, SO_RCVLOWAT) == 3);
	EXPECT(get_int(fd, SOL_SOCKET, SO_RCVLOWAT) == 5);
	EXPECT(send(fd, "ab", 2, 0) == 2);
	await_bytes(l, 2);
	EXPECT(!rs_poll(l, POLLIN, 50));
	EXPECT(send(fd, "c", 1, 0) == 1);
	await(l, POLLIN);
}

static void unsent_low_water(void)
{
	static char buf[4096];
	int fd[2], n, room = 0;
	size_t sum = 0;

	pair(fd);
	set_int(fd[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384);
	EXPECT(get_int(fd[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT) == 16384);
	/* what TCP sends while we look makes room: fill it again */
	do {
		while (rs_poll(fd[0], POLLOUT, 100) & POLLOUT) {
			ssize_t got = send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);

			EXPECT(got > 0 && room++ < 100000);
			sum += got;
		}
		EXPECT(!ioctl(fd[0], SIOCOUTQNSD, &n));
		EXPECT(n < 16384 + 4096);
	} while (n < 8192);
	turn();
	take(fd[1], sum);
	await(fd[0], POLLOUT);
}

static volatile sig_atomic_t ios;

static void on_io(int sig)
{
	(void)sig;
	ios++;
}

static void sigio(void)
{
	int fd[2], on = 1, before;
	char buf[4];

	signal(SIGIO, on_io);
	pair(fd);
	EXPECT(!fcntl(fd[1], F_SETOWN, getpid()));
	EXPECT(!ioctl(fd[1], FIOASYNC, &on));
	EXPECT(!ios);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT_SOON(ios);
	turn();			/* the byte goes to another carrier, and is no news */
	EXPECT(ios == 1);
	EXPECT(recv(fd[1], buf, 4, 0) == 1);
	turn();
	EXPECT(ios == 1);
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT_SOON(ios > 1);
	EXPECT(ios == 2);
	before = ios;
	EXPECT(!shutdown(fd[0], SHUT_WR));
	EXPECT_SOON(ios > before);
	on = 0;
	EXPECT(!ioctl(fd[1], FIOASYNC, &on));
}

static volatile int told_fd, told_band;

static void on_told(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	told_band = info->si_band;
	told_fd = info->si_fd;
}

static void sigio_tells(void)
{
	struct sigaction sa = { .sa_sigaction = on_told, .sa_flags = SA_SIGINFO | SA_RESTART };
	int fd[2], on = 1;
	size_t len;

	sigaction(SIGRTMIN, &sa, NULL);
	pair(fd);
	for (int i = 0; i < 2; i++) {
		EXPECT(!fcntl(fd[i], F_SETOWN, getpid()));
		EXPECT(!fcntl(fd[i], F_SETSIG, SIGRTMIN));
	}
	EXPECT(!ioctl(fd[1], FIOASYNC, &on));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT_SOON(told_fd == fd[1]);
	note("in %x", told_band);
	on = 0;
	EXPECT(!ioctl(fd[1], FIOASYNC, &on));
	on = 1;
	EXPECT(!ioctl(fd[0], FIOASYNC, &on));
	len = 1;
	do {
		told_fd = 0;
		len += fill(fd[0]);
	} while (told_fd);	/* room has come late */
	take(fd[1], len);
	EXPECT_SOON(told_fd == fd[0]);
	note("out %x", told_band);
}

/* Each time that there is room again, also if that is noticed while something else is sent. */
static void sigio_each_time(void)
{
	struct sigaction sa = { .sa_sigaction = on_told, .sa_flags = SA_SIGINFO | SA_RESTART };
	static char buf[1024];
	int fd[2], on = 1;

	sigaction(SIGRTMIN, &sa, NULL);
	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_SNDBUF, 8192);
	EXPECT(!fcntl(fd[0], F_SETOWN, getpid()));
	EXPECT(!fcntl(fd[0], F_SETSIG, SIGRTMIN));
	EXPECT(!ioctl(fd[0], FIOASYNC, &on));
	for (int i = 0; i < 300; i++) {
		size_t len = 0;
		ssize_t n;

		do {
			told_fd = 0;
			n = send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);
			len += n > 0 ? n : 0;
		} while (n > 0);
		EXPECT(errno == EAGAIN);
		take(fd[1], len);
		EXPECT_SOON(told_fd == fd[0]);
	}
}

/* A program that has written since it found no room does not wait for SIGIO any more. */
static void sigio_not_wanted(void)
{
	int fd[2], on = 1;
	size_t len;

	signal(SIGIO, on_io);
	pair(fd);
	set_int(fd[0], SOL_SOCKET, SO_SNDBUF, 65536);
	EXPECT(!fcntl(fd[0], F_SETOWN, getpid()));
	EXPECT(!ioctl(fd[0], FIOASYNC, &on));
	len = fill(fd[0]);
	while (send(fd[0], "x", 1, MSG_DONTWAIT) == 1)
		len++;
	do {	/* until there is room, but perhaps too little to tell */
		EXPECT(len > 1024);
		take(fd[1], 1024);
		len -= 1024;
		turn();
	} while (send(fd[0], "x", 1, MSG_DONTWAIT) != 1);
	len++;
	ios = 0;
	while (len) {
		size_t n = len < 16384 ? len : 16384;

		take(fd[1], n);
		len -= n;
		turn();
	}
	EXPECT(!ios);
}

static void queues(void)
{
	static char buf[1 << 16];
	int fd[2], n;
	size_t len;

	pair(fd);
	EXPECT_SOON(!ioctl(fd[0], SIOCOUTQ, &n) && !n);
	len = fill(fd[0]);
	EXPECT(!ioctl(fd[0], SIOCOUTQ, &n) && (size_t)n <= len);
	int queued = n;		/* it only becomes less */
	EXPECT(!ioctl(fd[0], SIOCOUTQNSD, &n) && n > 0 && n <= queued);
	take(fd[1], len);
	EXPECT_SOON(!ioctl(fd[0], SIOCOUTQ, &n) && !n);
	EXPECT(!ioctl(fd[0], SIOCOUTQNSD, &n) && !n);
	EXPECT(send(fd[0], buf, 1000, 0) == 1000);
	await_bytes(fd[1], 1000);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	await(fd[1], POLLRDHUP);
	await_bytes(fd[1], 1000);			/* the end is no byte */
	take(fd[1], 1000);
	await_bytes(fd[1], 0);
}

#define CASE(fn) { "wait: " #fn, fn }
const struct api_case wait_cases[] = {
	CASE(every_state),
	CASE(writable_late),
	CASE(edge_of_room),
	CASE(no_edge_unasked),
	CASE(level_and_once),
	CASE(nested),
	CASE(all_waiters),
	CASE(all_readers),
	CASE(selects),
	CASE(low_water),
	CASE(low_water_inherited),
	CASE(unsent_low_water),
	CASE(sigio),
	CASE(sigio_tells),
	CASE(sigio_each_time),
	CASE(sigio_not_wanted),
	CASE(queues),
	{ NULL, NULL },
};
