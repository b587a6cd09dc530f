/* SPDX-License-Identifier: ISC */
/* File operations as messages: what goes in comes out, and nothing else does. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/file_protocol.h"

static void
fill_request(struct file_request *request)
{
	file_request_init(request, FILE_HASH);
	request->flags = FILE_FOLLOW | FILE_ONLY_FILE;
	request->path = memory_text("/a/\xff\n");
	request->other = memory_text("other");
	request->change = (struct file_change){ FILE_CHANGE_ALL, 0640, 1, 2, -5, 6, 7 };
	request->offset = 8;
	request->size = 9;
	request->block = 10;
	request->algorithm = memory_text("md5");
	request->limit = 11;
	request->glob = memory_text("**/*.c");
	request->skip = memory_list_add(NULL, 0, "skip");
	request->numbers = memory_zeroed(2, sizeof(*request->numbers));
	request->numbers[1] = 4000000000U;
	request->number_count = 2;
	request->user_count = 1;
	request->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
a_request_survives_the_way(void **state)
{
	struct file_request request, back;
	struct message message;
	struct error err;
	uint32_t id;

	(void)state;
	fill_request(&request);
	file_request_encode(&message, 77, &request);
	assert_int_equal(request.fd, -1);
	assert_int_equal(file_request_decode(&message, &id, &back, &err), 0);
	assert_int_equal(id, 77);
	assert_int_equal(back.verb, FILE_HASH);
	assert_int_equal(back.flags, request.flags);
	assert_string_equal(back.path, request.path);
	assert_string_equal(back.other, "other");
	assert_memory_equal(&back.change, &request.change, sizeof(back.change));
	assert_int_equal(back.offset + back.size + back.block + back.limit, 8 + 9 + 10 + 11);
	assert_string_equal(back.algorithm, "md5");
	assert_string_equal(back.glob, "**/*.c");
	assert_string_equal(back.skip[0], "skip");
	assert_null(back.skip[1]);
	assert_int_equal(back.numbers[1], 4000000000U);
	assert_int_equal(back.number_count, 2);
	assert_int_equal(back.user_count, 1);
	assert_true(back.fd >= 0);
	file_request_free(&back);
	file_request_free(&request);
	message_free(&message);
}

/* Decodes the first length bytes of what encode made, and one more byte when longer. */
static int
decode_part(size_t length, bool longer, size_t *whole)
{
	struct file_request request, back;
	struct message message, part;
	uint32_t id;
	int result;

	fill_request(&request);
	file_request_encode(&message, 1, &request);
	*whole = message.payload.length;
	message_start(&part, MESSAGE_FILE_REQUEST);
	(void)buffer_append(
	    &part.payload, buffer_data(&message.payload), length < *whole ? length : *whole);
	if (longer)
		(void)buffer_append(&part.payload, "", 1);
	result = file_request_decode(&part, &id, &back, NULL);
	if (result == 0)
		file_request_free(&back);
	file_request_free(&request);
	message_free(&message);
	message_free(&part);
	return result;
}

static void
decode_rejects_every_cut_and_trailing_bytes(void **state)
{
	size_t whole, i;

	(void)state;
	assert_int_equal(decode_part(SIZE_MAX, false, &whole), 0);
	for (i = 0; i < whole; i++)
		assert_int_equal(decode_part(i, false, &whole), -1);
	assert_int_equal(decode_part(SIZE_MAX, true, &whole), -1);
}

/* A request with one thing wrong, which change sets. */
static void
expect_refused(void (*change)(struct file_request *request))
{
	struct file_request request, back;
	struct message message;
	struct error err;
	uint32_t id;

	fill_request(&request);
	change(&request);
	file_request_encode(&message, 1, &request);
	assert_int_equal(file_request_decode(&message, &id, &back, &err), -1);
	assert_int_equal(err.code, ERROR_INVALID);
	file_request_free(&request);
	message_free(&message);
}

static void
unknown_verb(struct file_request *request)
{
	request->verb = FILE_VERBS;
}

static void
unknown_flag(struct file_request *request)
{
	request->flags = FILE_FLAGS_ALL + 1;
}

static void
unknown_field(struct file_request *request)
{
	request->change.fields = FILE_CHANGE_ALL + 1;
}

static void
no_path(struct file_request *request)
{
	memory_free(request->path);
	request->path = NULL;
}

static void
no_algorithm(struct file_request *request)
{
	memory_free(request->algorithm);
	request->algorithm = NULL;
}

static void
no_other(struct file_request *request)
{
	request->verb = FILE_RENAME;
	memory_free(request->other);
	request->other = NULL;
}

static void
no_content(struct file_request *request)
{
	request->verb = FILE_COMMIT;
	(void)close(request->fd);
	request->fd = -1;
}

static void
more_users_than_numbers(struct file_request *request)
{
	request->user_count = 3;
}

static void
decode_rejects_what_breaks_a_rule(void **state)
{
	(void)state;
	expect_refused(unknown_verb);
	expect_refused(unknown_flag);
	expect_refused(unknown_field);
	expect_refused(no_path);
	expect_refused(no_algorithm);
	expect_refused(no_other);
	expect_refused(no_content);
	expect_refused(more_users_than_numbers);
}

static void
a_reply_whose_descriptor_was_lost_is_a_failure(void **state)
{
	struct error none, failure, err;
	struct file_reply reply;
	struct message message;
	uint32_t id;

	(void)state;
	error_clear(&none);
	file_reply_init(&reply);
	file_reply_encode(&message, 5, &reply, &none);
	message.lost = true;
	assert_int_equal(file_reply_decode(&message, &id, &reply, &failure, &err), 0);
	assert_int_equal(id, 5);
	assert_int_equal(failure.code, ERROR_UNAVAILABLE);
	assert_int_equal(reply.fd, -1);
	message_free(&message);
}

static void
a_reply_survives_the_way(void **state)
{
	struct file_reply reply, back;
	struct error none, failure, err;
	struct message message;
	uint32_t id;

	(void)state;
	error_clear(&none);
	file_reply_init(&reply);
	reply.more = true;
	reply.attributes = (struct file_attributes){ S_IFREG | 0644, 1, 2, 3, 4, 5, 6, -7, 8 };
	reply.arrived = 9;
	reply.limit = 10;
	reply.count = 11;
	reply.volume.id = 12;
	reply.volume.name_max = 255;
	reply.text = memory_text("text");
	reply.bytes = (unsigned char *)memory_text("by\0es");
	reply.bytes_size = 2;
	reply.names = memory_list_add(NULL, 0, "");
	reply.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	file_reply_encode(&message, 5, &reply, &none);
	assert_int_equal(reply.fd, -1);
	assert_int_equal(file_reply_decode(&message, &id, &back, &failure, &err), 0);
	assert_int_equal(id, 5);
	assert_int_equal(failure.code, ERROR_NONE);
	assert_true(back.more);
	assert_memory_equal(&back.attributes, &reply.attributes, sizeof(back.attributes));
	assert_int_equal(back.arrived + back.limit + back.count, 9 + 10 + 11);
	assert_memory_equal(&back.volume, &reply.volume, sizeof(back.volume));
	assert_string_equal(back.text, "text");
	assert_int_equal(back.bytes_size, 2);
	assert_string_equal(back.names[0], "");
	assert_true(back.fd >= 0);
	file_reply_free(&back);
	message_free(&message);
	error_set(&none, ERROR_NOT_EMPTY, "why");
	file_reply_encode(&message, 6, &reply, &none);
	assert_int_equal(file_reply_decode(&message, &id, &back, &failure, &err), 0);
	assert_int_equal(failure.code, ERROR_NOT_EMPTY);
	assert_string_equal(failure.message, "why");
	assert_int_equal(back.fd, -1);
	file_reply_free(&reply);
	message_free(&message);
}

static void
serve_needs_an_absolute_root(void **state)
{
	char relative[] = "root", absolute[] = "/root";
	struct file_serve serve = { relative, 1, 2 }, back;
	struct message message;
	struct error err;

	(void)state;
	file_serve_encode(&message, &serve);
	assert_int_equal(file_serve_decode(&message, &back, &err), -1);
	message_free(&message);
	serve.root = absolute;
	file_serve_encode(&message, &serve);
	assert_int_equal(file_serve_decode(&message, &back, &err), 0);
	assert_string_equal(back.root, "/root");
	assert_int_equal(back.limit + back.leftover_age, 3);
	file_serve_free(&back);
	message_free(&message);
}

static void
a_listing_is_read_as_it_was_made(void **state)
{
	struct file_entry entry = { 0 }, back;
	char path[] = "a/\n";
	struct file_list *list;
	struct buffer buffer;
	size_t i;
	int fd;

	(void)state;
	buffer_init(&buffer, 4096);
	entry.path = path;
	entry.attributes = (struct file_attributes){ S_IFDIR | 0755, 1, 2, 3, 4, 5, 6, -7, 8 };
	assert_int_equal(file_list_put(&buffer, &entry), 0);
	assert_int_equal(file_list_put(&buffer, &entry), 0);
	for (i = 0; i <= buffer.length; i++) {
		fd = file_content(buffer_data(&buffer), i, NULL);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		list = file_list_open(fd);
		if (i == buffer.length) {
			assert_int_equal(file_list_next(list, &back, NULL), 1);
			assert_string_equal(back.path, path);
			assert_memory_equal(
			    &back.attributes, &entry.attributes, sizeof(back.attributes));
		} else if (i >= buffer.length / 2) {
			assert_int_equal(file_list_next(list, &back, NULL), 1);
		}
		if (i == 0 || i == buffer.length / 2)
			assert_int_equal(file_list_next(list, &back, NULL), 0);
		else if (i < buffer.length)
			assert_int_equal(file_list_next(list, &back, NULL), -1);
		file_list_free(list);
	}
	buffer_free(&buffer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_survives_the_way),
		cmocka_unit_test(decode_rejects_every_cut_and_trailing_bytes),
		cmocka_unit_test(decode_rejects_what_breaks_a_rule),
		cmocka_unit_test(a_reply_survives_the_way),
		cmocka_unit_test(a_reply_whose_descriptor_was_lost_is_a_failure),
		cmocka_unit_test(serve_needs_an_absolute_root),
		cmocka_unit_test(a_listing_is_read_as_it_was_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
