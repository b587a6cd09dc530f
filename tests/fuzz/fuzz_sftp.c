/* SPDX-License-Identifier: ISC */
/*
 * The SFTP server as a client sees it, over a worker played in this process. The input is the bytes
 * of the channel after INIT. Whatever comes, what is answered must be whole packets.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/log.h"
#include "gateway/channel.h"
#include "gateway/sftp.h"
#include "gateway/sftp_packet.h"
#include "tests/unit/sftp_talk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_packets(const unsigned char *at, size_t left)
{
	size_t length;

	while (left > 0) {
		if (left < 5)
			__builtin_trap();
		length = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
		if (length < 5 || length > left - 4 || length > SFTP_PACKET_MAX ||
		    (at[4] != SFTP_VERSION && at[4] < SFTP_STATUS))
			__builtin_trap();
		at += 4 + length;
		left -= 4 + length;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char init[] = { 0, 0, 0, 5, SFTP_INIT, 0, 0, 0, 3 };
	struct talk *talk;

	log_open("fuzz", LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	talk = talk_open();
	if (sftp_start(talk_channel(talk)) != 0)
		__builtin_trap();
	talk_say(talk, init, sizeof(init));
	talk_say(talk, data, size / 2);
	talk_say(talk, data + size / 2, size - size / 2);
	talk_end(talk);
	check_packets(buffer_data(talk_heard(talk)), talk_heard(talk)->length);
	talk_close(talk);
	return 0;
}
