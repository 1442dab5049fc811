// SPDX-License-Identifier: GPL-2.0-only
/*
 * The supervisor of "rsctl run": makes the sockets of a program whose socket() no
 * library can change.  See Documentation/run.rst.
 *
 * Here, from top to bottom: the filter; the worker, which answers; the guard, which
 * looks after the worker; and how all that begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsctl.h"
#include "run.h"

#define SUPERVISED	"RSTREAM_SUPERVISED"	/* in the environment */

/*
 * ---- the filter ----
 *
 * libseccomp 2.5 has neither SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV nor ADDFD, so it could
 * only generate the filter, which takes no fewer lines than to write it.
 */

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH	AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH	AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCH	AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH	AUDIT_ARCH_S390X
#else
#define ARCH	0	/* not known here */
#endif

/* The half of an argument that is an int. */
#define LOW(i)	(offsetof(struct seccomp_data, args[i]) + \
		 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define LOAD(what)		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
#define IF_EQUAL(to, yes, no)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, to, yes, no)

static struct sock_filter filter[] = {
	LOAD(offsetof(struct seccomp_data, arch)),
	IF_EQUAL(ARCH, 0, 11),
	LOAD(offsetof(struct seccomp_data, nr)),
	IF_EQUAL(__NR_socket, 0, 9),
	LOAD(LOW(0)),
	IF_EQUAL(AF_INET, 1, 0),
	IF_EQUAL(AF_INET6, 0, 6),
	LOAD(LOW(1)),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(SOCK_CLOEXEC | SOCK_NONBLOCK)),
	IF_EQUAL(SOCK_STREAM, 0, 3),
	LOAD(LOW(2)),
	IF_EQUAL(0, 2, 0),
	IF_EQUAL(IPPROTO_TCP, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
};

static int add_filter(void)
{
	const struct sock_fprog prog = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER |
		       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
}

/* Without CAP_SYS_ADMIN only for programs that can't get more rights. */
static int add_filter_without_rights(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : add_filter();
}

/*
 * Would it be for nothing that the program gives up its rights?  A child tries, because
 * there is no way back.  Return: 0 or an error.
 */
static int try_filter(void)
{
	int ends[2], err = ECHILD;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	pid = fork();
	if (!pid) {
		err = add_filter_without_rights() < 0 ? errno : 0;
		_exit(write(ends[1], &err, sizeof(err)) != sizeof(err));
	}
	close(ends[1]);
	/* not by its status, which nobody gets if SIGCHLD is ignored */
	if (pid < 0 || read(ends[0], &err, sizeof(err)) != sizeof(err))
		err = pid < 0 ? errno : ECHILD;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return err;
}

/* Return: the listener, or -1. */
static int set_filter(void)
{
	int listener;

	if (!ARCH) {
		errno = ENOTSUP;
		return -1;
	}
	listener = add_filter();
	if (listener >= 0 || errno != EACCES)
		return listener;
	errno = try_filter();
	return errno ? -1 : add_filter_without_rights();
}

/* ---- the worker, whose directory is /proc ---- */

/* What it shares with the guard, and with workers to come. */
struct shared {
	int listener;
	struct run_wish wish;
	/* The call in work, from the moment that the kernel has told it. */
	union {
		struct seccomp_notif call;
		char room[1024];	/* newer kernels may tell more */
	};
};

static void let_go(struct shared *s)
{
	union {
		struct seccomp_notif_resp resp;
		char room[256];
	} answer = {
		.resp = {
			.id = s->call.id,
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
		},
	};

	ioctl(s->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* The network namespace of the thread that calls.  @here: it is ours.  -1: unknown. */
static int open_net(pid_t pid, bool *here)
{
	struct stat ours, theirs;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (stat("self/ns/net", &ours) || fstat(fd, &theirs)) {
		close(fd);
		return -1;
	}
	*here = ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	return fd;
}

struct ids {
	unsigned int user, group;
};

/* The filesystem ids of the thread that calls. */
static bool read_ids(pid_t pid, struct ids *ids)
{
	char path[64], line[256];
	int found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		found += sscanf(line, "Uid: %*u %*u %*u %u", &ids->user) == 1;
		found += sscanf(line, "Gid: %*u %*u %*u %u", &ids->group) == 1;
	}
	fclose(file);
	return found == 2;
}

/* The socket that the call asks for, as if the program had made it.  -1: none. */
static int make_socket(const struct seccomp_notif *call, const struct run_wish *wish)
{
	struct ids ids;
	int fd;

	if (!read_ids(call->pid, &ids))
		return -1;
	setfsgid(ids.group);
	setfsuid(ids.user);
	fd = socket(call->data.args[0], (int)call->data.args[1] | SOCK_CLOEXEC, wish->protocol);
	setfsuid(geteuid());
	setfsgid(getegid());
	if (fd >= 0 && !run_set_rules(fd, wish)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool give_socket(struct shared *s)
{
	struct seccomp_notif_addfd give = {
		.id = s->call.id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.newfd_flags = s->call.data.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0,
	};
	int fd = make_socket(&s->call, &s->wish), ret;

	if (fd < 0)
		return false;
	give.srcfd = fd;
	ret = ioctl(s->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &give);
	close(fd);
	return ret >= 0;
}

/* By a child: a process may have the right to enter a network namespace, but not to come back. */
static bool give_from(struct shared *s, int net)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(setns(net, CLONE_NEWNET) || !give_socket(s));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static bool serve_call(struct shared *s)
{
	bool here, given;
	int net = open_net(s->call.pid, &here);

	if (net < 0)
		return false;
	given = here ? give_socket(s) : give_from(s, net);
	close(net);
	return given;
}

static void answer_call(struct shared *s)
{
	memset(&s->room, 0, sizeof(s->room));
	if (ioctl(s->listener, SECCOMP_IOCTL_NOTIF_RECV, &s->call))
		return;		/* withdrawn: a signal came, or the end */
	if (!serve_call(s))
		let_go(s);
	s->call.id = 0;
}

/* Return: when nobody has the filter any more. */
static void work(struct shared *s)
{
	struct pollfd wait = { .fd = s->listener, .events = POLLIN };

	for (;;) {
		if (poll(&wait, 1, -1) < 0)
			continue;
		if (wait.revents & POLLIN)
			answer_call(s);
		else if (wait.revents)
			return;
	}
}

/* ---- the guard ---- */

static void guard(struct shared *s)
{
	int status;
	pid_t pid;

	for (;;) {
		pid = fork();
		if (pid <= 0) {
			prctl(PR_SET_NAME, "rsctl-worker");
			work(s);	/* without a worker the guard is one */
			return;
		}
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
			return;
		if (s->call.id)
			let_go(s);
	}
}

/*
 * Nothing of the program's is kept, and nothing reaches us but SIGKILL.  The directory
 * is /proc as it is now, whatever the program mounts there.
 */
static void leave_program(int channel)
{
	sigset_t all;
	int null;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	if (chdir("/proc"))
		_exit(1);
	dup2(channel, 3);
	close_range(4, ~0U, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	close(null);
}

/* ---- the beginning: program and guard speak by a channel ---- */

union one_fd {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* A byte, and with it a descriptor if there is one. */
static bool tell(int channel, int fd)
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union one_fd control = {
		.head = {
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)),
		},
	};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(channel, &msg, MSG_NOSIGNAL) == 1;
}

static bool hear(int channel, int *fd)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union one_fd control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	*fd = -1;
	errno = ECHILD;		/* for the end, which sets none */
	if (recvmsg(channel, &msg, MSG_CMSG_CLOEXEC) != 1)
		return false;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(fd, CMSG_DATA(&control.head), sizeof(*fd));
	return true;
}

static void be_guard(int channel)
{
	struct shared *s;

	leave_program(channel);
	channel = 3;
	prctl(PR_SET_NAME, "rsctl-guard");
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || !tell(channel, -1) ||
	    !hear(channel, &s->listener) || s->listener < 0 || !tell(channel, -1))
		_exit(1);
	close(channel);
	run_read_wish(&s->wish);
	guard(s);
	_exit(0);
}

/* Return: our end of the channel to a guard that is ready, or -1. */
static int start_guard(void)
{
	int channel[2], none;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel))
		return -1;
	pid = fork();
	if (!pid) {
		/* an orphan: the program must not find a child that it knows nothing of */
		if (!fork())
			be_guard(channel[1]);
		_exit(0);
	}
	close(channel[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid > 0 && hear(channel[0], &none))
		return channel[0];
	close(channel[0]);
	return -1;
}

static int not_supervised(const char *why)
{
	complain("cannot supervise, using TCP: %s", why);
	return EXIT_OK;
}

/* Are process ids in /proc those that the kernel will tell the worker? */
static bool proc_is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atoi(self) == getpid();
}

/* Room for one: the outer one is it. */
static int supervised_already(bool rules)
{
	if (rules)
		complain("already supervised, so the rules of the outer \"rsctl run\" apply");
	return EXIT_OK;
}

/*
 * Since 1.24, listeners of Go are MPTCP sockets where the kernel has these, and the filter
 * lets them pass.  Programs that ask for MPTCP themselves get it still.
 */
static void tell_go(void)
{
	const char *old = getenv("GODEBUG");
	char *all;

	if (old && strstr(old, "multipathtcp="))
		return;
	all = old && *old ? xprintf("%s,multipathtcp=0", old) : xprintf("multipathtcp=0");
	setenv("GODEBUG", all, 1);
	free(all);
}

int run_supervise(bool rules)
{
	int channel, listener, none, ret = EXIT_OK;

	if (!proc_is_ours())
		return not_supervised("/proc belongs to another PID namespace");
	channel = start_guard();
	if (channel < 0)
		return not_supervised(strerror(errno));
	listener = set_filter();
	if (listener < 0) {
		int err = errno;

		close(channel);
		if (err == EBUSY && getenv(SUPERVISED))
			return supervised_already(rules);
		return not_supervised(strerror(err));
	}
	if (!tell(channel, listener) || !hear(channel, &none)) {
		complain("the supervisor has died");
		ret = EXIT_FAILED;
	}
	close(listener);
	close(channel);
	setenv(SUPERVISED, "1", 1);
	tell_go();
	return ret;
}
