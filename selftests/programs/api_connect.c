// SPDX-License-Identifier: GPL-2.0-only
/* connect(), listen(), accept(). */
#include "api.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* A port at which nobody listens. */
static uint16_t closed_port(void)
{
	uint16_t port;

	close(listener(&port));
	return port;
}

static void connect_refused(void)
{
	int fd = rs_socket(&kind, 0);
	uint16_t port;

	EXPECT_ERRNO(connect_to(fd, closed_port()), ECONNREFUSED);
	listener(&port);
	EXPECT(!connect_to(fd, port));	/* the socket is as good as new */
}

static void connect_refused_nonblock(void)
{
	int fd = rs_socket(&kind, SOCK_NONBLOCK), err = 0;
	socklen_t len = sizeof(err);

	if (connect_to(fd, closed_port()) == 0 || errno == ECONNREFUSED)
		api_skip("refused at once");
	EXPECT(errno == EINPROGRESS);
	await(fd, POLLERR);
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT(err == ECONNREFUSED);
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT(!err);
}

static void connect_nonblock(void)
{
	int fd = rs_socket(&kind, SOCK_NONBLOCK), err = -1;
	socklen_t len = sizeof(err);
	uint16_t port;

	listener(&port);
	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	await(fd, POLLOUT);
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT(!err);
	EXPECT(!(rs_poll(fd, POLLIN | POLLOUT, 0) & (POLLIN | POLLHUP)));
}

static void connect_twice(void)
{
	int fd[2];

	pair(fd);
	EXPECT_ERRNO(connect_to(fd[0], 1), EISCONN);
	EXPECT_ERRNO(connect_to(fd[1], 1), EISCONN);
}

static void connect_listener(void)
{
	uint16_t port, other;
	int l = listener(&port);

	listener(&other);
	EXPECT_ERRNO(connect_to(l, other), EISCONN);
}

static void connect_malformed(void)
{
	int fd = rs_socket(&kind, 0);
	union rs_addr addr;
	socklen_t len = rs_addr(&kind, host, 1, &addr);

	EXPECT_ERRNO(connect(fd, &addr.sa, 1), EINVAL);
	EXPECT_ERRNO(connect(fd, (void *)8, len), EFAULT);
	addr.sa.sa_family = AF_UNIX;
	EXPECT_ERRNO(connect(fd, &addr.sa, len), EAFNOSUPPORT);
}

static void connect_unspec(void)
{
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	uint16_t port;
	int fd[2], l;
	char c;

	pair(fd);
	EXPECT(!connect(fd[0], &unspec, sizeof(unspec)));
	EXPECT_ERRNO(recv(fd[1], &c, 1, 0), ECONNRESET);
	l = listener(&port);
	EXPECT(!connect_to(fd[0], port));
	EXPECT(send(fd[0], "x", 1, 0) == 1);
	EXPECT(recv(accept(l, NULL, NULL), &c, 1, 0) == 1);
}

static void unconnected_io(void)
{
	int fd = rs_socket(&kind, 0);
	char c = 0;

	EXPECT_ERRNO(send(fd, &c, 1, MSG_NOSIGNAL), EPIPE);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), ENOTCONN);
	EXPECT_ERRNO(shutdown(fd, SHUT_RDWR), ENOTCONN);
	EXPECT(rs_poll(fd, POLLIN | POLLOUT, 0) & POLLHUP);
	EXPECT_ERRNO(accept(fd, NULL, NULL), EINVAL);
}

/*
 * A direction that was shut down in vain, before connect(), stays so, but ends only if asked again.
 * Return: the accepted socket.
 */
static int connect_shut_down(int fd, int how)
{
	uint16_t port;
	int l = listener(&port);

	EXPECT_ERRNO(shutdown(fd, how), ENOTCONN);
	return connect_accept(fd, l, port);
}

static void shutdown_then_connect_send(void)
{
	int fd = rs_socket(&kind, 0), s = connect_shut_down(fd, SHUT_WR);
	char c;

	EXPECT_ERRNO(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	EXPECT(send(s, "y", 1, 0) == 1);
	EXPECT(recv(fd, &c, 1, 0) == 1);
	turn();
	EXPECT(!rs_poll(s, POLLIN, 0));
	EXPECT(!shutdown(fd, SHUT_WR));
	await(s, POLLIN);
	EXPECT(!recv(s, &c, 1, 0));
	EXPECT(send(s, "z", 1, 0) == 1);
	EXPECT(recv(fd, &c, 1, 0) == 1);
	close(s);
	await(fd, POLLIN | POLLHUP);
	EXPECT(!recv(fd, &c, 1, 0));
}

static void shutdown_then_connect_recv(void)
{
	int fd = rs_socket(&kind, 0), s = connect_shut_down(fd, SHUT_RD);
	char c;

	EXPECT(!recv(fd, &c, 1, 0));
	EXPECT(send(fd, "x", 1, 0) == 1);
	EXPECT(recv(s, &c, 1, 0) == 1);
	turn();
	EXPECT(send(fd, "y", 1, 0) == 1);
	EXPECT(recv(s, &c, 1, 0) == 1);
	EXPECT(!recv(fd, &c, 1, 0));
	EXPECT(!shutdown(fd, SHUT_WR));
	EXPECT(!recv(s, &c, 1, 0));
}

static void listen_unbound(void)
{
	int l = rs_socket(&server_kind, 0), fd = rs_socket(&kind, 0);

	EXPECT(!listen(l, 1));
	EXPECT(rs_local_port(l));
	EXPECT(!listen(l, 8));	/* again: a new backlog */
	host = NULL;
	EXPECT(!connect_to(fd, rs_local_port(l)));
}

static void listen_connected(void)
{
	int fd[2];

	pair(fd);
	EXPECT_ERRNO(listen(fd[0], 1), EINVAL);
}

static void listener_io(void)
{
	uint16_t port;
	int l = listener(&port), on = 0;
	socklen_t len = sizeof(on);
	char c = 0;

	EXPECT_ERRNO(recv(l, &c, 1, 0), ENOTCONN);
	EXPECT_ERRNO(send(l, &c, 1, MSG_NOSIGNAL), EPIPE);
	EXPECT(!getsockopt(l, SOL_SOCKET, SO_ACCEPTCONN, &on, &len));
	EXPECT(on == 1);
}

static void accept_nonblock(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);

	rs_nonblock(l);
	EXPECT_ERRNO(accept(l, NULL, NULL), EAGAIN);
	EXPECT(!rs_poll(l, POLLIN, 0));
	EXPECT(!connect_to(fd, port));
	await(l, POLLIN);
	fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	EXPECT_ERRNO(accept(l, NULL, NULL), EAGAIN);
}

static void accept_timeout(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	uint16_t port;
	int l = listener(&port);

	EXPECT(!setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(accept(l, NULL, NULL), EAGAIN);
}

static void *shut_soon(void *arg)
{
	usleep(100000);
	shutdown(*(int *)arg, SHUT_RDWR);
	return NULL;
}

static void accept_woken_by_shutdown(void)
{
	uint16_t port;
	int l = listener(&port);
	pthread_t thread;

	pthread_create(&thread, NULL, shut_soon, &l);
	EXPECT_ERRNO(accept(l, NULL, NULL), EINVAL);
}

/* Closing a listener resets what nobody has accepted. */
static void close_resets_backlog(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);
	char c;

	EXPECT(!connect_to(fd, port));
	await(l, POLLIN);
	close(l);
	EXPECT_ERRNO(recv(fd, &c, 1, 0), ECONNRESET);
}

static void data_before_accept(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0);
	char buf[8];

	EXPECT(!connect_to(fd, port));
	EXPECT(send(fd, "early", 5, 0) == 5);
	EXPECT(!shutdown(fd, SHUT_WR));
	usleep(50000);
	l = accept(l, NULL, NULL);
	EXPECT(recv(l, buf, 8, MSG_WAITALL) == 5 && !memcmp(buf, "early", 5));
	EXPECT(send(l, "late", 4, 0) == 4);
	EXPECT(recv(fd, buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "late", 4));
}

/* Takes what filled the queue, so that the next one gets in with its second SYN. */
static void *serve_late(void *arg)
{
	int l = *(int *)arg, fd;
	char c;

	close(accept(l, NULL, NULL));
	fd = accept(l, NULL, NULL);
	send(fd, "first", 5, 0);
	if (recv(fd, &c, 1, 0) == 1)
		send(fd, "second", 6, 0);
	close(fd);
	return NULL;
}

/* A connect that is under way for at least a second; for ever without @thread. */
static int connect_slowly(pthread_t *thread)
{
	static int l;
	int fd = rs_socket(&kind, SOCK_NONBLOCK);
	uint16_t port;

	l = listener(&port);
	EXPECT(!listen(l, 0));
	EXPECT(!connect_to(rs_socket(&kind, 0), port));
	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	EXPECT(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	if (thread)
		pthread_create(thread, NULL, serve_late, &l);
	return fd;
}

static void connect_ends_well(int fd, pthread_t thread)
{
	char buf[8];

	EXPECT(send(fd, "x", 1, 0) == 1);
	EXPECT(recv(fd, buf, 6, MSG_WAITALL) == 6 && !memcmp(buf, "second", 6));
	EXPECT(!recv(fd, buf, 1, 0));
	pthread_join(thread, NULL);
}

static void recv_before_connected(void)
{
	pthread_t thread;
	int fd = connect_slowly(&thread);
	char buf[8];

	EXPECT(recv(fd, buf, 5, MSG_WAITALL) == 5 && !memcmp(buf, "first", 5));
	connect_ends_well(fd, thread);
}

static void splice_before_connected(void)
{
	pthread_t thread;
	int fd = connect_slowly(&thread), pipes[2];
	char buf[8];

	EXPECT(!pipe(pipes));
	EXPECT(splice(fd, NULL, pipes[1], NULL, 100, 0) == 5);
	EXPECT(read(pipes[0], buf, 8) == 5 && !memcmp(buf, "first", 5));
	connect_ends_well(fd, thread);
}

static void no_wait_before_connected(void)
{
	int fd = connect_slowly(NULL), pipes[2];
	char c;

	EXPECT_ERRNO(recv(fd, &c, 1, MSG_DONTWAIT), EAGAIN);
	EXPECT_ERRNO(recv(fd, &c, 1, MSG_ERRQUEUE), EAGAIN);
	rs_nonblock(fd);
	EXPECT(!pipe(pipes));
	EXPECT_ERRNO(splice(fd, NULL, pipes[1], NULL, 100, 0), EAGAIN);
}

/* The socket is then as good as new. */
static void shutdown_before_connected(void)
{
	int fd = connect_slowly(NULL), l;
	uint16_t port;
	char c;

	EXPECT(!shutdown(fd, SHUT_RDWR));
	EXPECT(rs_poll(fd, POLLIN | POLLOUT, 0) & POLLHUP);
	l = listener(&port);
	EXPECT(!connect_to(fd, port));
	EXPECT(send(fd, "x", 1, 0) == 1);
	EXPECT(recv(accept(l, NULL, NULL), &c, 1, 0) == 1);
}

static void listen_instead(void)
{
	int l = connect_slowly(NULL), fd = rs_socket(&server_kind, 0);
	char c;

	EXPECT(!shutdown(l, SHUT_RDWR));
	EXPECT(!listen(l, 1));
	EXPECT(!connect_to(fd, rs_local_port(l)));
	EXPECT(send(fd, "x", 1, 0) == 1);
	fd = accept(l, NULL, NULL);
	close(l);
	EXPECT(recv(fd, &c, 1, 0) == 1);
}

static void fastopen_instead(void)
{
	int fd = connect_slowly(NULL), l, n;
	union rs_addr addr;
	socklen_t len;
	uint16_t port;
	char buf[4];

	EXPECT(!shutdown(fd, SHUT_RDWR));
	l = listener(&port);
	len = rs_addr(&kind, host, port, &addr);
	n = sendto(fd, "fast", 4, MSG_FASTOPEN | MSG_NOSIGNAL, &addr.sa, len);
	note("%d %d", n, n < 0 ? errno : 0);
	if (n == 4)
		EXPECT(recv(accept(l, NULL, NULL), buf, 4, MSG_WAITALL) == 4);
}

static void fastopen_twice(void)
{
	int fd[2];

	pair(fd);
	EXPECT_ERRNO(send(fd[0], "fast", 4, MSG_FASTOPEN | MSG_NOSIGNAL), EISCONN);
}

/* The address does not matter any more, but it is checked. */
static void fastopen_twice_with_address(void)
{
	static const struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd[2], how = MSG_FASTOPEN | MSG_NOSIGNAL;
	union rs_addr addr;
	socklen_t len;

	pair(fd);
	len = rs_addr(&kind, host, 9, &addr);
	EXPECT_ERRNO(sendto(fd[0], "fast", 4, how, &addr.sa, len), EISCONN);
	EXPECT_ERRNO(sendto(fd[0], "fast", 4, how, &addr.sa, 2), EISCONN);
	EXPECT_ERRNO(sendto(fd[0], "fast", 4, how, &addr.sa, 1), EINVAL);
	EXPECT_ERRNO(sendto(fd[0], "fast", 4, how, &none, sizeof(none)), EOPNOTSUPP);
	EXPECT_ERRNO(sendto(fd[0], "fast", 4, how, &none, 1), EINVAL);
	EXPECT(send(fd[0], "x", 1, 0) == 1);	/* still connected */
	await_bytes(fd[1], 1);
}

/* TCP notices only in this call that the connection is there. */
static void fastopen_when_connected(void)
{
	int fd = rs_socket(&kind, SOCK_NONBLOCK), l, s;
	uint16_t port;
	char buf[8];

	l = listener(&port);
	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	await(fd, POLLOUT);
	s = accept(l, NULL, NULL);
	EXPECT(send(fd, "fast", 4, MSG_FASTOPEN) == 4);
	EXPECT(recv(s, buf, 8, 0) == 4 && !memcmp(buf, "fast", 4));
	EXPECT_ERRNO(send(fd, "fast", 4, MSG_FASTOPEN | MSG_NOSIGNAL), EISCONN);
}

/* Calls that are made while another thread connects. */
enum { MEANWHILE = 30, TEXT = 16 };

static void *send_meanwhile(void *arg)
{
	int fd = *(int *)arg;
	ssize_t n;

	do {
		n = send(fd, "0123456789abcdef", TEXT, MSG_NOSIGNAL);
	} while (n < 0 && errno == EPIPE);
	return (void *)n;
}

static void *recv_meanwhile(void *arg)
{
	int fd = *(int *)arg;
	char buf[TEXT + 1] = "";
	ssize_t n;

	do {
		n = recv(fd, buf, TEXT, MSG_WAITALL);
	} while (n < 0 && errno == ENOTCONN);
	return (void *)(n == TEXT && !strcmp(buf, "0123456789abcdef") ? n : 0);
}

static void meanwhile(void *(*call)(void *))
{
	uint16_t port;
	int l = listener(&port);

	for (int i = 0; i < MEANWHILE; i++) {
		int fd = rs_socket(&kind, 0), s;
		pthread_t thread;
		void *done;

		pthread_create(&thread, NULL, call, &fd);
		s = connect_accept(fd, l, port);
		if (call == send_meanwhile)
			EXPECT(recv_meanwhile(&s) == (void *)TEXT);
		else
			EXPECT(send_meanwhile(&s) == (void *)TEXT);
		pthread_join(thread, &done);
		EXPECT(done == (void *)TEXT);
		close(fd);
		close(s);
	}
}

static void send_while_connecting(void) { meanwhile(send_meanwhile); }
static void recv_while_connecting(void) { meanwhile(recv_meanwhile); }

/* There is no urgent byte: nobody waits for one, connected or not. */
static void urgent_while_connecting(void)
{
	static const struct timeval limit = { .tv_sec = 2 };
	uint16_t port;
	int l = listener(&port), fd;
	char c;

	EXPECT(!listen(l, 0));
	for (int i = 0; i < 8; i++) {	/* the last SYN finds a full backlog, and is dropped */
		fd = rs_socket(&kind, SOCK_NONBLOCK);
		EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	}
	EXPECT(!fcntl(fd, F_SETFL, 0));
	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	EXPECT_ERRNO(recv(fd, &c, 1, MSG_OOB), EINVAL);
}

/*
 * A connection that began without waiting has ended: the next connect() tells why, and
 * dissolves it.  @half: the peer had said FIN before.
 */
static void ended_then_listens(bool half, int error)
{
	uint16_t port, again;
	int l = listener(&port), fd = rs_socket(&kind, SOCK_NONBLOCK), s, other;
	char c;

	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	s = accept(l, NULL, NULL);
	await(fd, POLLOUT);
	EXPECT(send(fd, "abcd", 4, 0) == 4);
	EXPECT(recv(s, &c, 1, 0) == 1);
	if (half) {
		EXPECT(!shutdown(s, SHUT_WR));
		await(fd, POLLRDHUP);
	}
	reset(s);
	await(fd, POLLERR);
	EXPECT_ERRNO(connect_to(fd, port), error);

	EXPECT(!listen(fd, 1));
	again = rs_local_port(fd);
	other = rs_socket(&kind, 0);
	EXPECT(!connect_to(other, again));
	await(fd, POLLIN);
	s = accept(fd, NULL, NULL);
	EXPECT(s >= 0);
	EXPECT(send(s, "x", 1, 0) == 1);
	EXPECT(recv(other, &c, 1, 0) == 1);
	close(s);
	close(other);
	close(fd);
	EXPECT_ERRNO(connect_to(rs_socket(&kind, 0), again), ECONNREFUSED);
}

static void reset_then_listens(void) { ended_then_listens(false, ECONNRESET); }
static void reset_by_half_then_listens(void) { ended_then_listens(true, EPIPE); }

/* Who has not asked for the end of connect() does not hear of it after shutdown(). */
static void shutdown_then_connect(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, SOCK_NONBLOCK), s;
	char c;

	EXPECT_ERRNO(connect_to(fd, port), EINPROGRESS);
	s = accept(l, NULL, NULL);
	await(fd, POLLOUT);
	EXPECT(send(fd, "abcd", 4, 0) == 4);
	EXPECT(recv(s, &c, 1, 0) == 1);
	EXPECT(!shutdown(fd, SHUT_WR));
	EXPECT_ERRNO(connect_to(fd, port), EISCONN);
}

static void options_inherited(void)
{
	uint16_t port;
	int l = listener(&port), fd = rs_socket(&kind, 0), v = 1;
	socklen_t len = sizeof(v);

	EXPECT(!setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &v, sizeof(v)));
	EXPECT(!setsockopt(l, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof(v)));
	fd = connect_accept(fd, l, port);
	v = 0;
	EXPECT(!getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &len) && v == 1);
	v = 0;
	EXPECT(!getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, &len) && v == 1);
}

#define CASE(fn) { "connect: " #fn, fn }
const struct api_case connect_cases[] = {
	CASE(connect_refused),
	CASE(connect_refused_nonblock),
	CASE(connect_nonblock),
	CASE(connect_twice),
	CASE(connect_listener),
	CASE(connect_malformed),
	CASE(connect_unspec),
	CASE(unconnected_io),
	CASE(shutdown_then_connect_send),
	CASE(shutdown_then_connect_recv),
	CASE(listen_unbound),
	CASE(listen_connected),
	CASE(listener_io),
	CASE(accept_nonblock),
	CASE(accept_timeout),
	CASE(accept_woken_by_shutdown),
	CASE(close_resets_backlog),
	CASE(data_before_accept),
	CASE(recv_before_connected),
	CASE(splice_before_connected),
	CASE(no_wait_before_connected),
	CASE(shutdown_before_connected),
	CASE(listen_instead),
	CASE(fastopen_instead),
	CASE(fastopen_twice),
	CASE(fastopen_twice_with_address),
	CASE(fastopen_when_connected),
	CASE(send_while_connecting),
	CASE(recv_while_connecting),
	CASE(urgent_while_connecting),
	CASE(reset_then_listens),
	CASE(reset_by_half_then_listens),
	CASE(shutdown_then_connect),
	CASE(options_inherited),
	{ NULL, NULL },
};
