/* SPDX-License-Identifier: ISC */
/*
 * JSON Schemas of the operations, from their table. They keep to what all dialects of JSON Schema
 * share, as clients of different protocol revisions read them.
 */
#include <string.h>

#include <json-c/json.h>

#include "core/base/memory.h"
#include "gateway/operation_table.h"
#include "gateway/rpc_call.h"
#include "gateway/rpc_json.h"

static const char *
type_name(enum operation_type type)
{
	switch (type) {
	case OPERATION_BOOLEAN:
		return "boolean";
	case OPERATION_NUMBER:
	case OPERATION_DURATION:
	case OPERATION_SIZE:
		return "integer";
	case OPERATION_LIST:
	case OPERATION_OBJECTS:
	case OPERATION_PATHS:
		return "array";
	case OPERATION_PAIRS:
	case OPERATION_OBJECT:
		return "object";
	default:
		return "string";
	}
}

static struct json_object *
new_type(const char *name)
{
	struct json_object *schema;

	schema = json_object_new_object();
	rpc_json_put_text(schema, "type", name);
	return schema;
}

static struct json_object *
choices_list(const char *choices)
{
	struct json_object *list;
	size_t length;

	list = json_object_new_array();
	for (; *choices != '\0'; choices += length + (choices[length] == ' ')) {
		length = strcspn(choices, " ");
		(void)json_object_array_add(list, json_object_new_string_len(choices, (int)length));
	}
	return list;
}

/* A path in a list: a text, or an object when it is not UTF-8. */
static struct json_object *
path_schema(void)
{
	struct json_object *schema, *either, *object, *properties;

	schema = json_object_new_object();
	either = json_object_new_array();
	(void)json_object_array_add(either, new_type("string"));
	object = new_type("object");
	properties = json_object_new_object();
	(void)json_object_object_add(properties, "base64", new_type("string"));
	(void)json_object_object_add(object, "properties", properties);
	(void)json_object_array_add(either, object);
	(void)json_object_object_add(schema, "anyOf", either);
	return schema;
}

static struct json_object *fields_schema(const struct operation_field *fields, bool results);

static void
add_shape(struct json_object *schema, const struct operation_field *field, bool results)
{
	if (field->type == OPERATION_LIST)
		(void)json_object_object_add(schema, "items", new_type("string"));
	else if (field->type == OPERATION_PATHS)
		(void)json_object_object_add(schema, "items", path_schema());
	else if (field->type == OPERATION_PAIRS)
		(void)json_object_object_add(schema, "additionalProperties", new_type("string"));
	else if (field->type == OPERATION_OBJECTS)
		(void)json_object_object_add(
		    schema, "items", fields_schema(field->fields, results));
	else if (field->choices != NULL)
		(void)json_object_object_add(schema, "enum", choices_list(field->choices));
	if (field->max > field->min) {
		rpc_json_put_number(schema, "minimum", field->min);
		rpc_json_put_number(schema, "maximum", field->max);
	}
}

/* Its help, the unit of a number, and the default. */
static char *
description(const struct operation_field *field)
{
	const char *unit;

	unit = field->type == OPERATION_DURATION ? " In milliseconds."
	       : field->type == OPERATION_SIZE   ? " In bytes."
						 : "";
	if (field->standard == NULL)
		return memory_text_format("%s%s", field->help, unit);
	return memory_text_format("%s%s Default: %s.", field->help, unit, field->standard);
}

static struct json_object *
field_schema(const struct operation_field *field, bool results)
{
	struct json_object *schema;
	char *help;

	schema = field->type == OPERATION_OBJECT ? fields_schema(field->fields, results)
						 : new_type(type_name(field->type));
	add_shape(schema, field, results);
	help = description(field);
	rpc_json_put_text(schema, "description", help);
	memory_free(help);
	return schema;
}

static void
add_base64(struct json_object *properties, const struct operation_field *field)
{
	struct json_object *schema;
	char *name, *help;

	name = memory_text_format("%s_base64", field->name);
	help = memory_text_format(
	    "In place of %s: base64 of bytes that are not UTF-8.", field->name);
	schema = new_type("string");
	rpc_json_put_text(schema, "description", help);
	(void)json_object_object_add(properties, name, schema);
	memory_free(name);
	memory_free(help);
}

/* What may come as NAME_base64 instead is not required, whatever the table says. */
static struct json_object *
fields_schema(const struct operation_field *fields, bool results)
{
	struct json_object *schema, *properties, *required;
	bool bytes;

	schema = new_type("object");
	properties = json_object_new_object();
	required = json_object_new_array();
	for (; fields->name != NULL; fields++) {
		bytes = fields->type == OPERATION_BYTES ||
			(fields->type == OPERATION_PATH && results);
		(void)json_object_object_add(
		    properties, fields->name, field_schema(fields, results));
		if (bytes)
			add_base64(properties, fields);
		if (fields->required && !bytes)
			(void)json_object_array_add(required, json_object_new_string(fields->name));
	}
	(void)json_object_object_add(schema, "properties", properties);
	if (json_object_array_length(required) > 0)
		(void)json_object_object_add(schema, "required", required);
	else
		json_object_put(required);
	return schema;
}

struct json_object *
rpc_schema_input(const struct operation *operation)
{
	return fields_schema(operation->parameters, false);
}

struct json_object *
rpc_schema_output(const struct operation *operation)
{
	return fields_schema(operation->result, true);
}
