/* SPDX-License-Identifier: ISC */
/*
 * The worker's way to the records. The records process may end and be started anew, and its database
 * may be away; so a question has a deadline, and is asked again of the next process, which is also told
 * again what we have.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/record_protocol.h"
#include "core/workspace.h"
#include "gateway/worker.h"

/* ms without a word from the records. */
#define ANSWER_WAIT 15000
/* ms for what is told at the end to arrive. */
#define LAST_WAIT 2000

enum question {
	QUESTION_NONE,
	QUESTION_CLAIM,
	QUESTION_RELEASE,
};

static struct {
	struct worker *worker;
	struct peer *peer; /* NULL while there is no records process */
	enum question question;
	struct record_claim claim;
	bool is_asked; /* for a release */
	struct record_ready ready;
	bool is_used;
	struct loop_timer *deadline;
} state;

/* Without a process to tell it to, it is told to the next one with all else: see worker_records_open. */
static void
send(struct message *message)
{
	if (state.peer != NULL)
		peer_send(state.peer, message);
	else
		message_free(message);
}

static void
ask(void)
{
	struct message message;

	if (state.question == QUESTION_CLAIM)
		record_claim_encode(&message, &state.claim);
	else
		record_flag_encode(&message, MESSAGE_RECORD_RELEASE, state.is_asked);
	send(&message);
}

static void
end_question(void)
{
	state.question = QUESTION_NONE;
	record_claim_free(&state.claim);
	loop_timer_stop(state.deadline);
}

static void
deadline_expired(void *argument)
{
	struct record_claimed claimed = { .failed = true };
	enum question question = state.question;

	(void)argument;
	end_question();
	if (question == QUESTION_RELEASE) {
		workspace_may_release(state.worker->workspace, false);
		return;
	}
	error_set(&claimed.failure, ERROR_UNAVAILABLE, "the gateway's records do not answer");
	workspace_claimed(state.worker->workspace, &claimed);
}

static void
claim(void *argument, const char *lost, bool reclaim)
{
	(void)argument;
	end_question();
	state.question = QUESTION_CLAIM;
	state.claim.lost = lost == NULL ? NULL : memory_text(lost);
	state.claim.reclaim = reclaim;
	loop_timer_start(state.deadline, ANSWER_WAIT);
	ask();
}

static void
tell_ready(void)
{
	struct message message;

	record_ready_encode(&message, &state.ready);
	send(&message);
}

static void
ready(void *argument, const char *id, bool created)
{
	(void)argument;
	record_ready_free(&state.ready);
	state.ready.sandbox = memory_text(id);
	state.ready.created = created;
	tell_ready();
}

static void
settled(void *argument)
{
	struct message message;

	(void)argument;
	message_start(&message, MESSAGE_RECORD_SETTLED);
	send(&message);
}

static void
release(void *argument, bool is_asked)
{
	(void)argument;
	end_question();
	state.question = QUESTION_RELEASE;
	state.is_asked = is_asked;
	loop_timer_start(state.deadline, ANSWER_WAIT);
	ask();
}

static void
released(void *argument, enum record_outcome outcome)
{
	struct message message;

	(void)argument;
	record_ready_free(&state.ready);
	record_released_encode(&message, outcome);
	send(&message);
}

const struct workspace_records worker_records = { claim, ready, settled, release, released };

static int
take_claimed(void *argument, struct message *message, struct error *err)
{
	struct record_claimed claimed;

	(void)argument;
	if (record_claimed_decode(message, &claimed, err) != 0)
		return -1;
	if (state.question == QUESTION_CLAIM) {
		end_question();
		workspace_claimed(state.worker->workspace, &claimed);
	}
	record_claimed_free(&claimed);
	return 0;
}

static int
take_waiting(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	if (message_end(message, err) != 0)
		return -1;
	if (state.question != QUESTION_CLAIM)
		return 0;
	/* How long is too long is the workspace's to say. */
	loop_timer_start(state.deadline, ANSWER_WAIT);
	workspace_claim_waits(state.worker->workspace);
	return 0;
}

static int
take_may_release(void *argument, struct message *message, struct error *err)
{
	bool granted;

	(void)argument;
	if (record_flag_decode(message, &granted, err) != 0)
		return -1;
	if (state.question == QUESTION_RELEASE) {
		end_question();
		workspace_may_release(state.worker->workspace, granted);
	}
	return 0;
}

static const struct peer_rule rules[] = {
	{ MESSAGE_RECORD_CLAIMED, "RECORD_CLAIMED", 1, take_claimed },
	{ MESSAGE_RECORD_WAITING, "RECORD_WAITING", 1, take_waiting },
	{ MESSAGE_RECORD_MAY_RELEASE, "RECORD_MAY_RELEASE", 1, take_may_release },
	{ MESSAGE_RECORD_CLAIM, "RECORD_CLAIM", 0, NULL },
	{ MESSAGE_RECORD_READY, "RECORD_READY", 0, NULL },
	{ MESSAGE_RECORD_USED, "RECORD_USED", 0, NULL },
	{ MESSAGE_RECORD_SETTLED, "RECORD_SETTLED", 0, NULL },
	{ MESSAGE_RECORD_RELEASE, "RECORD_RELEASE", 0, NULL },
	{ MESSAGE_RECORD_RELEASED, "RECORD_RELEASED", 0, NULL },
	{ 0, NULL, 0, NULL },
};

static void
records_closed(void *argument, const struct error *err)
{
	(void)argument;
	log_debug("records: %s", err->message);
	peer_free(state.peer);
	state.peer = NULL;
}

static const struct peer_events events = { rules, records_closed, NULL };

static void
tell_used(void)
{
	struct message message;

	record_flag_encode(&message, MESSAGE_RECORD_USED, state.is_used);
	send(&message);
}

void
worker_records_open(struct worker *worker, int fd)
{
	state.worker = worker;
	peer_free(state.peer);
	state.peer = peer_new(worker->loop, fd, "worker", "records", &events, NULL);
	if (state.ready.sandbox != NULL)
		tell_ready();
	if (state.is_used)
		tell_used();
	if (state.question != QUESTION_NONE)
		ask();
}

void
worker_records_use(bool is_used)
{
	if (state.is_used == is_used)
		return;
	state.is_used = is_used;
	tell_used();
}

void
worker_records_init(struct worker *worker)
{
	state.worker = worker;
	state.deadline = loop_timer_new(worker->loop, deadline_expired, NULL);
}

void
worker_records_close(void)
{
	struct error err;

	if (state.peer != NULL && peer_flush(state.peer, LAST_WAIT, &err) != 0)
		log_debug("records: %s", err.message);
	peer_free(state.peer);
	state.peer = NULL;
	end_question();
	record_ready_free(&state.ready);
	loop_timer_free(state.deadline);
	state.deadline = NULL;
}
