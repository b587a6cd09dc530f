/* SPDX-License-Identifier: ISC */
/*
 * Starting our own processes. The title is argv[0], padded so that it can be rewritten in place:
 * glibc has no setproctitle.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/process.h"

#define TITLE_MAX 200
#define CHILD_FLAG "-P"
#define CHILD_ARGUMENTS 5
#define EXIT_CANNOT_EXEC 126

static struct {
	char *area;
	size_t size;
} title;

/* Variables a child keeps: where programs are, the time zone, and what the sanitizers read. */
static const char *const kept_variables[] = {
	"PATH",
	"TZ",
	"ASAN_OPTIONS",
	"LSAN_OPTIONS",
	"UBSAN_OPTIONS",
};

int
process_open_program(const char *name, struct error *err)
{
	char path[4096], *slash;
	ssize_t length;
	int fd;

	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length < 0)
		return error_system(err, errno, "read /proc/self/exe");
	path[length] = '\0';
	if (name != NULL) {
		slash = strrchr(path, '/');
		if (slash == NULL || (size_t)(slash - path) + strlen(name) + 2 > sizeof(path))
			return error_set(
			    err, ERROR_INVALID, "no place for %s beside %s", name, path);
		memcpy(slash + 1, name, strlen(name) + 1);
		fd = open(path, O_PATH | O_CLOEXEC);
	} else {
		fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	}
	if (fd < 0)
		return error_system(err, errno, "open %s", path);
	return fd;
}

static char **
make_environment(void)
{
	const char *value;
	char **environment, *entry;
	size_t i, count;

	environment = memory_zeroed(1, sizeof(*environment));
	count = 0;
	for (i = 0; i < sizeof(kept_variables) / sizeof(kept_variables[0]); i++) {
		value = getenv(kept_variables[i]);
		if (value == NULL)
			continue;
		entry = memory_text_format("%s=%s", kept_variables[i], value);
		environment = memory_list_add(environment, count++, entry);
		memory_free(entry);
	}
	return environment;
}

/* In the child, between fork and exec: only calls that are safe there. */
static void
become_child(int program, int control, char *const *argv, char *const *environment)
{
	sigset_t none;
	int null, stays;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(EXIT_CANNOT_EXEC);
	/* program might be descriptor 3: move it out of the way first. */
	stays = fcntl(program, F_DUPFD_CLOEXEC, PROCESS_CONTROL_FD + 1);
	control = fcntl(control, F_DUPFD_CLOEXEC, PROCESS_CONTROL_FD + 1);
	if (stays < 0 || control < 0 || dup2(control, PROCESS_CONTROL_FD) < 0)
		_exit(EXIT_CANNOT_EXEC);
	/*
	 * All above the control socket closes at exec;
	 * the program's descriptor has to live until then.
	 */
	if (close_range(PROCESS_CONTROL_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
		_exit(EXIT_CANNOT_EXEC);
	(void)execveat(stays, "", argv, environment, AT_EMPTY_PATH);
	_exit(EXIT_CANNOT_EXEC);
}

int
process_start(int program, const char *role, const char *name, const struct process_user *user,
    pid_t *pid, int *control, struct error *err)
{
	char padded[TITLE_MAX + 1], ids[48], logging[16], flag[] = CHILD_FLAG, *copy;
	char *argv[CHILD_ARGUMENTS + 1], **environment;
	int pair[2];

	if (descriptor_pair(pair, err) != 0)
		return -1;
	(void)snprintf(padded, sizeof(padded), "%-*s", TITLE_MAX, name);
	(void)snprintf(ids, sizeof(ids), "%ju:%ju", (uintmax_t)user->uid, (uintmax_t)user->gid);
	(void)snprintf(logging, sizeof(logging), "%d:%d", (int)log_level(), (int)log_format());
	copy = memory_text(role);
	argv[0] = padded;
	argv[1] = flag;
	argv[2] = copy;
	argv[3] = ids;
	argv[4] = logging;
	argv[5] = NULL;
	environment = make_environment();
	*pid = fork();
	if (*pid == 0)
		become_child(program, pair[1], argv, environment);
	memory_free(copy);
	memory_list_free(environment);
	(void)close(pair[1]);
	if (*pid < 0) {
		(void)close(pair[0]);
		return error_system(err, errno, "fork for %s", role);
	}
	*control = pair[0];
	return 0;
}

/* "A:B" as process_start wrote it, both at most max. */
static int
parse_pair(const char *text, int64_t max, int64_t *first, int64_t *second)
{
	struct error err;
	const char *colon;
	char *head;
	int result;

	colon = strchr(text, ':');
	if (colon == NULL)
		return -1;
	head = memory_text_bounded(text, (size_t)(colon - text));
	result = number_parse(head, 0, max, first, &err);
	memory_free(head);
	return result == 0 ? number_parse(colon + 1, 0, max, second, &err) : -1;
}

const char *
process_enter(int argc, char **argv, struct process_user *user)
{
	static char role[32];
	int64_t uid, gid, level, format;

	if (argc != CHILD_ARGUMENTS || strcmp(argv[1], CHILD_FLAG) != 0 ||
	    strlen(argv[2]) >= sizeof(role) || parse_pair(argv[3], UINT32_MAX, &uid, &gid) != 0 ||
	    parse_pair(argv[4], LOG_LEVEL_DEBUG, &level, &format) != 0)
		return NULL;
	user->uid = (uid_t)uid;
	user->gid = (gid_t)gid;
	memcpy(role, argv[2], strlen(argv[2]) + 1);
	title.area = argv[0];
	title.size = (size_t)(argv[4] + strlen(argv[4]) + 1 - argv[0]);
	(void)prctl(PR_SET_NAME, role);
	log_open(role, (enum log_level)level, format == 0 ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON);
	return role;
}

void
process_set_title(const char *format, ...)
{
	va_list arguments;
	char text[TITLE_MAX + 1];
	size_t length;

	if (title.area == NULL)
		return;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	length = strlen(text);
	if (length >= title.size)
		length = title.size - 1;
	memset(title.area, 0, title.size);
	memcpy(title.area, text, length);
}
