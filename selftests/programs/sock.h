/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets of every kind that the tests compare, by the name of the kind. */
#ifndef SOCK_H
#define SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define AF_RDMASTREAM 22
#define IPPROTO_RDMASTREAM 257

/**
 * struct rs_kind - what socket() is asked for, and what addresses look like
 * @domain: AF_INET, AF_INET6 or AF_RDMASTREAM
 * @proto: third argument of socket()
 * @family: AF_INET or AF_INET6, of the addresses
 */
struct rs_kind {
	int domain;
	int proto;
	int family;
};

union rs_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

/*
 * tcp4 tcp6 (plain TCP), inet inet6 (IPPROTO_RDMASTREAM), rds4 rds6
 * (AF_RDMASTREAM).  Return: false if there is no such name.
 */
bool rs_kind_parse(const char *name, struct rs_kind *kind);
bool rs_kind_ours(const struct rs_kind *kind);

/* Loopback if @host is NULL, the wildcard if it is "". Exits if malformed. */
socklen_t rs_addr(const struct rs_kind *kind, const char *host, uint16_t port,
		  union rs_addr *addr);
socklen_t rs_addr_len(const union rs_addr *addr);
uint16_t rs_port(const union rs_addr *addr);

extern int rs_rcvbuf;	/* SO_RCVBUF of the sockets made here; 0: not set */

/* These exit with a message if the call fails. */
int rs_socket(const struct rs_kind *kind, int flags);
int rs_listen(const struct rs_kind *kind, const char *host, uint16_t port,
	      int backlog);
uint16_t rs_local_port(int fd);
uint16_t rs_remote_port(int fd);

/* Return: the socket, or minus errno. */
int rs_connect(const struct rs_kind *kind, const char *host, uint16_t port,
	       int flags);

/* poll() one descriptor. Return: revents, 0 if nothing came within @ms. */
int rs_poll(int fd, int events, int ms);
void rs_nonblock(int fd);

uint64_t rs_now_ms(void);
unsigned int rs_limit(const char *seconds);	/* more on a slow kernel */
uint64_t rs_bytes(const char *text);	/* "64K", "1M", "1G"; exits if bad */
void rs_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
