/* SPDX-License-Identifier: ISC */
/* What the Vercel driver reads of a token, says of itself, and reads of answers. */
#include <stdio.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/json.h"
#include "drivers/kinds.h"
#include "drivers/pack.h"
#include "drivers/vercel_control.h"
#include "drivers/vercel_credentials.h"
#include "drivers/vercel_event.h"

static struct settings *
make_settings(const char *const *pairs)
{
	static const struct option *tables[2];
	struct settings *settings;
	struct error err;

	tables[0] = driver_vercel_kind.options;
	settings = settings_new(tables);
	for (; pairs[0] != NULL; pairs += 2)
		if (settings_set(settings, pairs[0], pairs[1], &err) != 0)
			fail_msg("%s: %s", pairs[0], err.message);
	return settings;
}

/* A token as Vercel makes them, with these claims. */
static char *
make_token(const char *claims)
{
	char *encoded, *token, *at;

	encoded = base64_text(claims, strlen(claims));
	encoded[strcspn(encoded, "=")] = '\0';
	for (at = encoded; *at != '\0'; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
	token = memory_text_format("eyJhbGciOiJSUzI1NiJ9.%s.c2lnbmF0dXJl", encoded);
	memory_free(encoded);
	return token;
}

static void
credentials_are_a_token_with_a_team_and_a_project(void **state)
{
	const char *const pairs[] = { "token", "tok", "team_id", "team_1", "project_id", "prj_1",
		"oidc_token", "not.looked.at", NULL };
	struct vercel_credentials credentials = { 0 };
	struct settings *settings = make_settings(pairs);
	struct error err;

	(void)state;
	assert_int_equal(vercel_credentials_read(settings, &credentials, &err), 0);
	assert_string_equal(credentials.token, "tok");
	assert_string_equal(credentials.team, "team_1");
	assert_string_equal(credentials.project, "prj_1");
	assert_int_equal(credentials.expires, 0);
	assert_int_equal(vercel_credentials_check(&credentials, INT64_MAX / 2, &err), 0);
	vercel_credentials_free(&credentials);
	settings_free(settings);
}

static void
credentials_are_read_from_an_oidc_token(void **state)
{
	struct vercel_credentials credentials = { 0 };
	char *token;
	struct error err;

	(void)state;
	/* Claims whose base64 has both of the characters that base64url writes differently. */
	token = make_token("{\"owner_id\":\"team_x\",\"project_id\":\"prj_y\",\"exp\":1700000000,"
			   "\"owner\":\"\xc3\xbf\xc3\xbe?>~~\"}");
	assert_int_equal(vercel_credentials_decode(token, &credentials, &err), 0);
	assert_string_equal(credentials.team, "team_x");
	assert_string_equal(credentials.project, "prj_y");
	assert_int_equal(credentials.expires, 1700000000);
	assert_int_equal(vercel_credentials_check(&credentials, 1699999999, &err), 0);
	assert_int_equal(vercel_credentials_check(&credentials, 1700000000, &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "ended at 2023-11-14 22:13 UTC"));
	assert_non_null(strstr(err.message, "vercel env pull"));
	vercel_credentials_free(&credentials);
	memory_free(token);
}

static void
credentials_refuse_what_is_no_oidc_token(void **state)
{
	static const char *const bad[] = { "", "abc", "a.b", "a.!!!.c", "a..c", "a.e30.c",
		"a.eyJvd25lcl9pZCI6InQifQ.c", "a.bnVsbA.c" };
	struct vercel_credentials credentials = { 0 };
	char *token;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(vercel_credentials_decode(bad[i], &credentials, &err), -1);
	token = make_token("{\"owner_id\":\"team/../x\",\"project_id\":\"prj\"}");
	assert_int_equal(vercel_credentials_decode(token, &credentials, &err), -1);
	assert_null(credentials.team);
	memory_free(token);
}

static void
expect_event(const char *line, enum vercel_event_kind kind)
{
	struct vercel_event event;
	struct error err;

	if (vercel_event_decode(line, strlen(line), &event, &err) != 0)
		fail_msg("%s: %s", line, err.message);
	assert_int_equal(event.kind, kind);
	vercel_event_free(&event);
}

static void
events_are_told_apart(void **state)
{
	(void)state;
	expect_event("{\"command\":{\"id\":\"cmd_1\",\"exitCode\":null}}", VERCEL_COMMAND);
	expect_event("{\"stream\":\"stdout\",\"data\":\"x\"}", VERCEL_STDOUT);
	expect_event("{\"stream\":\"stderr\",\"data\":\"\"}", VERCEL_STDERR);
	expect_event("{\"stream\":\"error\",\"data\":{\"code\":\"c\"}}", VERCEL_FAULT);
	expect_event("{\"stream\":\"stdout\",\"data\":{}}", VERCEL_OTHER);
	expect_event("{\"stream\":\"news\",\"data\":\"x\"}", VERCEL_OTHER);
	expect_event("", VERCEL_OTHER);
	expect_event("\r", VERCEL_OTHER);
}

static void
an_exit_is_known_only_when_it_is_a_number(void **state)
{
	static const char *const lines[] = { "{\"command\":{\"id\":\"cmd_1\",\"exitCode\":0}}",
		"{\"command\":{\"id\":\"cmd_1\",\"exitCode\":null}}",
		"{\"command\":{\"id\":\"cmd_1\",\"exitCode\":\"0\"}}",
		"{\"command\":{\"id\":\"cmd_1\"}}" };
	struct vercel_event event;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(vercel_event_decode(lines[i], strlen(lines[i]), &event, NULL), 0);
		assert_string_equal(event.id, "cmd_1");
		assert_int_equal(event.has_exit, i == 0);
		vercel_event_free(&event);
	}
}

static void
an_id_that_would_be_another_path_is_none(void **state)
{
	static const char line[] = "{\"command\":{\"id\":\"../x\",\"exitCode\":0}}";
	struct vercel_event event;

	(void)state;
	assert_int_equal(vercel_event_decode(line, strlen(line), &event, NULL), 0);
	assert_null(event.id);
	vercel_event_free(&event);
}

static void
output_may_hold_nul(void **state)
{
	static const char line[] = "{\"stream\":\"stdout\",\"data\":\"a\\u0000b\"}";
	struct vercel_event event;

	(void)state;
	assert_int_equal(vercel_event_decode(line, strlen(line), &event, NULL), 0);
	assert_int_equal(event.size, 3);
	assert_memory_equal(event.data, "a\0b", 3);
	vercel_event_free(&event);
}

static void
a_line_that_is_no_object_is_an_error(void **state)
{
	static const char *const bad[] = { "[]", "null", "{\"stream\":", "{\"stream\": stdout}" };
	struct vercel_event event;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(vercel_event_decode(bad[i], strlen(bad[i]), &event, &err), -1);
		vercel_event_free(&event);
	}
}

static void
expect_own_name(const char *option, const char *login, const char *expected)
{
	const char *const pairs[] = { option == NULL ? NULL : "name", option, NULL };
	struct driver_sandbox sandbox = { 0 };
	struct settings *settings = make_settings(pairs);
	char *name;

	sandbox.context.settings = settings;
	sandbox.context.login = login;
	name = vercel_own_name(&sandbox);
	if (expected == NULL)
		assert_null(name);
	else
		assert_string_equal(name, expected);
	memory_free(name);
	settings_free(settings);
}

static void
instances_of_a_named_login_have_names_of_their_own(void **state)
{
	(void)state;
	expect_own_name(NULL, "build", NULL);
	expect_own_name("box", "build", "box");
	expect_own_name("box", "build+two", "box--two");
	expect_own_name("box", "build+v1.2", "box--v1_2");
}

static void
read_look(const char *body, struct vercel_look *look, int expected)
{
	struct driver_sandbox sandbox = { 0 };
	struct http_answer answer = { .outcome = HTTP_DONE, .status = 200 };
	struct error err;

	sandbox.context.instance = "gw/box";
	answer.body = (const unsigned char *)body;
	answer.size = strlen(body);
	assert_int_equal(vercel_read_look(&sandbox, &answer, look, &err), expected);
}

static void
an_answer_tells_what_runs(void **state)
{
	struct vercel_look look;

	(void)state;
	read_look("{\"sandbox\":{\"name\":\"n\",\"persistent\":true,\"tags\":{\"rws-instance\":"
		  "\"gw/box\"}},\"session\":{\"id\":\"sbx_1\",\"status\":\"running\",\"cwd\":"
		  "\"/vercel\",\"timeout\":300000,\"createdAt\":5,\"startedAt\":7},"
		  "\"resumed\":true}",
	    &look, 0);
	assert_string_equal(look.name, "n");
	assert_string_equal(look.session, "sbx_1");
	assert_string_equal(look.directory, "/vercel");
	assert_int_equal(look.state, VERCEL_RUNNING);
	assert_int_equal(look.began, 7);
	assert_int_equal(look.timeout, 300000);
	assert_true(look.is_persistent && look.is_resumed && look.is_ours);
	vercel_look_clear(&look);
}

static void
an_answer_with_the_wrong_types_tells_nothing(void **state)
{
	struct vercel_look look;

	(void)state;
	read_look("{\"sandbox\":[],\"session\":{\"id\":\"sbx_1\",\"status\":1,\"cwd\":\"here\","
		  "\"timeout\":-1,\"createdAt\":\"now\"}}",
	    &look, 0);
	assert_null(look.name);
	assert_null(look.directory);
	assert_int_equal(look.state, VERCEL_PENDING);
	assert_int_equal(look.timeout, 0);
	assert_int_equal(look.began, 0);
	assert_false(look.is_persistent || look.is_resumed || look.is_ours);
	vercel_look_clear(&look);
	read_look("{\"session\":{\"id\":\"../secrets\"}}", &look, -1);
	read_look("{\"session\":{\"id\":\"sbx_1\"},\"sandbox\":{\"name\":\"..\"}}", &look, -1);
	read_look(
	    "{\"session\":{\"id\":\"sbx_1\"},\"sandbox\":{\"name\":\"\\u001b]0;a\"}}", &look, -1);
	read_look("{}", &look, -1);
	read_look("<html></html>", &look, -1);
}

static void
a_name_that_would_be_another_path_is_not_in_the_list(void **state)
{
	static const char body[] =
	    "{\"sandboxes\":[{\"name\":\"..\",\"status\":\"running\",\"tags\":{\"rws-instance\":"
	    "\"gw/box\"}},{\"name\":\"a/b\",\"status\":\"running\",\"tags\":{\"rws-instance\":"
	    "\"gw/box\"}},{\"name\":\"right\",\"status\":\"stopped\",\"tags\":{\"rws-instance\":"
	    "\"gw/box\"}}]}";
	struct http_answer answer = { .outcome = HTTP_DONE, .status = 200 };
	struct driver_sandbox sandbox = { 0 };
	char *name, *cursor, mine[] = "mine", **ids = NULL;
	struct error err;
	size_t count = 0;

	(void)state;
	sandbox.context.instance = "gw/box";
	answer.body = (const unsigned char *)body;
	answer.size = strlen(body);
	assert_int_equal(vercel_find_ours(&sandbox, &answer, &name, &cursor, &err), 0);
	assert_string_equal(name, "right");
	memory_free(name);
	sandbox.name = mine;
	cursor = NULL;
	assert_int_equal(
	    vercel_list_others(&sandbox, &answer, true, &ids, &count, &cursor, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(ids[0], "right");
	memory_list_free(ids);
}

/* What an archive holds, by libarchive. */
static void
expect_archive(const struct buffer *packed, const char *path, const char *content, size_t size)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	char *read;

	assert_int_equal(archive_read_support_format_tar(archive), ARCHIVE_OK);
	assert_int_equal(archive_read_support_filter_gzip(archive), ARCHIVE_OK);
	assert_int_equal(
	    archive_read_open_memory(archive, buffer_data(packed), packed->length), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(archive, &entry), ARCHIVE_OK);
	assert_string_equal(archive_entry_pathname(entry), path);
	assert_int_equal(archive_entry_filetype(entry), AE_IFREG);
	assert_int_equal(archive_entry_perm(entry), 0600);
	assert_int_equal(archive_entry_size(entry), size);
	read = memory_allocate(size + 1);
	assert_int_equal(archive_read_data(archive, read, size + 1), size);
	assert_memory_equal(read, content, size);
	memory_free(read);
	assert_int_equal(archive_read_next_header(archive, &entry), ARCHIVE_EOF);
	(void)archive_read_free(archive);
}

static void
expect_packed(const char *path, size_t size)
{
	const struct buffer *packed;
	struct pack *pack;
	struct error err;
	char *content;
	size_t i, piece;

	content = memory_allocate(size + 1);
	for (i = 0; i < size; i++)
		content[i] = (char)(i * 7 ^ i >> 5);
	pack = pack_new(path, size, &err);
	assert_non_null(pack);
	for (i = 0; i < size; i += piece) {
		piece = size - i < 5000 ? size - i : 5000;
		assert_int_equal(pack_put(pack, content + i, piece, &err), 0);
	}
	packed = pack_finish(pack, &err);
	assert_non_null(packed);
	expect_archive(packed, path + 1, content, size);
	pack_free(pack);
	memory_free(content);
}

static void
a_file_is_packed_under_any_name(void **state)
{
	char *deep;

	(void)state;
	expect_packed("/tmp/empty", 0);
	expect_packed("/tmp/.rws-x", 1);
	expect_packed("/tmp/\xff\xfe\n name", 100000);
	deep = memory_text_format("/tmp/%0120d/%0200d", 1, 2);
	expect_packed(deep, 12345);
	memory_free(deep);
}

static void
more_than_was_announced_is_not_packed(void **state)
{
	struct pack *pack;
	struct error err;

	(void)state;
	pack = pack_new("/tmp/file", 3, &err);
	assert_int_equal(pack_put(pack, "abc", 3, &err), 0);
	assert_int_equal(pack_put(pack, "d", 1, &err), -1);
	pack_free(pack);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credentials_are_a_token_with_a_team_and_a_project),
		cmocka_unit_test(credentials_are_read_from_an_oidc_token),
		cmocka_unit_test(credentials_refuse_what_is_no_oidc_token),
		cmocka_unit_test(events_are_told_apart),
		cmocka_unit_test(an_exit_is_known_only_when_it_is_a_number),
		cmocka_unit_test(an_id_that_would_be_another_path_is_none),
		cmocka_unit_test(output_may_hold_nul),
		cmocka_unit_test(a_line_that_is_no_object_is_an_error),
		cmocka_unit_test(instances_of_a_named_login_have_names_of_their_own),
		cmocka_unit_test(an_answer_tells_what_runs),
		cmocka_unit_test(an_answer_with_the_wrong_types_tells_nothing),
		cmocka_unit_test(a_name_that_would_be_another_path_is_not_in_the_list),
		cmocka_unit_test(a_file_is_packed_under_any_name),
		cmocka_unit_test(more_than_was_announced_is_not_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
