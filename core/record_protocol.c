/* SPDX-License-Identifier: ISC */
/* Encode and decode of the records' messages. A decoder that fails has freed what it made. */
#include <string.h>

#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/login.h"
#include "core/record_protocol.h"

void
records_configure_encode(struct message *message, const struct records_configure *configure)
{
	message_start(message, MESSAGE_RECORDS_CONFIGURE);
	message->fd = configure->directory;
	message_put_text(message, configure->database);
	message_put_text(message, configure->run);
	message_put_bool(message, configure->check);
}

int
records_configure_decode(
    struct message *message, struct records_configure *configure, struct error *err)
{
	memset(configure, 0, sizeof(*configure));
	configure->database = message_get_text(message);
	configure->run = message_get_text(message);
	configure->check = message_get_bool(message);
	configure->directory = message->fd;
	message_require(message, configure->run);
	if (configure->directory < 0)
		message->failed = true;
	if (message_end(message, err) == 0) {
		(void)message_take_fd(message);
		return 0;
	}
	records_configure_free(configure);
	configure->directory = -1;
	return -1;
}

void
records_configure_free(struct records_configure *configure)
{
	memory_text_wipe(configure->database);
	memory_free(configure->run);
	configure->database = configure->run = NULL;
}

void
records_attach_encode(struct message *message, const struct records_attach *attach)
{
	message_start(message, MESSAGE_RECORDS_ATTACH);
	message->fd = attach->fd;
	message_put_text(message, attach->login);
	message_put_text(message, attach->instance);
	message_put_text(message, attach->driver);
	message_put_bool(message, attach->here);
	message_put_i64(message, attach->idle);
	message_put_i64(message, attach->limit);
}

int
records_attach_decode(struct message *message, struct records_attach *attach, struct error *err)
{
	memset(attach, 0, sizeof(*attach));
	attach->login = message_get_text(message);
	attach->instance = message_get_text(message);
	attach->driver = message_get_text(message);
	attach->here = message_get_bool(message);
	attach->idle = message_get_i64(message);
	attach->limit = message_get_i64(message);
	attach->fd = message->fd;
	message_require(message, attach->login);
	message_require(message, attach->instance);
	message_require(message, attach->driver);
	if (attach->fd < 0 || attach->idle < 0 || attach->limit < 0)
		message->failed = true;
	if (message_end(message, err) == 0) {
		(void)message_take_fd(message);
		return 0;
	}
	records_attach_free(attach);
	attach->fd = -1;
	return -1;
}

void
records_attach_free(struct records_attach *attach)
{
	memory_free(attach->login);
	memory_free(attach->instance);
	memory_free(attach->driver);
	attach->login = attach->instance = attach->driver = NULL;
}

void
records_orphan_encode(struct message *message, const struct records_orphan *orphan)
{
	message_start(message, MESSAGE_RECORDS_ORPHAN);
	message_put_text(message, orphan->login);
	message_put_text(message, orphan->instance);
}

int
records_orphan_decode(struct message *message, struct records_orphan *orphan, struct error *err)
{
	memset(orphan, 0, sizeof(*orphan));
	orphan->login = message_get_text(message);
	orphan->instance = message_get_text(message);
	message_require(message, orphan->login);
	message_require(message, orphan->instance);
	if (message_end(message, err) == 0)
		return 0;
	records_orphan_free(orphan);
	return -1;
}

void
records_orphan_free(struct records_orphan *orphan)
{
	memory_free(orphan->login);
	memory_free(orphan->instance);
	orphan->login = orphan->instance = NULL;
}

void
worker_records_encode(struct message *message, int fd)
{
	message_start(message, MESSAGE_WORKER_RECORDS);
	message->fd = fd;
}

int
worker_records_decode(struct message *message, int *fd, struct error *err)
{
	*fd = -1;
	if (message->fd < 0)
		message->failed = true;
	if (message_end(message, err) != 0)
		return -1;
	*fd = message_take_fd(message);
	return 0;
}

void
record_claim_encode(struct message *message, const struct record_claim *claim)
{
	message_start(message, MESSAGE_RECORD_CLAIM);
	message_put_text(message, claim->lost);
	message_put_bool(message, claim->reclaim);
}

int
record_claim_decode(struct message *message, struct record_claim *claim, struct error *err)
{
	memset(claim, 0, sizeof(*claim));
	claim->lost = message_get_text(message);
	claim->reclaim = message_get_bool(message);
	if (message_end(message, err) == 0)
		return 0;
	record_claim_free(claim);
	return -1;
}

void
record_claim_free(struct record_claim *claim)
{
	memory_free(claim->lost);
	claim->lost = NULL;
}

void
record_claimed_encode(struct message *message, const struct record_claimed *claimed)
{
	message_start(message, MESSAGE_RECORD_CLAIMED);
	message_put_bool(message, claimed->failed);
	message_put_error(message, &claimed->failure);
	message_put_text(message, claimed->sandbox);
	message_put_bool(message, claimed->created);
	message_put_bool(message, claimed->doubtful);
	message_put_bool(message, claimed->is_shared);
}

int
record_claimed_decode(struct message *message, struct record_claimed *claimed, struct error *err)
{
	memset(claimed, 0, sizeof(*claimed));
	claimed->failed = message_get_bool(message);
	message_get_error(message, &claimed->failure);
	claimed->sandbox = message_get_text(message);
	claimed->created = message_get_bool(message);
	claimed->doubtful = message_get_bool(message);
	claimed->is_shared = message_get_bool(message);
	if (claimed->sandbox != NULL && !login_id_valid(claimed->sandbox))
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	record_claimed_free(claimed);
	return -1;
}

void
record_claimed_free(struct record_claimed *claimed)
{
	memory_free(claimed->sandbox);
	claimed->sandbox = NULL;
}

void
record_ready_encode(struct message *message, const struct record_ready *ready)
{
	message_start(message, MESSAGE_RECORD_READY);
	message_put_text(message, ready->sandbox);
	message_put_bool(message, ready->created);
}

int
record_ready_decode(struct message *message, struct record_ready *ready, struct error *err)
{
	memset(ready, 0, sizeof(*ready));
	ready->sandbox = message_get_text(message);
	ready->created = message_get_bool(message);
	message_require(message, ready->sandbox);
	if (ready->sandbox != NULL && !login_id_valid(ready->sandbox))
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	record_ready_free(ready);
	return -1;
}

void
record_ready_free(struct record_ready *ready)
{
	memory_free(ready->sandbox);
	ready->sandbox = NULL;
}

void
record_flag_encode(struct message *message, uint8_t type, bool flag)
{
	message_start(message, type);
	message_put_bool(message, flag);
}

int
record_flag_decode(struct message *message, bool *flag, struct error *err)
{
	*flag = message_get_bool(message);
	return message_end(message, err);
}

void
record_released_encode(struct message *message, enum record_outcome outcome)
{
	message_start(message, MESSAGE_RECORD_RELEASED);
	message_put_u8(message, (uint8_t)outcome);
}

int
record_released_decode(struct message *message, enum record_outcome *outcome, struct error *err)
{
	uint8_t value;

	value = message_get_u8(message);
	if (value >= RECORD_OUTCOMES)
		message->failed = true;
	*outcome = message->failed ? RECORD_UNKNOWN : (enum record_outcome)value;
	return message_end(message, err);
}
