// SPDX-License-Identifier: GPL-2.0-only
#include "sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	struct rs_kind kind;
} kinds[] = {
	{ "tcp4", { AF_INET, IPPROTO_TCP, AF_INET } },
	{ "tcp6", { AF_INET6, IPPROTO_TCP, AF_INET6 } },
	{ "inet", { AF_INET, IPPROTO_RDMASTREAM, AF_INET } },
	{ "inet6", { AF_INET6, IPPROTO_RDMASTREAM, AF_INET6 } },
	{ "rds4", { AF_RDMASTREAM, 0, AF_INET } },
	{ "rds6", { AF_RDMASTREAM, 1, AF_INET6 } },
};

void rs_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

bool rs_kind_parse(const char *name, struct rs_kind *kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(name, kinds[i].name))
			continue;
		*kind = kinds[i].kind;
		return true;
	}
	return false;
}

bool rs_kind_ours(const struct rs_kind *kind)
{
	return kind->proto != IPPROTO_TCP;
}

socklen_t rs_addr(const struct rs_kind *kind, const char *host, uint16_t port,
		  union rs_addr *addr)
{
	bool v6 = kind->family == AF_INET6;
	void *to = v6 ? (void *)&addr->in6.sin6_addr :
			(void *)&addr->in.sin_addr;

	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = kind->family;
	addr->in.sin_port = htons(port);	/* same place in both */
	if (!host)
		host = v6 ? "::1" : "127.0.0.1";
	if (*host && inet_pton(kind->family, host, to) != 1)
		rs_die("%s: not an address of this family", host);
	return rs_addr_len(addr);
}

socklen_t rs_addr_len(const union rs_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? sizeof(addr->in6) :
						sizeof(addr->in);
}

uint16_t rs_port(const union rs_addr *addr)
{
	return ntohs(addr->in.sin_port);
}

int rs_rcvbuf;

int rs_socket(const struct rs_kind *kind, int flags)
{
	int fd = socket(kind->domain, SOCK_STREAM | flags, kind->proto);

	if (fd < 0)
		rs_die("socket(%d, %d): %m", kind->domain, kind->proto);
	if (rs_rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rs_rcvbuf,
				    sizeof(rs_rcvbuf)))
		rs_die("SO_RCVBUF: %m");
	return fd;
}

int rs_listen(const struct rs_kind *kind, const char *host, uint16_t port,
	      int backlog)
{
	int fd = rs_socket(kind, SOCK_CLOEXEC), on = 1;
	union rs_addr addr;
	socklen_t len = rs_addr(kind, host, port, &addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &addr.sa, len))
		rs_die("bind: %m");
	if (listen(fd, backlog))
		rs_die("listen: %m");
	return fd;
}

uint16_t rs_local_port(int fd)
{
	union rs_addr addr;
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.sa, &len))
		rs_die("getsockname: %m");
	return rs_port(&addr);
}

uint16_t rs_remote_port(int fd)
{
	union rs_addr addr;
	socklen_t len = sizeof(addr);

	if (getpeername(fd, &addr.sa, &len))
		rs_die("getpeername: %m");
	return rs_port(&addr);
}

static int connect_wait(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (errno != EINPROGRESS)
		return errno;
	if (!rs_poll(fd, POLLOUT, -1))
		return EIO;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return errno;
	return err;
}

int rs_connect(const struct rs_kind *kind, const char *host, uint16_t port,
	       int flags)
{
	int fd = socket(kind->domain, SOCK_STREAM | flags, kind->proto);
	union rs_addr addr;
	socklen_t len = rs_addr(kind, host, port, &addr);
	int err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, &addr.sa, len))
		return fd;
	err = connect_wait(fd);
	if (!err)
		return fd;
	close(fd);
	return -err;
}

int rs_poll(int fd, int events, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&pfd, 1, ms);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? pfd.revents : 0;
}

void rs_nonblock(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		rs_die("fcntl: %m");
}

uint64_t rs_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

unsigned int rs_limit(const char *seconds)
{
	const char *slow = getenv("SLOW");

	return atoi(seconds) * (slow ? atoi(slow) : 1);
}

uint64_t rs_bytes(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'G':
		n <<= 10;	/* fall through */
	case 'M':
		n <<= 10;	/* fall through */
	case 'K':
		n <<= 10;
		end++;
	}
	if (end == text || *end)
		rs_die("%s: not a number of bytes", text);
	return n;
}
