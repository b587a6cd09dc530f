/* SPDX-License-Identifier: ISC */
/*
 * The messages of the records process, in the manner of core/protocol.h:
 *
 *	listener -> records       RECORDS_CONFIGURE, RECORDS_ATTACH
 *	records  -> listener      RECORDS_ORPHAN; what else the two say is in core/record_list.h
 *	listener -> worker        WORKER_RECORDS, WORKER_RECLAIM
 *	worker   -> records       RECORD_CLAIM, RECORD_READY, RECORD_USED, RECORD_SETTLED, RECORD_RELEASE,
 *	                          RECORD_RELEASED
 *	records  -> worker        RECORD_CLAIMED, RECORD_WAITING, RECORD_MAY_RELEASE
 *
 * A worker's socket belongs to one workspace, which the listener names: no worker can ask about, or
 * change, what is recorded of another.
 */
#ifndef CORE_RECORD_PROTOCOL_H
#define CORE_RECORD_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct message;

enum record_message {
	MESSAGE_RECORDS_CONFIGURE = 140,
	MESSAGE_RECORDS_ATTACH,
	MESSAGE_RECORDS_ORPHAN,
	MESSAGE_WORKER_RECORDS,
	MESSAGE_WORKER_RECLAIM,
	MESSAGE_RECORD_CLAIM,
	MESSAGE_RECORD_CLAIMED,
	MESSAGE_RECORD_WAITING,
	MESSAGE_RECORD_READY,
	MESSAGE_RECORD_USED,
	MESSAGE_RECORD_SETTLED,
	MESSAGE_RECORD_RELEASE,
	MESSAGE_RECORD_MAY_RELEASE,
	MESSAGE_RECORD_RELEASED,
};

/* listener -> records, first: where the records are. */
struct records_configure {
	/* A postgresql:// URL, which may hold a password; NULL: SQLite in directory. */
	char *database;
	char *run; /* names this run of this gateway, different each time it is started */
	/* Only say with RECORDS_STATE whether the database can be used, and change nothing. */
	bool check;
	int directory; /* of the records' own; encode passes it on; after decode it is the caller's */
};
void records_configure_encode(struct message *message, const struct records_configure *configure);
int records_configure_decode(
    struct message *message, struct records_configure *configure, struct error *err);
void records_configure_free(
    struct records_configure *configure); /* wipes; leaves the directory alone */

/* listener -> records: a worker's end of a socket, and whose it is. */
struct records_attach {
	char *login;
	char *instance; /* INSTANCE, "=ID", or empty: what follows the login's name */
	char *driver;
	bool here;    /* the sandbox is of this machine: other gateways have another of that name */
	int64_t idle; /* ms; idle_timeout */
	int64_t limit; /* max_instances */
	int fd;        /* encode passes it on; after decode it is the caller's */
};
void records_attach_encode(struct message *message, const struct records_attach *attach);
int records_attach_decode(
    struct message *message, struct records_attach *attach, struct error *err);
void records_attach_free(struct records_attach *attach); /* leaves fd alone */

/* records -> listener: nobody has used this sandbox for its idle time, and no gateway has a worker for it. */
struct records_orphan {
	char *login;
	char *instance;
};
void records_orphan_encode(struct message *message, const struct records_orphan *orphan);
int records_orphan_decode(
    struct message *message, struct records_orphan *orphan, struct error *err);
void records_orphan_free(struct records_orphan *orphan);

/* listener -> worker: its end of a socket to the records; again when that process was started anew. */
void worker_records_encode(struct message *message, int fd);
int worker_records_decode(struct message *message, int *fd, struct error *err);

/* worker -> records: what sandbox is mine? */
struct record_claim {
	char *lost; /* the id that was told last time is not there any more; NULL: no such thing */
	bool reclaim; /* only to dispose of it: this is no use of the sandbox */
};
void record_claim_encode(struct message *message, const struct record_claim *claim);
int record_claim_decode(struct message *message, struct record_claim *claim, struct error *err);
void record_claim_free(struct record_claim *claim);

/* records -> worker: the answer. */
struct record_claimed {
	bool failed;
	struct error failure;
	char *sandbox;  /* NULL: none is known; make one, and tell with RECORD_READY */
	bool created;   /* it was made by us, not attached to */
	bool doubtful;  /* somebody may have made one and was killed before it could be recorded */
	bool is_shared; /* other gateways may use the sandbox too */
};
void record_claimed_encode(struct message *message, const struct record_claimed *claimed);
int record_claimed_decode(
    struct message *message, struct record_claimed *claimed, struct error *err);
void record_claimed_free(struct record_claimed *claimed);

/* worker -> records: this is the sandbox. Said again to a records process that was started anew. */
struct record_ready {
	/* decode takes what login_id_valid does: the worker may be anybody's by now */
	char *sandbox;
	bool created;
};
void record_ready_encode(struct message *message, const struct record_ready *ready);
int record_ready_decode(struct message *message, struct record_ready *ready, struct error *err);
void record_ready_free(struct record_ready *ready);

/* What became of a sandbox that was given back. */
enum record_outcome {
	RECORD_DESTROYED,
	RECORD_STOPPED,
	RECORD_KEPT,
	RECORD_UNKNOWN, /* the provider failed: it is tried again later */
	RECORD_OUTCOMES,
};

/*
 * Messages of one value; RECORD_WAITING and RECORD_SETTLED have none. The flag of RECORD_USED: is there a
 * session; of RECORD_RELEASE: does somebody ask for it, or is the sandbox merely idle; of RECORD_MAY_RELEASE:
 * the answer.
 */
void record_flag_encode(struct message *message, uint8_t type, bool flag);
int record_flag_decode(struct message *message, bool *flag, struct error *err);
void record_released_encode(struct message *message, enum record_outcome outcome);
int record_released_decode(
    struct message *message, enum record_outcome *outcome, struct error *err);

#endif
