/* SPDX-License-Identifier: ISC */
/*
 * load PORT USER KEYFILE idle COUNT: opens that many authenticated connections, says "open COUNT
 *	FAILED", and holds them until its standard input ends.
 * load PORT USER KEYFILE rate A_SECOND SECONDS: connections that come at a steady rate whether or
 *	not those before them are done; each authenticates and leaves. Says "done COUNT FAILED
 *	MEDIAN P99 MAX", the times in ms from the moment that a connection was due.
 *
 * A client of its own, because a thousand processes of ssh would leave the machine no time to serve
 * them.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <libssh/libssh.h>

/* More than come due while one takes as long as it may, or the rate would not be kept. */
#define IDLE_THREADS 4
#define RATE_THREADS 256
#define COUNT_MAX 100000
#define TIMEOUT 30L /* s */

struct run {
	pthread_mutex_t lock;
	unsigned next, count, failed;
	bool hold;
	double started, interval; /* s */
	double *times;            /* ms; of each connection that succeeded, else negative */
	ssh_session *held;
	unsigned port;
	const char *user;
	ssh_key key;
};

static double
now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void
sleep_until(double due)
{
	struct timespec time;

	time.tv_sec = (time_t)due;
	time.tv_nsec = (long)((due - (double)time.tv_sec) * 1e9);
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* The same algorithms as the ssh of the other rows. */
static void
set_options(ssh_session session, const struct run *run)
{
	int off = 0, on = 1;
	long timeout = TIMEOUT;

	(void)ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &off);
	(void)ssh_options_set(session, SSH_OPTIONS_HOST, "127.0.0.1");
	(void)ssh_options_set(session, SSH_OPTIONS_PORT, &run->port);
	(void)ssh_options_set(session, SSH_OPTIONS_USER, run->user);
	(void)ssh_options_set(session, SSH_OPTIONS_NODELAY, &on);
	(void)ssh_options_set(session, SSH_OPTIONS_TIMEOUT, &timeout);
	(void)ssh_options_set(session, SSH_OPTIONS_KEY_EXCHANGE, "curve25519-sha256");
	(void)ssh_options_set(session, SSH_OPTIONS_HOSTKEYS, "ssh-ed25519");
	(void)ssh_options_set(session, SSH_OPTIONS_CIPHERS_C_S, "aes128-gcm@openssh.com");
	(void)ssh_options_set(session, SSH_OPTIONS_CIPHERS_S_C, "aes128-gcm@openssh.com");
}

static ssh_session
log_in(const struct run *run)
{
	ssh_session session;

	session = ssh_new();
	if (session == NULL)
		return NULL;
	set_options(session, run);
	if (ssh_connect(session) == SSH_OK &&
	    ssh_userauth_publickey(session, NULL, run->key) == SSH_AUTH_SUCCESS)
		return session;
	(void)fprintf(stderr, "load: %s\n", ssh_get_error(session));
	ssh_disconnect(session);
	ssh_free(session);
	return NULL;
}

static void
log_out(ssh_session session)
{
	ssh_disconnect(session);
	ssh_free(session);
}

static void *
open_connections(void *argument)
{
	struct run *run = argument;
	ssh_session session;
	unsigned index;
	double due;

	for (;;) {
		(void)pthread_mutex_lock(&run->lock);
		index = run->next++;
		(void)pthread_mutex_unlock(&run->lock);
		if (index >= run->count)
			return NULL;
		due = run->started + index * run->interval;
		sleep_until(due);
		session = log_in(run);
		run->times[index] = session == NULL ? -1 : (now() - due) * 1000;
		if (session != NULL && run->hold)
			run->held[index] = session;
		else if (session != NULL)
			log_out(session);
	}
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The part-th quantile of the sorted times, the first failed of which are none. */
static double
quantile(const struct run *run, double part)
{
	unsigned good = run->count - run->failed;

	if (good == 0)
		return -1;
	return run->times[run->failed + (unsigned)((good - 1) * part)];
}

static void
run_threads(struct run *run, unsigned count)
{
	pthread_t threads[RATE_THREADS];
	unsigned i;

	run->started = now() + 0.1;
	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, open_connections, run) != 0) {
			(void)fputs("load: no thread\n", stderr);
			exit(1);
		}
	for (i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	for (i = 0; i < run->count; i++)
		run->failed += run->times[i] < 0;
	qsort(run->times, run->count, sizeof(*run->times), compare);
}

static void
run_idle(struct run *run)
{
	char unused;
	unsigned i;

	run->hold = true;
	run_threads(run, IDLE_THREADS);
	(void)printf("open %u %u\n", run->count, run->failed);
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &unused, 1) > 0)
		continue;
	for (i = 0; i < run->count; i++)
		if (run->held[i] != NULL)
			log_out(run->held[i]);
}

static void
raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Fills in the run; returns the process's exit status when there is nothing to run. */
static int
parse_arguments(int argc, char **argv, struct run *run, bool *rate)
{
	unsigned long number;

	*rate = argc == 7 && strcmp(argv[4], "rate") == 0;
	if (!*rate && (argc != 6 || strcmp(argv[4], "idle") != 0)) {
		(void)fputs(
		    "usage: load PORT USER KEYFILE idle COUNT | rate A_SECOND SECONDS\n", stderr);
		return 64;
	}
	number = strtoul(argv[5], NULL, 10);
	run->count = (unsigned)(*rate ? number * strtoul(argv[6], NULL, 10) : number);
	run->interval = *rate ? 1.0 / (double)number : 0;
	run->port = (unsigned)strtoul(argv[1], NULL, 10);
	run->user = argv[2];
	if (run->count == 0 || run->count > COUNT_MAX || ssh_init() != SSH_OK ||
	    ssh_pki_import_privkey_file(argv[3], NULL, NULL, NULL, &run->key) != SSH_OK) {
		(void)fputs("load: no such number, or no such key\n", stderr);
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct run run = { .lock = PTHREAD_MUTEX_INITIALIZER };
	bool rate;
	int result;

	result = parse_arguments(argc, argv, &run, &rate);
	if (result != 0)
		return result;
	raise_limit();
	run.times = calloc(run.count, sizeof(*run.times));
	run.held = calloc(run.count, sizeof(ssh_session));
	if (run.times == NULL || run.held == NULL) {
		result = 1;
	} else if (rate) {
		run_threads(&run, RATE_THREADS);
		(void)printf("done %u %u %.1f %.1f %.1f\n", run.count, run.failed,
		    quantile(&run, 0.5), quantile(&run, 0.99), quantile(&run, 1));
	} else {
		run_idle(&run);
	}
	free(run.times);
	free(run.held);
	ssh_key_free(run.key);
	return result;
}
