// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random system calls on sockets of ours, guided by what they reach in the module.
 *
 * A program is a list of calls (rs_calls.h).  Each run changes one that is kept, or makes
 * one.  It is kept if it reaches what none before has: an edge between two blocks of the
 * module (KCOV), an errno of a call, or a counter of the module that grows as never before.
 * The last two need no KCOV, and tell of what the module does elsewhere than in the calls.
 *
 * Ends when the kernel complains, and says which program ran then.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rs_calls.h"
#include "sock.h"

static const char usage[] =
"rs_calls -4 ADDR -6 ADDR [options] [FILE...]\n"
"  -4, -6 ADDR  of an interface with RDMA\n"
"  -t SECONDS   (10)   -s SEED\n"
"  -o DIR       there: \"last\", the programs that ran last, the one at work among them;\n"
"               \"corpus\", those that are kept; \"killed\", those with a call that lasts;\n"
"               \"blocks\", addresses that were reached\n"
"  -r           run the programs of FILE... in the order of their numbers, no others;\n"
"               -n TIMES (1)\n"
"FILE...: programs to begin with\n";

enum { KEPT = 4096, LAST = 64, TEXT = 4096, EDGES = 1 << 20, BLOCKS = 1 << 17 };

static struct program kept[KEPT];
static unsigned long kept_count;

static uint8_t edges[EDGES];		/* by a hash; so are outcomes */
static uint64_t blocks[BLOCKS];		/* a hash table */
static uint64_t edge_count, block_count, outcome_count;

static unsigned long runs, calls, killed;
static uint32_t good[CALL_KINDS], bad[CALL_KINDS], errnos[256];
static uint64_t counters[COUNTERS];

static bool guided;
static int last_fd = -1, corpus_fd = -1, killed_fd = -1, log_fd;
static const char *dir;
static uint64_t began;

/* ---- what a run has reached ---- */

static bool is_new(uint64_t what, uint64_t *count)
{
	uint8_t *seen = &edges[mix(what) % EDGES];

	if (*seen)
		return false;
	*seen = 1;
	++*count;
	return true;
}

static void note_block(uint64_t pc)
{
	uint64_t at = mix(pc);

	while (blocks[at % BLOCKS] && blocks[at % BLOCKS] != pc)
		at++;
	if (blocks[at % BLOCKS] || block_count == BLOCKS / 2)
		return;
	blocks[at % BLOCKS] = pc;
	block_count++;
}

/* The edges of one call, those of its thread's between two numbers. */
static bool take_edges(const uint64_t *pcs, uint32_t from, uint32_t to)
{
	uint64_t before = 0;
	bool some = false;

	for (uint32_t i = from + 1; i <= to; i++) {
		if (is_new(mix(before) + pcs[i], &edge_count)) {
			note_block(pcs[i]);
			some = true;
		}
		before = pcs[i];
	}
	return some;
}

static bool take_counters(void)
{
	uint64_t now[COUNTERS];
	bool some = false;

	if (!netlink_counters(now))
		return false;
	for (int i = 0; i < COUNTERS; i++) {
		uint64_t grown = now[i] - counters[i];
		int bits = grown ? 64 - __builtin_clzll(grown) : 0;

		if (bits && is_new(1 << 20 | i << 8 | bits, &outcome_count))
			some = true;
	}
	memcpy(counters, now, sizeof(now));
	return some;
}

static bool take(const struct program *p)
{
	uint32_t covered[THREADS] = {};
	bool some = false;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct result *r = &results[i];
		int kind = p->call[i].kind, t = r->done - 1;

		if (!r->done)
			continue;
		calls++;
		++*(r->err ? &bad[kind] : &good[kind]);
		errnos[r->err % 256] += !!r->err;
		some |= is_new(2 << 20 | kind << 8 | r->err, &outcome_count);
		if (!guided || r->covered < covered[t])
			continue;
		some |= take_edges(coverage[t].pcs, covered[t], r->covered);
		covered[t] = r->covered;
	}
	return take_counters() || some;
}

/* ---- what is written ---- */

/* Each at its place of LAST, so that it is in the file before the kernel may die. */
static void write_last(const struct program *p)
{
	off_t at = runs % LAST * TEXT;
	char text[TEXT];
	size_t len = program_print(p, text, TEXT);

	if (last_fd < 0)
		return;
	memset(text + len, '\n', TEXT - len);
	if (pwrite(last_fd, text, TEXT, at) != TEXT)
		rs_die("last: %m");
	sync_file_range(last_fd, at, TEXT, SYNC_FILE_RANGE_WAIT_BEFORE |
			SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

static int open_in(const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		rs_die("%s: %m", path);
	return fd;
}

static void append(int fd, const struct program *p)
{
	char text[TEXT];
	size_t len = program_print(p, text, TEXT);

	if (fd >= 0 && write(fd, text, len) != (ssize_t)len)
		rs_die("write: %m");
}

static void keep(const struct program *p)
{
	if (kept_count < KEPT)
		kept[kept_count++] = *p;
	else
		kept[rnd(KEPT)] = *p;
	append(corpus_fd, p);
}

static void write_blocks(void)
{
	FILE *f;

	if (!dir)
		return;
	f = fdopen(open_in("blocks"), "w");
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i])
			fprintf(f, "%016lx\n", blocks[i]);
	fclose(f);
}

static void growth(void)
{
	printf("%4lu s: %lu programs, %lu calls; %lu edges, %lu blocks, %lu outcomes; %lu kept\n",
	       (rs_now_ms() - began) / 1000, runs, calls, edge_count, block_count, outcome_count,
	       kept_count);
	fflush(stdout);
}

static void summary(void)
{
	printf("calls and failures of each:\n");
	for (int i = 0; i < CALL_KINDS; i++)
		printf("%13s %6u/%u%s", call_infos[i].name, good[i] + bad[i], bad[i],
		       i % 4 == 3 || i == CALL_KINDS - 1 ? "\n" : "");
	printf("why:");
	for (int all = 0; all < 12; all++) {
		int most = 0;

		for (int i = 1; i < 256; i++)
			if (errnos[i] > errnos[most])
				most = i;
		if (!errnos[most])
			break;
		printf(" %s %u", strerrorname_np(most) ?: "?", errnos[most]);
		errnos[most] = 0;
	}
	printf("\n%lu programs were killed, as a call lasted\n", killed);
}

/* ---- settings that programs have changed ---- */

enum { SETTINGS = 64 };

static struct saved {
	char path[300], value[32];
} saved[SETTINGS];

static bool setting_io(struct saved *s, bool put, char *value)
{
	int fd = open(s->path, put ? O_WRONLY : O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = put ? write(fd, value, strlen(value)) : read(fd, value, sizeof(s->value) - 1);
	close(fd);
	if (!put && n > 0)
		value[n] = 0;
	return n > 0;
}

static void settings_save(void)
{
	FILE *names = popen("echo /proc/sys/net/rdmastream/*", "r");
	int n = 0;

	while (n < SETTINGS && fscanf(names, "%299s", saved[n].path) == 1) {
		setting_io(&saved[n], false, saved[n].value);
		n++;
	}
	pclose(names);
}

/* Not after each program: some take their time to show. */
static void settings_restore(void)
{
	char now[32];

	for (struct saved *s = saved; s < saved + SETTINGS && *s->path; s++)
		if (setting_io(s, false, now) && strcmp(now, s->value))
			setting_io(s, true, s->value);
	netlink_undrain();
}

static bool changes_settings(const struct program *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->call[i].kind == CALL_setting || p->call[i].kind == CALL_netlink)
			return true;
	return false;
}

/* ---- the kernel's log ---- */

static bool complains(void)
{
	static const char *const words[] = { "WARNING:", "BUG:", "KASAN", "UBSAN:", "Call Trace:",
					     "refcount_t", "INFO: task" };
	char line[2048];
	ssize_t n;

	while ((n = read(log_fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = 0;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strstr(line, words[i])) {
				printf("the kernel complains: %s", line);
				return true;
			}
	}
	return false;
}

/* ---- one after the other ---- */

/* Return: all is well. */
static bool attempt(struct program *p)
{
	static unsigned int changed;
	enum ran how;

	p->number = runs;
	write_last(p);
	how = run(p);
	runs++;
	if (how == KILLED) {
		killed++;
		append(killed_fd, p);
	}
	changed += changes_settings(p);
	if (changed >= 8) {
		settings_restore();
		changed = 0;
	}
	if (how == STUCK || complains()) {
		char text[TEXT];

		program_print(p, text, TEXT);
		printf("%s in or before:\n%s", how == STUCK ? "it cannot be killed" : "seen", text);
		return false;
	}
	return true;
}

static bool try_one(struct program *p)
{
	if (!attempt(p))
		return false;
	if (take(p))
		keep(p);
	return true;
}

/* Of those that are kept, rather the last ones. */
static const struct program *some_kept(void)
{
	if (kept_count > 32 && rnd(2))
		return &kept[kept_count - 1 - rnd(32)];
	return &kept[rnd(kept_count)];
}

static bool explore(uint64_t seconds)
{
	uint64_t step = seconds < 100 ? 10 : seconds / 10, next = step;
	struct program p;

	for (int i = 0; program_seed(i, &p); i++)
		if (!try_one(&p))
			return false;
	growth();
	for (;;) {
		uint64_t passed = (rs_now_ms() - began) / 1000;

		if (passed >= next) {
			growth();
			next += step;
		}
		if (passed >= seconds)
			return true;
		if (rnd(20)) {
			p = *some_kept();
			program_change(&p, some_kept());
		} else {
			program_random(&p);
		}
		if (!try_one(&p))
			return false;
	}
}

/* ---- programs of files ---- */

static int by_number(const void *a, const void *b)
{
	const struct program *p = a, *q = b;

	return p->number < q->number ? -1 : p->number > q->number;
}

static void load(const char *path)
{
	FILE *f = fopen(path, "r");

	if (!f)
		rs_die("%s: %m", path);
	while (kept_count < KEPT && program_parse(f, &kept[kept_count]))
		kept_count += kept[kept_count].n > 0;
	fclose(f);
	qsort(kept, kept_count, sizeof(kept[0]), by_number);
}

static bool repeat(unsigned int times)
{
	while (times--)
		for (unsigned long i = 0; i < kept_count; i++) {
			struct program p = kept[i];

			if (!attempt(&p))
				return false;
			take(&p);
		}
	return true;
}

int main(int argc, char **argv)
{
	unsigned int seconds = 10, times = 1;
	bool replay = false, well;
	int opt;

	rnd_state = time(NULL);
	while ((opt = getopt(argc, argv, "4:6:t:s:o:rn:")) != -1) {
		switch (opt) {
		case '4':
			own4 = optarg;
			break;
		case '6':
			own6 = optarg;
			break;
		case 't':
			seconds = atoi(optarg);
			break;
		case 's':
			rnd_state = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			dir = optarg;
			break;
		case 'r':
			replay = true;
			break;
		case 'n':
			times = atoi(optarg);
			break;
		default:
			rs_die("%s", usage);
		}
	}
	if (!own4 || !own6)
		rs_die("%s", usage);
	for (; argv[optind]; optind++)
		load(argv[optind]);
	if (!netlink_init())
		rs_die("no family rdmastream");
	if (dir) {
		mkdir(dir, 0777);
		last_fd = open_in("last");
		corpus_fd = open_in("corpus");
		killed_fd = open_in("killed");
	}
	log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(log_fd, 0, SEEK_END);
	settings_save();
	netlink_counters(counters);
	began = rs_now_ms();
	printf("seed %lu\n", rnd_state);
	rnd_state = mix(rnd_state);
	guided = run_init();
	printf("%s\n", guided ? "guided by coverage of the module" :
	       "no KCOV: guided by errors and the module's counters alone");
	fflush(stdout);
	well = replay ? repeat(times) : repeat(1) && explore(seconds);
	run_end();
	settings_restore();
	growth();
	summary();
	write_blocks();
	return !well;
}
