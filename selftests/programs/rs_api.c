// SPDX-License-Identifier: GPL-2.0-only
/* What a program may rely on from a stream socket, case by case, in TAP. */
#include "tap.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 1, SKIPPED = 4 };

static const char usage[] =
"rs_api [-k KIND] [-l HOST] [-t SECONDS] [-w ROUNDS] [-f NAME]\n"
"  -k KIND   tcp4 tcp6 inet inet6 rds4 rds6\n"
"  -l HOST   local address to meet at, default loopback\n"
"  -t        limit of one case\n"
"  -w        exchange so many bytes on a new pair first, one at a time, then\n"
"            64 KiB each way: lets the carrier change\n"
"  -f NAME   only cases whose name contains NAME\n";

struct rs_kind kind;
const char *host;
static int warm;
static unsigned int limit = 20;

void api_fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: expected %s (errno %s)\n", file, line, what,
	       strerrorname_np(errno));
	fflush(stdout);
	_exit(FAILED);
}

void api_skip(const char *why)
{
	printf("# skipped: %s\n", why);
	fflush(stdout);
	_exit(SKIPPED);
}

int listener(uint16_t *port)
{
	int fd = rs_listen(&kind, host, 0, 16);

	*port = rs_local_port(fd);
	return fd;
}

int connect_to(int fd, uint16_t port)
{
	union rs_addr addr;
	socklen_t len = rs_addr(&kind, host, port, &addr);

	return connect(fd, &addr.sa, len);
}

void await(int fd, int events)
{
	if (!(rs_poll(fd, events, 2000) & events))
		api_fail(__FILE__, __LINE__, "poll events within 2 s");
}

static void warm_up(const int fd[2])
{
	static char buf[65536];

	for (int i = 0; i < warm; i++) {
		EXPECT(send(fd[i & 1], "x", 1, 0) == 1);
		EXPECT(recv(fd[!(i & 1)], buf, 1, 0) == 1);
	}
	for (int i = 0; warm && i < 2; i++)
		for (int at = 0; at < 65536; at += 8192) {
			EXPECT(send(fd[i], buf, 8192, 0) == 8192);
			EXPECT(recv(fd[!i], buf, 8192, MSG_WAITALL) == 8192);
		}
}

void pair(int fd[2])
{
	uint16_t port;
	int l = listener(&port);

	fd[0] = rs_socket(&kind, 0);
	EXPECT(!connect_to(fd[0], port));
	fd[1] = accept(l, NULL, NULL);
	EXPECT(fd[1] >= 0);
	close(l);
	warm_up(fd);
}

static int run_case(const struct api_case *c)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(limit);
		c->run();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("# ended by signal %s\n", sigabbrev_np(WTERMSIG(status)));
	return FAILED;
}

int main(int argc, char **argv)
{
	static const struct api_case * const groups[] = {
		address_cases, connect_cases, io_cases, end_cases,
	};
	const char *filter = "";
	int c, n = 0, failed = 0;

	rs_kind_parse("tcp4", &kind);
	while ((c = getopt(argc, argv, "k:l:t:w:f:")) != -1) {
		if (c == 'k' && rs_kind_parse(optarg, &kind))
			continue;
		if (c == 'l')
			host = optarg;
		else if (c == 't')
			limit = atoi(optarg);
		else if (c == 'w')
			warm = atoi(optarg);
		else if (c == 'f')
			filter = optarg;
		else
			rs_die("%s", usage);
	}
	printf("TAP version 13\n");
	for (int g = 0; g < 4; g++)
		for (const struct api_case *a = groups[g]; a->name; a++) {
			int result;

			if (!strstr(a->name, filter))
				continue;
			result = run_case(a);
			printf("%s %d %s%s\n",
			       result == 0 || result == SKIPPED ? "ok" : "not ok",
			       ++n, a->name, result == SKIPPED ? " # SKIP" : "");
			failed += result != 0 && result != SKIPPED;
		}
	printf("1..%d\n", n);
	return failed ? 1 : 0;
}
