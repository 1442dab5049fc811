// SPDX-License-Identifier: GPL-2.0-only
/*
 * LD_PRELOAD: a program's TCP sockets become SMC sockets, for scripts/bench programs.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

enum { SMC_IPV4, SMC_IPV6 };	/* protocols */

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);

	if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_STREAM &&
	    (protocol == IPPROTO_IP || protocol == IPPROTO_TCP)) {
		protocol = domain == AF_INET ? SMC_IPV4 : SMC_IPV6;
		domain = AF_SMC;
	}
	return syscall(SYS_socket, domain, type, protocol);
}
