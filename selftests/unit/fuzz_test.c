// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzers' targets without a fuzzer: the corpus of scripts/fuzz, first unchanged, then with
 * random mutations from a fixed seed, a million rounds in total.
 *
 * corpus/TARGET contains one input per line, in hexadecimal.
 */
#include "fuzz.h"
#include "tap.h"

#include <stdio.h>

#define INPUTS_MAX	1000
#define INPUT_MAX	300

static struct input {
	u8 bytes[INPUT_MAX];
	size_t len;
} inputs[INPUTS_MAX];

static unsigned int n_inputs;
static u64 seed;

static u32 below(u32 n)
{
	return (tap_random(&seed) >> 32) % n;
}

static void read_input(const char *line)
{
	struct input *input = &inputs[n_inputs++];
	unsigned int byte;

	assert(n_inputs <= INPUTS_MAX);
	input->len = 0;
	while (sscanf(line, "%2x", &byte) == 1) {
		assert(input->len < INPUT_MAX);
		input->bytes[input->len++] = byte;
		line += 2;
	}
}

static void read_corpus(const char *target)
{
	char line[2 * INPUT_MAX + 2], path[100];
	FILE *file;

	snprintf(path, sizeof(path), "corpus/%s", target);
	file = fopen(path, "r");
	if (!EXPECT(file))
		return;
	n_inputs = 0;
	while (fgets(line, sizeof(line), file))
		read_input(line);
	fclose(file);
	EXPECT(n_inputs);
}

/* Changes a few bytes, and perhaps replaces the rest with that of another input. */
static void change(struct input *input)
{
	const struct input *other = &inputs[below(n_inputs)];
	unsigned int n = below(4);
	size_t at;

	if (!below(3) && other->len) {
		at = below(other->len);
		memcpy(input->bytes + at, other->bytes + at, other->len - at);
		if (at <= input->len)
			input->len = other->len;
	}
	while (input->len && n--)
		input->bytes[below(input->len)] = below(2) ? below(256) : below(12);
	if (!below(8))
		input->len = below(input->len + 1);
}

static void run_target(const char *name, void (*target)(const u8 *, size_t))
{
	struct input input;
	unsigned int i;

	read_corpus(name);
	for (i = 0; i < n_inputs && !tap_failed(); i++)
		target(inputs[i].bytes, inputs[i].len);
	for (i = 0; i < 113000 && !tap_failed(); i++) {
		input = inputs[below(n_inputs)];
		change(&input);
		target(input.bytes, input.len);
	}
}

#define X(name, max)					\
	static_assert((max) <= INPUT_MAX);		\
	TEST(fuzz__##name)				\
	{						\
		seed = 0x5eed;				\
		run_target(#name, fuzz_##name);		\
	}
FUZZ_TARGETS(X)
#undef X
