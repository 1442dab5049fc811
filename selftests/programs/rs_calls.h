/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random system calls: what a program of them is, and what each file does.
 *
 *	rs_calls.c		the corpus, what is told, what is kept
 *	rs_calls_make.c		programs: at random, changed, from text, to text
 *	rs_calls_run.c		runs one, with a limit of time; its coverage
 *	rs_calls_do.c		what each call does
 *	rs_calls_netlink.c	those by netlink, and the module's counters
 */
#ifndef RS_CALLS_H
#define RS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CALLS = 32, THREADS = 3, ARGS = 4 };

/* Descriptors that calls share; the first are for sockets. */
enum { SLOTS = 12, SOCKETS = 6 };

/* X(name, what its arguments are, how often) */
#define RS_CALLS(X) \
	X(socket, SOCK, KIND, SMALL, NONE, 2) \
	X(pair, SOCK, SOCK, KIND, KIND, 6) \
	X(bind, SOCK, ADDR, PORT, NONE, 2) \
	X(listen, SOCK, SMALL, NONE, NONE, 2) \
	X(connect, SOCK, ADDR, PORT, NONE, 4) \
	X(accept, SOCK, SOCK, SMALL, NONE, 3) \
	X(send, SOCK, SIZE, SEND, MEM, 8) \
	X(sendmsg, SOCK, SIZE, SEND, SMALL, 4) \
	X(sendmmsg, SOCK, SIZE, SEND, SMALL, 1) \
	X(write, FD, SIZE, MEM, NONE, 2) \
	X(recv, SOCK, SIZE, RECV, MEM, 8) \
	X(recvmsg, SOCK, SIZE, RECV, SMALL, 4) \
	X(recvmmsg, SOCK, SIZE, RECV, SMALL, 1) \
	X(read, FD, SIZE, MEM, NONE, 2) \
	X(move, SOCK, SOCK, SIZE, MS, 6) \
	X(sendfile, FD, FD, SIZE, NONE, 2) \
	X(splice, FD, PIPE, SIZE, SPLICE, 2) \
	X(unsplice, PIPE, FD, SIZE, SPLICE, 2) \
	X(tee, PIPE, PIPE, SIZE, SPLICE, 1) \
	X(vmsplice, PIPE, SIZE, SPLICE, MEM, 1) \
	X(pipe, PIPE, PIPE, SMALL, NONE, 2) \
	X(file, FD, SIZE, NONE, NONE, 1) \
	X(epoll, EPOLL, NONE, NONE, NONE, 1) \
	X(epoll_ctl, EPOLL, SOCK, SMALL, POLL, 1) \
	X(epoll_wait, EPOLL, MS, NONE, NONE, 1) \
	X(poll, SOCK, POLL, MS, NONE, 3) \
	X(shutdown, SOCK, SMALL, NONE, NONE, 2) \
	X(close, FD, NONE, NONE, NONE, 1) \
	X(dup, FD, FD, NONE, NONE, 1) \
	X(setsockopt, SOCK, OPTION, VALUE, LENGTH, 8) \
	X(getsockopt, SOCK, OPTION, LENGTH, MEM, 5) \
	X(ioctl, SOCK, IOCTL, MEM, NONE, 2) \
	X(fcntl, SOCK, SMALL, NONE, NONE, 1) \
	X(map, SOCK, SIZE, NONE, NONE, 1) \
	X(name, SOCK, SMALL, LENGTH, MEM, 1) \
	X(setting, SETTING, SMALL, NONE, NONE, 1) \
	X(netlink, COMMAND, NLFLAGS, ATTR, ATTR, 5) \
	X(destroy, SOCK, NONE, NONE, NONE, 1) \
	X(uring, SOCK, SMALL, SIZE, SEND, 2) \
	X(fork, FD, SMALL, NONE, NONE, 1) \
	X(unshare, SMALL, NONE, NONE, NONE, 1) \
	X(pause, MS, NONE, NONE, NONE, 2)

#define X(name, ...) CALL_##name,
enum { RS_CALLS(X) CALL_KINDS };
#undef X

enum arg {
	ARG_NONE, ARG_SOCK, ARG_FD, ARG_PIPE, ARG_EPOLL, ARG_KIND, ARG_ADDR, ARG_PORT,
	ARG_SIZE, ARG_SEND, ARG_RECV, ARG_SPLICE, ARG_MEM, ARG_MS, ARG_POLL, ARG_SMALL,
	ARG_OPTION, ARG_VALUE, ARG_LENGTH, ARG_IOCTL, ARG_SETTING, ARG_COMMAND, ARG_NLFLAGS,
	ARG_ATTR,
};

struct call {
	uint8_t kind, thread;
	uint32_t arg[ARGS];
};

/**
 * struct program - calls
 * @number: of the run
 * @alone: how many the first thread makes before the others begin
 */
struct program {
	unsigned long number;
	uint32_t n, alone;
	struct call call[CALLS];
};

/* rs_calls_make.c */
extern const struct call_info {
	const char *name;
	int (*make)(const uint32_t *arg);	/* as a system call, with errno */
	uint8_t arg[ARGS], weight;
} call_infos[CALL_KINDS];
extern uint64_t rnd_state;

uint32_t rnd(uint32_t below);
uint64_t mix(uint64_t x);
void program_random(struct program *p);
void program_change(struct program *p, const struct program *other);
int program_seed(int i, struct program *p);	/* false: there are no more */
size_t program_print(const struct program *p, char *text, size_t size);
bool program_parse(FILE *in, struct program *p);	/* the next one of several */

/* rs_calls_run.c */
struct result {
	uint32_t done, err, covered;
};

struct coverage {
	uint64_t *pcs;		/* their number, then each */
};

extern struct coverage coverage[THREADS];
extern const struct result *results;

enum ran { RAN, KILLED, STUCK };

bool run_init(void);	/* Return: is there coverage? */
enum ran run(const struct program *p);
void run_end(void);

/* rs_calls_do.c */
enum { OUR_OPTIONS = 16 };	/* the first of them are looked at by the module */
extern const int option_count, setting_count, ioctl_count;
extern const char *own4, *own6;		/* addresses of an interface with RDMA */

void do_init(void);
void do_begin(int first_fd);
void do_end(void);		/* closes all, ends children */
int slot_fd(uint32_t slot);
#define X(name, ...) int do_##name(const uint32_t *arg);
RS_CALLS(X)
#undef X

/* rs_calls_netlink.c */
enum { COUNTERS = 256 };

bool netlink_init(void);
bool netlink_counters(uint64_t *counters);
void netlink_undrain(void);

#endif
