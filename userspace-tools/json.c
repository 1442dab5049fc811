// SPDX-License-Identifier: GPL-2.0-only
/*
 * JSON on stdout, indented with -p: values, or in their place a JSON schema of them.  So
 * the calls that write a value are the only place that knows its key and its type.
 */
#include <inttypes.h>
#include <linux/genetlink.h>
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

static void put(const char *key, const char *val)
{
	element(key);
	quoted(val);
}

/* ---- the schema ---- */

#define LEVELS_MAX	4
#define KEYS_MAX	32

/* An object or array whose type is being written. */
static struct level {
	bool array;
	unsigned int n;
	const char *keys[KEYS_MAX];	/* of an object: all are required */
} levels[LEVELS_MAX];

static unsigned int n_levels;
static bool schema;
static const char *outermost;	/* key of what is in no level */

void json_schema(bool on, const char *key)
{
	schema = on;
	outermost = key;
}

/* Where the type of @key is to be written. */
static const char *place(const char *key)
{
	struct level *l = &levels[n_levels - 1];

	if (!n_levels)
		return outermost;
	if (l->array)
		return "items";
	if (l->n == KEYS_MAX) {
		complain("schema: too many keys");
		exit(EXIT_FAILED);
	}
	return l->keys[l->n++] = key;
}

static void type_begin(const char *key, const char *type)
{
	begin(place(key), '{');
	put("type", type);
}

static void type_or_null(const char *key, const char *type)
{
	begin(place(key), '{');
	begin("type", '[');
	put(NULL, type);
	put(NULL, "null");
	end(']');
}

/* @val: what stands in place of a value.  If it is NULL, values may be null. */
static void type_like(const char *key, const char *type, const void *val)
{
	if (val)
		type_begin(key, type);
	else
		type_or_null(key, type);
}

static void enter(bool array)
{
	if (n_levels == LEVELS_MAX) {
		complain("schema: too deep");
		exit(EXIT_FAILED);
	}
	levels[n_levels++] = (struct level){ .array = array };
}

static void leave(void)
{
	const struct level *l = &levels[--n_levels];
	unsigned int i;

	if (!l->array) {
		end('}');
		begin("required", '[');
		for (i = 0; i < l->n; i++)
			put(NULL, l->keys[i]);
		end(']');
	}
	end('}');
}

/* ---- values ---- */

void json_array(void)
{
	json_array_in(NULL);
}

void json_array_in(const char *key)
{
	if (schema) {
		type_begin(key, "array");
		enter(true);
	} else {
		begin(key, '[');
	}
}

void json_array_end(void)
{
	if (schema)
		leave();
	else
		end(']');
}

void json_object(const char *key)
{
	if (schema) {
		type_begin(key, "object");
		begin("properties", '{');
		enter(false);
	} else {
		begin(key, '{');
	}
}

void json_object_end(void)
{
	if (schema)
		leave();
	else
		end('}');
}

static void put_null(const char *key)
{
	element(key);
	fputs("null", stdout);
}

void json_str(const char *key, const char *val)
{
	if (schema) {
		type_like(key, "string", val);
		end('}');
	} else if (val) {
		put(key, val);
	} else {
		put_null(key);
	}
}

void json_take(const char *key, char *val)
{
	json_str(key, val);
	free(val);
}

void json_choice(const char *key, const char *val, const char *const *all)
{
	if (!schema) {
		put(key, val);
		return;
	}
	begin(place(key), '{');
	begin("enum", '[');
	while (*all)
		put(NULL, *all++);
	end(']');
	end('}');
}

void json_uint(const char *key, const uint64_t *val)
{
	if (schema) {
		type_like(key, "integer", val);
		element("minimum");
		putchar('0');
		end('}');
	} else if (val) {
		element(key);
		printf("%" PRIu64, *val);
	} else {
		put_null(key);
	}
}

void json_bool(const char *key, bool val)
{
	if (schema) {
		type_begin(key, "boolean");
		end('}');
	} else {
		element(key);
		fputs(val ? "true" : "false", stdout);
	}
}

void json_double(const char *key, const double *val)
{
	if (schema) {
		type_like(key, "number", val);
		end('}');
	} else if (val) {
		element(key);
		printf("%.3f", *val);
	} else {
		put_null(key);
	}
}

/* ---- attributes ---- */

void json_attr(const char *key, const struct attrs *a, unsigned int type)
{
	uint64_t val;

	json_uint(key, attr_uint(a, type, &val) ? &val : NULL);
}

void json_attr_str(const char *key, const struct attrs *a, unsigned int type)
{
	json_str(key, attr_str(a, type));
}

void json_attr_reason(const char *key, const struct attrs *a, unsigned int type)
{
	json_take(key, attr_reason(a, type));
}

void json_attr_word(const char *key, const struct attrs *a, unsigned int type, int list)
{
	const char *word;
	uint32_t i;

	if (!schema) {
		json_take(key, attr_word(a, type, list));
		return;
	}
	begin(place(key), '{');
	begin("enum", '[');
	for (i = 0; word_at(list, i, &word); i++)
		if (word)
			put(NULL, word);
	put_null(NULL);
	end(']');
	end('}');
}

void json_attr_id(const char *key, const struct attrs *a, unsigned int type)
{
	if (!schema) {
		json_take(key, attr_hex(a, type));
		return;
	}
	type_or_null(key, "string");
	put("pattern", "^[0-9a-f]{32}$");
	end('}');
}

/* @attr: an endpoint; @port: with it */
static void put_endpoint(const char *key, const struct nlattr *attr, bool port)
{
	if (!schema) {
		json_take(key, endpoint_of(attr, port));
		return;
	}
	type_or_null(key, "string");
	put("description", port ? "ADDRESS:PORT, for IPv6 [ADDRESS]:PORT" : "ADDRESS");
	end('}');
}

void json_attr_endpoint(const char *key, const struct attrs *a, unsigned int type)
{
	put_endpoint(key, a->tb[type], true);
}

void json_attr_address(const char *key, const struct attrs *a, unsigned int type)
{
	put_endpoint(key, a->tb[type], false);
}

void json_address(const struct nlattr *attr)
{
	put_endpoint(NULL, attr, false);
}

void json_counts(const char *key, const struct attrs *a, unsigned int type)
{
	const struct nlattr *attr = a->tb[type];
	const uint32_t *count = attr ? mnl_attr_get_payload(attr) : NULL;
	size_t i, n = attr ? mnl_attr_get_payload_len(attr) / sizeof(*count) : 0;
	uint64_t val = 0;

	json_array_in(key);
	if (schema)
		json_uint(NULL, &val);
	for (i = 0; i < n; i++) {
		val = count[i];
		json_uint(NULL, &val);
	}
	json_array_end();
}

void json_list(const char *key, const struct attrs *a, unsigned int type,
	       void (*item)(const struct nlattr *attr))
{
	const struct nlattr *attr;

	json_array_in(key);
	if (schema) {
		item(NULL);
	} else if (a->msg) {
		each_attr(attr, a->msg, type)
			item(attr);
	} else if (a->nest) {
		mnl_attr_for_each_nested(attr, a->nest)
			if (mnl_attr_get_type(attr) == type)
				item(attr);
	}
	json_array_end();
}
