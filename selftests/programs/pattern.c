// SPDX-License-Identifier: GPL-2.0-only
#include "pattern.h"

#include <string.h>

#define GOLDEN 0x9e3779b97f4a7c15ULL

static uint64_t word_at(uint64_t seed, uint64_t offset)
{
	uint64_t w = (offset / 8 + seed) * GOLDEN;

	return w ^ (w >> 32);
}

static uint8_t byte_at(uint64_t seed, uint64_t offset)
{
	return word_at(seed, offset) >> (offset % 8 * 8);
}

void pattern_fill(uint8_t *to, size_t len, uint64_t seed, uint64_t offset)
{
	size_t i = 0;

	for (; i < len && (offset + i) % 8; i++)
		to[i] = byte_at(seed, offset + i);
	for (; i + 8 <= len; i += 8) {
		uint64_t w = word_at(seed, offset + i);

		memcpy(to + i, &w, 8);
	}
	for (; i < len; i++)
		to[i] = byte_at(seed, offset + i);
}

static size_t first_difference(const uint8_t *from, size_t len, uint64_t seed,
			       uint64_t offset)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (from[i] != byte_at(seed, offset + i))
			break;
	return i;
}

size_t pattern_check(const uint8_t *from, size_t len, uint64_t seed,
		     uint64_t offset)
{
	size_t head = offset % 8 ? 8 - offset % 8 : 0, i;

	if (head > len)
		head = len;
	i = first_difference(from, head, seed, offset);
	if (i < head)
		return i;
	for (; i + 8 <= len; i += 8) {
		uint64_t w = word_at(seed, offset + i);

		if (memcmp(from + i, &w, 8))
			break;
	}
	return i + first_difference(from + i, len - i, seed, offset + i);
}

uint64_t pattern_random(uint64_t *state)
{
	uint64_t x = *state += GOLDEN;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The inverse of byte_at()'s words. */
static uint64_t offset_of(uint64_t seed, uint64_t w)
{
	uint64_t inverse = GOLDEN;	/* right in its low three bits */

	for (int i = 0; i < 5; i++)
		inverse *= 2 - GOLDEN * inverse;
	w ^= w >> 32;
	return (w * inverse - seed) * 8;
}

int64_t pattern_locate(const uint8_t *from, size_t len, uint64_t seed)
{
	for (size_t at = 0; at < 8 && at + 16 <= len; at++) {
		uint64_t w, offset;

		memcpy(&w, from + at, 8);
		offset = offset_of(seed, w);
		if (offset >= at && offset < 1ULL << 48 &&
		    pattern_check(from + at, 16, seed, offset) == 16)
			return offset - at;
	}
	return -1;
}
