/* SPDX-License-Identifier: ISC */
/*
 * What a command that runs in its wrapper is told from outside: signals to its group, and the new
 * size of a terminal. Each goes by a script of its own, one after another, once the start marker
 * has told the group's number.
 */
#ifndef CORE_NEWS_H
#define CORE_NEWS_H

#include <stdint.h>

struct driver;
struct driver_sandbox;
struct loop;
struct marker;
struct news;

/* marker is the command's, and stays the caller's. */
struct news *news_new(struct loop *loop, const struct driver *driver,
    struct driver_sandbox *sandbox, const struct marker *marker);

/* What is not sent is dropped; accepts NULL. */
void news_free(struct news *news);

/* Waits to be sent, in order, behind the signals that wait already; dropped when those are many. */
void news_add_signal(struct news *news, int number);

/* So does the size, in place of one that waits. */
void news_set_size(struct news *news, uint32_t columns, uint32_t rows);

/* The group is known now. */
void news_send(struct news *news);

/* A last signal, of whose outcome nobody hears; news may be freed at once. */
void news_send_last(struct news *news, int number);

#endif
