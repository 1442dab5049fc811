// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a guest of User-Mode Linux whose run shall be repeatable: what its kernel takes for
 * the host's random numbers comes from a seed.  Preloaded; $VM_SEED is the seed.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../programs/pattern.h"

static uint64_t next(void)
{
	static uint64_t state;
	static int begun;

	if (!begun) {
		const char *seed = getenv("VM_SEED");

		state = seed ? strtoull(seed, NULL, 0) : 0;
		begun = 1;
	}
	return pattern_random(&state);
}

ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < len; i += 8) {
		uint64_t x = next();

		memcpy((char *)buf + i, &x, len - i < 8 ? len - i : 8);
	}
	return len;
}

/* The kernel's driver of a random number generator: what it finds there is of no use. */
int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (!strcmp(path, "/dev/random"))
		path = "/dev/zero";
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* the same where files are large in any case */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
