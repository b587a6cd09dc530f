/* SPDX-License-Identifier: ISC */
/* Reading JSON that somebody else wrote: with limits, and without trust in types. */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

struct error;

/*
 * The object or array that the whole of data is, or NULL. Nesting is limited; the caller puts it
 * (json_object_put).
 */
struct json_object *json_parse(const void *data, size_t size, struct error *err);

/* As json_parse, and it is an object. */
struct json_object *json_parse_object(const void *data, size_t size, struct error *err);

/* Members of an object; NULL (or false) when they are missing or of another type. */
struct json_object *json_member(
    const struct json_object *object, const char *name, enum json_type type);
bool json_boolean(const struct json_object *object, const char *name);

/* A text without NUL in it; belongs to the object. */
const char *json_text(const struct json_object *object, const char *name);

/* An integer within [min, max], else fallback. */
int64_t json_number(
    const struct json_object *object, const char *name, int64_t min, int64_t max, int64_t fallback);

/* Adds a text; text NULL adds nothing. */
void json_add_text(struct json_object *object, const char *name, const char *text);

/* The text to send; belongs to the object. */
const char *json_print(struct json_object *object);

#endif
