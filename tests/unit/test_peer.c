/* SPDX-License-Identifier: ISC */
/* Both ends of a socket pair as peers in one loop, or one of them played byte by byte. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/message.h"
#include "core/base/peer.h"

#define ROUNDS 10000

enum {
	TYPE_NUMBER = 1,
	TYPE_DESCRIPTOR,
	TYPE_LATER,
	TYPE_FREE,
	TYPE_FAIL,
};

struct fixture {
	struct loop *loop;
	struct peer *peer;  /* under test */
	struct peer *other; /* the far end, or NULL */
	int far;            /* the far end as a descriptor, or -1 */
	uint32_t taken;     /* numbers received, which must come in order */
	int descriptor;
	int closed, drained;
	struct error err;
};

static int
take_number(void *argument, struct message *message, struct error *err)
{
	struct fixture *fixture = argument;
	const unsigned char *data;
	uint32_t number;
	size_t size, i;

	number = message_get_u32(message);
	data = message_get_bytes(message, &size);
	if (message_end(message, err) != 0)
		return -1;
	assert_int_equal(number, fixture->taken);
	for (i = 0; i < size; i++)
		assert_int_equal(data[i], (unsigned char)(number + i));
	fixture->taken++;
	return 0;
}

static int
take_descriptor(void *argument, struct message *message, struct error *err)
{
	struct fixture *fixture = argument;

	fixture->descriptor = message_take_fd(message);
	return message_end(message, err);
}

static int
free_peer(void *argument, struct message *message, struct error *err)
{
	struct fixture *fixture = argument;

	(void)message;
	(void)err;
	peer_free(fixture->peer);
	fixture->peer = NULL;
	return 0;
}

static int
fail_message(void *argument, struct message *message, struct error *err)
{
	(void)argument;
	(void)message;
	return error_set(err, ERROR_DENIED, "not this one");
}

static void
note_closed(void *argument, const struct error *err)
{
	struct fixture *fixture = argument;

	fixture->closed++;
	fixture->err = *err;
}

static void
note_drained(void *argument)
{
	struct fixture *fixture = argument;

	fixture->drained++;
}

static const struct peer_rule rules[] = {
	{ TYPE_NUMBER, "NUMBER", 1 | 2, take_number },
	{ TYPE_DESCRIPTOR, "DESCRIPTOR", 1, take_descriptor },
	{ TYPE_LATER, "LATER", 2, take_number },
	{ TYPE_FREE, "FREE", 1, free_peer },
	{ TYPE_FAIL, "FAIL", 1, fail_message },
	{ 0, NULL, 0, NULL },
};
static const struct peer_events events = { rules, note_closed, note_drained };

static int
setup(void **state)
{
	static struct fixture fixture;
	int pair[2];

	fixture = (struct fixture){ .descriptor = -1 };
	fixture.loop = loop_new(NULL);
	assert_int_equal(descriptor_pair(pair, NULL), 0);
	fixture.peer = peer_new(fixture.loop, pair[0], "near", "far", &events, &fixture);
	fixture.far = pair[1];
	*state = &fixture;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *fixture = *state;

	peer_free(fixture->peer);
	peer_free(fixture->other);
	descriptor_close(&fixture->far);
	descriptor_close(&fixture->descriptor);
	loop_free(fixture->loop);
	return 0;
}

/* Makes the far end a peer as well; what it does is not looked at. */
static void
make_other(struct fixture *fixture)
{
	fixture->other = peer_new(fixture->loop, fixture->far, "far", "near", &events, fixture);
	fixture->far = -1;
}

static void
start_number(struct message *message, uint8_t type, uint32_t number, size_t size)
{
	static unsigned char data[MESSAGE_PAYLOAD_MAX];
	size_t i;

	for (i = 0; i < size; i++)
		data[i] = (unsigned char)(number + i);
	message_start(message, type);
	message_put_u32(message, number);
	message_put_bytes(message, data, size);
}

static void
send_number(struct peer *peer, uint8_t type, uint32_t number, size_t size)
{
	struct message message;

	start_number(&message, type, number, size);
	peer_send(peer, &message);
}

static void
dispatch(struct fixture *fixture)
{
	assert_int_equal(loop_dispatch(fixture->loop, 0, NULL), 0);
}

/* Is the loop at rest, or would it run again at once? */
static int
loop_is_busy(const struct fixture *fixture)
{
	struct pollfd entry = { .fd = loop_fd(fixture->loop), .events = POLLIN };

	return poll(&entry, 1, 0) == 1;
}

static void
messages_arrive_whole_and_in_order(void **state)
{
	static const size_t sizes[] = { 0, 1, 65536, 3, MESSAGE_PAYLOAD_MAX - 8, 4096 };
	const uint32_t count = sizeof(sizes) / sizeof(sizes[0]);
	struct fixture *fixture = *state;
	uint32_t i;
	int round;

	make_other(fixture);
	for (i = 0; i < count; i++)
		send_number(fixture->other, TYPE_NUMBER, i, sizes[i]);
	for (round = 0; fixture->taken < count && round < ROUNDS; round++)
		dispatch(fixture);
	assert_int_equal(fixture->taken, count);
	assert_int_equal(fixture->closed, 0);
}

static void
a_frame_may_come_byte_by_byte(void **state)
{
	/* length 8, type, version, no descriptor; number 0, no bytes */
	static const unsigned char frame[] = { 0, 0, 0, 8, TYPE_NUMBER, MESSAGE_VERSION, 0, 0, 0, 0,
		0, 0, 0, 0, 0 };
	struct fixture *fixture = *state;
	size_t i;

	for (i = 0; i < sizeof(frame); i++) {
		assert_int_equal(fixture->taken, 0);
		assert_int_equal(descriptor_write(fixture->far, frame + i, 1, NULL), 0);
		dispatch(fixture);
	}
	assert_int_equal(fixture->taken, 1);
}

/* A descriptor in the middle of others' frames must come with its own. */
static void
a_descriptor_comes_with_its_own_message(void **state)
{
	struct fixture *fixture = *state;
	struct message message;
	char text[3];
	int pipe[2];

	make_other(fixture);
	assert_int_equal(descriptor_pipe(pipe, NULL), 0);
	send_number(fixture->other, TYPE_NUMBER, 0, 10);
	message_start(&message, TYPE_DESCRIPTOR);
	message.fd = pipe[0];
	peer_send(fixture->other, &message);
	send_number(fixture->other, TYPE_NUMBER, 1, 10);
	dispatch(fixture);
	assert_int_equal(fixture->taken, 2);
	assert_true(fixture->descriptor >= 0);
	assert_true((fcntl(fixture->descriptor, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(descriptor_write(pipe[1], "abc", 3, NULL), 0);
	assert_int_equal(read(fixture->descriptor, text, sizeof(text)), 3);
	descriptor_close(&pipe[1]);
}

static void
expect_closed_by_frame(struct fixture *fixture, const unsigned char *frame, size_t size)
{
	assert_int_equal(descriptor_write(fixture->far, frame, size, NULL), 0);
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
	assert_int_equal(fixture->err.code, ERROR_INVALID);
	assert_int_equal(fixture->taken, 0);
}

static void
a_frame_over_the_limit_ends_the_peer_before_its_content(void **state)
{
	static const unsigned char frame[] = { 0, 0x10, 0, 1, TYPE_NUMBER, MESSAGE_VERSION, 0 };

	expect_closed_by_frame(*state, frame, sizeof(frame));
}

static void
a_frame_of_another_version_ends_the_peer(void **state)
{
	static const unsigned char frame[] = { 0, 0, 0, 0, TYPE_NUMBER, MESSAGE_VERSION + 1, 0 };

	expect_closed_by_frame(*state, frame, sizeof(frame));
}

static void
a_frame_of_unknown_type_ends_the_peer(void **state)
{
	static const unsigned char frame[] = { 0, 0, 0, 0, 99, MESSAGE_VERSION, 0 };

	expect_closed_by_frame(*state, frame, sizeof(frame));
}

static void
a_promised_descriptor_that_is_missing_ends_the_peer(void **state)
{
	static const unsigned char frame[] = { 0, 0, 0, 0, TYPE_DESCRIPTOR, MESSAGE_VERSION, 1 };

	expect_closed_by_frame(*state, frame, sizeof(frame));
}

static void
a_message_that_its_handler_refuses_ends_the_peer(void **state)
{
	static const unsigned char frame[] = { 0, 0, 0, 0, TYPE_FAIL, MESSAGE_VERSION, 0 };
	struct fixture *fixture = *state;

	assert_int_equal(descriptor_write(fixture->far, frame, sizeof(frame), NULL), 0);
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
	assert_string_equal(fixture->err.message, "not this one");
}

static void
two_descriptors_at_once_end_the_peer(void **state)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	unsigned char frame[] = { 0, 0, 0, 0, TYPE_DESCRIPTOR, MESSAGE_VERSION, 1 };
	struct iovec vector = { frame, sizeof(frame) };
	struct msghdr header = { .msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space) };
	struct fixture *fixture = *state;
	struct cmsghdr *part;
	int fds[2] = { STDIN_FILENO, STDIN_FILENO };

	part = CMSG_FIRSTHDR(&header);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(part), fds, sizeof(fds));
	assert_int_equal(sendmsg(fixture->far, &header, 0), (ssize_t)sizeof(frame));
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
	assert_int_equal(fixture->descriptor, -1);
}

static void
a_message_is_taken_only_in_its_states(void **state)
{
	struct fixture *fixture = *state;

	make_other(fixture);
	peer_set_state(fixture->peer, 2);
	send_number(fixture->other, TYPE_LATER, 0, 0);
	dispatch(fixture);
	assert_int_equal(fixture->taken, 1);
	peer_set_state(fixture->peer, 1);
	send_number(fixture->other, TYPE_LATER, 1, 0);
	dispatch(fixture);
	assert_int_equal(fixture->taken, 1);
	assert_int_equal(fixture->closed, 1);
	assert_non_null(strstr(fixture->err.message, "LATER"));
}

/* All that was sent before the end still counts. */
static void
a_peer_that_goes_is_noticed_after_its_last_message(void **state)
{
	struct fixture *fixture = *state;

	make_other(fixture);
	send_number(fixture->other, TYPE_NUMBER, 0, 0);
	send_number(fixture->other, TYPE_NUMBER, 1, 0);
	peer_free(fixture->other);
	fixture->other = NULL;
	dispatch(fixture);
	dispatch(fixture);
	assert_int_equal(fixture->taken, 2);
	assert_int_equal(fixture->closed, 1);
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
}

static void
a_closed_peer_leaves_the_loop_at_rest(void **state)
{
	struct fixture *fixture = *state;

	descriptor_close(&fixture->far);
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
	assert_false(loop_is_busy(fixture));
}

static void
a_paused_peer_reads_nothing_and_leaves_the_loop_at_rest(void **state)
{
	struct fixture *fixture = *state;

	make_other(fixture);
	peer_pause(fixture->peer, true);
	send_number(fixture->other, TYPE_NUMBER, 0, 0);
	peer_free(fixture->other);
	fixture->other = NULL;
	dispatch(fixture);
	assert_int_equal(fixture->taken, 0);
	assert_false(loop_is_busy(fixture));
	peer_pause(fixture->peer, false);
	dispatch(fixture);
	dispatch(fixture);
	assert_int_equal(fixture->taken, 1);
	assert_int_equal(fixture->closed, 1);
}

static void
a_handler_may_free_the_peer(void **state)
{
	static const unsigned char frame[] = { 0, 0, 0, 0, TYPE_FREE, MESSAGE_VERSION, 0 };
	struct fixture *fixture = *state;

	assert_int_equal(descriptor_write(fixture->far, frame, sizeof(frame), NULL), 0);
	assert_int_equal(descriptor_write(fixture->far, frame, sizeof(frame), NULL), 0);
	dispatch(fixture);
	assert_null(fixture->peer);
	assert_int_equal(fixture->closed, 0);
}

static void
a_full_queue_tells_when_it_is_drained(void **state)
{
	struct fixture *fixture = *state;
	uint32_t count;
	int round;

	make_other(fixture);
	for (count = 0; !peer_full(fixture->peer); count++)
		send_number(fixture->peer, TYPE_NUMBER, count, 500000);
	assert_int_equal(fixture->drained, 0);
	for (round = 0; fixture->taken < count && round < ROUNDS; round++)
		dispatch(fixture);
	assert_int_equal(fixture->taken, count);
	assert_int_equal(fixture->drained, 1);
	assert_false(peer_full(fixture->peer));
}

/* A process that serves many must not end because one of them does not read. */
static void
a_queue_over_its_limit_ends_only_this_peer(void **state)
{
	struct fixture *fixture = *state;
	uint32_t i;

	for (i = 0; i < 12; i++)
		send_number(fixture->peer, TYPE_NUMBER, i, MESSAGE_PAYLOAD_MAX - 8);
	assert_int_equal(fixture->closed, 0);
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
	assert_int_equal(fixture->err.code, ERROR_TOO_LARGE);
}

static void
sending_to_a_lost_peer_is_told_through_closed(void **state)
{
	struct fixture *fixture = *state;

	descriptor_close(&fixture->far);
	send_number(fixture->peer, TYPE_NUMBER, 0, 1);
	send_number(fixture->peer, TYPE_NUMBER, 1, 1);
	assert_int_equal(fixture->closed, 0);
	dispatch(fixture);
	assert_int_equal(fixture->closed, 1);
}

static void
wait_takes_one_message_or_gives_up_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct message message;
	struct error err;

	assert_int_equal(peer_wait(fixture->peer, 0, &err), -1);
	assert_int_equal(err.code, ERROR_TIMEOUT);
	start_number(&message, TYPE_NUMBER, 0, 3);
	assert_int_equal(message_send(fixture->far, &message, &err), 0);
	start_number(&message, TYPE_NUMBER, 1, 3);
	assert_int_equal(message_send(fixture->far, &message, &err), 0);
	assert_int_equal(peer_wait(fixture->peer, 10000, &err), 0);
	assert_int_equal(fixture->taken, 1);
	descriptor_close(&fixture->far);
	assert_int_equal(peer_wait(fixture->peer, 10000, &err), 0);
	assert_int_equal(fixture->taken, 2);
	assert_int_equal(peer_wait(fixture->peer, 10000, &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void
flush_sends_all_or_gives_up_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct error err;

	send_number(fixture->peer, TYPE_NUMBER, 0, 1);
	assert_int_equal(peer_flush(fixture->peer, 0, &err), 0);
	send_number(fixture->peer, TYPE_NUMBER, 0, MESSAGE_PAYLOAD_MAX - 8);
	send_number(fixture->peer, TYPE_NUMBER, 0, MESSAGE_PAYLOAD_MAX - 8);
	assert_int_equal(peer_flush(fixture->peer, 0, &err), -1);
	assert_int_equal(err.code, ERROR_TIMEOUT);
}

#define PEER_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(messages_arrive_whole_and_in_order),
		PEER_TEST(a_frame_may_come_byte_by_byte),
		PEER_TEST(a_descriptor_comes_with_its_own_message),
		PEER_TEST(a_frame_over_the_limit_ends_the_peer_before_its_content),
		PEER_TEST(a_frame_of_another_version_ends_the_peer),
		PEER_TEST(a_frame_of_unknown_type_ends_the_peer),
		PEER_TEST(a_promised_descriptor_that_is_missing_ends_the_peer),
		PEER_TEST(a_message_that_its_handler_refuses_ends_the_peer),
		PEER_TEST(two_descriptors_at_once_end_the_peer),
		PEER_TEST(a_message_is_taken_only_in_its_states),
		PEER_TEST(a_peer_that_goes_is_noticed_after_its_last_message),
		PEER_TEST(a_closed_peer_leaves_the_loop_at_rest),
		PEER_TEST(a_paused_peer_reads_nothing_and_leaves_the_loop_at_rest),
		PEER_TEST(a_handler_may_free_the_peer),
		PEER_TEST(a_full_queue_tells_when_it_is_drained),
		PEER_TEST(a_queue_over_its_limit_ends_only_this_peer),
		PEER_TEST(sending_to_a_lost_peer_is_told_through_closed),
		PEER_TEST(wait_takes_one_message_or_gives_up_in_time),
		PEER_TEST(flush_sends_all_or_gives_up_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
