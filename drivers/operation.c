/* SPDX-License-Identifier: ISC */
#include "drivers/operation.h"

void
operation_link(struct driver_operation *operation, struct driver_operation **list,
    struct driver_sandbox *sandbox, void (*destroy)(struct driver_operation *operation))
{
	operation->list = list;
	operation->sandbox = sandbox;
	operation->destroy = destroy;
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
