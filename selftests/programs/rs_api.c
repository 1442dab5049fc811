// SPDX-License-Identifier: GPL-2.0-only
/* What a program may rely on from a stream socket, case by case, in TAP. */
#include "api.h"

#include <getopt.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

enum { FAILED = 1, SKIPPED = 4 };

static const char usage[] =
"rs_api [-k KIND] [-s KIND] [-x] [-l HOST] [-t SECONDS] [-w ROUNDS]\n"
"       [-z] [-S COMMAND] [-R FILE | -C FILE] [-f NAME]\n"
"  -k KIND   tcp4 tcp6 inet inet6 rds4 rds6\n"
"  -s KIND   of the listening end, if it is another one\n"
"  -x        the first of a pair is what accept() returned\n"
"  -l HOST   local address to meet at, default loopback\n"
"  -t        limit of one case\n"
"  -w        exchange this many bytes on a new pair first, one at a time, then\n"
"            64 KiB each way: lets the carrier change\n"
"  -z        zero-copy sends are not copied\n"
"  -S        runs COMMAND where a case says \"now\": changes the carrier\n"
"  -R FILE   record what cases note: the answers of plain TCP\n"
"  -C FILE   cases must note what FILE has\n"
"  -f NAME   only cases whose name contains NAME\n";

struct rs_kind kind, server_kind;
const char *host;
bool in_place;
static const char *turn_command, *filter = "", *notes_from;
static FILE *notes_to;
static int warm, crossed;
static unsigned int limit = 20;
static int notes;			/* memory file: of the case that runs */

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
	int fd = rs_listen(&server_kind, host, 0, 16);

	*port = rs_local_port(fd);
	return fd;
}

int connect_to(int fd, uint16_t port)
{
	union rs_addr addr;
	socklen_t len = rs_addr(&server_kind, host, port, &addr);

	return connect(fd, &addr.sa, len);
}

int connect_accept(int fd, int l, uint16_t port)
{
	int s = connect_to(fd, port) ? -1 : accept(l, NULL, NULL);

	if (s < 0)
		api_fail(__FILE__, __LINE__, "connect() and accept()");
	return s;
}

void await(int fd, int events)
{
	if (!(rs_poll(fd, events, 1000 * SOON_SECONDS) & events))
		api_fail(__FILE__, __LINE__, "poll events within 2 s");
}

void await_bytes(int fd, int n)
{
	int have = -1;

	EXPECT_SOON(!ioctl(fd, SIOCINQ, &have) && have == n);
}

size_t fill(int fd)
{
	static uint8_t buf[65536];
	size_t sum = 0;
	ssize_t n;

	do {
		for (;;) {
			pattern_fill(buf, sizeof(buf), 1, sum);
			n = send(fd, buf, sizeof(buf), MSG_DONTWAIT);
			if (n < 0)
				break;
			sum += n;
		}
		EXPECT(errno == EAGAIN);
	} while (rs_poll(fd, POLLOUT, 250) & POLLOUT);
	return sum;
}

void drain(int fd, size_t len)
{
	static uint8_t buf[65536];
	size_t sum = 0;

	while (sum < len) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		EXPECT(n > 0);
		EXPECT(pattern_check(buf, n, 1, sum) == (size_t)n);
		sum += n;
	}
	EXPECT(sum == len);
	EXPECT(recv(fd, buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

void reset(int fd)
{
	static const struct linger at_once = { .l_onoff = 1 };

	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	EXPECT(!close(fd));
}

void set_int(int fd, int level, int name, int value)
{
	EXPECT(!setsockopt(fd, level, name, &value, sizeof(value)));
}

int get_int(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	EXPECT(!getsockopt(fd, level, name, &value, &len));
	return value;
}

void note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	EXPECT(vdprintf(notes, fmt, args) > 0);
	va_end(args);
	EXPECT(write(notes, ";", 1) == 1);
}

void turn(void)
{
	if (turn_command)
		EXPECT(!system(turn_command));
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
	int l = listener(&port), client = !!crossed;

	fd[client] = rs_socket(&kind, 0);
	fd[!client] = connect_accept(fd[client], l, port);
	close(l);
	warm_up(fd);
}

/* What plain TCP has noted in this case; NULL: there was none. */
static char *noted(const char *name, char *line, size_t size)
{
	FILE *f = fopen(notes_from, "r");
	size_t len = strlen(name);
	char *found = NULL;

	while (f && !found && fgets(line, size, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, name, len) && line[len] == '\t')
			found = line + len + 1;
	}
	if (f)
		fclose(f);
	return found;
}

/* Return: false if @c has noted something else than plain TCP. */
static bool notes_agree(const struct api_case *c)
{
	static char ours[16384], line[17000];
	char *theirs;
	ssize_t n = pread(notes, ours, sizeof(ours) - 1, 0);

	if (n < 0)
		rs_die("notes: %m");
	ours[n] = 0;
	if (notes_to)
		fprintf(notes_to, "%s\t%s\n", c->name, ours);
	if (!notes_from)
		return true;
	theirs = noted(c->name, line, sizeof(line));
	if (!strcmp(ours, theirs ?: ""))
		return true;
	printf("# TCP:  %s\n# here: %s\n", theirs ?: "(has not passed)", ours);
	return false;
}

static int run_case(const struct api_case *c)
{
	pid_t pid;
	int status;

	fflush(stdout);
	if (notes_to)
		fflush(notes_to);
	notes = memfd_create("notes", MFD_CLOEXEC);
	if (notes < 0)
		rs_die("memfd_create: %m");
	pid = fork();
	if (!pid) {
		alarm(limit);
		c->run();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status)) {
		printf("# ended by signal %s\n",
		       sigabbrev_np(WTERMSIG(status)));
		status = FAILED;
	} else {
		status = WEXITSTATUS(status);
	}
	if (!status && !notes_agree(c))
		status = FAILED;
	close(notes);
	return status;
}

static const char *options(int argc, char **argv)
{
	bool other = false;
	int c;

	rs_kind_parse("tcp4", &kind);
	while ((c = getopt(argc, argv, "k:s:xl:t:w:zS:R:C:f:")) != -1) {
		if (c == 'k' && rs_kind_parse(optarg, &kind))
			continue;
		if (c == 's' && rs_kind_parse(optarg, &server_kind))
			other = true;
		else if (c == 'x')
			crossed = 1;
		else if (c == 'l')
			host = optarg;
		else if (c == 't')
			limit = atoi(optarg);
		else if (c == 'w')
			warm = atoi(optarg);
		else if (c == 'z')
			in_place = true;
		else if (c == 'S')
			turn_command = optarg;
		else if (c == 'R')
			notes_to = fopen(optarg, "we");
		else if (c == 'C')
			notes_from = optarg;
		else if (c == 'f')
			filter = optarg;
		else
			return usage;
	}
	if (!other)
		server_kind = kind;
	return server_kind.family == kind.family ? NULL :
	       "both ends must be of one address family";
}

int main(int argc, char **argv)
{
	static const struct api_case * const groups[] = {
		address_cases, connect_cases, listen_cases, io_cases,
		msg_cases, urgent_cases, wait_cases, uring_cases, option_cases,
		zero_cases, end_cases,
	};
	const char *wrong = options(argc, argv);
	int n = 0, failed = 0;

	if (wrong)
		rs_die("%s", wrong);
	printf("TAP version 13\n");
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
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
