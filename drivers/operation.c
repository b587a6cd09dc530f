/* SPDX-License-Identifier: ISC */
#include <stddef.h>

#include "drivers/operation.h"

void
operation_link(struct driver_operation *operation, struct driver_sandbox *sandbox,
    struct driver_operation **list, void (*destroy)(struct driver_operation *operation))
{
	operation->sandbox = sandbox;
	operation->destroy = destroy;
	operation->list = list;
	operation->next = *list;
	*list = operation;
}

void
operation_cancel(struct driver_operation *operation)
{
	struct driver_operation **place;

	for (place = operation->list; *place != operation; place = &(*place)->next)
		continue;
	*place = operation->next;
	operation->destroy(operation);
}

void
operation_cancel_all(struct driver_operation **list)
{
	while (*list != NULL)
		operation_cancel(*list);
}
