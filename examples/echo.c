// SPDX-License-Identifier: GPL-2.0-only
/*
 * An echo server, and a client that sends 4 MiB to one.  What differs from TCP is one
 * argument of socket().
 *
 *	cc -o echo echo.c
 *	echo serve PORT
 *	echo ADDRESS PORT
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPPROTO_RDMASTREAM
#define IPPROTO_RDMASTREAM	257	/* linux/rdmastream.h */
#endif
#define TOTAL	(4 << 20)

static char buf[1 << 16];

static void send_all(int fd, size_t len)
{
	ssize_t n;

	for (size_t done = 0; done < len; done += n) {
		n = send(fd, buf + done, len - done, MSG_NOSIGNAL);
		if (n < 0)
			err(1, "send");
	}
}

/* One client after the other. */
static void serve(int fd, struct sockaddr_in *addr)
{
	ssize_t n;
	int conn;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) ||
	    bind(fd, (struct sockaddr *)addr, sizeof(*addr)) || listen(fd, 16))
		err(1, "listen");
	while ((conn = accept(fd, NULL, NULL)) >= 0) {
		while ((n = recv(conn, buf, sizeof(buf), 0)) > 0)
			send_all(conn, n);
		close(conn);
	}
	err(1, "accept");
}

static void talk(int fd, struct sockaddr_in *addr)
{
	size_t sent = 0, got;
	ssize_t n;

	if (connect(fd, (struct sockaddr *)addr, sizeof(*addr)))
		err(1, "connect");
	for (; sent < TOTAL; sent += sizeof(buf)) {
		memset(buf, sent >> 16, sizeof(buf));
		send_all(fd, sizeof(buf));
		for (got = 0; got < sizeof(buf); got += n) {
			n = recv(fd, buf, sizeof(buf) - got, 0);
			if (n <= 0)
				err(1, "recv");
			for (ssize_t i = 0; i < n; i++)
				if (buf[i] != (char)(sent >> 16))
					errx(1, "another byte came back");
		}
	}
	printf("%zu bytes came back\n", sent);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd;

	if (argc != 3)
		errx(2, "usage: echo serve|ADDRESS PORT");
	addr.sin_port = htons(atoi(argv[2]));
	fd = socket(AF_INET, SOCK_STREAM, IPPROTO_RDMASTREAM);
	if (fd < 0)
		err(1, "socket");
	if (!strcmp(argv[1], "serve"))
		serve(fd, &addr);
	if (inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1)
		errx(2, "no address: %s", argv[1]);
	talk(fd, &addr);
	return 0;
}
