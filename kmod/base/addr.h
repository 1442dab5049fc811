/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RSTREAM_ADDR_H
#define RSTREAM_ADDR_H

#include <linux/in6.h>
#include <linux/types.h>

struct sock;

/**
 * rstream_addr_of() - address of a socket
 * @sk:		the socket
 * @remote:	remote address, otherwise the local one
 * @to:		result: sockaddr_in or sockaddr_in6; AF_UNSPEC: none
 */
void rstream_addr_of(const struct sock *sk, bool remote, struct sockaddr_in6 *to);

#endif
