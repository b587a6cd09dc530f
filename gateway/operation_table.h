/* SPDX-License-Identifier: ISC */
/*
 * The operations of a workspace as data. From this one table come the JSON-RPC methods, the MCP
 * tools with their schemas, the subcommands of rws, its completion and the reference in rws(1).
 * What an operation does stands in rpc_table.c, which only the worker carries.
 */
#ifndef GATEWAY_OPERATION_TABLE_H
#define GATEWAY_OPERATION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum operation_type {
	OPERATION_TEXT,  /* UTF-8 without NUL */
	OPERATION_PATH,  /* as text; NAME_base64 in its place for a name that is not UTF-8 */
	OPERATION_BYTES, /* any bytes: text, or NAME_base64 in its place */
	OPERATION_BOOLEAN,
	OPERATION_NUMBER,   /* min..max */
	OPERATION_DURATION, /* milliseconds, min..max; the command line takes units */
	OPERATION_SIZE,     /* bytes, min..max; the command line takes units */
	OPERATION_CHOICE,   /* one word of choices */
	OPERATION_LIST,     /* of texts */
	OPERATION_PAIRS,    /* an object whose values are texts */
	OPERATION_ID,       /* the id of another request of this connection */
	/* of results only */
	OPERATION_OBJECT,  /* one object of fields */
	OPERATION_OBJECTS, /* a list of them */
	OPERATION_PATHS,   /* a list of paths; one that is not UTF-8 is an object {"base64": ...} */
};

/* A parameter, or a field of a result. */
struct operation_field {
	const char *name;
	enum operation_type type;
	bool required; /* of a field: always there */
	int64_t min, max;
	const char *standard; /* the default in words or as JSON, NULL for none */
	const char *choices;  /* words parted by spaces */
	const char *help;
	const struct operation_field *fields; /* of OPERATION_OBJECT and OPERATION_OBJECTS */
};

enum operation_flag {
	OPERATION_READ_ONLY = 1 << 0,   /* changes nothing */
	OPERATION_DESTRUCTIVE = 1 << 1, /* may change or remove what was there */
	OPERATION_IDEMPOTENT = 1 << 2,  /* doing it twice is doing it once */
	OPERATION_NO_TOOL = 1 << 3,     /* moves a stream, which MCP tools cannot: no MCP tool */
	OPERATION_PLAIN = 1 << 4,       /* part of a protocol, not for people: no subcommand */
};

struct operation {
	/* The JSON-RPC method: "snapshot.create"; MCP tool: snapshot_create; rws: snapshot create. */
	const char *name;
	const char *title; /* a few words */
	const char *help;  /* sentences */
	unsigned flags;
	const struct operation_field *parameters; /* ends with one without a name */
	const struct operation_field *result;     /* as well */
	/* The parameters that rws takes as words, in order; the last may be "NAME...". */
	const char *words;
};

/* Ends with one without a name. */
extern const struct operation operation_table[];

/* The operation with this method name, or NULL. */
const struct operation *operation_find(const char *name);

/* The operation behind an MCP tool's name, or NULL. */
const struct operation *operation_find_tool(const char *name);

/* The field of that name in a list of them, or NULL. */
const struct operation_field *operation_field_find(
    const struct operation_field *fields, const char *name);

/* The method's name with separator for the dot; out has OPERATION_NAME_MAX bytes. */
#define OPERATION_NAME_MAX 64
const char *operation_name(
    char out[OPERATION_NAME_MAX], const struct operation *operation, char separator);

#endif
