/* SPDX-License-Identifier: ISC */
/*
 * Encode and decode of the messages between rws admin and the listener. What the listener asks of the
 * others for them is in admin_report.c.
 */
#include <string.h>

#include "core/admin_protocol.h"
#include "core/base/memory.h"
#include "core/base/message.h"

bool
admin_verb_has_target(enum admin_verb verb)
{
	return verb >= ADMIN_DISCONNECT && verb < ADMIN_VERBS;
}

void
admin_request_encode(struct message *message, const struct admin_request *request)
{
	message_start(message, MESSAGE_ADMIN_REQUEST);
	message_put_u8(message, (uint8_t)request->verb);
	message_put_text(message, request->target);
}

int
admin_request_decode(struct message *message, struct admin_request *request, struct error *err)
{
	uint8_t verb;

	memset(request, 0, sizeof(*request));
	verb = message_get_u8(message);
	request->verb = verb < ADMIN_VERBS ? (enum admin_verb)verb : ADMIN_STATUS;
	request->target = message_get_text(message);
	if (verb >= ADMIN_VERBS ||
	    admin_verb_has_target(request->verb) != (request->target != NULL) ||
	    (request->target != NULL && strlen(request->target) > ADMIN_TEXT_MAX))
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	admin_request_free(request);
	return -1;
}

void
admin_request_free(struct admin_request *request)
{
	memory_free(request->target);
	memset(request, 0, sizeof(*request));
}

void
admin_status_encode(struct message *message, const struct admin_status *status)
{
	message_start(message, MESSAGE_ADMIN_STATUS);
	message_put_text(message, status->version);
	message_put_text(message, status->configuration);
	message_put_u32(message, status->pid);
	message_put_i64(message, status->since);
	message_put_bool(message, status->draining);
	message_put_u32(message, status->sessions);
	message_put_u32(message, status->starting);
	message_put_u32(message, status->spares);
	message_put_u32(message, status->workers);
	message_put_u32(message, status->crashes);
	message_put_text(message, status->place);
}

int
admin_status_decode(struct message *message, struct admin_status *status, struct error *err)
{
	memset(status, 0, sizeof(*status));
	status->version = message_get_text(message);
	status->configuration = message_get_text(message);
	status->pid = message_get_u32(message);
	status->since = message_get_i64(message);
	status->draining = message_get_bool(message);
	status->sessions = message_get_u32(message);
	status->starting = message_get_u32(message);
	status->spares = message_get_u32(message);
	status->workers = message_get_u32(message);
	status->crashes = message_get_u32(message);
	status->place = message_get_text(message);
	message_require(message, status->version);
	message_require(message, status->configuration);
	if (message_end(message, err) == 0)
		return 0;
	admin_status_free(status);
	return -1;
}

void
admin_status_free(struct admin_status *status)
{
	memory_free(status->version);
	memory_free(status->configuration);
	memory_free(status->place);
	memset(status, 0, sizeof(*status));
}

void
admin_login_encode(struct message *message, const struct admin_login *login)
{
	message_start(message, MESSAGE_ADMIN_LOGIN);
	message_put_text(message, login->name);
	message_put_text(message, login->driver);
	message_put_text(message, login->instances);
	message_put_u32(message, login->workspaces);
	message_put_u32(message, login->sessions);
}

int
admin_login_decode(struct message *message, struct admin_login *login, struct error *err)
{
	memset(login, 0, sizeof(*login));
	login->name = message_get_text(message);
	login->driver = message_get_text(message);
	login->instances = message_get_text(message);
	login->workspaces = message_get_u32(message);
	login->sessions = message_get_u32(message);
	message_require(message, login->name);
	message_require(message, login->driver);
	message_require(message, login->instances);
	if (message_end(message, err) == 0)
		return 0;
	admin_login_free(login);
	return -1;
}

void
admin_login_free(struct admin_login *login)
{
	memory_free(login->name);
	memory_free(login->driver);
	memory_free(login->instances);
	memset(login, 0, sizeof(*login));
}

static void
put_report(struct message *message, const struct worker_report *report)
{
	message_put_u8(message, (uint8_t)report->state);
	message_put_text(message, report->sandbox_id);
	message_put_u32(message, report->commands);
	message_put_i64(message, report->last_used);
}

static void
get_report(struct message *message, struct worker_report *report)
{
	uint8_t state;

	memset(report, 0, sizeof(*report));
	state = message_get_u8(message);
	report->state = state < SANDBOX_STATES ? (enum sandbox_state)state : SANDBOX_NONE;
	report->sandbox_id = message_get_text(message);
	report->commands = message_get_u32(message);
	report->last_used = message_get_i64(message);
	if (state >= SANDBOX_STATES ||
	    (report->sandbox_id != NULL && strlen(report->sandbox_id) > ADMIN_TEXT_MAX))
		message->failed = true;
}

void
worker_report_encode(struct message *message, const struct worker_report *report)
{
	message_start(message, MESSAGE_WORKER_REPORT);
	put_report(message, report);
}

int
worker_report_decode(struct message *message, struct worker_report *report, struct error *err)
{
	get_report(message, report);
	if (message_end(message, err) == 0)
		return 0;
	worker_report_free(report);
	return -1;
}

void
worker_report_free(struct worker_report *report)
{
	memory_free(report->sandbox_id);
	memset(report, 0, sizeof(*report));
}

void
admin_workspace_encode(struct message *message, const struct admin_workspace *workspace)
{
	message_start(message, MESSAGE_ADMIN_WORKSPACE);
	message_put_text(message, workspace->login);
	message_put_text(message, workspace->workspace);
	message_put_text(message, workspace->driver);
	message_put_u32(message, workspace->pid);
	message_put_i64(message, workspace->since);
	message_put_u32(message, workspace->sessions);
	message_put_bool(message, workspace->answered);
	put_report(message, &workspace->report);
}

int
admin_workspace_decode(
    struct message *message, struct admin_workspace *workspace, struct error *err)
{
	memset(workspace, 0, sizeof(*workspace));
	workspace->login = message_get_text(message);
	workspace->workspace = message_get_text(message);
	workspace->driver = message_get_text(message);
	workspace->pid = message_get_u32(message);
	workspace->since = message_get_i64(message);
	workspace->sessions = message_get_u32(message);
	workspace->answered = message_get_bool(message);
	get_report(message, &workspace->report);
	message_require(message, workspace->login);
	message_require(message, workspace->workspace);
	message_require(message, workspace->driver);
	if (message_end(message, err) == 0)
		return 0;
	admin_workspace_free(workspace);
	return -1;
}

void
admin_workspace_free(struct admin_workspace *workspace)
{
	memory_free(workspace->login);
	memory_free(workspace->workspace);
	memory_free(workspace->driver);
	worker_report_free(&workspace->report);
	memset(workspace, 0, sizeof(*workspace));
}

void
admin_session_encode(struct message *message, const struct admin_session *session)
{
	message_start(message, MESSAGE_ADMIN_SESSION);
	message_put_u64(message, session->connection);
	message_put_u32(message, session->pid);
	message_put_text(message, session->workspace);
	message_put_text(message, session->key);
	message_put_text(message, session->address);
	message_put_u32(message, session->port);
	message_put_i64(message, session->since);
	message_put_bool(message, session->answered);
	message_put_u64(message, session->bytes_in);
	message_put_u64(message, session->bytes_out);
	message_put_u32(message, session->channels);
}

int
admin_session_decode(struct message *message, struct admin_session *session, struct error *err)
{
	memset(session, 0, sizeof(*session));
	session->connection = message_get_u64(message);
	session->pid = message_get_u32(message);
	session->workspace = message_get_text(message);
	session->key = message_get_text(message);
	session->address = message_get_text(message);
	session->port = message_get_u32(message);
	session->since = message_get_i64(message);
	session->answered = message_get_bool(message);
	session->bytes_in = message_get_u64(message);
	session->bytes_out = message_get_u64(message);
	session->channels = message_get_u32(message);
	message_require(message, session->address);
	if (session->port > UINT16_MAX)
		message->failed = true;
	if (message_end(message, err) == 0)
		return 0;
	admin_session_free(session);
	return -1;
}

void
admin_session_free(struct admin_session *session)
{
	memory_free(session->workspace);
	memory_free(session->key);
	memory_free(session->address);
	memset(session, 0, sizeof(*session));
}

void
admin_end_encode(struct message *message, const struct admin_end *end)
{
	message_start(message, MESSAGE_ADMIN_END);
	message_put_error(message, &end->failure);
	message_put_text(message, end->sandbox_id);
	message_put_text(message, end->note);
}

int
admin_end_decode(struct message *message, struct admin_end *end, struct error *err)
{
	memset(end, 0, sizeof(*end));
	message_get_error(message, &end->failure);
	end->sandbox_id = message_get_text(message);
	end->note = message_get_text(message);
	if (message_end(message, err) == 0)
		return 0;
	admin_end_free(end);
	return -1;
}

void
admin_end_free(struct admin_end *end)
{
	memory_free(end->sandbox_id);
	memory_free(end->note);
	memset(end, 0, sizeof(*end));
}
