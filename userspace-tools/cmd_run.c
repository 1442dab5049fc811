// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl run: start a program so that its TCP sockets are ours, by the preload
 * library or by a supervisor.  Documentation/run.rst says how it is decided.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rsctl.h"
#include "run.h"

#define LIBRARY		"librdmastream-preload.so"

enum way { WAY_CHOSEN, WAY_PRELOAD, WAY_SUPERVISE };

/* How it was called. */
struct told {
	enum way way;
	bool verbose;
	bool help;
	char *rules;	/* NULL: none */
};

/* Beside rsctl if it is there, else where it is installed. */
static char *find_library(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *path, *slash;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		path = xprintf("%.*s/" LIBRARY, (int)(slash - self), self);
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	path = xprintf("%s/" LIBRARY, LIBDIR);
	if (!access(path, R_OK))
		return path;
	complain("%s: not found", path);
	free(path);
	return NULL;
}

static int preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char *library = find_library(), *all;

	if (!library)
		return EXIT_FAILED;
	if (strpbrk(library, ": ")) {
		complain("%s: the dynamic linker does not accept a path with a space or colon",
			 library);
		return EXIT_FAILED;
	}
	all = old && *old ? xprintf("%s:%s", library, old) :
			    xprintf("%s", library);
	setenv("LD_PRELOAD", all, 1);
	free(all);
	return EXIT_OK;
}

/* Why sockets will be TCP; NULL: they will not. */
static const char *find_obstacle(void)
{
	const char *obstacle = NULL;
	struct run_wish wish;
	int fd;

	run_read_wish(&wish);
	if (wish.rules < 0)
		return RUN_RULES " is not understood, using TCP";
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, wish.protocol);
	if (fd < 0)
		return "rdmastream is not available, using TCP (is the module loaded?)";
	if (!run_set_rules(fd, &wish))
		obstacle = "the kernel does not accept the rules, using TCP";
	close(fd);
	return obstacle;
}

/* Once, for the program and all its children. */
static void warn_if_unavailable(void)
{
	const char *obstacle = find_obstacle();

	if (!obstacle)
		return;
	if (!getenv(RUN_WARNED))
		complain("%s", obstacle);
	setenv(RUN_WARNED, "1", 1);
}

/* Which way?  Return: EXIT_OK, or what was complained about. */
static int choose(const char *program, struct told *told)
{
	const char *how = told->way == WAY_CHOSEN ? "" : ", as requested";
	struct look look;
	int ret = run_look(program, &look);

	if (!ret && told->way == WAY_PRELOAD && look.fixed) {
		complain("%s %s, so no library can be preloaded", look.what, look.why);
		ret = EXIT_CANNOT_RUN;
	}
	if (told->way == WAY_CHOSEN)
		told->way = look.preload ? WAY_PRELOAD : WAY_SUPERVISE;
	if (!ret && told->verbose)
		complain("%s %s: using the %s%s", look.what, look.why,
			 told->way == WAY_PRELOAD ? "preload library" : "supervisor", how);
	free(look.what);
	return ret;
}

/* One more rule, as run_rules.c writes them.  @how: 'i' or 'x'. */
static int add_rule(struct told *told, char how, const char *which)
{
	struct rdmastream_rule rules[RDMASTREAM_RULES_MAX];
	char *rule = xprintf("%c%s", how, which);
	char *all = told->rules ? xprintf("%s,%s", told->rules, rule) : xprintf("%s", rule);
	int ret = EXIT_USAGE;

	if (strchr(which, ',') || run_read_rules(rule, rules) != 1)
		complain("\"%s\" is not of the form [ADDRESS[/BITS]][:PORT[-PORT]]", which);
	else if (run_read_rules(all, rules) < 0)
		complain("there are more than %d rules", RDMASTREAM_RULES_MAX);
	else
		ret = EXIT_OK;
	free(rule);
	free(told->rules);
	told->rules = all;
	return ret;
}

static const struct option long_options[] = {
	{ "exclude", required_argument, NULL, 'x' },
	{ "help", no_argument, NULL, 'h' },
	{ "include", required_argument, NULL, 'i' },
	{ "preload", no_argument, NULL, 'P' },
	{ "supervise", no_argument, NULL, 'S' },
	{ "verbose", no_argument, NULL, 'v' },
	{ NULL }
};

static void usage(void)
{
	fputs("Usage: rsctl run [OPTIONS] [--] PROGRAM [ARG]...\n\n"
	      "Options:\n"
	      "  -i, --include WHICH  let these connections use RDMA\n"
	      "  -x, --exclude WHICH  leave these connections on plain TCP\n"
	      "  -P, --preload        by a library that is preloaded\n"
	      "  -S, --supervise      by a supervisor\n"
	      "  -v, --verbose        say what the program is, and which of these is used\n"
	      "  -h, --help           show this text\n"
	      "\n"
	      "WHICH is [ADDRESS[/BITS]][:PORT[-PORT]], IPv6 addresses in brackets.  There may\n"
	      "be several, of which the first that matches decides.  See rsctl-run(8).\n",
	      stdout);
}

/* Return: EXIT_OK with optind at the program, or with help wanted; or EXIT_USAGE. */
static int get_options(int argc, char **argv, struct told *told)
{
	int c;

	optind = 0;	/* glibc: from the beginning */
	while ((c = getopt_long(argc, argv, "+i:x:PSvh", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
		case 'x':
			if (add_rule(told, c, optarg))
				return EXIT_USAGE;
			break;
		case 'P':
			told->way = WAY_PRELOAD;
			break;
		case 'S':
			told->way = WAY_SUPERVISE;
			break;
		case 'v':
			told->verbose = true;
			break;
		case 'h':
			told->help = true;
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return EXIT_OK;
	complain("run takes a PROGRAM and its arguments");
	return EXIT_USAGE;
}

int cmd_run(int argc, char **argv)
{
	struct told told = { .way = WAY_CHOSEN };
	char *program;
	int ret;

	ret = get_options(argc, argv, &told);
	if (ret)
		return ret;
	if (told.help) {
		usage();
		return EXIT_OK;
	}
	argv += optind;
	program = run_find(argv[0]);
	if (!program) {
		complain("%s: not found", argv[0]);
		return EXIT_NOT_FOUND;
	}
	ret = choose(program, &told);
	if (ret)
		return ret;
	if (told.rules)
		setenv(RUN_RULES, told.rules, 1);
	warn_if_unavailable();
	ret = told.way == WAY_PRELOAD ? preload() : run_supervise(told.rules);
	if (ret)
		return ret;
	execv(program, argv);
	if (errno == ENOEXEC && run_is_text(program))
		execvp(program, argv);	/* a script without "#!" is the shell's */
	return run_failed(program, errno);
}
