/* SPDX-License-Identifier: ISC */
/* A workspace, its driver and its records: who is asked and told what, when all goes well and when not. */
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/option.h"
#include "core/driver.h"
#include "core/workspace.h"

/* Each call that the driver and the records get is a word here. */
static char said[256];

static struct {
	struct loop *loop;
	struct settings *settings;
	struct workspace *workspace;
	struct record_claimed claimed; /* the records' next answer */
	bool grants;
	const char *there; /* the sandbox that the provider has, or NULL */
	bool is_attached;
	bool refuses, is_certain; /* it makes none, and it is certain that it did not */
	bool told;
	struct error outcome; /* of the last use; ERROR_NONE for success */
	unsigned reclaims;
} fixture;

static void
say(const char *word)
{
	size_t used = strlen(said);

	(void)snprintf(said + used, sizeof(said) - used, "%s%s", used == 0 ? "" : " ", word);
}

/* A driver of one sandbox whose answers come from timers, as the interface promises. */

struct driver_sandbox {
	struct loop_timer *connected, *checked, *released;
	const char *wanted;
	bool may_create;
	driver_connected_fn *connect_done;
	driver_result_fn *run_done;
	driver_done_fn *release_done;
	void *argument;
};

static void
give_connected(void *argument)
{
	struct driver_sandbox *sandbox = argument;
	static const struct driver_connected nothing = { .nothing = true };
	struct driver_connected connected = { .directory = "/root" };
	struct error err;

	if (fixture.refuses) {
		error_set(&err, ERROR_UNAVAILABLE, "no");
		sandbox->connect_done(
		    sandbox->argument, fixture.is_certain ? &nothing : NULL, &err);
		return;
	}

	if (sandbox->wanted != NULL &&
	    (fixture.there == NULL || strcmp(sandbox->wanted, fixture.there) != 0)) {
		error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", sandbox->wanted);
		sandbox->connect_done(sandbox->argument, NULL, &err);
		return;
	}
	if (fixture.there == NULL && !sandbox->may_create) {
		error_set(&err, ERROR_NOT_FOUND, "none");
		sandbox->connect_done(sandbox->argument, NULL, &err);
		return;
	}
	connected.created = fixture.there == NULL;
	connected.attached = fixture.is_attached;
	if (fixture.there == NULL)
		fixture.there = "made";
	connected.id = fixture.there;
	sandbox->connect_done(sandbox->argument, &connected, NULL);
}

static void
give_checked(void *argument)
{
	static const char check[] = "root /root\nshell /bin/sh\n";
	struct driver_result result = { .output = (const unsigned char *)check,
		.output_size = sizeof(check) - 1 };
	struct driver_sandbox *sandbox = argument;

	sandbox->run_done(sandbox->argument, &result, NULL);
}

static void
give_released(void *argument)
{
	struct driver_sandbox *sandbox = argument;

	sandbox->release_done(sandbox->argument, NULL);
}

static struct driver_sandbox *
fake_open(const struct driver_context *context, struct error *err)
{
	struct driver_sandbox *sandbox;

	(void)err;
	sandbox = memory_zeroed(1, sizeof(*sandbox));
	sandbox->connected = loop_timer_new(context->loop, give_connected, sandbox);
	sandbox->checked = loop_timer_new(context->loop, give_checked, sandbox);
	sandbox->released = loop_timer_new(context->loop, give_released, sandbox);
	return sandbox;
}

static void
fake_close(struct driver_sandbox *sandbox)
{
	loop_timer_free(sandbox->connected);
	loop_timer_free(sandbox->checked);
	loop_timer_free(sandbox->released);
	memory_free(sandbox);
}

static void
fake_connect(struct driver_sandbox *sandbox, const struct driver_target *target,
    driver_connected_fn *done, void *argument)
{
	char word[32];

	(void)snprintf(word, sizeof(word), "connect:%.16s", target->id == NULL ? "-" : target->id);
	say(word);
	sandbox->wanted = target->id;
	sandbox->may_create = target->may_create;
	sandbox->connect_done = done;
	sandbox->argument = argument;
	loop_timer_start(sandbox->connected, 0);
}

static void
fake_release(struct driver_sandbox *sandbox, enum driver_release release, driver_done_fn *done,
    void *argument)
{
	static const char *const words[] = { "destroy", "stop", "keep" };

	say(words[release]);
	sandbox->release_done = done;
	sandbox->argument = argument;
	loop_timer_start(sandbox->released, 0);
}

static void
fake_put_away(struct driver_sandbox *sandbox, const char *id, enum driver_release release,
    driver_done_fn *done, void *argument)
{
	char word[32];

	(void)snprintf(word, sizeof(word), "by-id:%.16s", id);
	say(word);
	fake_release(sandbox, release, done, argument);
}

static struct driver_operation *
fake_run(struct driver_sandbox *sandbox, char *const *argv, const void *input, size_t input_size,
    size_t max_output, driver_result_fn *done, void *argument)
{
	(void)argv;
	(void)input;
	(void)input_size;
	(void)max_output;
	sandbox->run_done = done;
	sandbox->argument = argument;
	loop_timer_start(sandbox->checked, 0);
	return NULL;
}

static const struct driver_kind fake_kind = {
	.name = "fake", .supports = DRIVER_STOP, .standard_dispose = "destroy"
};
static const struct driver fake = { .kind = &fake_kind,
	.open = fake_open,
	.close = fake_close,
	.connect = fake_connect,
	.release = fake_release,
	.put_away = fake_put_away,
	.run = fake_run };

/* Records that answer from a timer. */

static struct loop_timer *claim_timer, *release_timer;

static void
give_claimed(void *argument)
{
	(void)argument;
	workspace_claimed(fixture.workspace, &fixture.claimed);
}

static void
give_grant(void *argument)
{
	(void)argument;
	workspace_may_release(fixture.workspace, fixture.grants);
}

static void
claim(void *argument, const char *lost, bool reclaim)
{
	(void)argument;
	say(reclaim ? "reclaim" : "claim");
	if (lost != NULL) {
		say("lost");
		fixture.claimed.sandbox = NULL;
	}
	loop_timer_start(claim_timer, 0);
}

static void
ready(void *argument, const char *id, bool created)
{
	(void)argument;
	say("ready");
	say(id);
	say(created ? "ours" : "attached");
}

static void
settled(void *argument)
{
	(void)argument;
	say("settled");
}

static void
release(void *argument, bool is_asked)
{
	(void)argument;
	say(is_asked ? "ask" : "ask-idle");
	loop_timer_start(release_timer, 0);
}

static void
released(void *argument, enum record_outcome outcome)
{
	static const char *const words[] = { "destroyed", "stopped", "kept", "unknown" };

	(void)argument;
	say(words[outcome]);
}

static const struct workspace_records records = { claim, ready, settled, release, released };

static void
open_workspace(const char *name)
{
	struct workspace_setup setup = { 0 };

	setup.loop = fixture.loop;
	setup.driver = &fake;
	setup.settings = fixture.settings;
	setup.login = "agent";
	setup.name = name;
	setup.instance = "gw/agent";
	setup.directory = -1;
	setup.records = &records;
	fixture.workspace = workspace_new(&setup);
	assert_non_null(fixture.workspace);
}

static int
set_up(void **state)
{
	const struct option *tables[2] = { conf_options, NULL };
	struct error err;

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	memset(said, 0, sizeof(said));
	fixture.grants = true;
	fixture.loop = loop_new(&err);
	fixture.settings = settings_new(tables);
	claim_timer = loop_timer_new(fixture.loop, give_claimed, NULL);
	release_timer = loop_timer_new(fixture.loop, give_grant, NULL);
	return fixture.loop == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	workspace_free(fixture.workspace);
	loop_timer_free(claim_timer);
	loop_timer_free(release_timer);
	settings_free(fixture.settings);
	loop_free(fixture.loop);
	return 0;
}

static void
finished(void *argument, const struct error *err)
{
	(void)argument;
	fixture.told = true;
	error_clear(&fixture.outcome);
	if (err != NULL)
		fixture.outcome = *err;
}

static void
run_until_told(void)
{
	struct error err;

	for (fixture.told = false; !fixture.told;)
		assert_int_equal(loop_dispatch(fixture.loop, 10000, &err), 0);
}

static enum error_code
use(void)
{
	(void)workspace_use(fixture.workspace, finished, NULL, NULL);
	run_until_told();
	return fixture.outcome.code;
}

static void
dispose(void)
{
	/* What has nothing to wait for is told at once. */
	fixture.told = false;
	workspace_release(fixture.workspace, true, finished, NULL);
	if (!fixture.told)
		run_until_told();
}

static void
nothing_recorded_makes_a_sandbox_and_records_it(void **state)
{
	(void)state;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:- ready made ours");
}

static void
what_is_recorded_is_connected_to(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:known ready known ours");
}

static void
a_sandbox_that_is_gone_is_made_again(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:known claim lost connect:- ready made ours");
}

static void
or_reported_once_where_that_is_asked_for(void **state)
{
	char known[] = "known";
	struct error err;

	(void)state;
	assert_int_equal(settings_set(fixture.settings, "on_lost", "report", &err), 0);
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NOT_FOUND);
	assert_string_equal(said, "claim connect:known unknown");
	said[0] = '\0';
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim lost connect:- ready made ours");
}

static void
an_attached_sandbox_is_what_the_login_says_and_not_what_is_recorded(void **state)
{
	char other[] = "other";

	(void)state;
	fixture.there = "box";
	fixture.claimed.sandbox = other;
	open_workspace("agent=box");
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:box ready box attached");
}

static void
records_that_fail_fail_the_use_with_their_reason(void **state)
{
	(void)state;
	fixture.claimed.failed = true;
	error_set(&fixture.claimed.failure, ERROR_DENIED, "too many");
	open_workspace("agent");
	assert_int_equal(use(), ERROR_DENIED);
	assert_string_equal(said, "claim");
}

/* It would go to a terminal, into an environment and into a database. */
static void
an_id_that_is_none_fails_the_use_and_is_not_recorded(void **state)
{
	(void)state;
	open_workspace("agent");
	fixture.there = "\033]0;a\nb";
	assert_int_equal(use(), ERROR_UNAVAILABLE);
	assert_string_equal(said, "claim connect:- unknown");
}

static void
an_idle_sandbox_is_released_when_the_records_agree(void **state)
{
	(void)state;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	said[0] = '\0';
	dispose();
	assert_string_equal(said, "ask-idle destroy destroyed");
}

static void
and_left_alone_when_others_use_it(void **state)
{
	(void)state;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	said[0] = '\0';
	fixture.grants = false;
	dispose();
	assert_string_equal(said, "ask-idle keep");
}

static void
a_stop_that_is_not_granted_is_busy_and_the_workspace_goes_on(void **state)
{
	struct error err;

	(void)state;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	fixture.grants = false;
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), 0);
	run_until_told();
	assert_int_equal(fixture.outcome.code, ERROR_BUSY);
	fixture.grants = true;
	assert_int_equal(use(), ERROR_NONE);
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), 0);
	said[0] = '\0';
	run_until_told();
	assert_int_equal(fixture.outcome.code, ERROR_NONE);
	assert_string_equal(said, "ask stop stopped");
}

static enum error_code
put_away(bool destroy)
{
	struct error err;

	assert_int_equal(workspace_put_away(fixture.workspace, destroy, finished, NULL, &err), 0);
	run_until_told();
	return fixture.outcome.code;
}

static void
what_is_recorded_is_put_away_without_being_connected(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(put_away(true), ERROR_NONE);
	assert_string_equal(said, "reclaim ask by-id:known destroy destroyed");
	said[0] = '\0';
	assert_int_equal(put_away(false), ERROR_NONE);
	assert_string_equal(said, "reclaim ask by-id:known stop stopped");
	/* And it goes on as ever. */
	said[0] = '\0';
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:known ready known ours");
}

static void
what_an_option_names_is_connected_to_and_then_put_away(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "other";
	fixture.is_attached = true;
	fixture.claimed.sandbox = known;
	open_workspace("agent");
	assert_int_equal(put_away(false), ERROR_NONE);
	assert_string_equal(said, "reclaim connect:- ready other attached ask stop stopped");
}

static void
to_put_away_what_is_not_there_makes_nothing(void **state)
{
	(void)state;
	open_workspace("agent");
	assert_int_equal(put_away(true), ERROR_NOT_FOUND);
	assert_string_equal(said, "reclaim connect:- destroyed");
	said[0] = '\0';
	fixture.claimed.failed = true;
	error_set(&fixture.claimed.failure, ERROR_NOT_FOUND, "no record");
	assert_int_equal(put_away(true), ERROR_NOT_FOUND);
	assert_string_equal(said, "reclaim");
	assert_null(fixture.there);
}

static void
whoever_comes_while_a_sandbox_is_put_away_gets_the_next_one(void **state)
{
	char known[] = "known";
	struct error err;

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), 0);
	(void)workspace_use(fixture.workspace, finished, NULL, NULL);
	run_until_told();
	run_until_told();
	assert_int_equal(fixture.outcome.code, ERROR_NONE);
	assert_string_equal(
	    said, "reclaim ask by-id:known stop stopped claim connect:known ready known ours");
}

static void
a_second_one_who_puts_it_away_is_told_that_it_is_busy(void **state)
{
	char known[] = "known";
	struct error err;

	(void)state;
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), 0);
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), -1);
	assert_int_equal(err.code, ERROR_BUSY);
	run_until_told();
	assert_int_equal(fixture.outcome.code, ERROR_NONE);
}

static void
a_release_ends_who_is_about_to_put_it_away(void **state)
{
	char known[] = "known";
	struct error err;

	(void)state;
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	assert_int_equal(workspace_put_away(fixture.workspace, false, finished, NULL, &err), 0);
	fixture.told = false;
	workspace_release(fixture.workspace, true, finished, NULL);
	assert_true(fixture.told);
	assert_string_equal(said, "");
}

static void
reclaimed(void *argument)
{
	(void)argument;
	fixture.told = true;
	fixture.reclaims++;
}

static void
who_puts_away_what_is_being_reclaimed_does_it_for_both(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	assert_int_equal(put_away(true), ERROR_NONE);
	assert_string_equal(said, "reclaim ask by-id:known destroy destroyed");
	assert_int_equal(fixture.reclaims, 1);
	/* The next one is no more for its end. */
	fixture.there = fixture.claimed.sandbox = NULL;
	said[0] = '\0';
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:- ready made ours");
}

static void
a_refused_create_gives_its_place_back_unless_there_is_a_doubt(void **state)
{
	(void)state;
	fixture.refuses = true;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_UNAVAILABLE);
	assert_string_equal(said, "claim connect:- unknown");
	fixture.is_certain = true;
	said[0] = '\0';
	assert_int_equal(use(), ERROR_UNAVAILABLE);
	assert_string_equal(said, "claim connect:- destroyed");
	/* An earlier one may have come true. */
	fixture.claimed.doubtful = true;
	said[0] = '\0';
	assert_int_equal(use(), ERROR_UNAVAILABLE);
	assert_string_equal(said, "claim connect:- unknown");
}

static void
a_doubt_that_a_driver_cannot_have_is_settled_at_once(void **state)
{
	(void)state;
	fixture.claimed.doubtful = true;
	open_workspace("agent");
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "claim connect:- ready made ours settled");
}

static void
reclaiming_what_is_gone_makes_nothing_and_forgets_it(void **state)
{
	(void)state;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	run_until_told();
	assert_string_equal(said, "reclaim connect:- destroyed");
	assert_null(fixture.there);
	assert_int_equal(fixture.reclaims, 1);
}

static void
what_is_reclaimed_is_disposed_of_without_being_connected(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	run_until_told();
	assert_string_equal(said, "reclaim");
	dispose();
	assert_string_equal(said, "reclaim ask-idle by-id:known destroy destroyed");
}

static void
what_is_reclaimed_and_then_used_is_connected_to(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	run_until_told();
	assert_int_equal(use(), ERROR_NONE);
	assert_string_equal(said, "reclaim claim connect:known ready known ours");
	said[0] = '\0';
	dispose();
	assert_string_equal(said, "ask-idle destroy destroyed");
}

static void
what_is_reclaimed_while_somebody_waits_is_connected_to_once(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	assert_int_equal(use(), ERROR_NONE);
	assert_int_equal(fixture.reclaims, 1);
	assert_string_equal(said, "reclaim connect:known ready known ours");
}

static void
what_is_reclaimed_stays_when_others_use_it(void **state)
{
	char known[] = "known";

	(void)state;
	fixture.there = "known";
	fixture.claimed.sandbox = known;
	fixture.claimed.created = true;
	fixture.grants = false;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	run_until_told();
	dispose();
	assert_string_equal(said, "reclaim ask-idle by-id:known keep");
}

static void
whoever_comes_while_nothing_is_reclaimed_gets_a_sandbox(void **state)
{
	(void)state;
	open_workspace("agent");
	workspace_reclaim(fixture.workspace, reclaimed, NULL);
	(void)workspace_use(fixture.workspace, finished, NULL, NULL);
	run_until_told();
	run_until_told();
	assert_int_equal(fixture.outcome.code, ERROR_NONE);
	assert_string_equal(said, "reclaim connect:- destroyed claim connect:- ready made ours");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_recorded_makes_a_sandbox_and_records_it),
		TEST(what_is_recorded_is_connected_to),
		TEST(a_sandbox_that_is_gone_is_made_again),
		TEST(or_reported_once_where_that_is_asked_for),
		TEST(an_attached_sandbox_is_what_the_login_says_and_not_what_is_recorded),
		TEST(records_that_fail_fail_the_use_with_their_reason),
		TEST(an_id_that_is_none_fails_the_use_and_is_not_recorded),
		TEST(an_idle_sandbox_is_released_when_the_records_agree),
		TEST(and_left_alone_when_others_use_it),
		TEST(a_stop_that_is_not_granted_is_busy_and_the_workspace_goes_on),
		TEST(what_is_recorded_is_put_away_without_being_connected),
		TEST(what_an_option_names_is_connected_to_and_then_put_away),
		TEST(to_put_away_what_is_not_there_makes_nothing),
		TEST(whoever_comes_while_a_sandbox_is_put_away_gets_the_next_one),
		TEST(a_second_one_who_puts_it_away_is_told_that_it_is_busy),
		TEST(a_release_ends_who_is_about_to_put_it_away),
		TEST(who_puts_away_what_is_being_reclaimed_does_it_for_both),
		TEST(a_refused_create_gives_its_place_back_unless_there_is_a_doubt),
		TEST(a_doubt_that_a_driver_cannot_have_is_settled_at_once),
		TEST(reclaiming_what_is_gone_makes_nothing_and_forgets_it),
		TEST(what_is_reclaimed_is_disposed_of_without_being_connected),
		TEST(what_is_reclaimed_and_then_used_is_connected_to),
		TEST(what_is_reclaimed_while_somebody_waits_is_connected_to_once),
		TEST(what_is_reclaimed_stays_when_others_use_it),
		TEST(whoever_comes_while_nothing_is_reclaimed_gets_a_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
