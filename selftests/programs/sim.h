/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rs_simulate: random programs and a random world, by a seed.
 *
 *	rs_simulate.c	what is done next; the end, and whether all is well then
 *	sim_conn.c	connections: what programs do with both of their ends
 *	sim_world.c	hosts, their cables, devices and settings; what goes wrong
 *
 * One thread has all ends of all hosts, so that the seed alone says in which order
 * things are done.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sock.h"

#define SIM_HOSTS	64
#define SIM_CONNS	64

/* ---- rs_simulate.c ---- */

extern int sim_hosts;
extern bool sim_plain;		/* sockets of TCP's: what fails then is not ours */
extern int sim_liar;		/* the host that lies, or -1 */

/* From 0 to @n - 1. */
unsigned int sim_random(unsigned int n);
/* One of 1, 2, 4, ... times something: small ones are as likely as great ones. */
unsigned int sim_size(unsigned int most);
/* Is part of what the run says, as one number; printed with -v. */
void sim_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Not as it must be.  The run goes on, and has failed. */
void sim_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t sim_now_us(void);

/* ---- sim_world.c ---- */

void world_init(const char *seed);
/* The calling thread's network namespace is that of @host. */
void world_enter(int host);
/* Something changes. */
void world_act(void);
/* What was broken comes back when its time is over; what is gone, now and then. */
void world_mend(void);
/* Is TCP out of memory now and then?  It may reset what was closed. */
bool world_is_short(void);
/* What the module has, to the standard output. */
void world_tell(void);
/* Do sockets, links and memory agree about what each has? */
void world_check(void);
/* All is well again, for good. */
void world_calm(void);

/* ---- sim_conn.c ---- */

void conn_init(void);
void conn_open(void);
/* Take what has been connected to. */
void conn_accept(void);
/* A call on one end of a connection. */
void conn_act(void);
/* The programs of @host end, without a word of TCP's. */
void conn_die(int host);
/* All that is open comes to its end, within @us.  Return: it has. */
bool conn_settle(uint64_t us);

struct conn_sums {
	unsigned int opened, failed, aborted, whole;
	uint64_t bytes;
	uint64_t unread;	/* sent by those that are not whole, and not read */
};

extern struct conn_sums conn_sums;

#endif
