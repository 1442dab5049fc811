// SPDX-License-Identifier: GPL-2.0-only
/*
 * librdmastream-preload.so: TCP sockets of a program become rdmastream's.
 *
 * Only socket() is changed, and in it only the protocol: the address family
 * stays what the program expects, and everything after it is the kernel's
 * matter.  Where the kernel has no such protocol the program gets its TCP
 * socket, and one warning, unless "rsctl run" has already said so.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "run.h"

typedef int socket_fn(int domain, int type, int protocol);

static socket_fn *next_socket(void)
{
	static socket_fn *fn;

	/* Two threads may both look it up; they find the same. */
	if (!__atomic_load_n(&fn, __ATOMIC_ACQUIRE))
		__atomic_store_n(&fn, (socket_fn *)dlsym(RTLD_NEXT, "socket"),
				 __ATOMIC_RELEASE);
	return fn;
}

static void warn_once(void)
{
	static int warned;

	if (!__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED) && !getenv(RUN_WARNED))
		run_warn(STDERR_FILENO);
}

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	socket_fn *next = next_socket();
	int saved = errno;
	int fd;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (!is_tcp(domain, type, protocol))
		return next(domain, type, protocol);
	fd = next(domain, type, run_protocol());
	if (fd >= 0 ? run_set_rules(fd) : !run_unavailable(errno))
		return fd;
	if (fd >= 0)
		close(fd);
	fd = next(domain, type, protocol);
	if (fd >= 0) {
		warn_once();
		errno = saved;
	}
	return fd;
}
