/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cases of rs_api.  Each runs in a process of its own with a time limit, so
 * that one that hangs or dies is one that failed.
 */
#ifndef API_H
#define API_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"

struct api_case {
	const char *name;
	void (*run)(void);
};

extern const struct api_case address_cases[], connect_cases[], listen_cases[],
			     io_cases[], msg_cases[], urgent_cases[],
			     wait_cases[], uring_cases[], option_cases[],
			     zero_cases[], end_cases[];

extern struct rs_kind kind;		/* of the sockets under test */
extern struct rs_kind server_kind;	/* of those that listen: the same, or not */
extern const char *host;		/* address to meet at */
extern bool in_place;			/* zero-copy sends are not copied, soon */

/* A connected pair: [0] the client's socket, [1] what accept() returned, or,
 * with -x, the other way round.
 */
void pair(int fd[2]);
/* "Now": with -S the carriers of all sockets change here. */
void turn(void);
/*
 * What TCP answers depends on the kernel: note it.  All kinds must have noted
 * what plain TCP has.
 */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A listener at a free port of @host. */
int listener(uint16_t *port);
/* connect() to @port of @host. Return: 0 or -1 with errno. */
int connect_to(int fd, uint16_t port);
/* Connect @fd to listener @l at @port.  Return: what accept() gave; a failure ends the case. */
int connect_accept(int fd, int l, uint16_t port);
/* Fail the case unless @events of poll() come soon. */
void await(int fd, int events);
/* Bytes that can be read are @n, soon. */
void await_bytes(int fd, int n);
/*
 * Write pattern 1 until @fd stays full: bytes move on to the other end meanwhile.
 * Return: how many were written.
 */
size_t fill(int fd);
/* Read the @len bytes of pattern 1 that there are to come, and no more. */
void drain(int fd, size_t len);
/* Close @fd with a reset instead of a FIN. */
void reset(int fd);
/* Integer options; a failure ends the case. */
void set_int(int fd, int level, int name, int value);
int get_int(int fd, int level, int name);

void api_fail(const char *file, int line, const char *what)
	__attribute__((noreturn));
void api_skip(const char *why) __attribute__((noreturn));

#define EXPECT(cond) \
	do { \
		if (!(cond)) \
			api_fail(__FILE__, __LINE__, #cond); \
	} while (0)

/* Wait for @cond, up to this limit: a busy machine takes its time. */
#define SOON_SECONDS 8

#define EXPECT_SOON(cond) \
	do { \
		for (uint64_t end_ = rs_now_ms() + 1000 * SOON_SECONDS; !(cond);) { \
			if (rs_now_ms() > end_) \
				api_fail(__FILE__, __LINE__, #cond " soon"); \
			usleep(2000); \
		} \
	} while (0)

/* @call fails with @err */
#define EXPECT_ERRNO(call, err) \
	do { \
		errno = 0; \
		if ((call) != -1 || errno != (err)) \
			api_fail(__FILE__, __LINE__, #call " fails with " #err); \
	} while (0)

#endif
