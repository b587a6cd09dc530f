/* SPDX-License-Identifier: ISC */
/*
 * What the listener asks of the records process: questions that are named by a number, as the answers
 * come in their own time, or never when the process ends.
 */
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"
#include "core/record_list.h"
#include "gateway/listener_state.h"

struct records_question {
	struct records_question *next;
	struct listener *listener;
	uint32_t id;
	records_page_fn *page; /* or the other one */
	records_forgotten_fn *forgotten;
	void *argument;
};

static struct records_question *
open_question(struct listener *listener, void *argument, struct error *err)
{
	struct records_question *question;

	if (listener->records == NULL || !listener->records_told) {
		error_set(err, ERROR_UNAVAILABLE, "the records process does not run");
		return NULL;
	}
	question = memory_zeroed(1, sizeof(*question));
	question->listener = listener;
	question->id = ++listener->last_question;
	question->argument = argument;
	question->next = listener->questions;
	listener->questions = question;
	return question;
}

void
records_question_cancel(struct records_question *question)
{
	struct records_question **place;

	if (question == NULL)
		return;
	for (place = &question->listener->questions; *place != question; place = &(*place)->next)
		continue;
	*place = question->next;
	memory_free(question);
}

struct records_question *
listener_list_records(struct listener *listener, const struct record_entry *after,
    records_page_fn *done, void *argument, struct error *err)
{
	static char none[] = "";
	struct records_list list = { .login = none, .instance = none, .place = none };
	struct records_question *question;
	struct message message;

	question = open_question(listener, argument, err);
	if (question == NULL)
		return NULL;
	question->page = done;
	list.id = question->id;
	if (after != NULL) {
		list.login = after->login;
		list.instance = after->instance;
		list.place = after->place;
	}
	records_list_encode(&message, &list);
	peer_send(listener->records, &message);
	return question;
}

struct records_question *
listener_forget_record(struct listener *listener, const char *login, const char *instance,
    records_forgotten_fn *done, void *argument, struct error *err)
{
	struct records_forget forget = { 0 };
	struct records_question *question;
	struct message message;

	question = open_question(listener, argument, err);
	if (question == NULL)
		return NULL;
	question->forgotten = done;
	forget.id = question->id;
	forget.login = memory_text(login);
	forget.instance = memory_text(instance);
	records_forget_encode(&message, &forget);
	records_forget_free(&forget);
	peer_send(listener->records, &message);
	return question;
}

/* Tells the one who asked; what was not the kind of answer asked for is none. */
static void
answer(struct listener *listener, uint32_t id, const struct records_page *page,
    const struct records_forgotten *forgotten, const struct error *err)
{
	struct records_question *question, copy;

	for (question = listener->questions; question != NULL; question = question->next)
		if (question->id == id)
			break;
	if (question == NULL)
		return;
	copy = *question;
	records_question_cancel(question);
	if (copy.page != NULL)
		copy.page(copy.argument, page, err);
	else
		copy.forgotten(copy.argument, forgotten, err);
}

void
listener_fail_questions(struct listener *listener)
{
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE, "the records process ended");
	while (listener->questions != NULL)
		answer(listener, listener->questions->id, NULL, NULL, &err);
}

int
listener_take_page(void *argument, struct message *message, struct error *err)
{
	struct records_page page;

	if (records_page_decode(message, &page, err) != 0)
		return -1;
	answer(
	    argument, page.id, page.failure.code == ERROR_NONE ? &page : NULL, NULL, &page.failure);
	records_page_free(&page);
	return 0;
}

int
listener_take_forgotten(void *argument, struct message *message, struct error *err)
{
	struct records_forgotten forgotten;

	if (records_forgotten_decode(message, &forgotten, err) != 0)
		return -1;
	answer(argument, forgotten.id, NULL,
	    forgotten.failure.code == ERROR_NONE ? &forgotten : NULL, &forgotten.failure);
	records_forgotten_free(&forgotten);
	return 0;
}

char *
listener_workspace_name(const char *login, const char *instance)
{
	return memory_text_format(
	    "%s%s%s", login, instance[0] == '\0' || instance[0] == '=' ? "" : "+", instance);
}
