/* SPDX-License-Identifier: ISC */
/* One worker as the records process sees it. */
#ifndef GATEWAY_RECORDS_CLIENT_H
#define GATEWAY_RECORDS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct loop;
struct records_attach;
struct store;

/* What all clients share. */
struct clients {
	struct loop *loop;
	struct store *store;
	const char *place; /* of this gateway */
	struct client *first;
	/* A client is gone, and nothing of it is left to be written. */
	void (*gone)(void);
};

/* A worker's socket; takes over attach->fd and its texts. */
void client_open(struct clients *clients, struct records_attach *attach);

/* Writes what could not be written when it came, and frees who is gone and has nothing left. */
void clients_flush(struct clients *clients);

/* Says to the store that the workers are still there. */
void clients_renew(struct clients *clients);

/* Is there a worker, as opposed to what one has left to be written? */
bool clients_alive(const struct clients *clients);

void clients_free(struct clients *clients);

#endif
