/* SPDX-License-Identifier: GPL-2.0-only */
/* What "rsctl check" and "rsctl check listen" say to each other. */
#ifndef RSCTL_CHECK_H
#define RSCTL_CHECK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Addresses of a connection; IPv4 is mapped into IPv6. */
struct ends {
	struct in6_addr local, remote;
};

/* A socket of this namespace, as the module sees it. */
struct seen {
	bool found;
	struct ends ends;
	uint64_t mode, reason;
	bool has_peer;
	uint8_t peer[RDMASTREAM_INSTANCE_LEN];
	bool tx_ring, rx_ring;
	bool lost;		/* a direction left a ring because a link broke */
};

/* Return: EXIT_OK, or what was complained about. */
int see_socket(ino_t inode, struct seen *seen);

/* What can be said of this host; all 0 without the module. */
struct here {
	bool module;
	char version[32];
	uint64_t wire_version;
	bool drain;
	uint64_t rmb_bytes, rmb_max;
	uint64_t negotiate, ring_mode, ring_threshold, loopback;
	uint64_t cm_port, cm_timeout_ms, link_probe_ms;
	unsigned int devices, usable;
	uint64_t problem;	/* of the first device, if none is usable */
	char device[96];	/* the first usable one with its address, or the first */
};

int see_here(struct here *here);

/* How links to the peer of a socket went: to a host between the addresses of the socket. */
struct links {
	bool known;
	bool sure;		/* it is that peer; else it is one that may be */
	bool active, self, drained;
	uint64_t up;
	char why[96];		/* the last one ended */
	uint64_t why_ms;
	uint64_t fails, refused;	/* over all paths */
	uint64_t rtt_us;		/* 0: none known */
	char text[192];		/* device and addresses of one that is up */
};

/*
 * If the peer establishes the links, the module does not tell its addresses before a socket has
 * waited for a link.  So once one was requested for @seen, a peer without addresses that has a
 * link is taken for the one.
 */
int see_links(const struct seen *seen, struct links *links);

/* Everything below fails after some seconds without an answer. */
#define TALK_PATIENCE	20	/* seconds */

/* What the other end has told about itself and its socket; -1 and "": not told */
struct told {
	char module[32];	/* version, or "-" */
	char mode[16];		/* "plain": a socket of TCP */
	char reason[32];
	char tx[8], rx[8];
	int negotiate, drain, devices, usable;
};

bool talk_status(int fd, struct told *told);
bool talk_ping(int fd, unsigned int n, double *us);	/* the median */
bool talk_send(int fd, uint64_t bytes, double *seconds);
bool talk_receive(int fd, uint64_t bytes, double *seconds);

int talk_socket(int family);	/* ours, or TCP's without the module */
int talk_listen(const char *port);	/* for ever */

#endif
