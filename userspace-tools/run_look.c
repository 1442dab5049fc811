// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kind of program is to be run?  Read from the file, as execve()
 * and the dynamic linker will read it; nothing is run.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rsctl.h"
#include "run.h"

#define SCRIPT_DEPTH	4	/* a script's interpreter may be a script */
#define NOTES_MAX	4096

/* What is to be known of an ELF file. */
struct elf {
	unsigned char class;
	uint16_t machine;
	bool go;
	char interp[PATH_MAX];	/* "": none */
};

int run_failed(const char *path, int err)
{
	complain("%s: %s", path, strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

char *run_find(const char *name)
{
	const char *dir = getenv("PATH"), *end;
	char *path, *second = NULL;	/* best: the first that can't be executed */

	if (strchr(name, '/'))
		return xprintf("%s", name);
	for (dir = dir ? dir : "/usr/bin:/bin"; ; dir = end + 1) {
		end = strchrnul(dir, ':');
		path = end == dir ? xprintf("./%s", name) :
		       xprintf("%.*s/%s", (int)(end - dir), dir, name);
		if (is_file(path) && !access(path, X_OK)) {
			free(second);
			return path;
		}
		if (!second && is_file(path))
			second = path;
		else
			free(path);
		if (!*end)
			return second;
	}
}

/* Nothing is preloaded into a program that gains rights, and most filters take them. */
static int check_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return run_failed(path, errno);
	if (st.st_mode & (S_ISUID | S_ISGID)) {
		complain("%s is setuid or setgid; \"rsctl run\" would take away its privileges",
			 path);
		return EXIT_CANNOT_RUN;
	}
	if (getxattr(path, "security.capability", NULL, 0) > 0) {
		complain("%s has file capabilities; \"rsctl run\" would take away its privileges",
			 path);
		return EXIT_CANNOT_RUN;
	}
	return EXIT_OK;
}

/* ---- ELF ---- */

static bool notes_of_go(const char *notes, size_t len, size_t align)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *n = (const void *)notes;
		size_t name = (n->n_namesz + align - 1) & -align;
		size_t desc = (n->n_descsz + align - 1) & -align;

		if (name > len || desc > len || sizeof(*n) + name + desc > len)
			return false;
		if (n->n_namesz == 4 && !memcmp(n + 1, "Go\0", 4))
			return true;
		notes += sizeof(*n) + name + desc;
		len -= sizeof(*n) + name + desc;
	}
	return false;
}

static void read_segment(int fd, const ElfW(Phdr) *ph, struct elf *elf)
{
	_Alignas(8) char notes[NOTES_MAX];
	size_t len;

	switch (ph->p_type) {
	case PT_INTERP:
		len = ph->p_filesz < PATH_MAX - 1 ? ph->p_filesz : PATH_MAX - 1;
		if (pread(fd, elf->interp, len, ph->p_offset) != (ssize_t)len)
			strcpy(elf->interp, "?");
		break;
	case PT_NOTE:
		len = ph->p_filesz < NOTES_MAX ? ph->p_filesz : NOTES_MAX;
		if (pread(fd, notes, len, ph->p_offset) == (ssize_t)len)
			elf->go |= notes_of_go(notes, len, ph->p_align == 8 ? 8 : 4);
		break;
	}
}

/* Return: false if it is no ELF file. */
static bool read_elf(int fd, struct elf *elf)
{
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) ph;
	int i;

	memset(elf, 0, sizeof(*elf));
	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG))
		return false;
	elf->class = ehdr.e_ident[EI_CLASS];
	elf->machine = ehdr.e_machine;
	if (elf->class != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return true;	/* another layout */
	for (i = 0; i < ehdr.e_phnum; i++) {
		off_t at = ehdr.e_phoff + (off_t)i * ehdr.e_phentsize;

		if (pread(fd, &ph, sizeof(ph), at) != sizeof(ph))
			break;
		read_segment(fd, &ph, elf);
	}
	return true;
}

static void read_self(struct elf *self)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !read_elf(fd, self))
		memset(self, 0, sizeof(*self));
	if (fd >= 0)
		close(fd);
}

static int look_elf(const char *path, const struct elf *elf, struct look *look)
{
	struct elf self;

	read_self(&self);
	if (self.class && elf->class != self.class) {
		complain("%s has another word size; only \"rsctl cgroup\" works for it",
			 path);
		return EXIT_CANNOT_RUN;
	}
	look->fixed = !*elf->interp;
	look->preload = !strcmp(elf->interp, self.interp) && !elf->go &&
			elf->machine == self.machine && !look->fixed;
	if (elf->machine != self.machine)
		look->why = "is for another machine";
	else if (look->fixed)
		look->why = "is statically linked";
	else if (elf->go)
		look->why = "is a Go program";
	else
		look->why = look->preload ? "is dynamically linked" :
					    "uses another dynamic linker";
	return EXIT_OK;
}

/* ---- scripts ---- */

static int look_file(const char *path, int depth, struct look *look);

/* @words: behind "env", which starts the first that is neither option nor NAME=. */
static char *find_behind_env(char *words)
{
	char *word;

	while ((word = strsep(&words, " \t")))
		if (*word && *word != '-' && !strchr(word, '='))
			return run_find(word);
	return NULL;
}

/* @line: what follows "#!" */
static int look_script(char *line, int depth, struct look *look)
{
	char *end, *name, *program = NULL;
	int ret;

	line[strcspn(line, "\n")] = '\0';
	line += strspn(line, " \t");
	end = line + strcspn(line, " \t");
	if (*end)
		*end++ = '\0';
	if (!*line || depth == SCRIPT_DEPTH)
		return EXIT_OK;		/* execve() will have its say */
	ret = look_file(line, depth + 1, look);
	name = strrchr(line, '/');
	if (!ret && !strcmp(name ? name + 1 : line, "env"))
		program = find_behind_env(end);
	if (program)
		ret = look_file(program, depth + 1, look);
	free(program);
	return ret;
}

/* May a shell run it?  As bash, but only the first bytes: a program of another machine has NULs. */
static bool is_text(int fd)
{
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n > 0 && !memchr(text, '\0', n);
}

bool run_is_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool text;

	if (fd < 0)
		return false;
	text = is_text(fd);
	close(fd);
	return text;
}

static int look_file(const char *path, int depth, struct look *look)
{
	char text[256] = "";
	struct elf elf;
	int fd, ret;

	ret = check_rights(path);
	if (ret)
		return ret;
	free(look->what);
	*look = (struct look){ .why = "has an unknown format", .what = xprintf("%s", path) };
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		look->why = "cannot be read";
		return EXIT_OK;
	}
	if (read_elf(fd, &elf))
		ret = look_elf(path, &elf, look);
	else if (pread(fd, text, sizeof(text) - 1, 0) > 2 && !memcmp(text, "#!", 2))
		ret = look_script(text + 2, depth, look);
	else if (!depth && is_text(fd))
		ret = look_file(_PATH_BSHELL, depth + 1, look);
	close(fd);
	return ret;
}

int run_look(const char *path, struct look *look)
{
	*look = (struct look){ 0 };
	return look_file(path, 0, look);
}
