/* SPDX-License-Identifier: ISC */
/* Lines of authorized_keys: which keys and options are taken, which refused, and why. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "keys/authorized.h"
#include "keys/publickey.h"
#include "keys/source.h"
#include "tests/unit/sample_keys.h"

static struct error err;

static struct authorized_key
parse(const char *line)
{
	struct authorized_key key;

	if (authorized_parse_line(line, &key, &err) != 1)
		fail_msg("%s: %s", line, err.message);
	return key;
}

static void
assert_refused(const char *line, const char *reason)
{
	struct authorized_key key;

	assert_int_equal(authorized_parse_line(line, &key, &err), -1);
	assert_string_equal(err.message, reason);
	assert_null(key.blob);
}

static void
every_key_type_has_the_fingerprint_of_ssh_keygen(void **state)
{
	static const char *const keys[][2] = {
		{ KEY_ED25519, FINGERPRINT_ED25519 },
		{ KEY_ECDSA_256, FINGERPRINT_ECDSA_256 },
		{ KEY_ECDSA_384, FINGERPRINT_ECDSA_384 },
		{ KEY_ECDSA_521, FINGERPRINT_ECDSA_521 },
		{ KEY_RSA_2048, FINGERPRINT_RSA_2048 },
		{ KEY_SK_ED25519, FINGERPRINT_SK_ED25519 },
		{ KEY_SK_ECDSA, FINGERPRINT_SK_ECDSA },
	};
	struct authorized_key key;
	char *fingerprint;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		key = parse(keys[i][0]);
		assert_memory_equal(key.algorithm, keys[i][0], strlen(key.algorithm));
		fingerprint = publickey_fingerprint(key.blob, key.blob_size);
		assert_string_equal(fingerprint, keys[i][1]);
		memory_free(fingerprint);
		authorized_key_free(&key);
	}
}

static void
a_plain_key_restricts_nothing(void **state)
{
	struct authorized_key key;

	(void)state;
	key = parse("  " KEY_ED25519 " somebody@somewhere else");
	assert_string_equal(key.algorithm, "ssh-ed25519");
	assert_int_equal(key.blob_size, 51);
	assert_null(key.from);
	assert_null(key.command);
	assert_null(key.environment[0]);
	assert_int_equal(key.expiry, 0);
	assert_false(key.no_pty);
	authorized_key_free(&key);
}

static void
blank_lines_and_comments_have_no_key(void **state)
{
	struct authorized_key key;

	(void)state;
	assert_int_equal(authorized_parse_line("", &key, &err), 0);
	assert_int_equal(authorized_parse_line(" \t", &key, &err), 0);
	assert_int_equal(authorized_parse_line("  # " KEY_ED25519, &key, &err), 0);
}

static void
all_options_are_taken_together(void **state)
{
	struct authorized_key key;

	(void)state;
	key = parse("from=\"10.0.0.0/8,!10.1.0.0/16\",command=\"echo \\\"a, b\\\" \\n\",NO-PTY,"
		    "no-port-forwarding,no-agent-forwarding,no-X11-forwarding,no-user-rc,"
		    "environment=\"A=1,2\",environment=\"B=\",environment=\"A=later\","
		    "expiry-time=\"20300102Z\"\t " KEY_RSA_2048);
	assert_string_equal(key.from, "10.0.0.0/8,!10.1.0.0/16");
	assert_string_equal(key.command, "echo \"a, b\" \\n");
	assert_true(key.no_pty);
	assert_string_equal(key.environment[0], "A=1,2");
	assert_string_equal(key.environment[1], "B=");
	assert_null(key.environment[2]);
	assert_int_equal(key.expiry, 1893542400);
	authorized_key_free(&key);
}

static void
later_words_on_ptys_win(void **state)
{
	static const struct {
		const char *line;
		bool no_pty;
	} cases[] = {
		{ "restrict " KEY_ED25519, true },
		{ "restrict,pty " KEY_ED25519, false },
		{ "pty,restrict " KEY_ED25519, true },
		{ "port-forwarding,X11-forwarding,agent-forwarding,user-rc " KEY_ED25519, false },
	};
	struct authorized_key key;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		key = parse(cases[i].line);
		assert_int_equal(key.no_pty, cases[i].no_pty);
		authorized_key_free(&key);
	}
}

static void
what_is_not_understood_refuses_the_line(void **state)
{
	(void)state;
	assert_refused("cert-authority " KEY_ED25519, "unknown option \"cert-authority\"");
	assert_refused("verify-required " KEY_SK_ED25519, "unknown option \"verify-required\"");
	assert_refused("principals=\"a\" " KEY_ED25519, "unknown option \"principals\"");
	assert_refused("permitopen=\"a:1\" " KEY_ED25519, "unknown option \"permitopen\"");
	assert_refused("pty,future " KEY_ED25519, "unknown option \"future\"");
	assert_refused("no-pty=\"x\" " KEY_ED25519, "no-pty: takes no value");
	assert_refused("command " KEY_ED25519, "command: the value is missing");
	assert_refused("command=ls " KEY_ED25519, "command: the value is not in quotes");
	assert_refused("command=\"ls " KEY_ED25519, "command: the value is not in quotes");
	assert_refused("command=\"ls\\\" " KEY_ED25519, "command: the value is not in quotes");
	assert_refused("command=\"a\",command=\"b\" " KEY_ED25519, "command: it is given twice");
	assert_refused("from=\"::1\",from=\"::2\" " KEY_ED25519, "from: it is given twice");
	assert_refused(
	    "command=\"a\"no-pty " KEY_ED25519, "a comma is missing between two options");
	assert_refused("no-pty," KEY_ED25519, "keys of type \"ssh-ed25519\" are not supported");
	assert_refused("no-pty, " KEY_ED25519, "unknown option \"\"");
	assert_refused("no-pty", "there is no key");
	assert_refused("no-pty ", "there is no key");
	assert_refused("environment=\"A\" " KEY_ED25519, "environment: not of the form NAME=VALUE");
	assert_refused(
	    "environment=\"A-B=1\" " KEY_ED25519, "environment: not of the form NAME=VALUE");
}

static void
keys_of_other_types_are_named(void **state)
{
	(void)state;
	assert_refused(
	    KEY_CERTIFICATE, "keys of type \"ssh-ed25519-cert-v01@openssh.com\" are not supported");
	assert_refused("ssh-dss AAAAB3NzaC1kc3M= me", "keys of type \"ssh-dss\" are not supported");
	assert_refused(
	    "restrict ssh-dss AAAAB3NzaC1kc3M=", "keys of type \"ssh-dss\" are not supported");
}

static void
damaged_keys_are_refused(void **state)
{
	(void)state;
	assert_refused("ssh-ed25519", "there is no key");
	assert_refused("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHs", "the key is not base64");
	assert_refused("ssh-ed25519 AAAA", "the key is cut short");
	assert_refused("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "the key is cut short");
	assert_refused("ssh-rsa AAAAC3NzaC1lZDI1NTE5", "the key is not of the type ssh-rsa");
	assert_refused(KEY_RSA_1024, "the RSA key has 1024 bits, not 2048 to 16384");
}

static void
put(unsigned char *blob, size_t *size, const void *data, size_t length)
{
	blob[(*size)++] = 0;
	blob[(*size)++] = 0;
	blob[(*size)++] = (unsigned char)(length >> 8);
	blob[(*size)++] = (unsigned char)length;
	memcpy(blob + *size, data, length);
	*size += length;
}

/* The reason publickey_check gives for a blob of the fields; a NULL field ends them. */
static const char *
blob_refusal(const char *algorithm, const char *const *fields, const size_t *sizes)
{
	unsigned char blob[4096];
	size_t size, i;

	size = 0;
	put(blob, &size, algorithm, strlen(algorithm));
	for (i = 0; fields[i] != NULL; i++)
		put(blob, &size, fields[i], sizes[i]);
	if (publickey_check(algorithm, blob, size, &err) == 0)
		return "accepted";
	return err.message;
}

static void
blobs_have_one_spelling_only(void **state)
{
	static char zeros[512], modulus[258], point[66];
	const char *fields[4] = { zeros, NULL, NULL, NULL };
	size_t sizes[3] = { 32, 0, 0 };

	(void)state;
	assert_string_equal(blob_refusal("ssh-ed25519", fields, sizes), "accepted");
	sizes[0] = 33;
	assert_string_equal(
	    blob_refusal("ssh-ed25519", fields, sizes), "the key has 33 bytes, not 32");
	sizes[0] = 32;
	fields[1] = zeros;
	assert_string_equal(blob_refusal("ssh-ed25519", fields, sizes), "4 bytes follow the key");
	assert_string_equal(blob_refusal("sk-ssh-ed25519@openssh.com", fields, sizes),
	    "the security key's application is missing");

	modulus[1] = (char)0x80;
	fields[0] = "\1\0\1";
	sizes[0] = 3;
	fields[1] = modulus;
	sizes[1] = 257;
	assert_string_equal(blob_refusal("ssh-rsa", fields, sizes), "accepted");
	sizes[1] = 256;
	assert_string_equal(
	    blob_refusal("ssh-rsa", fields, sizes), "the RSA key has 2040 bits, not 2048 to 16384");
	fields[1] = modulus + 1;
	assert_string_equal(
	    blob_refusal("ssh-rsa", fields, sizes), "a number of the key is not positive");
	modulus[1] = 0x40;
	fields[1] = modulus;
	sizes[1] = 258;
	assert_string_equal(
	    blob_refusal("ssh-rsa", fields, sizes), "a number of the key has zeros in front");

	point[0] = 4;
	fields[0] = "nistp256";
	sizes[0] = 8;
	fields[1] = point;
	sizes[1] = 65;
	assert_string_equal(blob_refusal("ecdsa-sha2-nistp256", fields, sizes), "accepted");
	assert_string_equal(
	    blob_refusal("ecdsa-sha2-nistp384", fields, sizes), "the key is not on nistp384");
	point[0] = 2;
	assert_string_equal(
	    blob_refusal("ecdsa-sha2-nistp256", fields, sizes), "the key is no point of nistp256");
}

static int64_t
expiry_of(const char *text)
{
	struct authorized_key key;
	char *line;
	int64_t expiry;
	int result;

	line = memory_text_format("expiry-time=\"%s\" %s", text, KEY_ED25519);
	result = authorized_parse_line(line, &key, &err);
	expiry = result == 1 ? key.expiry : -1;
	memory_free(line);
	if (result == 1)
		authorized_key_free(&key);
	return expiry;
}

static void
expiry_times_are_local_or_utc(void **state)
{
	(void)state;
	assert_int_equal(setenv("TZ", "XYZ-2", 1), 0); /* two hours east of Greenwich */
	tzset();
	assert_int_equal(expiry_of("20240229"), 1709164800 - 7200);
	assert_int_equal(expiry_of("20240229Z"), 1709164800);
	assert_int_equal(expiry_of("202402291234z"), 1709210040);
	assert_int_equal(expiry_of("20240229123456Z"), 1709210096);
	assert_int_equal(expiry_of("20230229Z"), -1);
	assert_int_equal(expiry_of("20241301Z"), -1);
	assert_int_equal(expiry_of("202402292400Z"), -1);
	assert_int_equal(expiry_of("2024022912Z"), -1);
	assert_int_equal(expiry_of("20240229 Z"), -1);
	assert_int_equal(expiry_of(""), -1);
	assert_int_equal(expiry_of("99991231235959Z"), INT64_C(253402300799));
	assert_int_equal(unsetenv("TZ"), 0);
	tzset();
}

static void
the_earliest_expiry_counts_to_the_second(void **state)
{
	struct authorized_key key;

	(void)state;
	key = parse(
	    "expiry-time=\"20300101Z\",expiry-time=\"20240229Z\",expiry-time=\"20310101Z\" " KEY_ED25519);
	assert_int_equal(authorized_admit(&key, "::1", 1709164799, &err), 0);
	assert_int_equal(authorized_admit(&key, "::1", 1709164800, &err), -1);
	assert_string_equal(err.message, "the key has expired (expiry-time)");
	authorized_key_free(&key);
}

static void
from_matches_addresses(void **state)
{
	static const struct {
		const char *patterns, *address;
		bool matches;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.1.2", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "10.0.0.0/9", "10.127.0.1", true },
		{ "10.0.0.0/9", "10.128.0.1", false },
		{ "0.0.0.0/0", "1.2.3.4", true },
		{ "0.0.0.0/0", "::1", false },
		{ "1.2.3.4/32", "1.2.3.5", false },
		{ "2001:db8::/33", "2001:db8:7fff::1", true },
		{ "2001:db8::/33", "2001:db8:8000::1", false },
		{ "2001:DB8::1", "2001:db8:0:0::1", true },
		{ "::1/128", "::1", true },
		{ "1.2.3.4", "::ffff:1.2.3.4", true },
		{ "::ffff:1.2.3.4", "1.2.3.4", true },
		{ "fe80::/10", "fe80::1%eth0", true },
		{ "10.0.*", "10.0.7.9", true },
		{ "10.0.?.9", "10.0.77.9", false },
		{ "*", "::1", true },
		{ "2001:DB8:*", "2001:db8::5", true },
		{ "10.0.0.0/8,!10.1.0.0/16", "10.1.2.3", false },
		{ "!10.1.0.0/16,10.0.0.0/8", "10.1.2.3", false },
		{ "!10.1.0.0/16,10.0.0.0/8", "10.2.2.3", true },
		{ "!10.1.0.0/16", "10.2.0.1", false },
		{ "example.com,10.0.0.1", "10.0.0.1", true },
		{ "example.com", "10.0.0.1", false },
		{ "*", "no address", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(source_check(cases[i].patterns, &err), 0);
		if (source_match(cases[i].patterns, cases[i].address) != cases[i].matches)
			fail_msg("%s and %s", cases[i].patterns, cases[i].address);
	}
}

static void
from_refuses_patterns_that_mean_nothing(void **state)
{
	static const char *const cases[] = { "", ",", "a,,b", "10.0.0.1/8", "10.0.0.0/33",
		"10.0.0.0/", "::/129", "host/8", "!", "!example.com", "*,!*.example.com" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (source_check(cases[i], &err) == 0)
			fail_msg("\"%s\" is taken", cases[i]);
}

static void
from_takes_no_long_time_for_hostile_patterns(void **state)
{
	/* Exponential for a matcher that tries every way to share the text among the stars. */
	(void)state;
	assert_false(source_match("*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*1*x",
	    "1111:1111:1111:1111:1111:1111:1111:1111"));
}

static void
a_bad_line_leaves_the_others(void **state)
{
	static const char text[] = "# keys\n\n" KEY_ED25519 " one\r\nnonsense\nno-pty " KEY_RSA_2048
				   "\n\0" KEY_ECDSA_256 "\n" KEY_ED25519_OTHER;
	struct authorized_keys keys;

	(void)state;
	authorized_parse(&keys, "test", text, sizeof(text) - 1);
	assert_int_equal(keys.count, 3);
	assert_int_equal(keys.keys[0].line, 3);
	assert_int_equal(keys.keys[1].line, 5);
	assert_true(keys.keys[1].no_pty);
	assert_int_equal(keys.keys[2].line, 7);
	authorized_keys_free(&keys);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_type_has_the_fingerprint_of_ssh_keygen),
		cmocka_unit_test(a_plain_key_restricts_nothing),
		cmocka_unit_test(blank_lines_and_comments_have_no_key),
		cmocka_unit_test(all_options_are_taken_together),
		cmocka_unit_test(later_words_on_ptys_win),
		cmocka_unit_test(what_is_not_understood_refuses_the_line),
		cmocka_unit_test(keys_of_other_types_are_named),
		cmocka_unit_test(damaged_keys_are_refused),
		cmocka_unit_test(blobs_have_one_spelling_only),
		cmocka_unit_test(expiry_times_are_local_or_utc),
		cmocka_unit_test(the_earliest_expiry_counts_to_the_second),
		cmocka_unit_test(from_matches_addresses),
		cmocka_unit_test(from_refuses_patterns_that_mean_nothing),
		cmocka_unit_test(from_takes_no_long_time_for_hostile_patterns),
		cmocka_unit_test(a_bad_line_leaves_the_others),
	};

	return cmocka_run_group_tests_name("authorized", tests, NULL, NULL);
}
