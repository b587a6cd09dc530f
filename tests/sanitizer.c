/* SPDX-License-Identifier: ISC */
/*
 * Linked into the programs that are built with sanitizers. They give up the rights that the leak
 * check at exit needs (it traces the process from another one), and pass no environment on that
 * could say so; leaks are for the unit tests to find.
 */

const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0:detect_stack_use_after_return=1";
}
