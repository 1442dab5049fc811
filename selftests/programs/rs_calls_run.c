// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs programs in a process of its own, the worker, which is killed if a call lasts.
 * Each thread's coverage is KCOV's; those buffers, the program and its results are in
 * memory that both share.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rs_calls.h"
#include "sock.h"

enum { COVER = 1 << 17 };
/* A call is interrupted again and again after WAIT; the rest is left after HURRY. */
enum { WAIT_MS = 20, HURRY_MS = 300, PULSE_MS = 5, DYING_S = 60 };
#define LIMIT "5"	/* seconds, then the worker is killed */

struct coverage coverage[THREADS];
const struct result *results;

static struct shared {
	struct program program;
	struct result result[CALLS];
} *shared;

static int kcov_fd[THREADS];
static int go[2], done[2];
static pid_t worker;
static sem_t begun;
static bool hurry;

/* ---- the worker ---- */

static void interrupted(int sig)
{
	(void)sig;
}

static void make_call(int thread, int i)
{
	struct call *c = &shared->program.call[i];
	struct result *r = &shared->result[i];
	uint64_t *pcs = coverage[thread].pcs;

	if (__atomic_load_n(&hurry, __ATOMIC_RELAXED))
		return;
	errno = 0;
	r->err = call_infos[c->kind].make(c->arg) < 0 ? errno : 0;
	r->covered = pcs ? pcs[0] : 0;
	r->done = 1 + thread;
}

static void *thread_main(void *arg)
{
	struct program *p = &shared->program;
	int thread = (long)arg;
	uint32_t i = 0;

	if (coverage[thread].pcs) {
		ioctl(kcov_fd[thread], KCOV_ENABLE, KCOV_TRACE_PC);
		coverage[thread].pcs[0] = 0;
	}
	if (!thread) {
		for (; i < p->alone; i++)
			make_call(0, i);
		for (int t = 1; t < THREADS; t++)
			sem_post(&begun);
	} else {
		while (sem_wait(&begun))
			;
	}
	/* by turns, as far as a scheduler lets: else the first thread is done at once */
	for (i = p->alone; i < p->n; i++) {
		if (p->call[i].thread != thread)
			continue;
		sched_yield();
		make_call(thread, i);
	}
	if (coverage[thread].pcs)
		ioctl(kcov_fd[thread], KCOV_DISABLE, 0);
	return NULL;
}

static void worker_run(void)
{
	uint64_t since = rs_now_ms();
	pthread_t threads[THREADS];

	hurry = false;
	sem_init(&begun, 0, 0);
	for (long t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, thread_main, (void *)t))
			rs_die("pthread_create: %m");
	for (int t = 0; t < THREADS;) {
		struct timespec soon;
		uint64_t passed = rs_now_ms() - since;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += PULSE_MS * 1000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		if (!pthread_timedjoin_np(threads[t], NULL, &soon)) {
			t++;
			continue;
		}
		if (passed > HURRY_MS)
			__atomic_store_n(&hurry, true, __ATOMIC_RELAXED);
		for (int i = t; i < THREADS && passed > WAIT_MS; i++)
			pthread_kill(threads[i], SIGUSR1);
	}
}

static void worker_main(void)
{
	const struct sigaction interrupt = { .sa_handler = interrupted };
	int first_fd = dup(0);
	char c;

	sigaction(SIGUSR1, &interrupt, NULL);
	sigaction(SIGIO, &interrupt, NULL);
	close(first_fd);
	while (read(go[0], &c, 1) == 1) {
		do_begin(first_fd);
		worker_run();
		do_end();
		if (write(done[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

/* ---- its parent ---- */

static void *share(size_t size, int fd)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (p == MAP_FAILED)
		rs_die("mmap: %m");
	return p;
}

static bool kcov_init(void)
{
	for (int t = 0; t < THREADS; t++) {
		kcov_fd[t] = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
		if (kcov_fd[t] < 0 || ioctl(kcov_fd[t], KCOV_INIT_TRACE, COVER))
			return false;
	}
	for (int t = 0; t < THREADS; t++)
		coverage[t].pcs = share(COVER * sizeof(uint64_t), kcov_fd[t]);
	return true;
}

bool run_init(void)
{
	signal(SIGPIPE, SIG_IGN);
	shared = share(sizeof(*shared), -1);
	results = shared->result;
	if (pipe(go) || pipe(done))
		rs_die("pipe: %m");
	do_init();
	return kcov_init();
}

static bool ended(void)
{
	for (uint64_t until = rs_now_ms() + DYING_S * 1000; rs_now_ms() < until; usleep(10000)) {
		if (waitpid(worker, NULL, WNOHANG) != worker)
			continue;
		worker = 0;
		return true;
	}
	return false;
}

void run_end(void)
{
	if (worker > 0) {
		kill(worker, SIGKILL);
		ended();
	}
}

enum ran run(const struct program *p)
{
	int status;
	char c = 0;

	if (!worker) {
		worker = fork();
		if (!worker)
			worker_main();
		if (worker < 0)
			rs_die("fork: %m");
	}
	for (int t = 0; t < THREADS; t++)
		if (coverage[t].pcs)
			coverage[t].pcs[0] = 0;
	memset(shared, 0, sizeof(*shared));
	shared->program = *p;
	if (write(go[1], &c, 1) != 1)
		rs_die("the worker: %m");
	if (rs_poll(done[0], POLLIN, rs_limit(LIMIT) * 1000) && read(done[0], &c, 1) == 1)
		return RAN;
	if (waitpid(worker, &status, WNOHANG) == worker)
		rs_die("the worker has ended by itself: %#x", status);
	kill(worker, SIGKILL);
	return ended() ? KILLED : STUCK;
}
