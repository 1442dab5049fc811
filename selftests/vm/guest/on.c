// SPDX-License-Identifier: GPL-2.0-only
/*
 * on N CMD [ARG...]: run a command in VM N of this lab run; for VM 0 only.
 *
 * Current directory and environment go along, stdout, stderr and exit status come back (the
 * outputs at the end), 255 if VM N dies.  A single argument is a command line for bash, unless it
 * is just a program's name.  A signal to "on" ends the command.  This does not use the network:
 * tests may cut it.
 *
 * on --serve PORT: the other end, in VM N.  A job is a file in the results share, where its
 * outputs go, too; the line between the VMs has only "run JOB", "kill JOB", "done JOB STATUS".
 *
 * With LAB_HOSTS set, VM N is the network namespace $LAB_HOSTS followed by N.  All have one
 * kernel: what is loaded need not be loaded, and is unloaded once.
 *
 * In C and statically linked, because a guest takes 20 ms or more for the fork of a shell, and
 * scenarios do little else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define STATE	"/run/lab"
#define MAX_JOBS	256	/* at a time */
#define MAX_WORDS	8192	/* of a job, with its environment */

extern char **environ;

static void __attribute__((noreturn, format(printf, 2, 3))) die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("on: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

static const char *env(const char *name)
{
	return getenv(name) ?: "";
}

static char *format(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		die(255, "no memory");
	va_end(args);
	return text;
}

static void say(int fd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(fd, fmt, args);
	va_end(args);
}

/* Return: valid until the next call */
static const char *job_file(const char *job, const char *suffix)
{
	static char *path;

	free(path);
	path = format("%s/.vm/jobs/%s.%s", env("RESULTS"), job, suffix);
	return path;
}

/* ---- the end that asks ---- */

static volatile sig_atomic_t ended_by;

static void on_signal(int sig)
{
	ended_by = sig;
}

/* Texts that end with NUL: the directory, the number of arguments, these, the environment. */
static void write_job(const char *job, const char *n, int argc, char **argv)
{
	char *cwd = getcwd(NULL, 0);
	FILE *file = fopen(job_file(job, "cmd"), "w");

	if (!file)
		die(255, "%s: %m", job_file(job, "cmd"));
	fprintf(file, "%s%c%d%c", cwd ?: "/", 0, argc, 0);
	for (int i = 0; i < argc; i++)
		fprintf(file, "%s%c", argv[i], 0);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "VM_ID=", 6))
			fprintf(file, "%s%c", *e, 0);
	fprintf(file, "VM_ID=%s%c", n, 0);
	if (fclose(file))
		die(255, "%s: %m", job_file(job, "cmd"));
}

static void copy(const char *path, int to)
{
	int from = open(path, O_RDONLY);
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t done = 0, k; done < n; done += k) {
			k = write(to, buf + done, n - done);
			if (k < 0)
				return;
		}
	close(from);
}

static int ask(const char *n, int argc, char **argv)
{
	char *job = format("%s.%d", n, getpid()), *fifo = format(STATE "/job.%s", job);
	struct sigaction end = { .sa_handler = on_signal };
	int to = open(format(STATE "/to.%s", n), O_RDWR | O_CLOEXEC), done;
	struct pollfd ready = { .events = POLLIN };
	char status[16] = "";
	sigset_t ends, old;

	if (to < 0)
		die(255, "no VM %s", n);
	/* they come while we wait, neither before nor while the outputs are copied */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, &old);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	write_job(job, n, argc, argv);
	mkfifo(fifo, 0600);		/* it is there if the number comes again */
	done = open(fifo, O_RDWR);
	if (done < 0)
		die(255, "%s: %m", fifo);
	say(to, "run %s\n", job);
	if (!access(format(STATE "/gone.%s", n), F_OK))
		return 255;
	/* after a signal, the command's end is awaited nevertheless */
	ready.fd = done;
	while (ppoll(&ready, 1, NULL, &old) < 0) {
		if (errno != EINTR)
			die(255, "%s: %m", fifo);
		if (ended_by)
			say(to, "kill %s\n", job);
		ended_by = 0;
	}
	if (read(done, status, sizeof(status) - 1) <= 0)
		die(255, "%s: %m", fifo);
	copy(job_file(job, "out"), 1);
	copy(job_file(job, "err"), 2);
	return atoi(status);
}

/* ---- the end that serves ---- */

static struct job {
	pid_t pid;		/* 0: free; leads a session */
	char name[32];
} jobs[MAX_JOBS];

static struct job *find_job(pid_t pid, const char *name)
{
	for (int i = 0; i < MAX_JOBS; i++)
		if (name ? jobs[i].pid && !strcmp(jobs[i].name, name) : jobs[i].pid == pid)
			return &jobs[i];
	return NULL;
}

static void end_job(int port, const char *name, int status)
{
	close(open(job_file(name, "done"), O_CREAT | O_WRONLY, 0644));
	say(port, "done %s %d\n", name, status);
}

static void refuse_job(int port, const char *name, int status, const char *what, const char *why)
{
	int fd = open(job_file(name, "err"), O_CREAT | O_TRUNC | O_WRONLY, 0644);

	say(fd, "on: %s: %s\n", what, why);
	close(fd);
	close(open(job_file(name, "out"), O_CREAT | O_TRUNC | O_WRONLY, 0644));
	end_job(port, name, status);
}

static char *read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st)) {
		*size = st.st_size;
		text = malloc(*size + 1);
	}
	if (text && read(fd, text, *size) != (ssize_t)*size) {
		free(text);
		text = NULL;
	}
	if (text)
		text[*size] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

/*
 * @words: room for MAX_WORDS + 2; the directory, then @argc arguments and NULL, then the
 * environment and NULL, all of them in @text.  Return: is it a job?
 */
static bool split_job(char *text, size_t size, char **words, int *argc)
{
	char *next = text, *stop = text + size;
	int n = 0;

	for (; next < stop && n < MAX_WORDS; next += strlen(next) + 1)
		words[n++] = next;
	words[n] = NULL;
	*argc = n > 2 ? atoi(words[1]) : 0;
	if (*argc < 1 || 2 + *argc > n || next < stop)
		return false;
	/* room for a NULL between arguments and environment */
	memmove(words + 2 + *argc + 1, words + 2 + *argc, (n - 2 - *argc + 1) * sizeof(*words));
	words[2 + *argc] = NULL;
	return true;
}

static void run_job(int port, const char *name)
{
	size_t size = 0;
	char *text = read_file(job_file(name, "cmd"), &size);
	char *words[MAX_WORDS + 2], **saved = environ;
	struct job *job = find_job(0, NULL);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int argc, err;
	sigset_t none;

	if (!job || !text || !split_job(text, size, words, &argc)) {
		refuse_job(port, name, 255, name, "cannot be started");
		free(text);
		return;
	}
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, job_file(name, "out"),
					 O_WRONLY | O_CREAT | O_TRUNC, 0644);
	posix_spawn_file_actions_addopen(&actions, 2, job_file(name, "err"),
					 O_WRONLY | O_CREAT | O_TRUNC, 0644);
	posix_spawn_file_actions_addchdir_np(&actions, access(words[0], X_OK) ? "/" : words[0]);
	environ = words + 2 + argc + 1;		/* its PATH is the one that counts */
	err = posix_spawnp(&job->pid, words[2], &actions, &attr, words + 2, environ);
	environ = saved;
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (err) {
		job->pid = 0;
		refuse_job(port, name, err == ENOENT ? 127 : 126, words[2], strerror(err));
	} else {
		snprintf(job->name, sizeof(job->name), "%s", name);
	}
	free(text);
}

static void reap_jobs(int port)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct job *job = find_job(pid, NULL);

		if (!job)
			continue;
		job->pid = 0;
		end_job(port, job->name, WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
							       WEXITSTATUS(status));
	}
}

/* Return: shall it go on? */
static bool do_line(int port, char *line)
{
	char *name = strchr(line, ' ');
	struct job *job;

	if (name)
		*name++ = 0;
	if (!strcmp(line, "hello")) {
		say(port, "ready\n");
	} else if (!strcmp(line, "run") && name) {
		run_job(port, name);
	} else if (!strcmp(line, "kill") && name) {
		job = find_job(0, name);
		if (job)
			kill(-job->pid, SIGTERM);
	} else if (!strcmp(line, "quit")) {
		return false;
	}
	return true;
}

static int serve(const char *path)
{
	int port = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY), ends;
	struct signalfd_siginfo info;
	struct termios raw;
	char buf[4096];
	size_t have = 0;
	sigset_t chld;

	if (port < 0)
		die(255, "%s: %m", path);
	if (!tcgetattr(port, &raw)) {
		cfmakeraw(&raw);
		tcsetattr(port, TCSANOW, &raw);
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	ends = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);

	for (;;) {
		struct pollfd fds[] = { { port, POLLIN, 0 }, { ends, POLLIN, 0 } };
		char *line = buf, *end;
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die(255, "poll: %m");
		if (fds[1].revents) {
			while (read(ends, &info, sizeof(info)) > 0)
				;
			reap_jobs(port);
		}
		if (!fds[0].revents)
			continue;
		n = read(port, buf + have, sizeof(buf) - 1 - have);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return 0;
		have += n > 0 ? n : 0;
		buf[have] = 0;
		while ((end = memchr(line, '\n', buf + have - line))) {
			*end = 0;
			while (line < end && !*line)	/* a break on a serial line */
				line++;
			if (!do_line(port, line))
				return 0;
			line = end + 1;
		}
		have -= line - buf;
		memmove(buf, line, have);
	}
}

/* ---- hosts that are namespaces ---- */

static void enter(const char *n, const char *cmd)
{
	int host = open(format("%s%s", env("LAB_HOSTS"), n), O_RDONLY | O_CLOEXEC);

	if (!strcmp(cmd, "insmod") && !access("/sys/module/rdmastream", F_OK))
		exit(0);
	if (!strcmp(cmd, "rmmod") && strcmp(n, "0"))
		exit(0);
	if (host < 0 || setns(host, CLONE_NEWNET))
		die(255, "%s%s: %m", env("LAB_HOSTS"), n);
	setenv("VM_ID", n, true);
}

static bool is_name(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789")];
}

int main(int argc, char **argv)
{
	char *bash[] = { "bash", "-c", argv[argc - 1], NULL };
	bool line = argc == 3 && !is_name(argv[2]);
	char **cmd = line ? bash : argv + 2;

	if (argc < 3)
		die(2, "usage: on N CMD [ARG...]");
	if (!strcmp(argv[1], "--serve"))
		return serve(argv[2]);
	if (*env("LAB_HOSTS"))
		enter(argv[1], cmd[0]);
	else if (strcmp(argv[1], env("VM_ID")))
		return ask(argv[1], line ? 3 : argc - 2, cmd);
	execvp(cmd[0], cmd);
	die(errno == ENOENT ? 127 : 126, "%s: %m", cmd[0]);
}
