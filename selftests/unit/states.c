// SPDX-License-Identifier: GPL-2.0-only
/* A hash table without the states: a hash of 128 bits stands for each; 0 is an empty slot. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "states.h"

static unsigned __int128 *seen;
static size_t n_slots;
static unsigned int n_seen;

void states_begin(unsigned int bits)
{
	n_slots = (size_t)1 << bits;
	seen = calloc(n_slots, sizeof(*seen));
	assert(seen);
	n_seen = 0;
}

static unsigned __int128 hash_of(const void *state, size_t size)
{
	const unsigned __int128 odd = (unsigned __int128)
		0x9e3779b97f4a7c15ULL << 64 | 0xf39cc0605cedc835ULL;
	unsigned __int128 hash = 0x62b821756295c58dULL;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = 0;

		memcpy(&word, (const char *)state + at, size - at < 8 ? size - at : 8);
		hash = (hash ^ word) * odd;
	}
	return hash;
}

bool states_add(const void *state, size_t size)
{
	unsigned __int128 hash = hash_of(state, size);
	size_t i;

	for (i = (hash >> 64) % n_slots; seen[i]; i = (i + 1) % n_slots)
		if (seen[i] == hash)
			return false;
	seen[i] = hash;
	n_seen++;
	assert(n_seen < n_slots / 4 * 3);
	return true;
}

unsigned int states_end(void)
{
	free(seen);
	return n_seen;
}
