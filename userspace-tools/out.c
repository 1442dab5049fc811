// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables: as narrow as their cells allow.  One that is wider than the terminal
 * is folded: each row takes as many lines as needed, all but the first
 * indented.  What is still too wide, as notes may be, is broken between words.
 */
#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rsctl.h"

#define INDENT	4

struct cell {
	char *text;
	enum paint paint;
};

struct row {
	struct cell *cells;
	char **notes;
	unsigned int n_notes;
};

struct table {
	const struct column *columns;
	unsigned int n_columns;
	unsigned int next;	/* cell to be filled, of the last row */
	struct row *rows;
	size_t n_rows;
	unsigned int *width;
	unsigned int gap;
};

struct table *table_new(const struct column *columns, unsigned int n)
{
	struct table *t = xcalloc(1, sizeof(*t));
	unsigned int i;

	t->columns = columns;
	t->n_columns = n;
	t->next = n;
	t->width = xcalloc(n, sizeof(*t->width));
	for (i = 0; i < n; i++)
		t->width[i] = strlen(columns[i].head);
	return t;
}

static struct row *add_row(struct table *t)
{
	t->rows = realloc(t->rows, (t->n_rows + 1) * sizeof(*t->rows));
	if (!t->rows) {
		complain("out of memory");
		exit(EXIT_FAILED);
	}
	t->next = 0;
	t->rows[t->n_rows] = (struct row){
		.cells = xcalloc(t->n_columns, sizeof(struct cell)),
	};
	return &t->rows[t->n_rows++];
}

static size_t width_of(const char *text);

void table_cell(struct table *t, char *text, enum paint paint)
{
	struct row *row = t->next == t->n_columns ? add_row(t) :
						    &t->rows[t->n_rows - 1];
	unsigned int i = t->next++;

	if (!text)
		text = xprintf("-");
	row->cells[i] = (struct cell){ text, paint };
	if (width_of(text) > t->width[i])
		t->width[i] = width_of(text);
}

void table_num(struct table *t, const struct attrs *a, unsigned int type)
{
	uint64_t val;

	table_cell(t, attr_uint(a, type, &val) ? xprintf("%" PRIu64, val) :
						 NULL, PAINT_NONE);
}

char *human_bytes(uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double val = bytes;
	int i = -1;

	if (opt.numeric || bytes < 1024)
		return xprintf("%" PRIu64, bytes);
	while (val >= 1023.95 && units[i + 1]) {
		val /= 1024;
		i++;
	}
	return xprintf("%.1f%c", val, units[i]);
}

char *human_number(uint64_t val)
{
	static const char units[] = "kMGTPE";
	double num = val;
	int i = -1;

	if (opt.numeric || val < 10000)
		return xprintf("%" PRIu64, val);
	while (num >= 999.95 && units[i + 1]) {
		num /= 1000;
		i++;
	}
	return xprintf("%.1f%c", num, units[i]);
}

/* Eight heights; without UTF-8 less beautiful ones. */
char *spark(const double *vals, unsigned int n)
{
	static const char * const blocks[] = {
		"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586",
		"\u2587", "\u2588",
	};
	static const char plain[] = "_.-:=+*#";
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	char *text = xcalloc(n * 4 + 1, 1), *p = text;
	double most = 0;
	unsigned int i, height;

	for (i = 0; i < n; i++)
		most = vals[i] > most ? vals[i] : most;
	for (i = 0; i < n; i++) {
		height = most > 0 ? vals[i] / most * 7.0 + 0.5 : 0;
		if (vals[i] <= 0)
			*p++ = ' ';
		else if (utf8)
			p = stpcpy(p, blocks[height]);
		else
			*p++ = plain[height];
	}
	return text;
}

/* Places that @text takes: bytes that begin a character of UTF-8. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

void table_bytes(struct table *t, const struct attrs *a, unsigned int type)
{
	uint64_t val;

	table_cell(t, attr_uint(a, type, &val) ? human_bytes(val) : NULL,
		   PAINT_NONE);
}

void table_note(struct table *t, char *text)
{
	struct row *row = &t->rows[t->n_rows - 1];

	row->notes = realloc(row->notes,
			     (row->n_notes + 1) * sizeof(*row->notes));
	if (!row->notes) {
		complain("out of memory");
		exit(EXIT_FAILED);
	}
	row->notes[row->n_notes++] = text;
}

static unsigned int terminal_width(void)
{
	const char *env = getenv("COLUMNS");
	struct winsize ws;

	if (opt.oneline)
		return ~0U;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_col >= 40)
		return ws.ws_col;
	if (env && atoi(env) >= 40)
		return atoi(env);
	return 80;
}

/* Bytes of @text that fit @room places: up to a space, or the first word. */
static size_t words_that_fit(const char *text, unsigned int room)
{
	size_t begin = strspn(text, " "), end = begin, len, next;

	for (next = begin; text[next]; next = end + strspn(text + end, " ")) {
		len = next + strcspn(text + next, " ");
		if (end > begin &&
		    width_of(text) - width_of(text + len) > room)
			break;
		end = len;
	}
	return end;
}

void print_folded(const char *text, unsigned int at, unsigned int indent)
{
	unsigned int room = terminal_width();
	size_t len;

	for (;;) {
		len = words_that_fit(text, room > at ? room - at : 0);
		printf("%.*s", (int)len, text);
		text += len;
		if (!*text)
			return;
		text += strspn(text, " ");
		printf("\n%*s", indent, "");
		at = indent;
	}
}

static unsigned int total_width(const struct table *t)
{
	unsigned int i, sum = 0;

	for (i = 0; i < t->n_columns; i++)
		sum += t->width[i] + (i ? t->gap : 0);
	return sum;
}

/* @at: the column where it begins, if it is the @last of its line */
static void print_cell(const struct table *t, unsigned int i, const char *text,
		       enum paint paint, bool last, unsigned int at)
{
	static const char * const codes[] = {
		[PAINT_GOOD] = "\033[32m",
		[PAINT_WARN] = "\033[33m",
		[PAINT_BAD] = "\033[31m",
	};
	int fill = t->width[i] - width_of(text);
	bool color = opt.color && paint != PAINT_NONE;

	if (t->columns[i].right)
		printf("%*s", fill, "");
	fputs(color ? codes[paint] : "", stdout);
	if (last)
		print_folded(text, at, INDENT);
	else
		fputs(text, stdout);
	fputs(color ? "\033[0m" : "", stdout);
	if (!t->columns[i].right && !last)
		printf("%*s", fill, "");
}

/* How many columns from @i on fit one line, at least one. */
static unsigned int line_end(const struct table *t, unsigned int i,
			     unsigned int room)
{
	unsigned int used = (i ? INDENT : 0) + t->width[i];

	i++;
	while (i < t->n_columns && used + t->gap + t->width[i] <= room)
		used += t->gap + t->width[i++];
	return i;
}

/* @row NULL: the heads. */
static void print_row(const struct table *t, const struct row *row,
		      unsigned int room)
{
	unsigned int i, start, end, at;

	for (start = 0; start < t->n_columns; start = end) {
		end = line_end(t, start, room);
		at = start ? INDENT : 0;
		printf("%*s", at, "");
		for (i = start; i < end; i++) {
			printf("%*s", i > start ? (int)t->gap : 0, "");
			at += i > start ? t->gap : 0;
			print_cell(t, i,
				   row ? row->cells[i].text : t->columns[i].head,
				   row ? row->cells[i].paint : PAINT_NONE,
				   i + 1 == end, at);
			at += t->width[i];
		}
		putchar('\n');
	}
	for (i = 0; row && i < row->n_notes; i++) {
		printf("%*s", INDENT, "");
		print_folded(row->notes[i], INDENT, 2 * INDENT);
		putchar('\n');
	}
}

static void table_free(struct table *t)
{
	struct row *row;
	unsigned int i;

	while (t->n_rows--) {
		row = &t->rows[t->n_rows];
		for (i = 0; i < t->n_columns; i++)
			free(row->cells[i].text);
		free(row->cells);
		while (row->n_notes--)
			free(row->notes[row->n_notes]);
		free(row->notes);
	}
	free(t->rows);
	free(t->width);
	free(t);
}

void table_print(struct table *t)
{
	unsigned int room = terminal_width();
	size_t r;

	t->gap = 2;
	if (total_width(t) > room)
		t->gap = 1;
	if (t->n_rows)
		print_row(t, NULL, room);
	for (r = 0; r < t->n_rows; r++)
		print_row(t, &t->rows[r], room);
	table_free(t);
}
