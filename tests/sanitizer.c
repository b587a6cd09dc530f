/* SPDX-License-Identifier: ISC */
/*
 * Linked into the programs that are built with sanitizers. They give up the rights that the leak
 * check at exit needs (it traces the process from another one), and pass no environment on that
 * could say so; leaks are for the unit tests to find. The sandbox's first process must stay deaf to
 * its commands' SEGV, as the kernel makes it while nobody handles that; a real one is still the end
 * of the process, which tests see.
 */

const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0:detect_stack_use_after_return=1:handle_segv=0";
}
