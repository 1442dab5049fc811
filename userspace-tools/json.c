// SPDX-License-Identifier: GPL-2.0-only
/* JSON on stdout, indented with -p. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rsctl.h"

static unsigned int depth;
static bool first = true;	/* nothing written at this depth yet */

static void indent(void)
{
	if (opt.pretty)
		printf("\n%*s", (int)(4 * depth), "");
}

static void quoted(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < ' ')
			printf("\\u%04x", *s);
		else
			putchar(*s);
	}
	putchar('"');
}

static void element(const char *key)
{
	if (!first)
		putchar(',');
	first = false;
	if (depth)
		indent();
	if (key) {
		quoted(key);
		fputs(opt.pretty ? ": " : ":", stdout);
	}
}

static void begin(const char *key, char bracket)
{
	element(key);
	putchar(bracket);
	depth++;
	first = true;
}

static void end(char bracket)
{
	depth--;
	if (!first)
		indent();
	putchar(bracket);
	first = false;
	if (!depth) {
		putchar('\n');
		first = true;
	}
}

void json_array(void)
{
	begin(NULL, '[');
}

void json_array_in(const char *key)
{
	begin(key, '[');
}

void json_array_end(void)
{
	end(']');
}

void json_object(const char *key)
{
	begin(key, '{');
}

void json_object_end(void)
{
	end('}');
}

void json_str(const char *key, const char *val)
{
	element(key);
	if (val)
		quoted(val);
	else
		fputs("null", stdout);
}

void json_take(const char *key, char *val)
{
	json_str(key, val);
	free(val);
}

void json_uint(const char *key, const uint64_t *val)
{
	element(key);
	if (val)
		printf("%" PRIu64, *val);
	else
		fputs("null", stdout);
}

void json_bool(const char *key, bool val)
{
	element(key);
	fputs(val ? "true" : "false", stdout);
}

void json_double(const char *key, double val)
{
	element(key);
	printf("%.3f", val);
}

void json_attr(const char *key, const struct attrs *a, unsigned int type)
{
	uint64_t val;

	json_uint(key, attr_uint(a, type, &val) ? &val : NULL);
}
