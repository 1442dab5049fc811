// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random programs on random hosts, whose devices, cables and settings change at random:
 * each byte is compared, and each connection must come to its end.  The hosts are network
 * namespaces h0, h1 ... with a device of rs_hca each.  See scenarios/simulate.sh.
 *
 * usage: rs_simulate [-lpv] -s SEED -n STEPS -H HOSTS
 *
 * With virtual time the same seed does the same again.  The last line of the output has
 * a number of all that was seen: it is equal if the runs were.  -l: what the last host says is
 * changed on its way, now and then; -p: on plain TCP.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"
#include "sim.h"

#define SETTLE_US	(600 * 1000000ULL)

int sim_hosts = 2;
bool sim_plain;
int sim_liar = -1;

static uint64_t state, digest = 0xcbf29ce484222325ULL;
static unsigned int wrong;
static bool verbose;
/* The steps: written to a file as they are done, they would take time of the host's. */
static char told[4 << 20];
static size_t n_told;

unsigned int sim_random(unsigned int n)
{
	return pattern_random(&state) % n;
}

unsigned int sim_size(unsigned int most)
{
	unsigned int bits = 1;

	while (1U << bits < most)
		bits++;
	most = 1U << (1 + sim_random(bits));
	return 1 + sim_random(most);
}

uint64_t sim_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* FNV-1a */
static void digest_add(const char *text)
{
	for (; *text; text++)
		digest = (digest ^ (uint8_t)*text) * 0x100000001b3ULL;
}

void sim_note(const char *fmt, ...)
{
	static uint64_t begun;
	char text[256];
	va_list args;
	int n;

	if (!begun)
		begun = sim_now_us();
	n = snprintf(text, sizeof(text), "%llu ", (unsigned long long)(sim_now_us() - begun));
	va_start(args, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, args);
	va_end(args);
	digest_add(text);
	if (verbose)
		printf("%s\n", text);
	else if (n_told < sizeof(told))
		n_told += snprintf(told + n_told, sizeof(told) - n_told, "%s\n", text);
}

void sim_wrong(const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	sim_note("wrong: %s", text);
	printf("wrong: %s\n", text);
	if (!wrong++) {
		world_tell();
		fwrite(told, 1, n_told < sizeof(told) ? n_told : sizeof(told), stdout);
	}
}

/* Mostly no time at all, now and then so long that something is idle. */
static void pause_some(void)
{
	static const unsigned int most_us[] = { 20, 200, 2000, 20000, 200000, 8000000 };
	unsigned int r = sim_random(64), which = r < 1 ? 5 : r < 6 ? 4 : r % 4;
	unsigned int us = sim_random(most_us[which]);
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	if (sim_random(2))
		nanosleep(&ts, NULL);
}

static void step(void)
{
	unsigned int r = sim_random(100);

	conn_accept();
	world_mend();
	if (r < 6)
		conn_open();
	else if (r < 10)
		world_act();
	else if (r == 10 && !sim_random(4))
		world_check();
	else
		conn_act();
	pause_some();
}

int main(int argc, char **argv)
{
	const char *seed = "1";
	bool liar = false;
	int steps = 1000, opt;
	uint64_t begun;

	while ((opt = getopt(argc, argv, "lpvs:n:H:")) != -1) {
		switch (opt) {
		case 'l':
			liar = true;
			break;
		case 'p':
			sim_plain = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 's':
			seed = optarg;
			break;
		case 'n':
			steps = atoi(optarg);
			break;
		case 'H':
			sim_hosts = atoi(optarg);
			break;
		default:
			rs_die("usage: rs_simulate [-lpv] -s SEED -n STEPS -H HOSTS");
		}
	}
	if (sim_hosts < 2 || sim_hosts > SIM_HOSTS)
		rs_die("2 to %d hosts", SIM_HOSTS);
	if (liar)
		sim_liar = sim_hosts - 1;
	state = strtoull(seed, NULL, 0);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	world_init(seed);
	conn_init();
	begun = sim_now_us();
	for (int i = 0; i < steps && !wrong; i++)
		step();
	world_calm();
	if (!conn_settle(SETTLE_US)) {
		sim_wrong("not all connections have ended");
		world_tell();
	}
	printf("%d steps, %llu ms: %u connections, %u failed to connect, %u aborted, %u whole, %llu bytes, %llu unread\n",
	       steps, (unsigned long long)(sim_now_us() - begun) / 1000, conn_sums.opened,
	       conn_sums.failed, conn_sums.aborted, conn_sums.whole,
	       (unsigned long long)conn_sums.bytes, (unsigned long long)conn_sums.unread);
	printf("%u wrong, digest %016llx\n", wrong, (unsigned long long)digest);
	return wrong != 0;
}
