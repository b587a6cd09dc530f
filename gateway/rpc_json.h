/* SPDX-License-Identifier: ISC */
/*
 * JSON as the operations read and write it. Bytes that are not UTF-8 stand in NAME_base64 instead
 * of NAME. The getters are for parameters that the table's check has passed.
 */
#ifndef GATEWAY_RPC_JSON_H
#define GATEWAY_RPC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Adds NAME, or NAME_base64. */
void rpc_json_put_bytes(
    struct json_object *object, const char *name, const void *data, size_t size);
/* Always as NAME_base64. */
void rpc_json_put_base64(
    struct json_object *object, const char *name, const void *data, size_t size);
void rpc_json_put_text(struct json_object *object, const char *name, const char *text);
void rpc_json_put_number(struct json_object *object, const char *name, int64_t value);
void rpc_json_put_boolean(struct json_object *object, const char *name, bool value);

/*
 * Are there at most max values in the text? Each takes json-c some hundred bytes, two in the text.
 */
bool rpc_json_is_modest(const char *text, size_t size, size_t max);

/* A path as an entry of a list: a string, or {"base64": ...}; new. */
struct json_object *rpc_json_path(const char *path);

/* Such an entry's bytes; new. NULL when it is neither. */
char *rpc_json_get_path(struct json_object *value, size_t *size);

/* A value, or the one given when it is not there. Texts belong to the object. */
const char *rpc_json_get_text(struct json_object *object, const char *name, const char *otherwise);
int64_t rpc_json_get_number(struct json_object *object, const char *name, int64_t otherwise);
bool rpc_json_get_boolean(struct json_object *object, const char *name, bool otherwise);
bool rpc_json_has(struct json_object *object, const char *name);

/*
 * NAME or NAME_base64 as a new terminated text, with its size;
 * NULL when neither is there or it is no base64.
 */
char *rpc_json_get_bytes(struct json_object *object, const char *name, size_t *size);

/* A list of texts as a new NULL-ended list, empty when it is not there. */
char **rpc_json_get_list(struct json_object *object, const char *name);

/* An object of texts as a new NULL-ended list of NAME=VALUE. */
char **rpc_json_get_pairs(struct json_object *object, const char *name);

#endif
