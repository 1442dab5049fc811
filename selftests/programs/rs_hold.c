// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that splices from a socket into pipes and keeps them: while the
 * stream goes on, while its link is lost, after the socket was closed.  What is
 * in the pipes must not change.  A step that is done creates FILE.STEP; it goes
 * on when there is a FILE.go-STEP.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"

static const char usage[] =
"rs_hold -s|-c HOST -p PORT [options]\n"
"  -s         sends -w, -n and -r bytes, then waits for the end\n"
"  -c HOST    reads -w bytes (warm), splices -n into pipes, does the steps:\n"
"             held, read (-r more bytes by recv), closed, checked\n"
"  -k KIND  -t SECONDS (limit of the whole)\n"
"  -f FILE    of the steps\n";

enum { SEED = 7, PIPES = 64, PIPE_SIZE = 1 << 20, BUF = 1 << 16 };

static struct rs_kind kind;
static const char *host, *file;
static bool server;
static uint16_t port;
static uint64_t warm = 1 << 20, held = 1 << 14, rest;
static uint8_t buf[BUF];

struct held {
	int fd[2];
	uint64_t at, len;
} pipes[PIPES];

static void send_bytes(int fd, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t len = to - from < BUF ? to - from : BUF;
		ssize_t n;

		pattern_fill(buf, len, SEED, from);
		n = send(fd, buf, len, MSG_NOSIGNAL);
		if (n <= 0)
			rs_die("send: %m");
		from += n;
	}
}

static void check(const char *what, uint64_t at, size_t n)
{
	size_t good = pattern_check(buf, n, SEED, at);

	if (good != n)
		rs_die("%s: wrong byte at %llu", what,
		       (unsigned long long)(at + good));
}

static void recv_bytes(int fd, uint64_t from, uint64_t to)
{
	while (from < to) {
		ssize_t n = recv(fd, buf, to - from < BUF ? to - from : BUF, 0);

		if (n <= 0)
			rs_die("recv: %s", n ? strerror(errno) : "early end");
		check("recv", from, n);
		from += n;
	}
}

static void hold(int fd)
{
	uint64_t at = warm, end = warm + held;
	ssize_t n;

	for (struct held *h = pipes; at < end; h++) {
		if (h == pipes + PIPES)
			rs_die("too many pipes");
		if (pipe2(h->fd, O_CLOEXEC) ||
		    fcntl(h->fd[1], F_SETPIPE_SZ, PIPE_SIZE) < 0)
			rs_die("pipe: %m");
		h->at = at;
		while (at < end) {
			/* room in the pipe is counted in pages, not bytes */
			if (!(rs_poll(h->fd[1], POLLOUT, 0) & POLLOUT))
				break;
			n = splice(fd, NULL, h->fd[1], NULL, end - at, 0);
			if (n <= 0)
				rs_die("splice: %s", n ? strerror(errno) : "early end");
			at += n;
		}
		h->len = at - h->at;
	}
}

static void empty(const char *what, int fd, uint64_t at, uint64_t len)
{
	while (len) {
		ssize_t n = read(fd, buf, len < BUF ? len : BUF);

		if (n <= 0)
			rs_die("%s: %s", what, n ? strerror(errno) : "too few");
		check(what, at, n);
		at += n;
		len -= n;
	}
}

static void step(const char *name)
{
	char path[4096];
	struct stat st;

	if (!file)
		return;
	snprintf(path, sizeof(path), "%s.%s", file, name);
	close(open(path, O_CREAT | O_WRONLY, 0666));
	snprintf(path, sizeof(path), "%s.go-%s", file, name);
	while (stat(path, &st))
		usleep(20000);
}

static void client(void)
{
	int fd, copy[2];
	ssize_t teed;

	do {
		fd = rs_connect(&kind, host, port, 0);
		usleep(50000);
	} while (fd == -ECONNREFUSED);
	if (fd < 0)
		rs_die("connect: %s", strerror(-fd));
	recv_bytes(fd, 0, warm);
	step("warm");
	if (send(fd, "g", 1, MSG_NOSIGNAL) != 1)
		rs_die("send: %m");
	hold(fd);
	if (pipe2(copy, O_CLOEXEC))
		rs_die("pipe: %m");
	teed = tee(pipes[0].fd[0], copy[1], BUF, 0);
	if (teed <= 0)
		rs_die("tee: %m");
	step("held");
	recv_bytes(fd, warm + held, warm + held + rest);
	step("read");
	close(fd);
	step("closed");
	for (struct held *h = pipes; h < pipes + PIPES && h->len; h++)
		empty("pipe", h->fd[0], h->at, h->len);
	empty("teed pipe", copy[0], warm, teed);
	printf("{\"held\":%llu,\"ok\":true}\n", (unsigned long long)held);
	fflush(stdout);
	step("checked");
}

static void serve(void)
{
	int l = rs_listen(&kind, "", port, 1), fd = accept(l, NULL, NULL);
	char c;

	if (fd < 0)
		rs_die("accept: %m");
	send_bytes(fd, 0, warm);
	if (recv(fd, &c, 1, 0) != 1)
		rs_die("no word from the client");
	send_bytes(fd, warm, warm + held + rest);
	shutdown(fd, SHUT_WR);
	recv(fd, &c, 1, 0);
	printf("{\"sent\":%llu,\"ok\":true}\n",
	       (unsigned long long)(warm + held + rest));
}

int main(int argc, char **argv)
{
	int c;

	rs_kind_parse("inet", &kind);
	alarm(60);
	while ((c = getopt(argc, argv, "sc:k:p:n:w:r:f:t:")) != -1) {
		if (c == 'k' && rs_kind_parse(optarg, &kind))
			continue;
		if (c == 's')
			server = true;
		else if (c == 'c')
			host = optarg;
		else if (c == 'p')
			port = atoi(optarg);
		else if (c == 'n')
			held = rs_bytes(optarg);
		else if (c == 'w')
			warm = rs_bytes(optarg);
		else if (c == 'r')
			rest = rs_bytes(optarg);
		else if (c == 'f')
			file = optarg;
		else if (c == 't')
			alarm(rs_limit(optarg));
		else
			rs_die("%s", usage);
	}
	if (!port || server == !!host)
		rs_die("%s", usage);
	if (server)
		serve();
	else
		client();
	return 0;
}
