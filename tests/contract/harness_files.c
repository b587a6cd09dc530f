/* SPDX-License-Identifier: ISC */
/*
 * Bytes that are known beforehand, and whole files in and out of a sandbox, for the contract tests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/loop.h"
#include "tests/contract/harness.h"

/* A multiplicative hash of the offset: cheap to make anywhere in the stream. */
unsigned char
contract_pattern(uint64_t offset)
{
	return (unsigned char)((offset * 0x9e3779b97f4a7c15ULL + offset / 251) >> 37);
}

uint64_t
contract_sum(uint64_t sum, const unsigned char *data, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		sum = (sum ^ data[i]) * 1099511628211ULL;
	return sum;
}

uint64_t
contract_pattern_sum(uint64_t size)
{
	uint64_t sum = CONTRACT_SUM_START, i;
	unsigned char byte;

	for (i = 0; i < size; i++) {
		byte = contract_pattern(i);
		sum = contract_sum(sum, &byte, 1);
	}
	return sum;
}

/* One copy: what the test's end of the pipe still has to move. */
struct moving {
	int fd;
	struct loop_watch *watch;
	const unsigned char *data; /* left to send */
	size_t size;
	struct buffer *content; /* or to receive into */
	bool ended, done;
	enum error_code code;
};

static void
copy_done(void *argument, const struct error *err)
{
	struct moving *moving = argument;

	assert_false(moving->done);
	moving->done = true;
	moving->code = err == NULL ? ERROR_NONE : err->code;
}

static void
stop_moving(struct moving *moving)
{
	loop_unwatch(moving->watch);
	moving->watch = NULL;
	descriptor_close(&moving->fd);
	moving->ended = true;
}

static void
receive(void *argument, unsigned events)
{
	unsigned char chunk[65536];
	struct moving *moving = argument;
	ssize_t got;

	(void)events;
	got = read(moving->fd, chunk, sizeof(chunk));
	if (got <= 0)
		stop_moving(moving);
	else
		assert_int_equal(buffer_append(moving->content, chunk, (size_t)got), 0);
}

static void
send_data(void *argument, unsigned events)
{
	struct moving *moving = argument;
	ssize_t written;

	(void)events;
	written = moving->size == 0 ? 0 : write(moving->fd, moving->data, moving->size);
	if (written < 0 && errno == EAGAIN)
		return;
	if (written > 0) {
		moving->data += written;
		moving->size -= (size_t)written;
	}
	if (written < 0 || moving->size == 0)
		stop_moving(moving);
}

enum error_code
contract_read(struct contract *contract, const char *path, uint64_t max, struct buffer *content)
{
	struct moving moving = { .content = content };
	int ends[2];

	assert_int_equal(descriptor_pipe(ends, NULL), 0);
	moving.fd = ends[0];
	moving.watch = loop_watch(contract->loop, ends[0], LOOP_READ, receive, &moving);
	assert_non_null(
	    contract->driver->read(contract->sandbox, path, max, ends[1], copy_done, &moving));
	assert_false(moving.done);
	contract_wait(contract, &moving.done);
	contract_wait(contract, &moving.ended);
	return moving.code;
}

enum error_code
contract_write(
    struct contract *contract, const char *path, uint64_t size, const void *data, size_t data_size)
{
	struct moving moving = { .data = data, .size = data_size };
	int ends[2];

	assert_int_equal(descriptor_pipe(ends, NULL), 0);
	assert_int_equal(descriptor_nonblock(ends[1], NULL), 0);
	moving.fd = ends[1];
	moving.watch = loop_watch(contract->loop, ends[1], LOOP_WRITE, send_data, &moving);
	assert_non_null(
	    contract->driver->write(contract->sandbox, path, size, ends[0], copy_done, &moving));
	assert_false(moving.done);
	contract_wait(contract, &moving.done);
	if (!moving.ended)
		stop_moving(&moving);
	return moving.code;
}
