/* SPDX-License-Identifier: ISC */
/* Everything that goes wrong in here fails the test that runs. */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/file_path.h"
#include "core/files.h"
#include "core/scripts.h"
#include "core/workspace.h"
#include "tests/unit/files_subject.h"
#include "tests/unit/shell_driver.h"

#define PATIENCE 60000

static void
choose_shell(const char *backend)
{
	if (strcmp(backend, "busybox") == 0)
		shell_driver_choose("/bin/busybox", "sh");
	else
		shell_driver_choose(strcmp(backend, "bash") == 0 ? "/bin/bash" : "/bin/dash", NULL);
}

static void
link_program(const char *directory, const char *name)
{
	static const char *const places[] = { "/usr/bin", "/bin" };
	char *program, *link;
	size_t i;

	link = path_join(directory, name);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		program = path_join(places[i], name);
		if (access(program, X_OK) == 0 && access(link, F_OK) != 0)
			assert_int_equal(symlink(program, link), 0);
		memory_free(program);
	}
	assert_int_equal(access(link, X_OK), 0);
	memory_free(link);
}

/* A directory with a shell and the commands that core/scripts/start.sh names in its loop. */
static char *
make_bare_path(const char *directory)
{
	char *path, *script, *word, *rest;

	path = path_join(directory, "bin");
	assert_int_equal(mkdir(path, 0755), 0);
	link_program(path, "sh");
	script = script_text("start");
	rest = strstr(script, "for name in ");
	assert_non_null(rest);
	rest += strlen("for name in ");
	rest[strcspn(rest, ";")] = '\0';
	while ((word = strsep(&rest, " \\\n\t")) != NULL)
		if (*word != '\0')
			link_program(path, word);
	memory_free(script);
	return path;
}

void
subject_open(struct subject *subject, const char *backend)
{
	const struct option *tables[3] = { conf_options, NULL, NULL };
	struct workspace_setup setup = { 0 };
	char template[] = "/tmp/rws-files-XXXXXX";
	struct error err;

	memset(subject, 0, sizeof(*subject));
	file_reply_init(&subject->reply);
	assert_non_null(mkdtemp(template));
	subject->directory = memory_text(template);
	subject->root = memory_text_format("%s/root", template);
	subject->outside = memory_text_format("%s/outside", template);
	assert_int_equal(mkdir(subject->root, 0755), 0);
	assert_int_equal(mkdir(subject->outside, 0755), 0);
	subject->state = open(template, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	choose_shell(backend);
	if (strcmp(backend, "bare") == 0)
		subject->path = make_bare_path(template);
	shell_driver_set_path(subject->path);
	setup.driver = strcmp(backend, "native") == 0 ? driver_find("local") : &shell_driver;
	tables[1] = setup.driver->kind->options;
	subject->settings = settings_new(tables);
	assert_int_equal(settings_set(subject->settings, "root", subject->root, &err), 0);
	if (strcmp(backend, "native") == 0)
		assert_int_equal(settings_set(subject->settings, "isolation", "none", &err), 0);
	subject->loop = loop_new(&err);
	setup.loop = subject->loop;
	setup.settings = subject->settings;
	setup.login = setup.name = "test";
	setup.instance = "test";
	setup.directory = subject->state;
	subject->workspace = workspace_new(&setup);
	assert_non_null(subject->workspace);
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

void
subject_close(struct subject *subject)
{
	file_reply_free(&subject->reply);
	workspace_free(subject->workspace);
	settings_free(subject->settings);
	loop_free(subject->loop);
	(void)close(subject->state);
	assert_int_equal(nftw(subject->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	shell_driver_set_path(NULL);
	memory_free(subject->path);
	memory_free(subject->directory);
	memory_free(subject->root);
	memory_free(subject->outside);
}

static void
asked(void *argument, struct file_reply *reply, const struct error *err)
{
	struct subject *subject = argument;

	subject->replies++;
	if (err != NULL) {
		subject->err = *err;
	} else if (reply->more && subject->reply.fd < 0) {
		subject->reply.fd = reply->fd;
		reply->fd = -1;
		return;
	} else if (!reply->more) {
		if (reply->fd < 0) {
			reply->fd = subject->reply.fd;
			subject->reply.fd = -1;
		}
		file_reply_free(&subject->reply);
		subject->reply = *reply;
		file_reply_init(reply);
	} else {
		return;
	}
	subject->done = true;
}

static void
give_up(void *argument)
{
	(void)argument;
	fail_msg("no reply within %d s", PATIENCE / 1000);
}

int
subject_ask(struct subject *subject, struct file_request *request)
{
	struct loop_timer *patience;
	struct error err;

	file_reply_free(&subject->reply);
	error_clear(&subject->err);
	subject->replies = 0;
	subject->done = false;
	(void)files_start(workspace_files(subject->workspace), request, asked, subject);
	file_request_free(request);
	assert_int_equal(subject->replies, 0);
	patience = loop_timer_new(subject->loop, give_up, NULL);
	loop_timer_start(patience, PATIENCE);
	while (!subject->done)
		assert_int_equal(loop_dispatch(subject->loop, -1, &err), 0);
	loop_timer_free(patience);
	return subject->err.code == ERROR_NONE ? 0 : -1;
}

struct file_request
subject_request(enum file_verb verb, const char *path)
{
	struct file_request request;

	file_request_init(&request, verb);
	request.path = memory_text(path);
	return request;
}

int
subject_write(struct subject *subject, const char *path, const char *text, unsigned flags)
{
	struct file_request request = subject_request(FILE_COMMIT, path);

	request.flags = flags;
	request.fd = file_content(text, strlen(text), NULL);
	return subject_ask(subject, &request);
}

char *
subject_read(struct subject *subject, const char *path)
{
	struct file_request request = subject_request(FILE_OPEN, path);
	unsigned char *data;
	size_t size;

	request.flags = FILE_WHOLE;
	if (subject_ask(subject, &request) != 0)
		return NULL;
	data = file_content_read(subject->reply.fd, SIZE_MAX / 4, &size, NULL);
	assert_non_null(data);
	assert_int_equal(size, strlen((char *)data));
	return (char *)data;
}

char *
subject_list(struct subject *subject, struct file_request *request)
{
	struct file_entry entry;
	struct file_list *list;
	struct buffer lines;
	uint64_t count = 0;
	char *text;
	int result;

	if (subject_ask(subject, request) != 0)
		return NULL;
	buffer_init(&lines, 16U * 1024U * 1024U);
	list = file_list_open(subject->reply.fd);
	subject->reply.fd = -1;
	while ((result = file_list_next(list, &entry, NULL)) == 1) {
		(void)buffer_append_format(&lines, "%s\n", entry.path);
		count++;
	}
	assert_int_equal(result, 0);
	assert_int_equal(count, subject->reply.count);
	file_list_free(list);
	text = memory_text_bounded(buffer_data(&lines), lines.length);
	buffer_free(&lines);
	return text;
}

char *
subject_path(const struct subject *subject, const char *path)
{
	return memory_text_format("%s/%s", subject->root, path);
}

struct file_request
subject_request_two(enum file_verb verb, const char *path, const char *other, unsigned flags)
{
	struct file_request request = subject_request(verb, path);

	request.other = memory_text(other);
	request.flags = flags;
	return request;
}

int
subject_try(struct subject *subject, enum file_verb verb, const char *path, unsigned flags)
{
	struct file_request request = subject_request(verb, path);

	request.flags = flags;
	return subject_ask(subject, &request);
}

void
subject_expect_error(struct subject *subject, int result, enum error_code code)
{
	assert_int_equal(result, -1);
	assert_string_equal(error_kind(subject->err.code)->name, error_kind(code)->name);
	assert_true(strlen(subject->err.message) > 0);
}

void
subject_expect_content(struct subject *subject, const char *path, const char *text)
{
	char *content;

	content = subject_read(subject, path);
	assert_non_null(content);
	assert_string_equal(content, text);
	memory_free(content);
}

void
subject_expect_list(struct subject *subject, struct file_request request, const char *lines)
{
	char *text;

	text = subject_list(subject, &request);
	assert_non_null(text);
	assert_string_equal(text, lines);
	memory_free(text);
}

/* Makes something under the root by a shell command. */
void
subject_prepare(const struct subject *subject, const char *command)
{
	pid_t pid;
	int status;

	pid = fork();
	if (pid == 0) {
		if (chdir(subject->root) == 0)
			(void)execl("/bin/sh", "sh", "-ec", command, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static const char *backend;

int
subject_set_up(void **state)
{
	struct subject *subject;

	subject = memory_zeroed(1, sizeof(*subject));
	subject_open(subject, backend);
	*state = subject;
	return 0;
}

int
subject_tear_down(void **state)
{
	subject_close(*state);
	memory_free(*state);
	return 0;
}

int
subject_run_tests(const struct CMUnitTest *tests, size_t count)
{
	static const char *const backends[] = { "native", "dash", "bash", "busybox", "bare" };
	int failed = 0;
	size_t i;

	(void)signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		backend = backends[i];
		print_message("# %s\n", backend);
		failed += _cmocka_run_group_tests(backend, tests, count, NULL, NULL);
	}
	return failed;
}
