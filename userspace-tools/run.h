/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of "rsctl run" share.  See Documentation/run.rst. */
#ifndef RUN_H
#define RUN_H

#include <linux/rdmastream.h>
#include <stdbool.h>

/* In the environment of programs: the preload library knows them, too. */
#define RUN_PROTO	"RDMASTREAM_PROTO"		/* the protocol's number */
#define RUN_RULES	"RDMASTREAM_RULES"		/* which connections are ours */
#define RUN_WARNED	"RDMASTREAM_WARNED"	/* rsctl has said that this is TCP */

/* run_look.c: how can a program be reached? */
struct look {
	bool preload;		/* by the dynamic linker */
	bool fixed;		/* there is none */
	const char *why;	/* "is statically linked" */
	char *what;		/* the file that this is about */
};

/* As execvp() looks for it, also if it can't be executed; NULL: not found. */
char *run_find(const char *name);
/* Is it text, so that a shell may run it if it has no "#!"? */
bool run_is_text(const char *path);
/* Complains.  Return: EXIT_CANNOT_RUN or EXIT_NOT_FOUND, by @err. */
int run_failed(const char *path, int err);
/* What execve() of @path would run.  Return: EXIT_OK, or what was complained about. */
int run_look(const char *path, struct look *look);

/* run_supervise.c */

/*
 * From here on all that this process becomes and begets is supervised.  @rules: it
 * has some of its own.
 * Return: EXIT_OK, also if it is not, which was complained about; or EXIT_FAILED:
 * no program would get a socket any more.
 */
int run_supervise(bool rules);

/* run_rules.c */

/* Return: how many, into @rules of RDMASTREAM_RULES_MAX; -1: not understood. */
int run_read_rules(const char *text, struct rdmastream_rule *rules);

/* What sockets shall be, as the environment says. */
struct run_wish {
	int protocol;
	int rules;		/* how many; -1: not understood, and no socket is ours */
	struct rdmastream_rule rule[RDMASTREAM_RULES_MAX];
};

void run_read_wish(struct run_wish *wish);
/* The rules onto a socket.  Return: false if it must not be ours. */
bool run_set_rules(int fd, const struct run_wish *wish);

#endif
