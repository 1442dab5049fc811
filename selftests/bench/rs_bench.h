/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets, time and errors of rs_bench.  Whatever fails ends the program. */
#ifndef RS_BENCH_H
#define RS_BENCH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern int domain, protocol;		/* of the sockets that are measured */
extern struct sockaddr_in addr;		/* of the server */
extern uint64_t sent, received;		/* bytes, on the measured connection */

/* Says why, with the program's name before it. */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);

/* Seconds, of a clock that goes evenly. */
double now(void);

/* Milliseconds that all CPUs have spent on anything but idling and waiting for disks. */
uint64_t busy_ms(void);

int open_socket(void);
void no_delay(int fd);
int open_connection(void);

void send_all(int fd, const void *from, size_t len);
/* Return: false if the stream ended before the first byte. */
bool recv_all(int fd, void *to, size_t len);
void recv_must(int fd, void *to, size_t len);

/* Zeroed. */
void *allocate(size_t n, size_t size);

#endif
