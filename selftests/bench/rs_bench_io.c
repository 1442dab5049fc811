// SPDX-License-Identifier: GPL-2.0-only
/* Of rs_bench: what its clients and its server do in the same way, see rs_bench.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rs_bench.h"

int domain = AF_INET, protocol;
struct sockaddr_in addr = { .sin_family = AF_INET };
uint64_t sent, received;

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("rs_bench: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

uint64_t busy_ms(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user,
			 &nice, &system, &idle, &iowait, &irq, &softirq) != 7)
		die("/proc/stat: cannot be read");
	fclose(f);
	return (user + nice + system + irq + softirq) * 1000 /
	       sysconf(_SC_CLK_TCK);
}

int open_socket(void)
{
	int fd = socket(domain, SOCK_STREAM, protocol);

	if (fd < 0)
		die("socket(%d, %d): %m", domain, protocol);
	return fd;
}

void no_delay(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("TCP_NODELAY: %m");
}

int open_connection(void)
{
	int fd = open_socket();

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect: %m");
	no_delay(fd);
	return fd;
}

void send_all(int fd, const void *from, size_t len)
{
	while (len) {
		ssize_t n = send(fd, from, len, 0);

		if (n <= 0)
			die("send: %m");
		from = (const char *)from + n;
		len -= n;
		sent += n;
	}
}

bool recv_all(int fd, void *to, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)to + got, len - got, 0);

		if (!n && !got)
			return false;
		if (n <= 0)
			die("recv: %s", n ? strerror(errno) : "early end");
		got += n;
		received += n;
	}
	return true;
}

void recv_must(int fd, void *to, size_t len)
{
	if (!recv_all(fd, to, len))
		die("recv: early end");
}

void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("calloc: %m");
	return p;
}
