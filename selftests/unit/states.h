/* SPDX-License-Identifier: GPL-2.0-only */
/* The states that a search of all orders of events has come by. */
#ifndef RSTREAM_STATES_H
#define RSTREAM_STATES_H

#include <stdbool.h>
#include <stddef.h>

/* Forgets those of the search before.  There is room for 3/4 of 2^@bits. */
void states_begin(unsigned int bits);

/* Is it new?  All of its @size bytes count, so padding must be zero.  Then it is not any more. */
bool states_add(const void *state, size_t size);

/* Return: how many there were */
unsigned int states_end(void);

#endif
