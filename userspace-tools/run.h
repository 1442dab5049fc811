/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of "rsctl run" share.  See Documentation/run.rst. */
#ifndef RUN_H
#define RUN_H

#include <errno.h>
#include <linux/rdmastream.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* In the environment of programs: the preload library knows them, too. */
#define RUN_PROTO	"RSTREAM_PROTO"		/* the protocol's number */
#define RUN_RULES	"RSTREAM_RULES"		/* which connections are ours */
#define RUN_WARNED	"RSTREAM_WARNED"	/* it was said that this is TCP */

/* run_look.c: how can a program be reached? */
struct look {
	bool preload;		/* by the dynamic linker */
	bool fixed;		/* there is none */
	const char *why;	/* "is statically linked" */
	char *what;		/* the file that this is about */
};

/* As execvp() looks for it; NULL: not found. */
char *run_find(const char *name);
/* What execve() of @path would run.  Return: EXIT_OK, or what was complained about. */
int run_look(const char *path, struct look *look);

/* run_supervise.c */

/*
 * From here on all that this process becomes and begets is supervised.
 * Return: EXIT_OK, also if it is not, which was complained about; or EXIT_FAILED:
 * no program would get a socket any more.
 */
int run_supervise(void);

/* run_rules.c */

/* Return: how many, into @rules of RDMASTREAM_RULES_MAX; -1: not understood. */
int run_read_rules(const char *text, struct rdmastream_rule *rules);
/* Those of the environment, if any, for a socket. */
bool run_set_rules(int fd);

static inline int run_protocol(void)
{
	const char *text = getenv(RUN_PROTO);
	int protocol = text ? atoi(text) : 0;

	return protocol > 0 ? protocol : IPPROTO_RDMASTREAM;
}

/* The module is absent, or a sandbox knows only TCP. */
static inline bool run_unavailable(int err)
{
	return err == EPROTONOSUPPORT || err == EINVAL || err == EPERM ||
	       err == EACCES;
}

/* write(), not stdio: the program may be anywhere, and stderr is its own. */
static inline void run_warn(int fd)
{
	static const char text[] =
		"rdmastream: not available, using TCP (is the module loaded?)\n";
	ssize_t n = write(fd, text, sizeof(text) - 1);

	(void)n;
}

#endif
