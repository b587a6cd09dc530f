/* SPDX-License-Identifier: ISC */
/* The table and all that is made of it hold together. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/memory.h"
#include "gateway/cli.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"

#define PAGE_MAX 262144

static void
every_operation_has_a_handler(void **state)
{
	const struct operation *operation;
	const struct rpc_handler *handler;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++) {
		handler = rpc_handler_find(operation->name);
		assert_non_null(handler);
		assert_non_null(handler->start);
	}
	assert_null(rpc_handler_find("nope"));
}

static void
names_are_unique_and_fit_every_client(void **state)
{
	const struct operation *operation;
	char name[OPERATION_NAME_MAX];
	size_t i;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++) {
		assert_ptr_equal(operation_find(operation->name), operation);
		(void)operation_name(name, operation, '_');
		/* What the strictest of MCP's clients accept: [A-Za-z0-9_-]{1,64}. */
		for (i = 0; name[i] != '\0'; i++)
			assert_true(islower((unsigned char)name[i]) || name[i] == '_');
		if ((operation->flags & OPERATION_NO_TOOL) == 0)
			assert_ptr_equal(operation_find_tool(name), operation);
		else
			assert_null(operation_find_tool(name));
	}
}

static void
check_fields(const struct operation_field *fields, bool results)
{
	const struct operation_field *field;
	size_t length;

	for (field = fields; field->name != NULL; field++) {
		assert_ptr_equal(operation_field_find(fields, field->name), field);
		assert_non_null(field->help);
		length = strlen(field->help);
		assert_true(length > 0 && strchr(".?", field->help[length - 1]) != NULL);
		assert_true(field->min <= field->max);
		if (field->type == OPERATION_CHOICE)
			assert_non_null(field->choices);
		if (field->type == OPERATION_OBJECTS)
			check_fields(field->fields, results);
		if (!results) {
			assert_true(field->type < OPERATION_OBJECT);
			/* A number without bounds could not be told from a mistake. */
			if (field->type == OPERATION_NUMBER || field->type == OPERATION_SIZE ||
			    field->type == OPERATION_DURATION)
				assert_true(field->max > field->min);
			assert_true(!field->required || field->standard == NULL);
		}
	}
}

static void
every_field_is_described_and_bounded(void **state)
{
	const struct operation *operation;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++) {
		assert_true(strlen(operation->title) > 0 && strlen(operation->title) < 40);
		assert_true(strlen(operation->help) > 0);
		check_fields(operation->parameters, false);
		check_fields(operation->result, true);
	}
}

static void
what_only_reads_destroys_nothing(void **state)
{
	const struct operation *operation;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++)
		if ((operation->flags & OPERATION_READ_ONLY) != 0)
			assert_int_equal(operation->flags & OPERATION_DESTRUCTIVE, 0);
}

static void
plain_words_are_parameters(void **state)
{
	const struct operation *operation;
	const char *at;
	size_t length;
	char *name;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++) {
		for (at = operation->words; *at != '\0'; at += length + (at[length] == ' ')) {
			length = strcspn(at, " ");
			name = memory_text_bounded(at, length);
			assert_non_null(operation_field_find(operation->parameters, name));
			memory_free(name);
		}
	}
}

/* Every schema is an object, and names each parameter with a type and a description. */
static void
check_schema(struct json_object *schema, const struct operation_field *fields)
{
	struct json_object *properties, *property, *value;

	assert_true(json_object_object_get_ex(schema, "type", &value));
	assert_string_equal(json_object_get_string(value), "object");
	assert_true(json_object_object_get_ex(schema, "properties", &properties));
	for (; fields->name != NULL; fields++) {
		assert_true(json_object_object_get_ex(properties, fields->name, &property));
		assert_true(json_object_object_get_ex(property, "type", &value));
		assert_true(json_object_object_get_ex(property, "description", &value));
		if (fields->choices != NULL)
			assert_true(json_object_object_get_ex(property, "enum", &value));
		if (fields->type == OPERATION_OBJECTS) {
			assert_true(json_object_object_get_ex(property, "items", &value));
			check_schema(value, fields->fields);
		}
	}
}

static void
schemas_name_every_field(void **state)
{
	const struct operation *operation;
	struct json_object *schema;

	(void)state;
	for (operation = operation_table; operation->name != NULL; operation++) {
		schema = rpc_schema_input(operation);
		check_schema(schema, operation->parameters);
		json_object_put(schema);
		schema = rpc_schema_output(operation);
		check_schema(schema, operation->result);
		json_object_put(schema);
	}
}

static void
what_is_required_is_so_in_the_schema(void **state)
{
	struct json_object *schema, *required;

	(void)state;
	schema = rpc_schema_input(operation_find("rename"));
	assert_true(json_object_object_get_ex(schema, "required", &required));
	assert_string_equal(
	    json_object_to_json_string_ext(required, JSON_C_TO_STRING_PLAIN), "[\"path\",\"to\"]");
	json_object_put(schema);
	/* Bytes may come as base64 instead, so a schema must not insist. */
	schema = rpc_schema_input(operation_find("write"));
	assert_true(json_object_object_get_ex(schema, "required", &required));
	assert_string_equal(
	    json_object_to_json_string_ext(required, JSON_C_TO_STRING_PLAIN), "[\"path\"]");
	json_object_put(schema);
}

static void
the_manual_page_holds_the_reference_that_the_table_makes(void **state)
{
	struct error err;
	char *page, *reference;
	size_t size;
	FILE *file;

	(void)state;
	file = open_memstream(&reference, &size);
	assert_non_null(file);
	cli_help_manual(file);
	assert_int_equal(fclose(file), 0);
	page = descriptor_read_file(AT_FDCWD, "gateway/rws.1", PAGE_MAX, NULL, &err);
	assert_non_null(page);
	if (strstr(page, reference) == NULL)
		fail_msg("gateway/rws.1 is not what \"rws help manual\" prints");
	free(reference);
	memory_free(page);
}

static void
help_names_every_operation_for_people(void **state)
{
	const struct operation *operation;
	char name[OPERATION_NAME_MAX], *text;
	size_t size;
	FILE *file;

	(void)state;
	file = open_memstream(&text, &size);
	assert_non_null(file);
	cli_help(file);
	assert_int_equal(fclose(file), 0);
	for (operation = operation_table; operation->name != NULL; operation++)
		if ((operation->flags & OPERATION_PLAIN) == 0)
			assert_non_null(strstr(text, operation_name(name, operation, ' ')));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_has_a_handler),
		cmocka_unit_test(names_are_unique_and_fit_every_client),
		cmocka_unit_test(every_field_is_described_and_bounded),
		cmocka_unit_test(what_only_reads_destroys_nothing),
		cmocka_unit_test(plain_words_are_parameters),
		cmocka_unit_test(schemas_name_every_field),
		cmocka_unit_test(what_is_required_is_so_in_the_schema),
		cmocka_unit_test(the_manual_page_holds_the_reference_that_the_table_makes),
		cmocka_unit_test(help_names_every_operation_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
