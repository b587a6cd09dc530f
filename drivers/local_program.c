/* SPDX-License-Identifier: ISC */
/* The embedded init, as a file that exists in memory only. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "drivers/local_program.h"

/* Newer kernels want to hear that a memory file is meant to be run; older ones refuse the flag. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* The build says where the program is, relative to the directory it runs in. */
#ifndef LOCAL_INIT_FILE
#define LOCAL_INIT_FILE "build/rwsd-init"
#endif

__asm__(".pushsection .rodata\n"
	".globl local_program_start\n"
	".globl local_program_end\n"
	"local_program_start:\n"
	".incbin \"" LOCAL_INIT_FILE "\"\n"
	"local_program_end:\n"
	".byte 0\n"
	".popsection\n");

extern const unsigned char local_program_start[] __attribute__((visibility("hidden")));
extern const unsigned char local_program_end[] __attribute__((visibility("hidden")));

int
local_program_open(struct error *err)
{
	/* Two symbols, one object: nothing the language would let pointers say. */
	size_t size = (uintptr_t)local_program_end - (uintptr_t)local_program_start;
	int fd;

	fd = memfd_create("rwsd-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("rwsd-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return error_system(err, errno,
		    "memfd_create for the sandbox's init (vm.memfd_noexec must not be 2)");
	if (descriptor_write(fd, local_program_start, size, err) != 0)
		goto fail;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
		error_system(err, errno, "seal the sandbox's init");
		goto fail;
	}
	return fd;
fail:
	(void)close(fd);
	return -1;
}
