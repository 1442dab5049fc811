// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that knows only TCP, linked statically, to be run by "rsctl run".  Its
 * likes in other languages: rs_echo.go, RsEcho.java, rs_echo_py.py.
 *
 * rs_echo serve PORT			what comes goes back, a child for each client
 * rs_echo talk HOST PORT BYTES		asks such a server
 * rs_echo look				a line for each kind of socket
 * rs_echo signals			sockets while signals come
 * rs_echo threads			sockets by several threads at once
 * rs_echo full				no descriptor is left
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <netinet/tcp.h>

#define PIECE	65536

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71
#endif

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put(int fd, const char *from, size_t len)
{
	ssize_t n;

	for (; len; from += n, len -= n) {
		n = write(fd, from, len);
		if (n <= 0)
			die("write");
	}
}

/* ---- serve, talk ---- */

static void echo(int fd)
{
	static char piece[PIECE];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		put(fd, piece, n);
	exit(n < 0);
}

static void serve(int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, client;

	signal(SIGCHLD, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 64))
		die("listen");
	for (;;) {
		client = accept(fd, NULL, NULL);
		if (client < 0)
			die("accept");
		if (!fork()) {
			close(fd);
			echo(client);
		}
		close(client);
	}
}

static int talk(const char *host, int port, long bytes)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), i;
	static char out[PIECE], in[PIECE];
	long done;

	inet_pton(AF_INET, host, &addr.sin_addr);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect");
	for (done = 0; done < bytes; done += PIECE) {
		for (i = 0; i < PIECE; i++)
			out[i] = (done >> 16) + i * 31;
		put(fd, out, PIECE);
		if (recv(fd, in, PIECE, MSG_WAITALL) != PIECE || memcmp(in, out, PIECE))
			die("what came back");
	}
	printf("%ld bytes came back\n", done);
	return 0;
}

/* ---- what sockets are like ---- */

/* What rdmastream says of an upper-layer protocol, and TCP does not. */
static int is_ours(int fd)
{
	return setsockopt(fd, SOL_TCP, TCP_ULP, "rs-none", 7) && errno == ENOPROTOOPT;
}

static long long number(int fd, int option, socklen_t len)
{
	long long n = 0;

	if (getsockopt(fd, SOL_SOCKET, option, &n, &len))
		die("getsockopt");
	return n;
}

static int look(void)
{
	int domain, flags, fd, udp = socket(AF_INET, SOCK_DGRAM, 0);
	struct stat st;

	for (domain = AF_INET; domain <= AF_INET6; domain += AF_INET6 - AF_INET) {
		for (flags = 0; flags < 4; flags++) {
			fd = socket(domain, SOCK_STREAM | (flags & 1 ? SOCK_CLOEXEC : 0) |
				    (flags & 2 ? SOCK_NONBLOCK : 0), flags ? 0 : IPPROTO_TCP);
			if (fd < 0 || fstat(fd, &st))
				die("socket");
			printf("fd=%d domain=%lld protocol=%lld cloexec=%d nonblock=%d uid=%d %s %s\n",
			       fd - udp, number(fd, SO_DOMAIN, 4) - domain,
			       number(fd, SO_PROTOCOL, 4),
			       (fcntl(fd, F_GETFD) & FD_CLOEXEC) == !!(flags & 1),
			       !!(fcntl(fd, F_GETFL) & O_NONBLOCK) == !!(flags & 2),
			       st.st_uid - geteuid(),
			       number(fd, SO_NETNS_COOKIE, 8) == number(udp, SO_NETNS_COOKIE, 8) ?
			       "here" : "elsewhere", is_ours(fd) ? "ours" : "tcp");
			close(fd);
		}
	}
	return 0;
}

static volatile long signals_seen;

static void on_signal(int sig)
{
	(void)sig;
	signals_seen++;
}

static void count_sockets(const char *name, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct itimerval often = { .it_interval.tv_usec = 1000, .it_value.tv_usec = 1000 };
	int i, fd, first = -1, eintr = 0, ours = 0, moved = 0;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 500; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 && errno == EINTR) {
			eintr++;
			continue;
		}
		if (fd < 0)
			die("socket");
		if (first < 0)
			first = fd;
		moved += fd != first;	/* something is left open */
		ours += is_ours(fd);
		close(fd);
	}
	often.it_value.tv_usec = 0;
	often.it_interval.tv_usec = 0;
	setitimer(ITIMER_REAL, &often, NULL);
	printf("%s: signals=%ld sockets=%d eintr=%d ours=%d moved=%d\n", name,
	       signals_seen, i, eintr, ours, moved);
}

static void *make_many(void *arg)
{
	long ours = 0;
	int i, fd;

	for (i = 0; i < 200; i++) {
		fd = socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
		ours += fd >= 0 && is_ours(fd);
		close(fd);
	}
	return arg ? arg : (void *)ours;
}

static int threads(void)
{
	pthread_t thread[4];
	long ours = 0;
	void *one;
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, make_many, NULL);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &one);
		ours += (long)one;
	}
	printf("ours=%ld\n", ours);
	return 0;
}

static int full(void)
{
	struct rlimit few = { .rlim_cur = 3, .rlim_max = 3 };
	int fd;

	setrlimit(RLIMIT_NOFILE, &few);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	printf("fd=%d %s\n", fd, fd < 0 ? strerrorname_np(errno) : "");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "serve") && argc == 3)
		serve(atoi(argv[2]));
	if (!strcmp(what, "talk") && argc == 5)
		return talk(argv[2], atoi(argv[3]), atol(argv[4]));
	if (!strcmp(what, "look"))
		return look();
	if (!strcmp(what, "signals")) {
		count_sockets("restarted", SA_RESTART);
		count_sockets("interrupted", 0);
		return 0;
	}
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "full"))
		return full();
	fprintf(stderr, "usage: rs_echo serve PORT|talk HOST PORT BYTES|look|signals|threads|full\n");
	return 2;
}
