/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stream content that is a function of the offset: a byte that is missing, too
 * many or in the wrong place is seen, and where.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

void pattern_fill(uint8_t *to, size_t len, uint64_t seed, uint64_t offset);

/* Return: index of the first wrong byte, or @len. */
size_t pattern_check(const uint8_t *from, size_t len, uint64_t seed,
		     uint64_t offset);

/* Return: at which offset @from would be right, or -1. */
int64_t pattern_locate(const uint8_t *from, size_t len, uint64_t seed);

/* A small generator for sizes; same @state, same sequence. */
uint64_t pattern_random(uint64_t *state);

#endif
