// SPDX-License-Identifier: GPL-2.0-only
/*
 * librdmastream-preload.so: TCP sockets of a program become rdmastream's.
 *
 * Only socket() is changed, and in it only the protocol: the address family
 * stays what the program expects, and everything after it is the kernel's
 * matter.  Where the kernel has no such protocol the program gets its TCP
 * socket, and one warning.
 *
 * RSTREAM_PROTO in the environment replaces the protocol's number.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/rdmastream.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

static int our_protocol(void)
{
	const char *text = getenv("RSTREAM_PROTO");
	int protocol = text ? atoi(text) : 0;

	return protocol > 0 ? protocol : IPPROTO_RDMASTREAM;
}

/* write(), not stdio: the program may be anywhere, and stderr is its own. */
static void warn_once(void)
{
	static const char text[] =
		"rdmastream: not available, using TCP (is the module loaded?)\n";
	static int warned;
	ssize_t n;

	if (__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
		return;
	n = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)n;
}

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

/* The module is absent, or a sandbox knows only TCP. */
static int unavailable(int err)
{
	return err == EPROTONOSUPPORT || err == EINVAL || err == EPERM ||
	       err == EACCES;
}

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
	fd = next(domain, type, our_protocol());
	if (fd >= 0 || !unavailable(errno))
		return fd;
	fd = next(domain, type, protocol);
	if (fd >= 0) {
		warn_once();
		errno = saved;
	}
	return fd;
}
