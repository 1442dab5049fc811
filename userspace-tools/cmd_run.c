// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl run: start a program with the preload library, and say clearly where
 * the dynamic linker would ignore it without a word.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rsctl.h"

#define LIBRARY		"librdmastream-preload.so"
#define SCRIPT_DEPTH	4	/* a script's interpreter may be a script */

/* Beside rsctl if it is there, else where it is installed. */
static char *find_library(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *path, *slash;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		path = xprintf("%.*s/" LIBRARY, (int)(slash - self), self);
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	path = xprintf("%s/" LIBRARY, LIBDIR);
	if (!access(path, R_OK))
		return path;
	complain("%s not found", path);
	free(path);
	return NULL;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp() looks for it. */
static char *find_program(const char *name)
{
	const char *dir = getenv("PATH"), *end;
	char *path;

	if (strchr(name, '/'))
		return xprintf("%s", name);
	for (dir = dir ? dir : "/usr/bin:/bin"; ; dir = end + 1) {
		end = strchrnul(dir, ':');
		path = end == dir ? xprintf("./%s", name) :
		       xprintf("%.*s/%s", (int)(end - dir), dir, name);
		if (is_file(path))
			return path;
		free(path);
		if (!*end)
			return NULL;
	}
}

/* Programs with more rights than their caller: the linker preloads nothing. */
static int check_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		complain("%s: %s", path, strerror(errno));
		return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (st.st_mode & (S_ISUID | S_ISGID)) {
		complain("%s is setuid or setgid: no library can be preloaded",
			 path);
		return EXIT_CANNOT_RUN;
	}
	if (getxattr(path, "security.capability", NULL, 0) > 0) {
		complain("%s has file capabilities: no library can be preloaded",
			 path);
		return EXIT_CANNOT_RUN;
	}
	return EXIT_OK;
}

static bool has_interp(int fd, const Elf64_Ehdr *ehdr)
{
	Elf64_Phdr phdr;
	int i;

	for (i = 0; i < ehdr->e_phnum; i++) {
		off_t at = ehdr->e_phoff + (off_t)i * ehdr->e_phentsize;

		if (pread(fd, &phdr, sizeof(phdr), at) != sizeof(phdr))
			return false;
		if (phdr.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static int check_elf(int fd, const char *path, const Elf64_Ehdr *ehdr)
{
	int native = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

	if (ehdr->e_ident[EI_CLASS] != native) {
		complain("%s is for another word size than %s", path, LIBRARY);
		return EXIT_CANNOT_RUN;
	}
	if (native == ELFCLASS64 && !has_interp(fd, ehdr)) {
		complain("%s is statically linked: no library can be preloaded",
			 path);
		return EXIT_CANNOT_RUN;
	}
	return EXIT_OK;
}

static int check_program(const char *path, int depth);

/* @line: what follows "#!" */
static int check_script(char *line, int depth)
{
	line += strspn(line, " \t");
	line[strcspn(line, " \t\n")] = '\0';
	if (!*line || depth == SCRIPT_DEPTH)
		return EXIT_OK;		/* execve() will have its say */
	return check_program(line, depth + 1);
}

static int check_program(const char *path, int depth)
{
	union {
		Elf64_Ehdr ehdr;
		char text[256];
	} head = { .text = "" };
	ssize_t n;
	int fd, ret;

	ret = check_rights(path);
	if (ret)
		return ret;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return EXIT_OK;		/* executable, but not readable */
	n = read(fd, head.text, sizeof(head.text) - 1);
	if (n >= (ssize_t)sizeof(head.ehdr) &&
	    !memcmp(head.ehdr.e_ident, ELFMAG, SELFMAG))
		ret = check_elf(fd, path, &head.ehdr);
	else if (n > 2 && !memcmp(head.text, "#!", 2))
		ret = check_script(head.text + 2, depth);
	close(fd);
	return ret;
}

static int set_preload(char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *all;

	if (strpbrk(library, ": ")) {
		complain("%s: the linker takes no path with a space or colon",
			 library);
		return EXIT_FAILED;
	}
	all = old && *old ? xprintf("%s:%s", library, old) :
			    xprintf("%s", library);
	setenv("LD_PRELOAD", all, 1);
	free(all);
	return EXIT_OK;
}

int cmd_run(int argc, char **argv)
{
	char *program, *library;
	int ret;

	if (argc > 1 && !strcmp(argv[1], "--")) {
		argc--;
		argv++;
	}
	if (argc < 2) {
		complain("run what?");
		return EXIT_USAGE;
	}
	if (argv[1][0] == '-') {
		complain("run has no option \"%s\"", argv[1]);
		return EXIT_USAGE;
	}
	program = find_program(argv[1]);
	if (!program) {
		complain("%s: not found", argv[1]);
		return EXIT_NOT_FOUND;
	}
	ret = check_program(program, 0);
	if (ret)
		return ret;
	library = find_library();
	if (!library || set_preload(library))
		return EXIT_FAILED;
	execv(program, argv + 1);
	complain("%s: %s", program, strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
