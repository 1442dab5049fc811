// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between two hosts: what comes on a connection goes out on another one, both
 * ways, through pipes and without being looked at, or through a buffer (-r).
 * Goes on from the port that the client has, so that the ends see the same one.
 * Prints one line of JSON; cpu_us: what the process took.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock.h"

static const char usage[] =
"rs_relay -p PORT -c HOST [options]\n"
"  -k KIND   that listens, default inet; of the other side: -K\n"
"  -c HOST   where to go on, at the same port, or -P PORT\n"
"  -C CONNS  how many, then the end\n"
"  -b BYTES  of each pipe or buffer, default 64K\n"
"  -r        receive and send instead of splicing\n";

enum { PIECE = 1 << 20 };

struct way {
	int from, to;
	uint64_t bytes;
	int err;
	const char *what;
	pthread_t thread;
};

static struct rs_kind kinds[2];
static const char *host;
static uint16_t port, onward;
static int conns = 1, pipe_size = 65536;
static bool reads;

static bool failed(struct way *way, const char *what)
{
	way->err = errno;
	way->what = what;
	return false;
}

/* Return: false at the end, or when it has failed. */
static bool move(struct way *way, int pipe[2])
{
	ssize_t n = splice(way->from, NULL, pipe[1], NULL, PIECE, SPLICE_F_MOVE);

	if (n <= 0)
		return n ? failed(way, "splice from") : false;
	while (n) {
		ssize_t m = splice(pipe[0], NULL, way->to, NULL, n, SPLICE_F_MOVE);

		if (m <= 0)
			return failed(way, "splice to");
		n -= m;
		way->bytes += m;
	}
	return true;
}

/* The same through a buffer. */
static bool copy(struct way *way, char *buf)
{
	ssize_t n = recv(way->from, buf, pipe_size, 0);

	if (n <= 0)
		return n ? failed(way, "recv") : false;
	for (ssize_t done = 0; done < n;) {
		ssize_t m = send(way->to, buf + done, n - done, MSG_NOSIGNAL);

		if (m <= 0)
			return failed(way, "send");
		done += m;
		way->bytes += m;
	}
	return true;
}

static void *relay(void *arg)
{
	struct way *way = arg;
	char *buf = malloc(pipe_size);
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) || fcntl(fds[1], F_SETPIPE_SZ, pipe_size) < 0)
		rs_die("pipe: %m");
	while (reads ? copy(way, buf) : move(way, fds))
		;
	if (!way->err && shutdown(way->to, SHUT_WR))
		failed(way, "shutdown");
	close(fds[0]);
	close(fds[1]);
	free(buf);
	return NULL;
}

static int go_on(uint16_t from)
{
	int fd = rs_socket(&kinds[1], SOCK_CLOEXEC);
	union rs_addr addr;
	socklen_t len = rs_addr(&kinds[1], "", from, &addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, &addr.sa, len))
		rs_die("bind: %m");
	len = rs_addr(&kinds[1], host, onward, &addr);
	if (connect(fd, &addr.sa, len))
		rs_die("connect: %m");
	return fd;
}

static void options(int argc, char **argv)
{
	int c;

	rs_kind_parse("inet", &kinds[0]);
	kinds[1] = kinds[0];
	while ((c = getopt(argc, argv, "k:K:p:P:c:C:b:r")) != -1) {
		if ((c == 'k' && rs_kind_parse(optarg, &kinds[0])) ||
		    (c == 'K' && rs_kind_parse(optarg, &kinds[1])))
			continue;
		if (c == 'p')
			port = atoi(optarg);
		else if (c == 'P')
			onward = atoi(optarg);
		else if (c == 'c')
			host = optarg;
		else if (c == 'C')
			conns = atoi(optarg);
		else if (c == 'b')
			pipe_size = rs_bytes(optarg);
		else if (c == 'r')
			reads = true;
		else
			rs_die("%s", usage);
	}
	if (!port || !host)
		rs_die("%s", usage);
	onward = onward ?: port;
}

int main(int argc, char **argv)
{
	struct way *ways;
	uint64_t sum[2] = {}, cpu;
	struct rusage use;
	int listener, errors = 0;

	options(argc, argv);
	ways = calloc(2 * conns, sizeof(*ways));
	listener = rs_listen(&kinds[0], "", port, 64);
	for (int i = 0; i < 2 * conns; i += 2) {
		int a = accept4(listener, NULL, NULL, SOCK_CLOEXEC), b;

		if (a < 0)
			rs_die("accept: %m");
		b = go_on(rs_remote_port(a));
		ways[i] = (struct way){ .from = a, .to = b };
		ways[i + 1] = (struct way){ .from = b, .to = a };
		pthread_create(&ways[i].thread, NULL, relay, &ways[i]);
		pthread_create(&ways[i + 1].thread, NULL, relay, &ways[i + 1]);
	}
	for (int i = 0; i < 2 * conns; i++) {
		pthread_join(ways[i].thread, NULL);
		sum[i & 1] += ways[i].bytes;
		if (ways[i].err && !errors++)
			fprintf(stderr, "%s: %s\n", ways[i].what,
				strerror(ways[i].err));
	}
	getrusage(RUSAGE_SELF, &use);
	cpu = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000ULL +
	      use.ru_utime.tv_usec + use.ru_stime.tv_usec;
	printf("{\"there\":%llu,\"back\":%llu,\"cpu_us\":%llu,\"errors\":%d,\"ok\":%s}\n",
	       (unsigned long long)sum[0], (unsigned long long)sum[1],
	       (unsigned long long)cpu, errors,
	       errors ? "false" : "true");
	return !!errors;
}
