/* SPDX-License-Identifier: ISC */
/*
 * What rws admin shows of the records, and removes from them. They are read a page at a time, and the
 * next one is asked for when the operator's end has room for it.
 */
#include <string.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/driver.h"
#include "core/login.h"
#include "gateway/listener_admin_state.h"
#include "gateway/listener_state.h"

/* Do the sandboxes of this driver end with the worker that started them? */
static bool
ends_with_worker(const char *driver)
{
	const struct driver_kind *const *kind;

	for (kind = driver_kinds; *kind != NULL; kind++)
		if (strcmp((*kind)->name, driver) == 0)
			return ((*kind)->supports & DRIVER_HERE) != 0;
	return false;
}

static enum admin_record_state
describe_state(const struct listener *listener, const struct record_entry *entry)
{
	static const enum admin_record_state states[RECORD_STATES] = {
		[RECORD_STATE_CREATING] = ADMIN_RECORD_CREATING,
		[RECORD_STATE_READY] = ADMIN_RECORD_RUNNING,
		[RECORD_STATE_DISPOSING] = ADMIN_RECORD_RELEASING,
		[RECORD_STATE_STOPPED] = ADMIN_RECORD_STOPPED,
		[RECORD_STATE_KEPT] = ADMIN_RECORD_KEPT,
	};

	if (conf_login_find(listener->conf, entry->login) < 0)
		return ADMIN_RECORD_NO_LOGIN;
	if (entry->state == RECORD_STATE_READY && entry->user == NULL &&
	    ends_with_worker(entry->driver))
		return ADMIN_RECORD_STOPPED;
	return states[entry->state];
}

static void
send_record(struct admin_client *client, const struct record_entry *entry)
{
	const struct listener *listener = client->listener;
	struct admin_record row = { 0 };
	struct message message;

	row.login = entry->login;
	row.workspace = listener_workspace_name(entry->login, entry->instance);
	row.driver = entry->driver;
	row.sandbox_id = entry->sandbox;
	row.state = describe_state(listener, entry);
	row.created = entry->created;
	row.since = entry->made / 1000;
	row.last_used = entry->used / 1000;
	row.is_elsewhere = entry->place[0] != '\0' && !listener_is_place(listener, entry->place);
	row.gateway = entry->user != NULL ? entry->user : row.is_elsewhere ? entry->place : NULL;
	admin_record_encode(&message, &row);
	memory_free(row.workspace);
	peer_send(client->peer, &message);
}

static void
clear_last(struct admin_client *client)
{
	memory_free(client->last.login);
	memory_free(client->last.instance);
	memory_free(client->last.place);
	memset(&client->last, 0, sizeof(client->last));
}

static void
keep_last(struct admin_client *client, const struct record_entry *entry)
{
	clear_last(client);
	client->last.login = memory_text(entry->login);
	client->last.instance = memory_text(entry->instance);
	client->last.place = memory_text(entry->place);
}

/* The list ends without what is recorded, or without the rest of it. */
static void
go_without(struct admin_client *client, const char *why)
{
	memory_free(client->note);
	client->note = memory_text_format("the records do not answer (%s): what has no worker here "
					  "is not listed, or not in full",
	    why);
}

static void ask(struct admin_client *client, const struct record_entry *after);

static void
take_page(void *argument, const struct records_page *page, const struct error *err)
{
	struct admin_client *client = argument;
	uint32_t i;

	client->question = NULL;
	if (page == NULL) {
		go_without(client, err->message);
		admin_client_end_list(client);
		return;
	}
	for (i = 0; i < page->count; i++)
		send_record(client, &page->entries[i]);
	loop_timer_start(client->deadline, ADMIN_REPORT_WAIT);
	if (page->more && peer_full(client->peer)) {
		keep_last(client, &page->entries[page->count - 1]);
		client->paused = true;
	} else if (page->more) {
		ask(client, &page->entries[page->count - 1]);
	}
	admin_client_end_list(client);
}

static void
ask(struct admin_client *client, const struct record_entry *after)
{
	struct error err;

	client->question = listener_list_records(client->listener, after, take_page, client, &err);
	if (client->question == NULL)
		go_without(client, err.message);
}

void
admin_records_list(struct admin_client *client)
{
	ask(client, NULL);
}

void
admin_records_go_on(struct admin_client *client)
{
	if (!client->paused)
		return;
	client->paused = false;
	/* The time that it took to read is not the records' fault. */
	loop_timer_start(client->deadline, ADMIN_REPORT_WAIT);
	ask(client, &client->last);
	admin_client_end_list(client);
}

void
admin_records_give_up(struct admin_client *client)
{
	if (client->question == NULL)
		return;
	records_question_cancel(client->question);
	client->question = NULL;
	go_without(client, "not in time");
}

void
admin_records_free(struct admin_client *client)
{
	records_question_cancel(client->question);
	clear_last(client);
	memory_free(client->note);
}

static void
forgotten(void *argument, const struct records_forgotten *answer, const struct error *err)
{
	struct admin_client *client = argument;

	client->question = NULL;
	if (answer != NULL)
		log_info("admin: sandbox %s is forgotten",
		    answer->sandbox == NULL ? "(none)" : answer->sandbox);
	admin_client_end(
	    client, answer == NULL ? err : NULL, answer == NULL ? NULL : answer->sandbox, NULL);
}

void
admin_records_forget_late(struct admin_client *client)
{
	struct error err;

	records_question_cancel(client->question);
	client->question = NULL;
	error_set(&err, ERROR_TIMEOUT, "the records have not answered; what was asked for goes on");
	admin_client_end(client, &err, NULL, NULL);
}

/* The login need not be configured: that is what this is for. */
void
admin_records_forget(struct admin_client *client, const char *target)
{
	struct login login;
	struct error err;

	if (login_parse(target, &login) != 0)
		error_set(&err, ERROR_INVALID, "%s is no name of a workspace", target);
	else if (listener_find_worker(client->listener, target) != NULL)
		error_set(&err, ERROR_BUSY, "the workspace has a worker: it is in use");
	else
		client->question = listener_forget_record(client->listener, login.name,
		    login.id[0] == '\0' ? login.instance : target + strlen(login.name), forgotten,
		    client, &err);
	if (client->question == NULL)
		admin_client_end(client, &err, NULL, NULL);
}
