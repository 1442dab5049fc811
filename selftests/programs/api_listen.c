// SPDX-License-Identifier: GPL-2.0-only
/* Connections under way, listeners and what they hand out. */
#include "api.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/*
 * A connect() that hangs: the listener @l has room for one, which is taken.
 * Return: a non-blocking socket in SYN_SENT.
 */
static int stuck(int *l, uint16_t *port)
{
	int first = rs_socket(&kind, 0), fd = rs_socket(&kind, SOCK_NONBLOCK);

	*l = rs_listen(&server_kind, host, 0, 0);
	*port = rs_local_port(*l);
	EXPECT(!connect_to(first, *port));
	await(*l, POLLIN);
	EXPECT_ERRNO(connect_to(fd, *port), EINPROGRESS);
	return fd;
}

static void connecting(void)
{
	union rs_addr addr;
	socklen_t len = sizeof(addr);
	uint16_t port;
	int l, fd = stuck(&l, &port);
	char c = 0;

	EXPECT_ERRNO(connect_to(fd, port), EALREADY);
	EXPECT(!get_int(fd, SOL_SOCKET, SO_ERROR));
	EXPECT(!rs_poll(fd, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0));
	EXPECT_ERRNO(send(fd, &c, 1, 0), EAGAIN);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), EAGAIN);
	EXPECT(rs_local_port(fd));
	EXPECT_ERRNO(getpeername(fd, &addr.sa, &len), ENOTCONN);
	EXPECT_ERRNO(listen(fd, 1), EINVAL);
	EXPECT_ERRNO(bind(fd, &addr.sa, rs_addr(&kind, host, 0, &addr)), EINVAL);
}

/* What waits for the connection goes on when it is there. */
static void *send_one(void *arg)
{
	return (void *)send(*(int *)arg, "x", 1, 0);
}

static void send_waits_for_connect(void)
{
	uint16_t port;
	int l, fd = stuck(&l, &port);
	pthread_t thread;
	void *sent;
	char c;

	fcntl(fd, F_SETFL, 0);
	pthread_create(&thread, NULL, send_one, &fd);
	EXPECT(accept(l, NULL, NULL) >= 0);
	EXPECT(recv(accept(l, NULL, NULL), &c, 1, 0) == 1 && c == 'x');
	pthread_join(thread, &sent);
	EXPECT(sent == (void *)1);
}

static void *recv_one(void *arg)
{
	char c;

	return (void *)recv(*(int *)arg, &c, 1, 0);
}

static void recv_waits_for_connect(void)
{
	uint16_t port;
	int l, fd = stuck(&l, &port);
	pthread_t thread;
	void *got;

	fcntl(fd, F_SETFL, 0);
	pthread_create(&thread, NULL, recv_one, &fd);
	EXPECT(accept(l, NULL, NULL) >= 0);
	EXPECT(send(accept(l, NULL, NULL), "x", 1, 0) == 1);
	pthread_join(thread, &got);
	EXPECT(got == (void *)1);
}

static void connecting_dissolved(void)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	uint16_t port, other;
	int l, fd = stuck(&l, &port), l2 = listener(&other);
	char c;

	EXPECT(!connect(fd, &unspec, sizeof(unspec)));
	fcntl(fd, F_SETFL, 0);
	EXPECT(!connect_to(fd, other));
	EXPECT(send(fd, "x", 1, 0) == 1);
	EXPECT(recv(accept(l2, NULL, NULL), &c, 1, 0) == 1);
}

static void unspec_elsewhere(void)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int fd = rs_socket(&kind, 0), l, r;
	uint16_t port;

	r = connect(fd, &unspec, sizeof(unspec));
	note("fresh %d %d", r, r ? errno : 0);
	l = listener(&port);
	r = connect(l, &unspec, sizeof(unspec));
	note("listener %d %d", r, r ? errno : 0);
	r = connect_to(fd, port);
	note("then %d %d", r, r ? errno : 0);
	r = listen(l, 1);
	note("listen %d %d port %d", r, r ? errno : 0, rs_local_port(l) == port);
	r = rs_poll(l, POLLIN, 0);
	note("poll %x", r);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *signal_main(void *arg)
{
	/* again and again: it might come before the call sleeps */
	for (int i = 0; i < 200; i++) {
		usleep(20000);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	}
	return NULL;
}

static void connect_interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_signal };	/* no SA_RESTART */
	pthread_t thread, self = pthread_self();
	uint16_t port;
	int l, fd = stuck(&l, &port);

	close(fd);
	fd = rs_socket(&kind, 0);
	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&thread, NULL, signal_main, &self);
	EXPECT_ERRNO(connect_to(fd, port), EINTR);
	rs_nonblock(fd);
	EXPECT_ERRNO(connect_to(fd, port), EALREADY);
}

static void connect_in_time(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	uint16_t port;
	int l, fd = stuck(&l, &port);

	close(fd);
	fd = rs_socket(&kind, 0);
	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	EXPECT_ERRNO(connect_to(fd, port), EALREADY);
}

static void connect_mapped_in_time(void)
{
	struct rs_kind four = { AF_INET, IPPROTO_TCP, AF_INET };
	struct timeval tv = { .tv_usec = 100000 };
	union rs_addr addr = { .in6.sin6_family = AF_INET6 };
	int l = rs_listen(&four, "127.0.0.1", 0, 0), fd;

	if (kind.family != AF_INET6)
		api_skip("only for IPv6");
	EXPECT(rs_connect(&four, "127.0.0.1", rs_local_port(l), 0) >= 0);
	await(l, POLLIN);	/* the next one has to wait */
	fd = rs_socket(&kind, 0);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &addr.in6.sin6_addr);
	addr.in6.sin6_port = htons(rs_local_port(l));
	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(connect(fd, &addr.sa, sizeof(addr.in6)), EINPROGRESS);
	EXPECT_ERRNO(connect(fd, &addr.sa, sizeof(addr.in6)), EALREADY);
}

static void connect_user_timeout(void)
{
	uint16_t port;
	int l, fd = stuck(&l, &port);

	close(fd);
	fd = rs_socket(&kind, 0);
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 500);
	EXPECT_ERRNO(connect_to(fd, port), ETIMEDOUT);
}

static void shut_while_connecting(void)
{
	uint16_t port;
	int l, fd = stuck(&l, &port), r;

	r = shutdown(fd, SHUT_WR);
	note("shutdown %d %d", r, r ? errno : 0);
	note("poll %x", rs_poll(fd, POLLIN | POLLOUT | POLLRDHUP, 0));
	note("error %d", get_int(fd, SOL_SOCKET, SO_ERROR));
	r = connect_to(fd, port);
	note("connect %d %d", r, r ? errno : 0);
}

static void accept_flags(void)
{
	union rs_addr addr;
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);
	socklen_t len = -1;

	EXPECT_ERRNO(accept4(l, NULL, NULL, 1 << 20), EINVAL);
	EXPECT(!connect_to(fd, port));
	EXPECT((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT(!(fcntl(fd, F_GETFD) & FD_CLOEXEC));
	fd = rs_socket(&kind, 0);
	EXPECT(!connect_to(fd, port));
	EXPECT_ERRNO(accept(l, &addr.sa, &len), EINVAL);
	len = sizeof(addr);
	fd = rs_socket(&kind, 0);
	EXPECT(!connect_to(fd, port));
	EXPECT_ERRNO(accept(l, (void *)8, &len), EFAULT);
}

/* Died in the queue: accept() hands it out all the same. */
static void accept_reset(void)
{
	union rs_addr addr = {};
	socklen_t len = sizeof(addr);
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0), r;
	char c;

	EXPECT(!connect_to(fd, port));
	await(l, POLLIN);
	reset(fd);
	fd = accept(l, &addr.sa, &len);
	EXPECT(fd >= 0);
	EXPECT(addr.sa.sa_family == kind.family && rs_port(&addr));
	await(fd, POLLERR);
	r = getpeername(fd, &addr.sa, &len);
	note("peer %d %d", r, r ? errno : 0);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), ECONNRESET);
	EXPECT(!recv(fd, &c, 1, 0));
	EXPECT_ERRNO(send(fd, &c, 1, MSG_NOSIGNAL), EPIPE);
}

static void listener_shut(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);

	EXPECT(!shutdown(l, SHUT_RD));
	note("poll %x", rs_poll(l, POLLIN | POLLOUT | POLLRDHUP, 0));
	EXPECT_ERRNO(connect_to(fd, port), ECONNREFUSED);
	EXPECT(!listen(l, 4));
	EXPECT(!connect_to(fd, rs_local_port(l)));	/* a new one */
	EXPECT(accept(l, NULL, NULL) >= 0);
	EXPECT(!shutdown(l, SHUT_WR));
	note("poll %x", rs_poll(l, POLLIN | POLLOUT | POLLRDHUP, 0));
}

/* It fails to connect to an IPv4 address in between, for which TCP uses other functions. */
static void listener_connects(void)
{
	union rs_addr nowhere = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(1) } };
	static char sent[40000], got[sizeof(sent)];
	int l = rs_socket(&server_kind, 0), fd = rs_socket(&kind, 0), s;

	if (server_kind.family != AF_INET6)
		return;
	EXPECT(!listen(l, 4));
	EXPECT(!shutdown(l, SHUT_RD));
	inet_pton(AF_INET6, "::ffff:224.0.0.1", &nowhere.in6.sin6_addr);
	note("connect %d", connect(l, &nowhere.sa, sizeof(nowhere.in6)) ? errno : 0);
	note("listen %d", listen(l, 4) ? errno : 0);
	memset(sent, 'x', sizeof(sent));
	s = connect_accept(fd, l, rs_local_port(l));
	EXPECT(s >= 0);
	EXPECT(send(fd, sent, sizeof(sent), 0) == sizeof(sent));
	EXPECT(!shutdown(fd, SHUT_WR));
	EXPECT(recv(s, got, sizeof(got), MSG_WAITALL) == sizeof(got));
	EXPECT(!memcmp(sent, got, sizeof(got)));
	EXPECT(!recv(s, got, 1, 0));
}

static void backlog_huge(void)
{
	uint16_t port;
	int l = listener(&port);

	EXPECT(!listen(l, 1 << 30));
	EXPECT(!listen(l, -1));
	EXPECT(!listen(l, 0));
}

static void save_syn(void)
{
	uint16_t port;
	int l = listener(&port);

	EXPECT(!get_int(l, IPPROTO_TCP, TCP_SAVE_SYN));
	set_int(l, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	EXPECT(get_int(l, IPPROTO_TCP, TCP_SAVE_SYN) == 1);
	set_int(l, IPPROTO_TCP, TCP_SAVE_SYN, 0);
	EXPECT(!get_int(l, IPPROTO_TCP, TCP_SAVE_SYN));
}

/* Its connections inherit what shutdown() has set in vain. */
static void shutdown_then_listen(void)
{
	for (int how = SHUT_RD; how <= SHUT_WR; how++) {
		int l = rs_socket(&server_kind, 0), fd = rs_socket(&kind, 0), s;
		char c;

		EXPECT_ERRNO(shutdown(l, how), ENOTCONN);
		EXPECT(!listen(l, 1));
		host = NULL;
		s = connect_accept(fd, l, rs_local_port(l));
		if (how == SHUT_RD) {
			EXPECT(!recv(s, &c, 1, 0));
			EXPECT(send(s, "x", 1, 0) == 1);
			EXPECT(recv(fd, &c, 1, 0) == 1);
		} else {
			EXPECT_ERRNO(send(s, "x", 1, MSG_NOSIGNAL), EPIPE);
			EXPECT(!recv(fd, &c, 1, 0));
			EXPECT(send(fd, "x", 1, 0) == 1);
			EXPECT(recv(s, &c, 1, 0) == 1);
		}
		turn();
		close(s);
		close(fd);
		close(l);
	}
}

/* Return: bytes of the SYN that an accepted socket has. */
static int saved_syn(int l, uint16_t port, bool inherited)
{
	char syn[200];
	socklen_t len = sizeof(syn);
	int fd = rs_socket(&kind, 0), s;

	s = connect_accept(fd, l, port);
	EXPECT(get_int(s, IPPROTO_TCP, TCP_SAVE_SYN) == inherited);
	EXPECT(!getsockopt(s, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len));
	close(s);
	close(fd);
	return len;
}

static void saved_syns(void)
{
	uint16_t port;
	int l = listener(&port);

	EXPECT(!saved_syn(l, port, false));
	set_int(l, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	EXPECT(saved_syn(l, port, true) > 40);
	set_int(l, IPPROTO_TCP, TCP_SAVE_SYN, 0);
	EXPECT(!saved_syn(l, port, false));
}

/* One that says nothing holds up nobody. */
static void defer_accept(void)
{
	uint16_t port;
	int l = listener(&port), a = rs_socket(&kind, 0), b = rs_socket(&kind, 0);
	char c;

	set_int(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5);
	note("reads %d", get_int(l, IPPROTO_TCP, TCP_DEFER_ACCEPT));
	EXPECT(!connect_to(a, port));
	EXPECT(!connect_to(b, port));
	EXPECT(send(b, "x", 1, 0) == 1);
	do {	/* ours may hand out the silent one, too */
		await(l, POLLIN);
		a = accept(l, NULL, NULL);
		EXPECT(a >= 0);
	} while (!rs_poll(a, POLLIN, 200));
	EXPECT(recv(a, &c, 1, 0) == 1);
}

static void reuse_address(void)
{
	int l, fd = rs_socket(&kind, 0), again = rs_socket(&server_kind, 0);
	union rs_addr addr;
	socklen_t len;
	uint16_t port;
	char c;

	l = listener(&port);
	len = rs_addr(&server_kind, host, port, &addr);
	close(connect_accept(fd, l, port));	/* this end will be in TIME_WAIT */
	EXPECT(!recv(fd, &c, 1, 0));
	close(fd);
	close(l);
	EXPECT_ERRNO(bind(again, &addr.sa, len), EADDRINUSE);
	set_int(again, SOL_SOCKET, SO_REUSEADDR, 1);
	EXPECT(!bind(again, &addr.sa, len));
	EXPECT(!listen(again, 1));
	EXPECT(!connect_to(rs_socket(&kind, 0), port));
}

static void reuse_port(void)
{
	int l[2], got = 0, n = 12;
	union rs_addr addr;
	socklen_t len;

	len = rs_addr(&server_kind, host, 0, &addr);
	for (int i = 0; i < 2; i++) {
		l[i] = rs_socket(&server_kind, SOCK_NONBLOCK);
		set_int(l[i], SOL_SOCKET, SO_REUSEPORT, 1);
		EXPECT(!bind(l[i], &addr.sa, len));
		addr.in.sin_port = htons(rs_local_port(l[0]));
		EXPECT(!listen(l[i], n));
	}
	for (int i = 0; i < n; i++)
		EXPECT(!connect_to(rs_socket(&kind, 0), rs_local_port(l[0])));
	while (got < n) {
		struct pollfd p[2] = { { l[0], POLLIN, 0 }, { l[1], POLLIN, 0 } };

		EXPECT(poll(p, 2, 2000) > 0);
		for (int i = 0; i < 2; i++)
			got += accept(l[i], NULL, NULL) >= 0;
	}
}

static void bind_device(void)
{
	int l = rs_socket(&server_kind, 0), fd = rs_socket(&kind, 0), r;
	char name[IFNAMSIZ] = "";
	union rs_addr addr;
	socklen_t len = sizeof(name);

	r = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
	note("lo %d %d", r, r ? errno : 0);
	r = getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len);
	note("reads %d %s", r, name);
	r = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "nosuch", 7);
	note("nosuch %d %d", r, r ? errno : 0);
	setsockopt(l, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
	len = rs_addr(&server_kind, host, 0, &addr);
	EXPECT(!bind(l, &addr.sa, len));
	EXPECT(!listen(l, 1));
	r = connect_to(fd, rs_local_port(l));
	note("connect %d %d", r, r ? errno : 0);
	if (r)
		return;		/* no route by that device */
	fd = accept(l, NULL, NULL);
	EXPECT(fd >= 0);
	note("child %d", get_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX));
}

/* Names before, during and after. */
static void names(void)
{
	union rs_addr addr;
	socklen_t len;
	int fd[2];

#define NAMES(what, s) do { \
		int r_; \
		len = sizeof(addr); \
		r_ = getsockname(s, &addr.sa, &len); \
		note("%s ours %d %d", what, r_, !!rs_port(&addr)); \
		len = sizeof(addr); \
		r_ = getpeername(s, &addr.sa, &len); \
		note("%s theirs %d %d", what, r_, r_ ? errno : 0); \
	} while (0)
	pair(fd);
	NAMES("connected", fd[0]);
	EXPECT(!shutdown(fd[0], SHUT_WR));
	NAMES("shut", fd[0]);
	await(fd[1], POLLRDHUP);
	NAMES("theirs shut", fd[1]);
	reset(fd[0]);
	await(fd[1], POLLERR);
	NAMES("reset", fd[1]);
	fd[0] = rs_socket(&kind, 0);
	EXPECT_ERRNO(connect_to(fd[0], 1), ECONNREFUSED);
	NAMES("refused", fd[0]);
}

#define CASE(fn) { "listen: " #fn, fn }
const struct api_case listen_cases[] = {
	CASE(connecting),
	CASE(send_waits_for_connect),
	CASE(recv_waits_for_connect),
	CASE(connecting_dissolved),
	CASE(unspec_elsewhere),
	CASE(connect_interrupted),
	CASE(connect_in_time),
	CASE(connect_mapped_in_time),
	CASE(connect_user_timeout),
	CASE(shut_while_connecting),
	CASE(accept_flags),
	CASE(accept_reset),
	CASE(listener_shut),
	CASE(listener_connects),
	CASE(backlog_huge),
	CASE(save_syn),
	CASE(saved_syns),
	CASE(shutdown_then_listen),
	CASE(defer_accept),
	CASE(reuse_address),
	CASE(reuse_port),
	CASE(bind_device),
	CASE(names),
	{ NULL, NULL },
};
