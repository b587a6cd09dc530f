/* SPDX-License-Identifier: ISC */
/*
 * Commands over two terminals of this machine, with each shell that a sandbox may have as its sh.
 * They run as users see them, in their wrapper; the transport is what makes that possible on such a
 * driver.
 */
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/driver.h"
#include "core/scripts.h"
#include "core/wrapped.h"
#include "tests/unit/pty_driver.h"

#define PATIENCE 60000
#define MIB ((uint64_t)1024 * 1024)
#define CONTENT_MAX ((size_t)1024 * 1024)

struct stream {
	struct fixture *fixture;
	int fd;
	struct loop_watch *watch;
	uint64_t size;
	bool ended, differs;
	struct buffer content; /* the first of it */
};

struct fixture {
	struct loop *loop;
	struct driver_sandbox sandbox;
	char *directory, *path; /* with a link called sh */
	struct wrapped *wrapped;
	struct stream output, errors;
	int input;
	struct loop_watch *input_watch;
	uint64_t sent, to_send;
	bool started, exited, gone, unknown;
	struct driver_exit ended;
	struct error failure;
};

static struct fixture fixture;

/* Every value occurs, at no regular distance. */
static unsigned char
pattern(uint64_t offset)
{
	offset *= 0x9e3779b97f4a7c15U;
	return (unsigned char)(offset >> 56);
}

static int
open_with(void **state, const char *shell)
{
	char *link;

	memset(&fixture, 0, sizeof(fixture));
	fixture.loop = loop_new(NULL);
	fixture.directory = memory_text("/tmp/transport-XXXXXX");
	if (fixture.loop == NULL || mkdtemp(fixture.directory) == NULL)
		return -1;
	link = memory_text_format("%s/sh", fixture.directory);
	if (symlink(shell, link) != 0)
		return -1;
	memory_free(link);
	fixture.path = memory_text_format("%s:%s", fixture.directory, getenv("PATH"));
	fixture.sandbox.loop = fixture.loop;
	fixture.sandbox.path = fixture.path;
	fixture.input = fixture.output.fd = fixture.errors.fd = -1;
	*state = &fixture;
	return 0;
}

static int
open_dash(void **state)
{
	return open_with(state, "/bin/dash");
}

static int
open_bash(void **state)
{
	return open_with(state, "/bin/bash");
}

static int
open_busybox(void **state)
{
	return open_with(state, "/bin/busybox");
}

static void
close_stream(struct stream *stream)
{
	loop_unwatch(stream->watch);
	stream->watch = NULL;
	descriptor_close(&stream->fd);
	stream->ended = true;
}

static void
end_input(void)
{
	loop_unwatch(fixture.input_watch);
	fixture.input_watch = NULL;
	descriptor_close(&fixture.input);
}

static void
forget_command(void)
{
	if (fixture.wrapped != NULL)
		wrapped_close(fixture.wrapped);
	fixture.wrapped = NULL;
	end_input();
	close_stream(&fixture.output);
	close_stream(&fixture.errors);
	buffer_free(&fixture.output.content);
	buffer_free(&fixture.errors.content);
	fixture.started = fixture.exited = fixture.gone = fixture.unknown = false;
}

static int
close_all(void **state)
{
	char *link;

	(void)state;
	forget_command();
	link = memory_text_format("%s/sh", fixture.directory);
	(void)unlink(link);
	(void)rmdir(fixture.directory);
	memory_free(link);
	memory_free(fixture.directory);
	memory_free(fixture.path);
	loop_free(fixture.loop);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	return 0;
}

static void
stream_ready(void *argument, unsigned events)
{
	static unsigned char chunk[65536];
	struct stream *stream = argument;
	size_t room;
	ssize_t got, i;

	(void)events;
	got = read(stream->fd, chunk, sizeof(chunk));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close_stream(stream);
		return;
	}
	for (i = 0; i < got && !stream->differs; i++)
		stream->differs = chunk[i] != pattern(stream->size + (uint64_t)i);
	stream->size += (uint64_t)got;
	room = buffer_room(&stream->content);
	(void)buffer_append(&stream->content, chunk, room < (size_t)got ? room : (size_t)got);
}

static void
watch_stream(struct stream *stream)
{
	if (stream->fd >= 0 && stream->watch == NULL)
		stream->watch = loop_watch(
		    fixture.loop, stream->fd, LOOP_READ, stream_ready, stream);
}

static void
input_ready(void *argument, unsigned events)
{
	unsigned char chunk[65536];
	ssize_t written;
	uint64_t i;

	(void)argument;
	(void)events;
	for (i = 0; i < sizeof(chunk) && fixture.sent + i < fixture.to_send; i++)
		chunk[i] = pattern(fixture.sent + i);
	if (i == 0) {
		end_input();
		return;
	}
	written = write(fixture.input, chunk, i);
	if (written > 0)
		fixture.sent += (uint64_t)written;
	else if (written < 0 && errno == EPIPE)
		end_input();
}

static void
command_started(void *argument, const struct driver_descriptors *descriptors, uint32_t pid)
{
	(void)argument;
	(void)pid;
	fixture.started = true;
	fixture.output.fd = descriptors->output;
	fixture.errors.fd = descriptors->errors;
	fixture.input = descriptors->input;
	assert_int_equal(descriptor_nonblock(descriptors->output, NULL), 0);
	if (fixture.input >= 0)
		assert_int_equal(descriptor_nonblock(fixture.input, NULL), 0);
	if (fixture.to_send > 0)
		fixture.input_watch = loop_watch(
		    fixture.loop, fixture.input, LOOP_WRITE, input_ready, NULL);
}

static void
command_exited(void *argument, const struct driver_exit *ended, const struct error *err)
{
	(void)argument;
	assert_false(fixture.exited);
	fixture.exited = true;
	fixture.unknown = ended == NULL;
	if (ended != NULL)
		fixture.ended = *ended;
	else
		fixture.failure = *err;
}

static void
command_gone(void *argument)
{
	(void)argument;
	fixture.gone = true;
}

static const struct driver_stream_events events = { command_started, command_exited, command_gone };

static void
start_command(const struct driver_command *command)
{
	struct wrapped_setup setup = { fixture.loop, &pty_driver, &fixture.sandbox };

	fixture.sent = 0;
	buffer_init(&fixture.output.content, CONTENT_MAX);
	buffer_init(&fixture.errors.content, CONTENT_MAX);
	fixture.output.size = fixture.errors.size = 0;
	fixture.output.ended = fixture.output.differs = false;
	fixture.errors.ended = command->pty;
	fixture.wrapped = wrapped_start(&setup, command, &events, NULL);
}

static void
start_script(const char *script, uint64_t to_send, bool keep_input)
{
	char shell[] = "sh", flag[] = "-c", *text = memory_text(script);
	char *argv[] = { shell, flag, text, NULL };
	struct driver_command command = { .argv = argv, .directory = "/", .kill_grace = 1000 };

	fixture.to_send = to_send;
	command.want_stdin = to_send > 0 || keep_input;
	start_command(&command);
	memory_free(text);
}

static void
dispatch(const bool *flag)
{
	int64_t until;

	until = loop_now() + PATIENCE;
	while (!*flag) {
		if (loop_now() > until)
			fail_msg("waited in vain");
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	}
}

static void
finish_command(void)
{
	dispatch(&fixture.started);
	watch_stream(&fixture.output);
	watch_stream(&fixture.errors);
	dispatch(&fixture.exited);
	dispatch(&fixture.output.ended);
	dispatch(&fixture.errors.ended);
}

static const char *
text_of(struct stream *stream)
{
	unsigned char *end;

	end = buffer_reserve(&stream->content, 1);
	assert_non_null(end);
	*end = '\0';
	return (const char *)buffer_data(&stream->content);
}

static void
expect_text(struct stream *stream, const char *text)
{
	int64_t until;

	dispatch(&fixture.started);
	watch_stream(stream);
	until = loop_now() + PATIENCE;
	while (strstr(text_of(stream), text) == NULL) {
		if (loop_now() > until || stream->ended)
			fail_msg("no \"%s\" in \"%s\"", text, text_of(stream));
		assert_int_equal(loop_dispatch(fixture.loop, 1000, NULL), 0);
	}
}

static void
expect_run(const char *script, const char *output, int status)
{
	start_script(script, 0, false);
	finish_command();
	if (fixture.unknown)
		fail_msg("%s", fixture.failure.message);
	assert_string_equal(text_of(&fixture.output), output);
	assert_false(fixture.ended.signaled);
	assert_int_equal(fixture.ended.status, status);
	forget_command();
}

static void
type(int fd, const char *text)
{
	assert_int_equal(descriptor_write(fd, text, strlen(text), NULL), 0);
}

static void
all_bytes_come_back_unchanged(void **state)
{
	int64_t began;

	(void)state;
	began = loop_now();
	start_script("cat", 16 * MIB, false);
	finish_command();
	assert_false(fixture.unknown);
	assert_int_equal(fixture.ended.status, 0);
	assert_int_equal(fixture.output.size, 16 * MIB);
	assert_false(fixture.output.differs);
	assert_int_equal(fixture.errors.size, 0);
	print_message("both ways: %.0f MB/s\n", 16.777 * 1000 / (double)(loop_now() - began + 1));
}

static void
much_output_arrives_whole(void **state)
{
	int64_t began;

	(void)state;
	began = loop_now();
	start_script("head -c 67108864 /dev/zero", 0, false);
	finish_command();
	assert_int_equal(fixture.output.size, 64 * MIB);
	assert_int_equal(fixture.ended.status, 0);
	print_message("out: %.0f MB/s\n", 67.109 * 1000 / (double)(loop_now() - began + 1));
}

static void
errors_come_apart_from_output(void **state)
{
	(void)state;
	start_script("head -c 3000000 /dev/zero >&2; echo ok", 0, false);
	finish_command();
	assert_string_equal(text_of(&fixture.output), "ok\n");
	assert_int_equal(fixture.errors.size, 3000000);
}

static void
end_of_input_is_seen_and_the_command_goes_on(void **state)
{
	(void)state;
	start_script("wc -c; echo end", 5, false);
	finish_command();
	assert_string_equal(text_of(&fixture.output), "5\nend\n");
}

static void
input_without_an_end_keeps_the_command_waiting(void **state)
{
	(void)state;
	start_script("read a; echo \"got $a\"; cat; echo end", 0, true);
	dispatch(&fixture.started);
	type(fixture.input, "one\n");
	expect_text(&fixture.output, "got one\n");
	assert_false(fixture.exited);
	end_input();
	finish_command();
	assert_string_equal(text_of(&fixture.output), "got one\nend\n");
}

static void
a_prompt_is_not_held_back(void **state)
{
	(void)state;
	start_script("printf 'name? '; printf 'really? ' >&2; read a; echo \"$a\"", 0, true);
	expect_text(&fixture.output, "name? ");
	expect_text(&fixture.errors, "really? ");
	type(fixture.input, "me\n");
	finish_command();
	assert_string_equal(text_of(&fixture.output), "name? me\n");
}

static void
without_input_there_is_none(void **state)
{
	(void)state;
	expect_run("cat; echo end", "end\n", 0);
}

static void
a_command_that_reads_no_input_still_ends(void **state)
{
	(void)state;
	start_script("echo early", 32 * MIB, false);
	finish_command();
	assert_string_equal(text_of(&fixture.output), "early\n");
	assert_int_equal(fixture.ended.status, 0);
}

static void
ends_are_exact(void **state)
{
	(void)state;
	expect_run("exit 0", "", 0);
	expect_run("echo x; exit 143", "x\n", 143);
	expect_run("exit 255", "", 255);
	start_script("kill -KILL $$", 0, false);
	finish_command();
	assert_true(fixture.ended.signaled);
	assert_int_equal(fixture.ended.status, SIGKILL);
}

static void
what_looks_like_a_marker_is_output(void **state)
{
	(void)state;
	expect_run(
	    "printf '\\036rws:0123456789abcdef0123456789abcdef end exited 0\\n\\036rws:\\036'; exit 9",
	    "\036rws:0123456789abcdef0123456789abcdef end exited 0\n\036rws:\036", 9);
}

static void
the_environment_has_nothing_of_ours(void **state)
{
	(void)state;
	/* Of the descriptors stderr is one: it goes through a FIFO. */
	expect_run("env | grep -ciE 'token|meeting|rws'; ls -l /proc/$$/fd | grep -cE 'pts|rws'",
	    "0\n1\n", 0);
}

static void
a_signal_reaches_the_command(void **state)
{
	(void)state;
	start_script(
	    "trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.02; done", 0, false);
	expect_text(&fixture.output, "ready");
	wrapped_signal(fixture.wrapped, SIGUSR1);
	finish_command();
	assert_non_null(strstr(text_of(&fixture.output), "got it\n"));
	assert_int_equal(fixture.ended.status, 5);
}

static void
a_slow_reader_holds_the_writer_back_and_loses_nothing(void **state)
{
	uint64_t sent;
	int idle;

	(void)state;
	start_script("cat", 64 * MIB, false);
	dispatch(&fixture.started);
	/* Until nothing moves any more. */
	for (idle = 0, sent = 0; idle < 5; idle++) {
		assert_int_equal(loop_dispatch(fixture.loop, 100, NULL), 0);
		if (fixture.sent != sent)
			idle = 0;
		sent = fixture.sent;
	}
	assert_false(fixture.exited);
	assert_true(fixture.sent < 8 * MIB);
	finish_command();
	assert_int_equal(fixture.output.size, 64 * MIB);
	assert_false(fixture.output.differs);
}

static void
what_is_left_behind_holding_output_does_not_hold_up_the_end(void **state)
{
	char *pid;

	(void)state;
	start_script("setsid sleep 600 & echo $!; exit 4", 0, false);
	finish_command();
	assert_int_equal(fixture.ended.status, 4);
	dispatch(&fixture.gone);
	pid = memory_text_bounded(
	    text_of(&fixture.output), strcspn(text_of(&fixture.output), "\n"));
	(void)kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
	memory_free(pid);
}

static void
a_broken_connection_is_an_unknown_end(void **state)
{
	(void)state;
	start_script("echo $$; sleep 600", 0, false);
	expect_text(&fixture.output, "\n");
	pty_driver_break(&fixture.sandbox);
	finish_command();
	assert_true(fixture.unknown);
	assert_int_equal(fixture.failure.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(fixture.failure.message, "the connection broke"));
	(void)kill(-(pid_t)strtol(text_of(&fixture.output), NULL, 10), SIGKILL);
}

static void
start_terminal(const char *script)
{
	char shell[] = "sh", flag[] = "-c", *text = memory_text(script);
	char *argv[] = { shell, flag, text, NULL };
	struct driver_command command = { .argv = argv,
		.directory = "/",
		.want_stdin = true,
		.pty = true,
		.term = "xterm",
		.columns = 91,
		.rows = 37 };

	fixture.to_send = 0;
	start_command(&command);
	memory_free(text);
}

static void
a_terminal_is_one_with_its_size_and_its_end(void **state)
{
	(void)state;
	start_terminal(
	    "test -t 0 && test -t 1 && test -t 2 && stty size && echo it >/dev/tty; exit 7");
	finish_command();
	assert_false(fixture.unknown);
	assert_string_equal(text_of(&fixture.output), "37 91\r\nit\r\n");
	assert_int_equal(fixture.ended.status, 7);
}

static void
a_death_by_signal_on_a_terminal_is_exact(void **state)
{
	(void)state;
	start_terminal("kill -TERM $$");
	finish_command();
	assert_true(fixture.ended.signaled);
	assert_int_equal(fixture.ended.status, SIGTERM);
	forget_command();
	start_terminal("exit 143");
	finish_command();
	assert_false(fixture.ended.signaled);
	assert_int_equal(fixture.ended.status, 143);
}

static void
a_terminal_takes_keys_and_a_new_size(void **state)
{
	(void)state;
	/* Not with "read": that of busybox 1.38 hangs for ever once a trap has interrupted it. */
	start_terminal(
	    "trap 'stty size' WINCH; trap 'echo int; a=q' INT; a=; sleep 60 >/dev/null 2>&1 & "
	    "echo ready; while ! [ \"$a\" ]; do wait; done; cat; echo end; kill $!");
	expect_text(&fixture.output, "ready");
	wrapped_resize(fixture.wrapped, 120, 50, 0, 0);
	expect_text(&fixture.output, "50 120\r\n");
	type(fixture.output.fd, "\003");
	expect_text(&fixture.output, "int\r\n");
	type(fixture.output.fd, "line\n\004");
	finish_command();
	assert_non_null(strstr(text_of(&fixture.output), "line\r\nline\r\nend\r\n"));
}

static void
the_last_output_of_a_terminal_is_not_lost(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		start_terminal("seq 1 3000; exit 9");
		finish_command();
		assert_int_equal(fixture.ended.status, 9);
		/* 1..3000, each with carriage return and line feed. */
		assert_int_equal(fixture.output.size, 9 + 180 + 2700 + 4 * 2001 + 2 * 3000);
		forget_command();
	}
}

static pid_t
spawn(int *terminal, char **argv)
{
	pid_t pid;

	pid = forkpty(terminal, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)setenv("PATH", fixture.path, 1);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Reads until the terminal is at its end. */
static void
read_all(int terminal)
{
	char chunk[4096];

	while (read(terminal, chunk, sizeof(chunk)) > 0)
		continue;
}

/* Without a sign of life the far side ends even a command that ignores all that can be ignored. */
static void
silence_ends_the_command(void **state)
{
	char *meeting = memory_text_format("%s/meeting", fixture.directory);
	char second[] = "1", pipe[] = "pipe", *arguments[] = { meeting, pipe, NULL };
	static const char *const stubborn[] = { "setsid", "-f", "-w", "sh", "-c",
		"trap '' HUP TERM; while :; do sleep 600; done", NULL };
	char **main_argv, **side_argv;
	int main_terminal, side_terminal, status;
	pid_t main_pid, side_pid;
	size_t i, count;

	(void)state;
	main_argv = script_argv("transport", arguments);
	for (count = 0; main_argv[count] != NULL; count++)
		continue;
	for (i = 0; stubborn[i] != NULL; i++)
		main_argv = memory_list_add(main_argv, count++, stubborn[i]);
	arguments[1] = second;
	side_argv = script_argv("transport_side", arguments);
	main_pid = spawn(&main_terminal, main_argv);
	side_pid = spawn(&side_terminal, side_argv);
	type(main_terminal, "0123456789abcdef0123456789abcdef\n");
	type(side_terminal, "0123456789abcdef0123456789abcdef\n");
	read_all(main_terminal);
	assert_int_equal(waitpid(main_pid, &status, 0), main_pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	descriptor_close(&main_terminal);
	(void)kill(side_pid, SIGKILL);
	(void)waitpid(side_pid, NULL, 0);
	descriptor_close(&side_terminal);
	memory_list_free(main_argv);
	memory_list_free(side_argv);
	memory_free(meeting);
}

#define WITH(shell)                                                                                \
	cmocka_unit_test_setup_teardown(all_bytes_come_back_unchanged, open_##shell, close_all),   \
	    cmocka_unit_test_setup_teardown(much_output_arrives_whole, open_##shell, close_all),   \
	    cmocka_unit_test_setup_teardown(                                                       \
		errors_come_apart_from_output, open_##shell, close_all),                           \
	    cmocka_unit_test_setup_teardown(                                                       \
		end_of_input_is_seen_and_the_command_goes_on, open_##shell, close_all),            \
	    cmocka_unit_test_setup_teardown(                                                       \
		input_without_an_end_keeps_the_command_waiting, open_##shell, close_all),          \
	    cmocka_unit_test_setup_teardown(a_prompt_is_not_held_back, open_##shell, close_all),   \
	    cmocka_unit_test_setup_teardown(without_input_there_is_none, open_##shell, close_all), \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_command_that_reads_no_input_still_ends, open_##shell, close_all),                \
	    cmocka_unit_test_setup_teardown(ends_are_exact, open_##shell, close_all),              \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_looks_like_a_marker_is_output, open_##shell, close_all),                      \
	    cmocka_unit_test_setup_teardown(                                                       \
		the_environment_has_nothing_of_ours, open_##shell, close_all),                     \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_signal_reaches_the_command, open_##shell, close_all),                            \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_slow_reader_holds_the_writer_back_and_loses_nothing, open_##shell, close_all),   \
	    cmocka_unit_test_setup_teardown(                                                       \
		what_is_left_behind_holding_output_does_not_hold_up_the_end, open_##shell,         \
		close_all),                                                                        \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_broken_connection_is_an_unknown_end, open_##shell, close_all),                   \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_terminal_is_one_with_its_size_and_its_end, open_##shell, close_all),             \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_death_by_signal_on_a_terminal_is_exact, open_##shell, close_all),                \
	    cmocka_unit_test_setup_teardown(                                                       \
		a_terminal_takes_keys_and_a_new_size, open_##shell, close_all),                    \
	    cmocka_unit_test_setup_teardown(                                                       \
		the_last_output_of_a_terminal_is_not_lost, open_##shell, close_all),               \
	    cmocka_unit_test_setup_teardown(silence_ends_the_command, open_##shell, close_all)

int
main(int count, char **arguments)
{
	const struct CMUnitTest dash[] = { WITH(dash) };
	const struct CMUnitTest bash[] = { WITH(bash) };
	const struct CMUnitTest busybox[] = { WITH(busybox) };

	/* What our own starter left open is not to be seen in the commands of the tests. */
	if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
		return 1;
	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("dash", dash, NULL, NULL) +
	       cmocka_run_group_tests_name("bash", bash, NULL, NULL) +
	       cmocka_run_group_tests_name("busybox", busybox, NULL, NULL);
}
