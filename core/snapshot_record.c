/* SPDX-License-Identifier: ISC */
/* Records in JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "core/base/error.h"
#include "core/base/hex.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/random.h"
#include "core/snapshot_record.h"

#define DEPTH_MAX 4
/* Random bytes in an id, so that two snapshots of one second have two. */
#define SALT_SIZE 6

bool
snapshot_id_valid(const char *text)
{
	size_t length;

	length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return length > 0 && length <= SNAPSHOT_ID_MAX && text[length] == '\0' && *text != '-';
}

void
snapshot_record_make(struct snapshot_record *record, const struct snapshot_request *request)
{
	char salt[HEX_SIZE(SALT_SIZE)];
	struct tm when;
	time_t now;

	memset(record, 0, sizeof(*record));
	now = time(NULL);
	(void)gmtime_r(&now, &when);
	random_hex(salt, SALT_SIZE);
	if (snprintf(record->id, sizeof(record->id), "%04d%02d%02dt%02d%02d%02d-%s",
		when.tm_year + 1900, when.tm_mon + 1, when.tm_mday, when.tm_hour, when.tm_min,
		when.tm_sec, salt) >= (int)sizeof(record->id))
		log_fatal("the year is out of bounds");
	record->created = (int64_t)now;
	record->label = request->label == NULL ? NULL : memory_text(request->label);
	record->metadata = memory_list(request->metadata);
	record->exclude = memory_list(request->exclude);
	record->max_file_bytes = request->max_file_bytes;
}

void
snapshot_record_free(struct snapshot_record *record)
{
	memory_free(record->label);
	memory_list_free(record->metadata);
	memory_list_free(record->exclude);
	memset(record, 0, sizeof(*record));
}

static struct json_object *
print_list(char *const *list)
{
	struct json_object *array;

	array = json_object_new_array();
	for (; list != NULL && *list != NULL; list++)
		(void)json_object_array_add(array, json_object_new_string(*list));
	return array;
}

char *
snapshot_record_print(const struct snapshot_record *record)
{
	struct json_object *object;
	char *text;

	object = json_object_new_object();
	(void)json_object_object_add(object, "created", json_object_new_int64(record->created));
	if (record->label != NULL)
		(void)json_object_object_add(
		    object, "label", json_object_new_string(record->label));
	(void)json_object_object_add(object, "metadata", print_list(record->metadata));
	(void)json_object_object_add(object, "exclude", print_list(record->exclude));
	(void)json_object_object_add(
	    object, "max_file_bytes", json_object_new_uint64(record->max_file_bytes));
	text = memory_text_format(
	    "%s\n", json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
	return text;
}

static char **
parse_list(struct json_object *object, const char *name)
{
	struct json_object *array, *value;
	size_t i, count;
	char **list;

	count = 0;
	list = memory_zeroed(1, sizeof(*list));
	if (!json_object_object_get_ex(object, name, &array) ||
	    !json_object_is_type(array, json_type_array))
		return list;
	for (i = 0; i < (size_t)json_object_array_length(array); i++) {
		value = json_object_array_get_idx(array, i);
		if (json_object_is_type(value, json_type_string))
			list = memory_list_add(list, count++, json_object_get_string(value));
	}
	return list;
}

int
snapshot_record_parse(struct snapshot_record *record, const char *text, struct error *err)
{
	struct json_tokener *tokener;
	struct json_object *object, *value;

	tokener = json_tokener_new_ex(DEPTH_MAX);
	if (tokener == NULL)
		log_fatal("out of memory");
	object = json_tokener_parse_ex(tokener, text, (int)strlen(text));
	json_tokener_free(tokener);
	if (!json_object_is_type(object, json_type_object)) {
		json_object_put(object);
		return error_set(err, ERROR_INVALID, "the snapshot's record is damaged");
	}
	if (json_object_object_get_ex(object, "created", &value))
		record->created = json_object_get_int64(value);
	if (json_object_object_get_ex(object, "label", &value) &&
	    json_object_is_type(value, json_type_string))
		record->label = memory_text(json_object_get_string(value));
	if (json_object_object_get_ex(object, "max_file_bytes", &value))
		record->max_file_bytes = json_object_get_uint64(value);
	record->metadata = parse_list(object, "metadata");
	record->exclude = parse_list(object, "exclude");
	json_object_put(object);
	return 0;
}

int
snapshot_read_number(const char **line, char end, uint64_t *value)
{
	char word[24];
	int64_t number;
	size_t length;

	length = strspn(*line, "0123456789");
	if (length >= sizeof(word) || (*line)[length] != end)
		return -1;
	memcpy(word, *line, length);
	word[length] = '\0';
	if (number_parse(word, 0, INT64_MAX, &number, NULL) != 0)
		return -1;
	*line += length + 1;
	*value = (uint64_t)number;
	return 0;
}

int
snapshot_record_read(struct snapshot_record *record, const char *line, struct error *err)
{
	size_t length;

	memset(record, 0, sizeof(*record));
	length = strcspn(line, " ");
	if (length > SNAPSHOT_ID_MAX || line[length] != ' ')
		return error_set(err, ERROR_INVALID, "the list of snapshots is damaged");
	memcpy(record->id, line, length);
	line += length + 1;
	if (!snapshot_id_valid(record->id) ||
	    snapshot_read_number(&line, ' ', &record->archive_bytes) != 0 ||
	    snapshot_read_number(&line, ' ', &record->files) != 0 ||
	    snapshot_read_number(&line, ' ', &record->bytes) != 0)
		return error_set(err, ERROR_INVALID, "the list of snapshots is damaged");
	return snapshot_record_parse(record, line, err);
}
