// SPDX-License-Identifier: GPL-2.0-only
/*
 * librdmastream-preload.so: TCP sockets of a program become rdmastream's.
 *
 * Only socket() is changed, and in it only the protocol: the address family
 * stays what the program expects, and everything after it is the kernel's
 * matter.  Where the kernel has no such protocol the program gets its TCP
 * socket, and no word: standard error is the program's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run.h"

static struct run_wish wish;
static int (*next)(int domain, int type, int protocol);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void begin(void)
{
	run_read_wish(&wish);
	next = (typeof(next))dlsym(RTLD_NEXT, "socket");
}

/*
 * At the start, because the program may change its environment at any time; or when
 * the constructor of another library, before us, makes a socket.
 */
__attribute__((constructor))
static void begin_once(void)
{
	pthread_once(&once, begin);
}

static int is_tcp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

/* The module is absent, or a sandbox knows only TCP. */
static bool is_unavailable(int err)
{
	return err == EPROTONOSUPPORT || err == EINVAL || err == EPERM ||
	       err == EACCES;
}

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	int saved = errno;
	int fd;

	begin_once();
	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (!is_tcp(domain, type, protocol))
		return next(domain, type, protocol);
	fd = next(domain, type, wish.protocol);
	if (fd >= 0 ? run_set_rules(fd, &wish) : !is_unavailable(errno))
		return fd;
	if (fd >= 0)
		close(fd);
	fd = next(domain, type, protocol);
	if (fd >= 0)
		errno = saved;
	return fd;
}
