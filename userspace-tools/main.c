// SPDX-License-Identifier: GPL-2.0-only
/* rsctl: options, and the table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rsctl.h"

struct options opt;

static int cmd_help(int argc, char **argv);

/* An abbreviation means the first that it begins. */
const struct command commands[] = {
	{ "links", "[FILTER]", "RDMA links to other hosts", cmd_links },
	{ "sockets", "[FILTER]", "sockets, and what carries their data", cmd_sockets },
	{ "stats", "", "counters that are not zero (all with -s)", cmd_stats },
	{ "run", "[-v] [-P|-S] [-i|-x WHICH]... PROGRAM [ARG]...",
	  "run a program with rdmastream sockets", cmd_run },
	{ "explain", "[REASON]", "what a reason means and what to do about it",
	  cmd_explain },
	{ "version", "", "versions, and the numbers in use", cmd_version },
	{ "drain", "[on [SECONDS]|off]", "stop using RDMA, or resume",
	  cmd_drain },
	{ "monitor", "", "report events until interrupted", cmd_monitor },
	{ "peers", "[ID]", "other hosts, and the state of links to them",
	  cmd_peers },
	{ "devices", "[NAME]", "RDMA devices: usable or not, and why",
	  cmd_devices },
	{ "memory", "[FILTER]", "registered receive memory", cmd_memory },
	{ "show", "[SETTING]", "settings and their ranges", cmd_show },
	{ "set", "SETTING VALUE", "change a setting", cmd_set },
	{ "check", "HOST PORT [probe] | listen PORT",
	  "would a connection use RDMA? step by step", cmd_check },
	{ "cgroup", "[on|off CGROUP]", "give processes of a cgroup rdmastream sockets",
	  cmd_cgroup },
	{ "help", "", "show this text", cmd_help },
	{ NULL }
};

#define ARGS_WIDTH	22	/* what is longer has a line for itself */

static void usage(FILE *to)
{
	const struct command *c;

	fputs("Usage: rsctl [OPTIONS] COMMAND\n\nCommands:\n", to);
	for (c = commands; c->name; c++) {
		bool fits = strlen(c->args) <= ARGS_WIDTH;

		fprintf(to, "  %-8s%-*s", c->name, ARGS_WIDTH, c->args);
		if (!fits)
			fprintf(to, "\n%*s", 10 + ARGS_WIDTH, "");
		fprintf(to, " %s\n", c->text);
	}
	fputs("\n"
	      "Options:\n"
	      "  -j, --json          write JSON\n"
	      "  -p, --pretty        indent the JSON\n"
	      "  -s, --statistics    show more counters\n"
	      "  -d, --details       show all details\n"
	      "  -n, --numeric       show numbers instead of names and units\n"
	      "  -o, --oneline       do not wrap lines\n"
	      "  -w, --watch[=SECS]  stats: repeat, and show rates\n"
	      "  -c, --color[=WHEN]  use colour: always (-c alone), auto or never\n"
	      "  -N, --netns NAME    run in this network namespace\n"
	      "  -V, --version       show the version of rsctl\n"
	      "  -h, --help          show this text\n"
	      "\n"
	      "Each command has a manual page: rsctl-COMMAND(8).\n", to);
}

static int cmd_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (opt.json)
		schema_write();
	else
		usage(stdout);
	return EXIT_OK;
}

void complain(const char *fmt, ...)
{
	va_list ap;

	fputs("rsctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void pause_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		complain("out of memory");
		exit(EXIT_FAILED);
	}
	return p;
}

char *xprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		complain("out of memory");
		exit(EXIT_FAILED);
	}
	return s;
}

int no_arguments(int argc, char **argv)
{
	if (argc < 2)
		return 0;
	complain("%s takes no argument, not \"%s\"", argv[0], argv[1]);
	return EXIT_USAGE;
}

bool begins(const char *word, const char *with)
{
	return *with && !strncmp(word, with, strlen(with));
}

static const struct command *find_command(const char *word)
{
	const struct command *c;

	for (c = commands; c->name; c++)
		if (begins(c->name, word))
			return c;
	return NULL;
}

static int enter_netns(const char *name)
{
	char *path = xprintf("/run/netns/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		complain("network namespace %s: %s", name, strerror(errno));
		err = EXIT_FAILED;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return err;
}

static int set_color(const char *when)
{
	if (!when || !strcmp(when, "always"))
		opt.color = true;
	else if (!strcmp(when, "auto"))
		opt.color = isatty(STDOUT_FILENO);
	else if (!strcmp(when, "never"))
		opt.color = false;
	else
		return EXIT_USAGE;
	return 0;
}

static int set_watch(const char *seconds)
{
	char *end;
	long val = seconds ? strtol(seconds, &end, 10) : 1;

	if (seconds && (*end || val < 1 || val > 86400)) {
		complain("watch: \"%s\" is not a number of seconds from 1 to 86400",
			 seconds);
		return EXIT_USAGE;
	}
	opt.watch = val;
	return 0;
}

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "pretty", no_argument, NULL, 'p' },
	{ "statistics", no_argument, NULL, 's' },
	{ "details", no_argument, NULL, 'd' },
	{ "numeric", no_argument, NULL, 'n' },
	{ "oneline", no_argument, NULL, 'o' },
	{ "color", optional_argument, NULL, 'c' },
	{ "watch", optional_argument, NULL, 'w' },
	{ "netns", required_argument, NULL, 'N' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL }
};

/* Return: 0 to go on, else exit with -1 - the value. */
static int set_option(int c)
{
	int err = 0;

	switch (c) {
	case 'j':
		opt.json = true;
		break;
	case 'p':
		opt.pretty = true;
		break;
	case 's':
		opt.stats = true;
		break;
	case 'd':
		opt.details = true;
		break;
	case 'n':
		opt.numeric = true;
		break;
	case 'o':
		opt.oneline = true;
		break;
	case 'c':
		err = set_color(optarg);
		break;
	case 'w':
		err = set_watch(optarg);
		break;
	case 'N':
		err = enter_netns(optarg);
		break;
	case 'V':
		printf("rsctl %s\n", VERSION);
		return -1;
	case 'h':
		usage(stdout);
		return -1;
	default:
		err = EXIT_USAGE;
	}
	if (err == EXIT_USAGE)
		complain("see \"rsctl help\"");
	return err ? -1 - err : 0;
}

#define OPTIONS "jpsdnoc::w::N:Vh"

/*
 * @known: OPTIONS anywhere, or "+" OPTIONS up to the first other word.
 * Return: 0 with optind at the first word that is none; -1 - exit status.
 */
static int get_options(int argc, char **argv, const char *known)
{
	int c, ret = 0;

	optind = 0;	/* glibc: from the beginning */
	while (!ret && (c = getopt_long(argc, argv, known, long_options,
					NULL)) != -1)
		ret = set_option(c);
	return ret;
}

/*
 * What was started without one of its first three files must not take a socket for
 * it.  To read or write there fails, as before; "run" does not pass them on.
 */
static int hold_files(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
			return EXIT_FAILED;
	return 0;
}

int main(int argc, char **argv)
{
	const struct command *command;
	int ret;

	if (hold_files())
		return EXIT_FAILED;
	setlocale(LC_CTYPE, "");	/* may bars be drawn? */
	ret = get_options(argc, argv, "+" OPTIONS);
	if (ret)
		return -1 - ret;
	argc -= optind;
	argv += optind;
	if (!argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	command = find_command(argv[0]);
	if (!command) {
		complain("unknown command \"%s\", see \"rsctl help\"",
			 argv[0]);
		return EXIT_USAGE;
	}
	/* what stands behind "run" is the program's */
	if (command->run != cmd_run) {
		ret = get_options(argc, argv, OPTIONS);
		if (ret)
			return -1 - ret;
		/* the words that are left, behind the command */
		argv[optind - 1] = argv[0];
		argc -= optind - 1;
		argv += optind - 1;
	}
	if (opt.watch && command->run != cmd_stats) {
		complain("-w works only with stats");
		return EXIT_USAGE;
	}
	ret = command->run(argc, argv);
	if (fflush(stdout) || ferror(stdout)) {
		complain("write: %s", strerror(errno));
		return ret ? ret : EXIT_FAILED;
	}
	return ret;
}
