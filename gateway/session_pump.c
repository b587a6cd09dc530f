/* SPDX-License-Identifier: ISC */
/*
 * The session's turns between two waits: libssh reads and writes, the login or the channels go on,
 * and then it is said what to wait for. No turn takes more than its share of the process.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/peer.h"
#include "gateway/channel.h"
#include "gateway/session_state.h"

/* libssh reads 4 KiB at a time: how many reads before others get their turn. */
#define READS_A_ROUND 64
#define ROUNDS_A_PUMP 8
/* The most that a packet has beside its payload: lengths, padding and authentication code. */
#define PACKET_OVERHEAD 96
/* ms that a client has to hang up by itself when the gateway is going down. */
#define LINGER 1000

uint64_t
session_unsent(const struct session *session)
{
	return session->counter.out_bytes - session->sent.out_bytes +
	       (session->counter.out_packets - session->sent.out_packets) * PACKET_OVERHEAD;
}

/*
 * How often libssh may read before others have their turn. It answers what it reads, and a client
 * that asks without end and takes no answers would fill our memory: with too much to be sent, it
 * reads only as often as the socket takes something, which is less than that makes room for.
 */
static int
count_reads(struct session *session)
{
	bool sendable = session->sendable;

	session->sendable = false;
	if (session_unsent(session) <= SESSION_UNSENT_MAX)
		return READS_A_ROUND;
	return sendable || session->hung_up ? 1 : 0;
}

/* A connection that is still there when libssh gives it up was broken by what the client sent. */
static void
note_end(struct session *session)
{
	if (ssh_get_error_code(session->ssh) == SSH_FATAL && ssh_is_connected(session->ssh) != 0) {
		log_info("the client broke the protocol: %s", ssh_get_error(session->ssh));
		session_disconnect(session, "%s", ssh_get_error(session->ssh));
	} else {
		log_debug("the connection ended: %s", ssh_get_error(session->ssh));
	}
	session->dead = true;
}

/* The kernel forgets this after each burst, so it is set again before each read until the login. */
static void
hurry_acknowledgement(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/*
 * Lets libssh read, handle and send packets until nothing is left or others should have their turn.
 */
static void
run_packets(struct session *session)
{
	int i, reads, result;

	reads = count_reads(session);
	for (i = 0; i < reads && !session->dead; i++) {
		if (session->stage != SESSION_OPEN)
			hurry_acknowledgement(session->connection.fd);
		result = ssh_event_dopoll(session->event, 0);
		if (result == SSH_ERROR || ssh_get_error_code(session->ssh) == SSH_FATAL ||
		    ssh_is_connected(session->ssh) == 0)
			note_end(session);
		if (result == SSH_AGAIN)
			break;
	}
	session->more = i == READS_A_ROUND;
	session->writable = !session->dead &&
			    (ssh_get_poll_flags(session->ssh) & SSH_WRITE_PENDING) == 0;
	if (session->writable)
		session->sent = session->counter;
}

static void
advance_exchange(struct session *session)
{
	int result;

	result = ssh_handle_key_exchange(session->ssh);
	if (result == SSH_ERROR) {
		log_info("no key exchange with %s: %s", session->connection.address,
		    ssh_get_error(session->ssh));
		session->dead = true;
	} else if (result == SSH_OK) {
		session->stage = SESSION_LOGGING_IN;
		peer_set_state(session->listener, session->stage);
		session->expected_packets = session->counter.in_packets;
	}
}

/* One turn of everything; true when there is more to do at once. */
static bool
pump_once(struct session *session)
{
	/*
	 * Requests to log in that are here come first: libssh queues what it reads without limit.
	 */
	if (session->stage == SESSION_LOGGING_IN)
		session_auth_advance(session);
	if (session->pending != NULL) {
		session->dead = session->hung_up;
		return false;
	}
	run_packets(session);
	if (session->dead)
		return false;
	if (session->stage == SESSION_EXCHANGING)
		advance_exchange(session);
	if (session->stage == SESSION_LOGGING_IN)
		session_auth_advance(session);
	if (session->stage != SESSION_OPEN)
		return false;
	return channels_advance(session) || session->more;
}

static void
watch_connection(struct session *session)
{
	unsigned events = 0;

	if (session->pending == NULL) {
		if (session_unsent(session) <= SESSION_UNSENT_MAX)
			events |= LOOP_READ;
		if ((ssh_get_poll_flags(session->ssh) & SSH_WRITE_PENDING) != 0)
			events |= LOOP_WRITE;
	}
	loop_watch_change(session->watch, events);
	channels_watch(session);
}

bool
session_pump(struct session *session)
{
	bool more;
	int i;

	if (session->stage == SESSION_WAITING || session->dead)
		return false;
	more = true;
	for (i = 0; i < ROUNDS_A_PUMP && more && !session->dead; i++)
		more = pump_once(session);
	if (session->dead)
		return false;
	/*
	 * A client with nothing left open goes by itself; told to go it would call that a failure.
	 */
	if (session->draining && session->channels == NULL && !loop_timer_running(session->grace))
		loop_timer_start(session->grace, LINGER);
	watch_connection(session);
	return more || session->hung_up;
}

void
session_say_goodbye(struct session *session)
{
	int i;

	for (i = 0; i < ROUNDS_A_PUMP && ssh_is_connected(session->ssh) != 0; i++)
		if (ssh_event_dopoll(session->event, 0) != SSH_OK ||
		    (ssh_get_poll_flags(session->ssh) & SSH_WRITE_PENDING) == 0)
			break;
	ssh_disconnect(session->ssh);
}
