/* SPDX-License-Identifier: ISC */
/* Opening drivers, moving bytes and waiting, for the contract tests. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/wrapped.h"
#include "tests/contract/harness.h"

#define PATIENCE 60000
#define SETTLE_TIME 200
#define CONTENT_MAX (1024U * 1024U)

static const struct driver *chosen_driver;
static char *const *chosen_settings;

void
contract_choose(const char *driver, char *const *settings)
{
	chosen_driver = driver_find(driver);
	chosen_settings = settings;
	if (chosen_driver != NULL)
		return;
	fprintf(stderr, "there is no driver %s\n", driver);
	exit(64);
}

const struct driver *
contract_driver(void)
{
	return chosen_driver;
}

bool
contract_supports(unsigned bits)
{
	return (chosen_driver->kind->supports & bits) == bits;
}

const char *
contract_setting(const char *name)
{
	size_t i, length = strlen(name);

	for (i = 0; chosen_settings[i] != NULL; i++)
		if (strncmp(chosen_settings[i], name, length) == 0 &&
		    chosen_settings[i][length] == '=')
			return chosen_settings[i] + length + 1;
	return NULL;
}

static void
sandbox_lost(void *argument, const struct error *err)
{
	struct contract *contract = argument;

	contract->lost++;
	contract->connected = false;
	contract->failure = *err;
}

static void
open_driver(struct contract *contract)
{
	struct driver_context context = {
		.loop = contract->loop,
		.settings = contract->settings,
		.instance = contract->instance,
		.login = "contract",
		.state_directory = contract->state_directory,
		.lost = sandbox_lost,
		.argument = contract,
	};
	struct error err;

	contract->sandbox = contract->driver->open(&context, &err);
	if (contract->sandbox == NULL)
		fail_msg("open: %s", err.message);
}

static void
load_settings(struct contract *contract)
{
	const struct option *tables[] = { contract->driver->kind->options, NULL };
	static const struct option *kept[2];
	struct error err;
	char *name, *value;
	size_t i;

	memcpy(kept, tables, sizeof(kept));
	contract->settings = settings_new(kept);
	for (i = 0; chosen_settings[i] != NULL; i++) {
		name = memory_text(chosen_settings[i]);
		value = strchr(name, '=');
		if (value == NULL) {
			fail_msg("not NAME=VALUE: %s", name);
			return;
		}
		*value++ = '\0';
		if (settings_set(contract->settings, name, value, &err) != 0)
			fail_msg("%s: %s", chosen_settings[i], err.message);
		memory_free(name);
	}
}

void
contract_open(struct contract *contract)
{
	struct error err;

	memset(contract, 0, sizeof(*contract));
	contract->driver = chosen_driver;
	contract->loop = loop_new(&err);
	assert_non_null(contract->loop);
	contract->state = memory_text("contract-XXXXXX");
	assert_non_null(mkdtemp(contract->state));
	contract->instance = memory_text_format("test/%s", contract->state);
	contract->state_directory = open(contract->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(contract->state_directory >= 0);
	load_settings(contract);
	open_driver(contract);
}

static int
remove_path(const char *path, const struct stat *status, int type, struct FTW *position)
{
	(void)status;
	(void)type;
	(void)position;
	return remove(path);
}

static void
forget_connection(struct contract *contract)
{
	memory_free(contract->id);
	memory_free(contract->directory);
	memory_free(contract->user);
	contract->id = contract->directory = contract->user = NULL;
	contract->connected = false;
}

void
contract_close(struct contract *contract)
{
	contract->driver->close(contract->sandbox);
	forget_connection(contract);
	settings_free(contract->settings);
	descriptor_close(&contract->state_directory);
	loop_free(contract->loop);
	assert_int_equal(nftw(contract->state, remove_path, 32, FTW_DEPTH | FTW_PHYS), 0);
	memory_free(contract->state);
	memory_free(contract->instance);
}

void
contract_reopen(struct contract *contract)
{
	contract->driver->close(contract->sandbox);
	contract->connected = false;
	open_driver(contract);
}

void
contract_recover(struct contract *contract)
{
	struct error err;

	if (contract->under_way == 0)
		return;
	contract->under_way = 0;
	contract->driver->close(contract->sandbox);
	forget_connection(contract);
	contract->loop = loop_new(&err);
	assert_non_null(contract->loop);
	open_driver(contract);
}

int
contract_begin(void **state)
{
	struct contract *contract = *state;

	contract_recover(contract);
	if (!contract->connected && contract->lost == 0 && !contract_connect(contract, NULL, true))
		fail_msg("connect: %s", contract->failure.message);
	return 0;
}

void
contract_wait(struct contract *contract, const bool *flag)
{
	struct error err;
	int64_t until;

	until = loop_now() + PATIENCE;
	contract->under_way++;
	while (!*flag) {
		if (loop_now() > until)
			fail_msg("waited in vain for %d s", PATIENCE / 1000);
		if (loop_dispatch(contract->loop, 1000, &err) != 0)
			fail_msg("%s", err.message);
	}
	contract->under_way--;
}

static void
settled(void *argument)
{
	*(bool *)argument = true;
}

void
contract_settle(struct contract *contract)
{
	struct loop_timer *timer;
	bool over = false;

	timer = loop_timer_new(contract->loop, settled, &over);
	loop_timer_start(timer, SETTLE_TIME);
	contract_wait(contract, &over);
	loop_timer_free(timer);
}

struct waiting {
	struct contract *contract;
	bool done, failed;
};

static void
connected(void *argument, const struct driver_connected *connected, const struct error *err)
{
	struct waiting *waiting = argument;
	struct contract *contract = waiting->contract;

	waiting->done = true;
	if (err != NULL) {
		contract->failure = *err;
		contract->nothing = connected != NULL && connected->nothing;
		return;
	}
	forget_connection(contract);
	contract->connected = true;
	contract->id = memory_text(connected->id);
	contract->directory = memory_text(connected->directory);
	contract->user = connected->user == NULL ? NULL : memory_text(connected->user);
	contract->created = connected->created;
	contract->started = connected->started;
}

bool
contract_connect(struct contract *contract, const char *id, bool may_create)
{
	struct driver_target target = { .id = id, .created = true, .may_create = may_create };
	struct waiting waiting = { .contract = contract };

	contract->connected = false;
	contract->driver->connect(contract->sandbox, &target, connected, &waiting);
	assert_false(waiting.done);
	contract_wait(contract, &waiting.done);
	return contract->connected;
}

static void
released(void *argument, const struct error *err)
{
	struct waiting *waiting = argument;

	waiting->done = true;
	waiting->failed = err != NULL;
	if (err != NULL)
		waiting->contract->failure = *err;
}

bool
contract_release(struct contract *contract, enum driver_release release)
{
	struct waiting waiting = { .contract = contract };

	contract->driver->release(contract->sandbox, release, released, &waiting);
	assert_false(waiting.done);
	contract_wait(contract, &waiting.done);
	return !waiting.failed;
}

bool
contract_put_away(struct contract *contract, const char *id, enum driver_release release)
{
	struct waiting waiting = { .contract = contract };

	contract->driver->put_away(contract->sandbox, id, release, released, &waiting);
	assert_false(waiting.done);
	contract_wait(contract, &waiting.done);
	return !waiting.failed;
}

static void
close_output(struct contract_output *output)
{
	loop_unwatch(output->watch);
	output->watch = NULL;
	descriptor_close(&output->fd);
	output->ended = true;
}

static void
output_ready(void *argument, unsigned events)
{
	static unsigned char chunk[262144];
	struct contract_output *output = argument;
	size_t kept;
	ssize_t got;

	(void)events;
	got = read(output->fd, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* A terminal nobody has open any more says EIO, not the end of file. */
	if (got < 0 && errno != EIO)
		fail_msg("read: %s", strerror(errno));
	if (got <= 0) {
		close_output(output);
		return;
	}
	output->size += (uint64_t)got;
	output->sum = contract_sum(output->sum, chunk, (size_t)got);
	kept = buffer_room(&output->content);
	(void)buffer_append(&output->content, chunk, kept < (size_t)got ? kept : (size_t)got);
}

static void
watch_output(struct contract_command *command, struct contract_output *output)
{
	if (output->fd >= 0 && output->watch == NULL)
		output->watch = loop_watch(
		    command->contract->loop, output->fd, LOOP_READ, output_ready, output);
}

void
contract_command_end_input(struct contract_command *command)
{
	loop_unwatch(command->input_watch);
	command->input_watch = NULL;
	descriptor_close(&command->input);
}

static ssize_t
write_pattern(struct contract_command *command)
{
	unsigned char chunk[65536];
	uint64_t left, i;
	ssize_t written;

	left = command->pattern_total - command->pattern;
	for (i = 0; i < left && i < sizeof(chunk); i++)
		chunk[i] = contract_pattern(command->pattern + i);
	written = write(command->input, chunk, i);
	if (written > 0)
		command->pattern += (uint64_t)written;
	return written;
}

static void
input_ready(void *argument, unsigned events)
{
	struct contract_command *command = argument;
	ssize_t written = 0;

	(void)events;
	if (command->text != NULL && *command->text != '\0') {
		written = write(command->input, command->text, strlen(command->text));
		if (written > 0)
			command->text += written;
	} else if (command->pattern < command->pattern_total) {
		written = write_pattern(command);
	} else if (command->keep_input) {
		loop_watch_change(command->input_watch, 0);
	} else {
		contract_command_end_input(command);
	}
	if (written < 0 && errno == EPIPE)
		contract_command_end_input(command);
}

static void
command_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	struct contract_command *command = argument;
	struct error err;

	assert_false(command->started);
	command->started = true;
	command->pid = pid;
	command->output.fd = descriptors->output;
	command->errors.fd = descriptors->errors;
	command->errors.ended = descriptors->errors < 0;
	command->input = descriptors->input;
	assert_int_equal(descriptor_nonblock(command->output.fd, &err), 0);
	if (command->errors.fd >= 0)
		assert_int_equal(descriptor_nonblock(command->errors.fd, &err), 0);
	if (command->input >= 0) {
		assert_int_equal(descriptor_nonblock(command->input, &err), 0);
		command->input_watch = loop_watch(
		    command->contract->loop, command->input, LOOP_WRITE, input_ready, command);
	}
	if (!command->stopped)
		contract_command_resume(command);
}

static void
command_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	struct contract_command *command = argument;

	assert_false(command->exited);
	command->exited = true;
	command->unknown = ended == NULL;
	if (ended != NULL)
		command->ended = *ended;
	else
		command->failure = *err;
}

static void
command_gone(void *argument)
{
	struct contract_command *command = argument;

	assert_true(command->exited);
	assert_false(command->gone);
	command->gone = true;
}

static const struct driver_stream_events command_events = {
	.started = command_started,
	.exited = command_exited,
	.gone = command_gone,
};

static void
start_output(struct contract_command *command, struct contract_output *output)
{
	output->command = command;
	output->fd = -1;
	output->sum = CONTRACT_SUM_START;
	buffer_init(&output->content, CONTENT_MAX);
}

char **
contract_list(const char *const *texts)
{
	char **list = NULL;
	size_t i;

	for (i = 0; texts != NULL && texts[i] != NULL; i++)
		list = memory_list_add(list, i, texts[i]);
	return list;
}

void
contract_command_start(
    struct contract *contract, struct contract_command *command, const struct contract_start *start)
{
	char **argv = contract_list(start->argv), **environment = contract_list(start->environment);
	struct driver_command request = {
		.argv = argv,
		.environment = environment,
		.directory = start->directory == NULL ? contract->directory : start->directory,
		.want_stdin = start->input != NULL || start->pattern_total > 0 || start->keep_input,
		.pty = start->pty,
		.term = start->pty ? "xterm" : NULL,
		.columns = start->columns,
		.rows = start->rows,
		.keep_background = start->keep_background,
		.kill_grace = start->kill_grace,
	};
	struct wrapped_setup setup = { .loop = contract->loop,
		.driver = contract->driver,
		.sandbox = contract->sandbox,
		.directory = -1,
		.id = "contract" };

	memset(command, 0, sizeof(*command));
	command->contract = contract;
	contract->under_way++;
	command->input = -1;
	command->text = start->input;
	command->pattern_total = start->pattern_total;
	command->keep_input = start->keep_input;
	command->stopped = start->stopped;
	start_output(command, &command->output);
	start_output(command, &command->errors);
	if (contract_supports(DRIVER_GROUP))
		command->stream = contract->driver->start(
		    contract->sandbox, &request, &command_events, command);
	else
		command->wrapped = wrapped_start(&setup, &request, &command_events, command);
	assert_false(command->started || command->exited);
	memory_list_free(argv);
	memory_list_free(environment);
}

void
contract_shell(struct contract *contract, struct contract_command *command, const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct contract_start start = { .argv = argv };

	contract_command_start(contract, command, &start);
}

void
contract_command_resume(struct contract_command *command)
{
	command->stopped = false;
	watch_output(command, &command->output);
	watch_output(command, &command->errors);
}

void
contract_command_finish(struct contract_command *command)
{
	contract_wait(command->contract, &command->exited);
	if (!command->started)
		return;
	contract_wait(command->contract, &command->output.ended);
	contract_wait(command->contract, &command->errors.ended);
}

void
contract_command_free(struct contract_command *command)
{
	if (command->wrapped != NULL)
		wrapped_close(command->wrapped);
	else
		command->contract->driver->close_stream(command->stream);
	contract_command_forget(command);
}

void
contract_command_signal(struct contract_command *command, int number)
{
	if (command->wrapped != NULL)
		wrapped_signal(command->wrapped, number);
	else
		command->contract->driver->signal(command->stream, number);
}

void
contract_command_resize(struct contract_command *command, uint32_t columns, uint32_t rows)
{
	if (command->wrapped != NULL)
		wrapped_resize(command->wrapped, columns, rows, 0, 0);
	else
		command->contract->driver->resize(command->stream, columns, rows, 0, 0);
}

void
contract_command_forget(struct contract_command *command)
{
	command->contract->under_way--;
	contract_command_end_input(command);
	close_output(&command->output);
	close_output(&command->errors);
	buffer_free(&command->output.content);
	buffer_free(&command->errors.content);
}

/* On a terminal one descriptor goes both ways. */
void
contract_command_type(struct contract_command *command, const char *text)
{
	struct error err;
	int fd = command->input >= 0 ? command->input : command->output.fd;

	assert_int_equal(descriptor_write(fd, text, strlen(text), &err), 0);
}

const char *
contract_text(struct contract_output *output)
{
	unsigned char *end;

	end = buffer_reserve(&output->content, 1);
	assert_non_null(end);
	*end = '\0';
	return (const char *)buffer_data(&output->content);
}

void
contract_command_expect(struct contract_command *command, const char *text)
{
	struct error err;
	int64_t until;

	until = loop_now() + PATIENCE;
	while (strstr(contract_text(&command->output), text) == NULL) {
		if (loop_now() > until || command->output.ended)
			fail_msg("no \"%s\" in \"%s\"", text, contract_text(&command->output));
		if (loop_dispatch(command->contract->loop, 1000, &err) != 0)
			fail_msg("%s", err.message);
	}
}

void
contract_check(struct contract *contract, const char *script, int status, const char *output)
{
	struct contract_command command;
	bool is_right;

	contract_shell(contract, &command, script);
	contract_command_finish(&command);
	is_right = !command.unknown && !command.ended.signaled && command.ended.status == status &&
		   strcmp(contract_text(&command.output), output) == 0;
	if (command.unknown)
		print_error("%s: %s\n", script, command.failure.message);
	else if (!is_right)
		print_error("%s: status %d%s, output \"%s\", errors \"%s\"\n", script,
		    command.ended.status, command.ended.signaled ? " (signal)" : "",
		    contract_text(&command.output), contract_text(&command.errors));
	/* A test that fails here must not leave it behind on a stack that is gone. */
	contract_command_free(&command);
	assert_true(is_right);
}

char *
contract_output(struct contract *contract, const char *script)
{
	struct contract_command command;
	char *text;

	contract_shell(contract, &command, script);
	contract_command_finish(&command);
	if (command.unknown || command.ended.signaled || command.ended.status != 0)
		fail_msg("%s: \"%s\"", script, contract_text(&command.errors));
	text = memory_text(contract_text(&command.output));
	if (text[0] != '\0' && text[strlen(text) - 1] == '\n')
		text[strlen(text) - 1] = '\0';
	contract_command_free(&command);
	return text;
}
