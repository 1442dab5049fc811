// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl check listen: a server that answers "rsctl check HOST PORT probe".
 *
 * A request is a line of fixed length, so that both ends stay in step:
 *
 *	rsctl-check status	answered by REPORT bytes, lines of NAME=VALUE
 *	rsctl-check ping	answered by the same line
 *	rsctl-check take N	N bytes follow; then the same line
 *	rsctl-check give N	answered by N bytes
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rsctl.h"
#include "check.h"

#define LINE	48
#define REPORT	512
#define CHUNK	(64 * 1024)
#define SERVERS_MAX	32	/* clients at once */
#define MOST	(1ULL << 40)	/* bytes that may be asked for */

static char chunk[CHUNK];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool put(int fd, const char *data, size_t len)
{
	ssize_t n;

	while (len) {
		n = send(fd, data, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static bool get(int fd, char *data, size_t len)
{
	ssize_t n;

	while (len) {
		n = recv(fd, data, len, 0);
		if (n <= 0)
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static bool put_much(int fd, uint64_t len)
{
	size_t n;

	for (; len; len -= n) {
		n = len < CHUNK ? len : CHUNK;
		if (!put(fd, chunk, n))
			return false;
	}
	return true;
}

static bool get_much(int fd, uint64_t len)
{
	size_t n;

	for (; len; len -= n) {
		n = len < CHUNK ? len : CHUNK;
		if (!get(fd, chunk, n))
			return false;
	}
	return true;
}

static void make_line(char line[LINE], const char *what, uint64_t n)
{
	memset(line, ' ', LINE);
	n = snprintf(line, LINE, "rsctl-check %s %" PRIu64, what, n);
	line[n] = ' ';
	line[LINE - 1] = '\n';
}

static bool ask(int fd, const char *what, uint64_t n)
{
	char line[LINE];

	make_line(line, what, n);
	return put(fd, line, LINE);
}

static bool answered(int fd)
{
	char line[LINE];

	return get(fd, line, LINE) && !strncmp(line, "rsctl-check ", 12);
}

/* ---- asking ---- */

bool talk_send(int fd, uint64_t bytes, double *seconds)
{
	double start = now();

	if (!ask(fd, "take", bytes) || !put_much(fd, bytes) || !answered(fd))
		return false;
	*seconds = now() - start;
	return true;
}

bool talk_receive(int fd, uint64_t bytes, double *seconds)
{
	double start = now();

	if (!ask(fd, "give", bytes) || !get_much(fd, bytes))
		return false;
	*seconds = now() - start;
	return true;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool talk_ping(int fd, unsigned int n, double *us)
{
	double *times = xcalloc(n, sizeof(*times));
	bool good = true;
	unsigned int i;

	for (i = 0; i < n && good; i++) {
		times[i] = now();
		good = ask(fd, "ping", 0) && answered(fd);
		times[i] = (now() - times[i]) * 1e6;
	}
	qsort(times, n, sizeof(*times), by_value);
	*us = times[n / 2];
	free(times);
	return good;
}

static void take_word(char *to, size_t size, const char *val)
{
	if (strlen(val) < size)
		strcpy(to, val);
}

static void take_pair(struct told *told, const char *name, const char *val)
{
	if (!strcmp(name, "module"))
		take_word(told->module, sizeof(told->module), val);
	else if (!strcmp(name, "mode"))
		take_word(told->mode, sizeof(told->mode), val);
	else if (!strcmp(name, "reason"))
		take_word(told->reason, sizeof(told->reason), val);
	else if (!strcmp(name, "tx"))
		take_word(told->tx, sizeof(told->tx), val);
	else if (!strcmp(name, "rx"))
		take_word(told->rx, sizeof(told->rx), val);
	else if (!strcmp(name, "negotiate"))
		told->negotiate = atoi(val);
	else if (!strcmp(name, "drain"))
		told->drain = atoi(val);
	else if (!strcmp(name, "devices"))
		told->devices = atoi(val);
	else if (!strcmp(name, "usable"))
		told->usable = atoi(val);
}

/* What comes is another host's: nothing of it is printed as it is. */
static bool is_plain(const char *text, size_t len)
{
	for (; len; len--, text++)
		if (*text != '\n' && (*text < ' ' || *text > '~'))
			return false;
	return true;
}

bool talk_status(int fd, struct told *told)
{
	char report[REPORT + 1], *line, *rest, *sign;

	*told = (struct told){
		.negotiate = -1, .drain = -1, .devices = -1, .usable = -1,
	};
	if (!ask(fd, "status", 0) || !get(fd, report, REPORT) ||
	    !is_plain(report, REPORT))
		return false;
	report[REPORT] = '\0';
	for (line = strtok_r(report, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		sign = strchr(line, '=');
		if (!sign)
			continue;
		*sign = '\0';
		take_pair(told, line, sign + 1);
	}
	return told->module[0];
}

/* ---- answering ---- */

static bool report_socket(FILE *to, int fd)
{
	struct seen seen = { 0 };
	char *mode, *reason;
	struct stat st;

	if (fstat(fd, &st) || see_socket(st.st_ino, &seen))
		return false;
	if (!seen.found) {
		fprintf(to, "mode=plain\n");
		return true;
	}
	mode = word_of(WORD_MODE, seen.mode);
	reason = reason_name(seen.reason);
	fprintf(to, "mode=%s\nreason=%s\ntx=%s\nrx=%s\n", mode, reason,
		seen.tx_ring ? "ring" : "tcp", seen.rx_ring ? "ring" : "tcp");
	free(mode);
	free(reason);
	return true;
}

static bool report(int fd)
{
	char text[REPORT];
	struct here here;
	FILE *to;
	bool good = true;

	memset(text, ' ', sizeof(text));
	to = fmemopen(text, sizeof(text) - 1, "w");
	if (!to)
		return false;
	if (access("/proc/sys/net/rdmastream", F_OK)) {
		fprintf(to, "module=-\nmode=plain\n");
	} else {
		good = !see_here(&here) && report_socket(to, fd);
		fprintf(to, "module=%s\nnegotiate=%" PRIu64 "\ndrain=%d\ndevices=%u\nusable=%u\n",
			here.version, here.negotiate, here.drain, here.devices,
			here.usable);
	}
	/* fmemopen() ends what it has written by a null byte */
	fputc('\n', to);
	fflush(to);
	good = good && !ferror(to);
	fclose(to);
	text[strnlen(text, sizeof(text) - 1)] = '\n';
	text[sizeof(text) - 1] = '\n';
	return good && put(fd, text, sizeof(text));
}

static bool serve(int fd, const char line[LINE])
{
	char copy[LINE], what[8];
	uint64_t n;

	memcpy(copy, line, LINE);
	copy[LINE - 1] = '\0';
	if (sscanf(copy, "rsctl-check %7s %" SCNu64, what, &n) != 2 || n > MOST)
		return false;
	if (!strcmp(what, "status"))
		return report(fd);
	if (!strcmp(what, "ping"))
		return put(fd, line, LINE);
	if (!strcmp(what, "take"))
		return get_much(fd, n) && put(fd, line, LINE);
	if (!strcmp(what, "give"))
		return put_much(fd, n);
	return false;
}

static void serve_all(int fd)
{
	struct timeval patience = { .tv_sec = TALK_PATIENCE };
	char line[LINE];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (get(fd, line, LINE) && serve(fd, line))
		;
}

int talk_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC,
			IPPROTO_RDMASTREAM);

	/* without the module: TCP */
	if (fd < 0 && errno != EMFILE && errno != ENFILE)
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd;
}

static int listen_at(const struct addrinfo *ai)
{
	int one = 1, zero = 0;
	int fd = talk_socket(ai->ai_family);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 16))
		return fd;
	close(fd);
	return -1;
}

static int listen_any(const char *port)
{
	static const int families[] = { AF_INET6, AF_INET };
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *ai;
	unsigned int i;
	int err, fd;

	for (i = 0; i < 2; i++) {
		hints.ai_family = families[i];
		err = getaddrinfo(NULL, port, &hints, &ai);
		if (err) {
			complain("port %s: %s", port, gai_strerror(err));
			return -1;
		}
		fd = listen_at(ai);
		freeaddrinfo(ai);
		if (fd >= 0)
			return fd;
	}
	complain("cannot listen on port %s: %s", port, strerror(errno));
	return -1;
}

/* Return: how many are still at work, of @n. */
static unsigned int still_serving(unsigned int n)
{
	while (n && waitpid(-1, NULL, WNOHANG) > 0)
		n--;
	return n;
}

/* Each client has a process of its own, so that one that hangs does not stop the others. */
int talk_listen(const char *port)
{
	int fd = listen_any(port), one;
	unsigned int n = 0;

	if (fd < 0)
		return EXIT_FAILED;
	if (!opt.json)
		printf("listening on port %s%s\n", port,
		       access("/proc/sys/net/rdmastream", F_OK) ?
		       ", as plain TCP: the module is not loaded" : "");
	if (fflush(stdout))
		return EXIT_FAILED;
	for (;;) {
		one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (one < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (one < 0) {
			complain("accept: %s", strerror(errno));
			return EXIT_FAILED;
		}
		n = still_serving(n);
		switch (n < SERVERS_MAX ? fork() : -1) {
		case 0:
			close(fd);
			serve_all(one);
			_exit(EXIT_OK);
		case -1:
			break;		/* it may try again */
		default:
			n++;
		}
		close(one);
	}
}
