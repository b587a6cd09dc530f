/* SPDX-License-Identifier: ISC */
/*
 * scp's old protocol: the first line is the exec string, the rest what the client sends, over a
 * worker played in this process. A name that a line carries never holds a slash.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "gateway/channel.h"
#include "gateway/scp.h"
#include "gateway/scp_command.h"
#include "gateway/scp_line.h"
#include "tests/unit/sftp_talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_line(const char *text)
{
	struct scp_line line;

	if (scp_line_parse(text, &line, NULL) != 0)
		return;
	if (line.name != NULL && (strchr(line.name, '/') != NULL || strcmp(line.name, "..") == 0))
		__builtin_trap();
	scp_line_free(&line);
}

static void
talk_scp(struct scp_command *command, const uint8_t *data, size_t size)
{
	struct talk *talk;
	uint32_t status;

	talk = talk_open();
	if (scp_start(talk_channel(talk), command) != 0)
		__builtin_trap();
	talk_say(talk, data, size);
	talk_end(talk);
	if (talk_ended(talk, &status) && status > 1)
		__builtin_trap();
	talk_close(talk);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scp_command command;
	const uint8_t *end;
	char *text;

	log_open("fuzz", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	end = size == 0 ? NULL : memchr(data, '\n', size);
	text = memory_text_bounded(data, end == NULL ? size : (size_t)(end - data));
	read_line(text);
	if (scp_command_parse(text, &command)) {
		if (end != NULL)
			talk_scp(&command, end + 1, size - (size_t)(end + 1 - data));
		scp_command_free(&command);
	}
	memory_free(text);
	return 0;
}
