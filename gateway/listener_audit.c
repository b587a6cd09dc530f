/* SPDX-License-Identifier: ISC */
/*
 * A login that was taken out of the configuration, or got another name, leaves its sandboxes behind:
 * its credentials are gone with it, so nobody can dispose of them, and they may cost money. All that the
 * gateway can do is to say so.
 */
#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/record_list.h"
#include "gateway/listener_state.h"

/* ms until records that did not answer are asked again. */
#define AGAIN_WAIT 10000

struct audit {
	struct listener *listener;
	struct records_question *question;
	struct loop_timer *again;
};

static void
warn(const struct listener *listener, const struct record_entry *entry)
{
	char *workspace;

	if (conf_login_find(listener->conf, entry->login) >= 0 ||
	    (entry->place[0] != '\0' && !listener_is_place(listener, entry->place)))
		return;
	workspace = listener_workspace_name(entry->login, entry->instance);
	log_warning("workspace %s: sandbox %s (%s) is on record, and there is no login %s: nothing "
		    "disposes of it (see rws admin forget)",
	    workspace, entry->sandbox == NULL ? "(unknown)" : entry->sandbox, entry->driver,
	    entry->login);
	memory_free(workspace);
}

static void ask(struct audit *audit, const struct record_entry *after);

static void
take_page(void *argument, const struct records_page *page, const struct error *err)
{
	struct audit *audit = argument;
	uint32_t i;

	audit->question = NULL;
	if (page == NULL) {
		log_debug("which sandboxes have no login: %s", err->message);
		loop_timer_start(audit->again, AGAIN_WAIT);
		return;
	}
	for (i = 0; i < page->count; i++)
		warn(audit->listener, &page->entries[i]);
	if (page->more)
		ask(audit, &page->entries[page->count - 1]);
}

static void
ask(struct audit *audit, const struct record_entry *after)
{
	struct error err;

	audit->question = listener_list_records(audit->listener, after, take_page, audit, &err);
	if (audit->question == NULL)
		loop_timer_start(audit->again, AGAIN_WAIT);
}

static void
ask_again(void *argument)
{
	struct audit *audit = argument;

	if (!audit->listener->draining)
		ask(audit, NULL);
}

void
listener_audit_records(struct listener *listener)
{
	struct audit *audit = listener->audit;

	if (audit == NULL) {
		audit = memory_zeroed(1, sizeof(*audit));
		audit->listener = listener;
		audit->again = loop_timer_new(listener->loop, ask_again, audit);
		listener->audit = audit;
	}
	records_question_cancel(audit->question);
	loop_timer_stop(audit->again);
	ask(audit, NULL);
}

void
listener_audit_free(struct listener *listener)
{
	if (listener->audit == NULL)
		return;
	records_question_cancel(listener->audit->question);
	loop_timer_free(listener->audit->again);
	memory_free(listener->audit);
	listener->audit = NULL;
}
