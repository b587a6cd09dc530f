/* SPDX-License-Identifier: ISC */
/* Records of snapshots as they stand in the sandbox, where any command may have changed them. */
#ifndef CORE_SNAPSHOT_RECORD_H
#define CORE_SNAPSHOT_RECORD_H

#include <stdbool.h>

#include "core/snapshot.h"

/* A new record of a snapshot that is made now, with an id that cannot be guessed. */
void snapshot_record_make(struct snapshot_record *record, const struct snapshot_request *request);
void snapshot_record_free(struct snapshot_record *record);

/* One line of JSON, ended by a newline; new. */
char *snapshot_record_print(const struct snapshot_record *record);

/* The JSON of a record; text is terminated. -1 when it is none. */
int snapshot_record_parse(struct snapshot_record *record, const char *text, struct error *err);

/* A line "ID ARCHIVE_BYTES FILES BYTES JSON" of the script's list. */
int snapshot_record_read(struct snapshot_record *record, const char *line, struct error *err);

/* The number at *line, which byte end follows; moves on behind that. -1 when there is none. */
int snapshot_read_number(const char **line, char end, uint64_t *value);

/* Could text be an id? It becomes a name in the sandbox. */
bool snapshot_id_valid(const char *text);

#endif
