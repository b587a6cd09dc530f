/* SPDX-License-Identifier: ISC */
/*
 * delay PORT MILLISECONDS: a long line. Listens on a loopback port of its own, which it prints, and
 * passes every byte on to PORT after half of MILLISECONDS in each direction. One process a
 * connection. What is under way is bounded by LINE_MAX only, so that the line is long but not
 * narrow: what limits a transfer is the windows of SSH, as on a fast line between continents. Ends
 * when its standard input does.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes and pieces under way in one direction; in 25 ms, 670 MB/s. */
#define LINE_MAX (16U * 1024U * 1024U)
#define PIECES_MAX 65536U
#define READ_MAX (256U * 1024U)
#define NANOSECOND INT64_C(1000000000)

struct piece {
	int64_t due; /* ns */
	size_t size;
};

/* One direction: bytes in a ring, and in another when each piece of them may leave. */
struct line {
	int from, to;
	bool ended, closed; /* from is at its end; to was told */
	unsigned char *bytes;
	uint64_t head, tail; /* of all bytes ever; head - tail are under way */
	struct piece *pieces;
	uint64_t first, next;
};

static int64_t one_way;

static int64_t
now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * NANOSECOND + time.tv_nsec;
}

static void
stop(const char *what)
{
	perror(what);
	exit(1);
}

static void *
reserve(size_t size)
{
	void *place = malloc(size);

	if (place == NULL)
		stop("malloc");
	return place;
}

static bool
has_room(const struct line *line)
{
	return !line->ended && line->head - line->tail < LINE_MAX &&
	       line->next - line->first < PIECES_MAX;
}

/* How much of a ring of LINE_MAX bytes lies in one piece from position on. */
static size_t
in_one_piece(uint64_t position, uint64_t size)
{
	uint64_t left = LINE_MAX - position % LINE_MAX;

	return (size_t)(size < left ? size : left);
}

static void
take_in(struct line *line)
{
	struct piece *piece;
	uint64_t room;
	ssize_t got;

	room = LINE_MAX - (line->head - line->tail);
	got = read(line->from, line->bytes + line->head % LINE_MAX,
	    in_one_piece(line->head, room < READ_MAX ? room : READ_MAX));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		line->ended = true;
		got = 0;
	}
	piece = &line->pieces[line->next++ % PIECES_MAX];
	piece->due = now() + one_way;
	piece->size = (size_t)got;
	line->head += (uint64_t)got;
}

/* Sends what is due; false when the receiver takes no more now. */
static bool
give_out(struct line *line, int64_t time)
{
	struct piece *piece;
	ssize_t put;

	while (line->first < line->next) {
		piece = &line->pieces[line->first % PIECES_MAX];
		if (piece->due > time)
			return true;
		while (piece->size > 0) {
			put = write(line->to, line->bytes + line->tail % LINE_MAX,
			    in_one_piece(line->tail, piece->size));
			if (put < 0 && errno == EAGAIN)
				return false;
			if (put < 0)
				put = (ssize_t)piece->size; /* nobody is there to read it */
			piece->size -= (size_t)put;
			line->tail += (uint64_t)put;
		}
		line->first++;
	}
	if (line->ended && !line->closed) {
		(void)shutdown(line->to, SHUT_WR);
		line->closed = true;
	}
	return true;
}

/* The time that the next piece is due, or the one given when that is sooner. */
static int64_t
next_due(const struct line *line, int64_t sooner)
{
	int64_t due;

	if (line->first == line->next)
		return sooner;
	due = line->pieces[line->first % PIECES_MAX].due;
	return due < sooner ? due : sooner;
}

static void
run_lines(struct line lines[2])
{
	struct pollfd polled[2];
	struct timespec wait;
	int64_t time, due;
	int i;

	while (!lines[0].closed || !lines[1].closed) {
		time = now();
		due = time + NANOSECOND;
		for (i = 0; i < 2; i++) {
			polled[i].fd = lines[i].from;
			polled[i].events = has_room(&lines[i]) ? POLLIN : 0;
		}
		for (i = 0; i < 2; i++) {
			if (!give_out(&lines[i], time))
				polled[1 - i].events = (short)(polled[1 - i].events | POLLOUT);
			else
				due = next_due(&lines[i], due);
		}
		/* A descriptor that is waited on for nothing would still report a hang-up. */
		for (i = 0; i < 2; i++)
			if (polled[i].events == 0)
				polled[i].fd = -1;
		wait.tv_sec = 0;
		wait.tv_nsec = due - time < NANOSECOND ? (long)(due - time) : NANOSECOND - 1;
		if (ppoll(polled, 2, &wait, NULL) < 0 && errno != EINTR)
			stop("ppoll");
		for (i = 0; i < 2; i++)
			if (polled[i].fd >= 0 && (polled[i].revents & ~POLLOUT) != 0 &&
			    has_room(&lines[i]))
				take_in(&lines[i]);
	}
}

static int
dial(in_port_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = port };
	int fd;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		stop("connect");
	return fd;
}

static _Noreturn void
carry(int client, in_port_t port)
{
	struct line lines[2];
	int ends[2], i, on = 1;

	ends[0] = client;
	ends[1] = dial(port);
	memset(lines, 0, sizeof(lines));
	for (i = 0; i < 2; i++) {
		(void)setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		lines[i].from = ends[i];
		lines[i].to = ends[1 - i];
		lines[i].bytes = reserve(LINE_MAX);
		lines[i].pieces = reserve(PIECES_MAX * sizeof(struct piece));
	}
	run_lines(lines);
	exit(0);
}

static int
open_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int fd;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		stop("listen");
	(void)printf("%u\n", (unsigned)ntohs(address.sin_port));
	(void)fflush(stdout);
	return fd;
}

int
main(int argc, char **argv)
{
	struct pollfd polled[2];
	long port, milliseconds;
	int client;

	port = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	milliseconds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (port < 1 || port > 65535 || milliseconds < 0 || milliseconds > 10000) {
		(void)fputs("usage: delay PORT MILLISECONDS\n", stderr);
		return 64;
	}
	one_way = milliseconds * (NANOSECOND / 1000) / 2;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN);
	polled[0].fd = open_port();
	polled[1].fd = STDIN_FILENO;
	polled[0].events = polled[1].events = POLLIN;
	for (;;) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			stop("poll");
		if (polled[1].revents != 0)
			return 0;
		if ((polled[0].revents & POLLIN) == 0)
			continue;
		client = accept(polled[0].fd, NULL, NULL);
		if (client >= 0 && fork() == 0) {
			(void)close(polled[0].fd);
			(void)close(STDIN_FILENO);
			carry(client, htons((in_port_t)port));
		}
		if (client >= 0)
			(void)close(client);
	}
}
