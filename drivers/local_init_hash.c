/* SPDX-License-Identifier: ISC */
/*
 * Hashes, by the sandbox's own md5sum and its sisters: this program carries no cryptography. Each
 * runs in a process of its own that is fed the bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/hex.h"
#include "core/base/memory.h"
#include "drivers/local_files.h"

#define BUFFER_SIZE 65536U
#define OUTPUT_MAX 160
#define HASHES_MAX 4096U
/* As a shell has it; nobody looks at it but who traces. */
#define EXIT_CANNOT_RUN 127

static const struct {
	const char *name, *program;
	size_t size; /* of a hash, in bytes */
} algorithms[] = {
	{ "md5", "md5sum", 16 },
	{ "sha1", "sha1sum", 20 },
	{ "sha224", "sha224sum", 28 },
	{ "sha256", "sha256sum", 32 },
	{ "sha384", "sha384sum", 48 },
	{ "sha512", "sha512sum", 64 },
};
#define COUNT (sizeof(algorithms) / sizeof(algorithms[0]))

static size_t
find_algorithm(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT && strcmp(algorithms[i].name, name) != 0; i++)
		continue;
	return i;
}

static _Noreturn void
run_program(const char *program, int input, int output)
{
	if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
		_exit(EXIT_CANNOT_RUN);
	(void)close_range(3, ~0U, 0);
	(void)execlp(program, program, (char *)NULL);
	_exit(EXIT_CANNOT_RUN);
}

/* Feeds size bytes of fd from offset on; fewer when the file ends. */
static void
feed(int fd, uint64_t offset, uint64_t size, int sink)
{
	static char buffer[BUFFER_SIZE];
	ssize_t got;

	for (; size > 0; size -= (uint64_t)got, offset += (uint64_t)got) {
		got = pread(fd, buffer, size < sizeof(buffer) ? (size_t)size : sizeof(buffer),
		    (off_t)offset);
		if (got <= 0 || descriptor_write(sink, buffer, (size_t)got, NULL) != 0)
			return;
	}
}

/*
 * One hash of a piece; what the program prints fits into its pipe, so it is read after the feeding.
 */
static int
hash_piece(int fd, uint64_t offset, uint64_t size, size_t algorithm, unsigned char *hash,
    struct error *err)
{
	int input[2], output[2];
	char text[OUTPUT_MAX];
	ssize_t got;
	pid_t pid;

	if (descriptor_pipe(input, err) != 0)
		return -1;
	if (descriptor_pipe(output, err) != 0) {
		(void)close(input[0]);
		(void)close(input[1]);
		return -1;
	}
	pid = fork();
	if (pid == 0)
		run_program(algorithms[algorithm].program, input[0], output[1]);
	(void)close(input[0]);
	(void)close(output[1]);
	if (pid > 0)
		feed(fd, offset, size, input[1]);
	(void)close(input[1]);
	got = read(output[0], text, sizeof(text) - 1);
	(void)close(output[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	text[got < 0 ? 0 : got] = '\0';
	if (hex_decode(hash, algorithms[algorithm].size, text) == 0)
		return 0;
	return error_set(
	    err, ERROR_UNSUPPORTED, "%s cannot be run here", algorithms[algorithm].program);
}

static int
hash_all(int fd, const struct file_request *request, uint64_t end, size_t algorithm,
    struct file_reply *reply, struct error *err)
{
	uint64_t at, block, count;
	unsigned char *hash;

	block = request->block == 0 ? end - request->offset : request->block;
	count = block == 0 ? 1 : (end - request->offset + block - 1) / block;
	if (count > HASHES_MAX)
		return error_set(err, ERROR_TOO_LARGE, "more than %u hashes at once", HASHES_MAX);
	reply->bytes = memory_allocate((size_t)(count + 1) * algorithms[algorithm].size);
	at = request->offset;
	do {
		if (block > end - at)
			block = end - at;
		hash = reply->bytes + reply->bytes_size;
		if (hash_piece(fd, at, block, algorithm, hash, err) != 0)
			return -1;
		reply->bytes_size += algorithms[algorithm].size;
		at += block;
	} while (at < end);
	return 0;
}

int
file_verb_hash(const struct file_server *server, struct file_request *request,
    struct file_reply *reply, struct error *err)
{
	struct file_request open_request = { .path = request->path, .fd = -1 };
	struct file_reply opened;
	size_t algorithm;
	uint64_t end;
	int result;

	algorithm = find_algorithm(request->algorithm);
	if (algorithm == COUNT)
		return error_set(err, ERROR_UNSUPPORTED, "no hash %s here", request->algorithm);
	file_reply_init(&opened);
	if (file_verb_open(server, &open_request, &opened, err) != 0) {
		file_reply_free(&opened);
		return -1;
	}
	end = opened.attributes.size;
	if (request->offset > end)
		result = error_set(err, ERROR_INVALID, "the offset is past the end");
	else {
		if (request->size != 0 && request->size < end - request->offset)
			end = request->offset + request->size;
		result = hash_all(opened.fd, request, end, algorithm, reply, err);
	}
	file_reply_free(&opened);
	return result;
}
