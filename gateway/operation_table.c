/* SPDX-License-Identifier: ISC */
/* The one table of operations. */
#include <string.h>

#include "gateway/operation_table.h"

#define KIB INT64_C(1024)
#define TIB (INT64_C(1) << 40)
#define YEAR_MS (INT64_C(365) * 86400000)

#define FIELD(name, type, required, help)                          \
	{                                                          \
		name, type, required, 0, 0, NULL, NULL, help, NULL \
	}
#define DEFAULT(name, type, standard, help)                         \
	{                                                           \
		name, type, false, 0, 0, standard, NULL, help, NULL \
	}
#define BOUNDED(name, type, min, max, standard, help)                   \
	{                                                               \
		name, type, false, min, max, standard, NULL, help, NULL \
	}
#define CHOICE(name, choices, standard, help)                                      \
	{                                                                          \
		name, OPERATION_CHOICE, false, 0, 0, standard, choices, help, NULL \
	}
#define NESTED(name, type, required, help, fields)                   \
	{                                                            \
		name, type, required, 0, 0, NULL, NULL, help, fields \
	}
#define END                  \
	{                    \
		.name = NULL \
	}

/* clang-format off: one row a field, its help beside or below it */
static const struct operation_field nothing[] = { END };

static const struct operation_field info_result[] = {
	FIELD("login", OPERATION_TEXT, true, "The login: NAME, NAME+INSTANCE or NAME=ID."),
	FIELD("sandbox_id", OPERATION_TEXT, true, "The sandbox's id at its provider."),
	FIELD("driver", OPERATION_TEXT, true, "The driver that speaks to the provider."),
	FIELD("root", OPERATION_PATH, false, "The root directory, absolute in the sandbox."),
	FIELD("shell", OPERATION_TEXT, true, "The login shell."),
	FIELD("busy", OPERATION_BOOLEAN, true, "Does a command run, or has one left processes?"),
	FIELD("sessions", OPERATION_NUMBER, true, "Connections that use the workspace."),
	FIELD("commands", OPERATION_NUMBER, true,
	    "Commands of theirs that run or have left processes."),
	FIELD("version", OPERATION_TEXT, true, "Of the gateway."),
	END,
};

static const struct operation_field exec_parameters[] = {
	FIELD("command", OPERATION_TEXT, false, "Command line for sh -c."),
	FIELD("argv", OPERATION_LIST, false,
	    "Program and arguments, run without a shell, in place of command."),
	FIELD("stdin", OPERATION_BYTES, false, "What the command reads on stdin."),
	DEFAULT("stdin_open", OPERATION_BOOLEAN, "false",
	    "Keep stdin open for input requests; one with end set ends it."),
	DEFAULT("cwd", OPERATION_PATH, "the login's cwd", "Directory below the root to run in."),
	FIELD("env", OPERATION_PAIRS, false, "Environment variables, over those of the login."),
	BOUNDED("timeout", OPERATION_DURATION, 0, YEAR_MS,
	    "the login's timeout (2m); none with detach",
	    "Time before the command is stopped with exit code 124; 0 for never."),
	BOUNDED("kill_grace", OPERATION_DURATION, 1, 86400000, "the login's kill_grace (2s)",
	    "Time between SIGTERM and SIGKILL when it is stopped."),
	BOUNDED("max_output_bytes", OPERATION_SIZE, 0, 4 * KIB * KIB,
	    "the login's max_output_bytes (1MiB)",
	    "Bytes of stdout and of stderr that the result keeps."),
	BOUNDED("max_stream_bytes", OPERATION_SIZE, 0, TIB,
	    "the login's max_stream_bytes (64MiB); none with detach",
	    "Output in all after which the command is stopped with exit code 143; 0 for never."),
	CHOICE("background", "kill keep", "the login's background (kill)",
	    "What becomes of processes that the command leaves running."),
	DEFAULT("detach", OPERATION_BOOLEAN, "false",
	    "Answer once it has started; it runs on as a job, also when the client leaves."),
	DEFAULT("stream", OPERATION_BOOLEAN, "false",
	    "Send output as it comes, in notifications (MCP: as progress)."),
	END,
};

/* What exec and attach say of a command. */
static const struct operation_field exec_result[] = {
	FIELD("exit_code", OPERATION_NUMBER, false,
	    "Exit code; 124 after the timeout, 143 after too much output, 128 + number after a signal."),
	FIELD("signal", OPERATION_TEXT, false, "Name of the signal that ended it."),
	FIELD("stdout", OPERATION_BYTES, false, "What it wrote there, up to max_output_bytes."),
	FIELD("stderr", OPERATION_BYTES, false, "The same for stderr."),
	FIELD("truncated", OPERATION_BOOLEAN, true, "Was there more output than the result keeps?"),
	FIELD("timed_out", OPERATION_BOOLEAN, false, "Was it stopped by the timeout?"),
	FIELD("note", OPERATION_TEXT, false, "Why it was stopped."),
	FIELD("duration", OPERATION_DURATION, false, "How long it ran."),
	FIELD("job", OPERATION_NUMBER, false,
	    "Number of the job, when it runs on or left processes."),
	END,
};

static const struct operation_field input_parameters[] = {
	FIELD("request", OPERATION_ID, false,
	    "The exec, attach or snapshot.import request it is for."),
	BOUNDED("job", OPERATION_NUMBER, 1, INT32_MAX, NULL, "Or the job."),
	FIELD("data", OPERATION_BYTES, false, "The next bytes."),
	DEFAULT("end", OPERATION_BOOLEAN, "false", "Nothing comes after this."),
	END,
};

static const struct operation_field attach_parameters[] = {
	{ "job", OPERATION_NUMBER, true, 1, INT32_MAX, NULL, NULL, "Number of the job.", NULL },
	DEFAULT("replay", OPERATION_BOOLEAN, "true", "Send first what it has written last."),
	END,
};

static const struct operation_field signal_parameters[] = {
	{ "job", OPERATION_NUMBER, true, 1, INT32_MAX, NULL, NULL, "Number of the job.", NULL },
	DEFAULT(
	    "signal", OPERATION_TEXT, "TERM", "Name of the signal, without SIG; KILL, INT, HUP..."),
	END,
};

static const struct operation_field signal_result[] = {
	FIELD("job", OPERATION_NUMBER, true, "Number of the job."),
	FIELD("signal", OPERATION_TEXT, true, "The signal that was sent to all its processes."),
	END,
};

static const struct operation_field job_fields[] = {
	FIELD("job", OPERATION_NUMBER, true, "Number of the job."),
	FIELD("command", OPERATION_TEXT, true, "What runs, shortened."),
	FIELD("state", OPERATION_TEXT, true,
	    "running; left: it ended and its processes run on; ended: nothing of it runs."),
	FIELD("started", OPERATION_NUMBER, true, "When, in seconds since 1970."),
	FIELD("exit_code", OPERATION_NUMBER, false, "Of a command that ended."),
	FIELD("output_bytes", OPERATION_NUMBER, true, "What it has written so far, in all."),
	END,
};

static const struct operation_field jobs_result[] = {
	NESTED("jobs", OPERATION_OBJECTS, true,
	    "Running commands of all connections and what they left, oldest first.", job_fields),
	END,
};

static const struct operation_field logs_parameters[] = {
	{ "job", OPERATION_NUMBER, true, 1, INT32_MAX, NULL, NULL, "Number of the job.", NULL },
	BOUNDED("max_bytes", OPERATION_SIZE, 0, 4 * KIB * KIB, "65536",
	    "The last bytes of each stream to give."),
	END,
};

static const struct operation_field logs_result[] = {
	FIELD("job", OPERATION_NUMBER, true, "Number of the job."),
	FIELD("state", OPERATION_TEXT, true, "As in jobs."),
	FIELD("exit_code", OPERATION_NUMBER, false, "Of a command that ended."),
	FIELD("stdout", OPERATION_BYTES, false, "The last of what it wrote there."),
	FIELD("stderr", OPERATION_BYTES, false, "The same for stderr."),
	FIELD("truncated", OPERATION_BOOLEAN, true, "Was there more before?"),
	END,
};

static const struct operation_field sandbox_result[] = {
	FIELD("sandbox_id", OPERATION_TEXT, false, "The sandbox's id at its provider."),
	FIELD("state", OPERATION_TEXT, true, "running, stopped or destroyed."),
	END,
};

static const struct operation_field read_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "The file, below the root."),
	BOUNDED("first_line", OPERATION_NUMBER, 1, INT32_MAX, NULL,
	    "Begin with this line, counted from 1."),
	BOUNDED("max_lines", OPERATION_NUMBER, 1, INT32_MAX, NULL, "Lines to give."),
	BOUNDED("offset", OPERATION_SIZE, 0, TIB, "0", "Bytes to pass over."),
	BOUNDED("max_bytes", OPERATION_SIZE, 0, 11 * KIB * KIB, "11MiB", "Bytes to give."),
	CHOICE(
	    "encoding", "auto base64", "auto", "base64: give the content so even when it is text."),
	END,
};

static const struct operation_field read_result[] = {
	FIELD("path", OPERATION_PATH, true, "The file."),
	FIELD("size", OPERATION_SIZE, true, "Bytes of the whole file."),
	FIELD("mime_type", OPERATION_TEXT, true, "What kind of file its first bytes say it is."),
	FIELD("truncated", OPERATION_BOOLEAN, true, "Is this only a part of it?"),
	FIELD("content", OPERATION_BYTES, false, "Its content, or the part that was asked for."),
	END,
};

static const struct operation_field write_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "The file, below the root."),
	FIELD("content", OPERATION_BYTES, true, "All that it is to hold."),
	FIELD("mode", OPERATION_TEXT, false,
	    "Its mode in octal; without it that of the file that is there, or 0644."),
	DEFAULT(
	    "parents", OPERATION_BOOLEAN, "true", "Make directories that are missing above it."),
	DEFAULT(
	    "overwrite", OPERATION_BOOLEAN, "true", "false: refuse with EXISTS when it is there."),
	END,
};

static const struct operation_field written_result[] = {
	FIELD("path", OPERATION_PATH, true, "The file."),
	FIELD("size", OPERATION_SIZE, true, "Bytes that it has now."),
	END,
};

static const struct operation_field edit_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "The file, below the root."),
	FIELD("old", OPERATION_BYTES, true, "The text to replace, exactly as it is in the file."),
	FIELD("new", OPERATION_BYTES, true, "What comes in its place."),
	DEFAULT("all", OPERATION_BOOLEAN, "false",
	    "Replace every occurrence; without it there must be just one."),
	END,
};

static const struct operation_field edit_result[] = {
	FIELD("path", OPERATION_PATH, true, "The file."),
	FIELD("size", OPERATION_SIZE, true, "Bytes that it has now."),
	FIELD("replaced", OPERATION_NUMBER, true, "Occurrences that were replaced."),
	END,
};

/* What is said of everything in a tree. */
#define ENTRY                                                                                   \
	FIELD("path", OPERATION_PATH, true, "Its path; in a list below the listed directory."), \
	    FIELD("type", OPERATION_TEXT, true, "file, directory, symlink or other."),          \
	    FIELD("size", OPERATION_SIZE, true, "Bytes."),                                      \
	    FIELD("mode", OPERATION_TEXT, true, "Permissions in octal."),                       \
	    FIELD("modified", OPERATION_NUMBER, true,                                           \
		"When it changed last, in seconds since 1970.")

static const struct operation_field entry_fields[] = { ENTRY, END };

static const struct operation_field list_parameters[] = {
	DEFAULT("path", OPERATION_PATH, ".", "The directory, below the root."),
	DEFAULT("recursive", OPERATION_BOOLEAN, "false; true with a glob that has a slash",
	    "List what is in its directories as well."),
	DEFAULT("include_hidden", OPERATION_BOOLEAN, "false", "List names that begin with a dot."),
	FIELD("skip_dirs", OPERATION_LIST, false, "Names of directories to list but not to enter."),
	FIELD("glob", OPERATION_TEXT, false,
	    "Only paths that match: *.c in the directory itself, **/*.c at any depth, "
	    "src/**/*.{c,h}."),
	BOUNDED(
	    "limit", OPERATION_NUMBER, 1, 100000, "1000", "Entries at most, cut after sorting."),
	END,
};

static const struct operation_field list_result[] = {
	FIELD("path", OPERATION_PATH, true, "The directory."),
	NESTED("entries", OPERATION_OBJECTS, true,
	    "Sorted by name, each directory's contents right after it.", entry_fields),
	FIELD("truncated", OPERATION_BOOLEAN, true, "Are there more?"),
	END,
};

static const struct operation_field stat_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "What to look at, below the root."),
	DEFAULT("follow", OPERATION_BOOLEAN, "false", "Look at what a symlink points to."),
	END,
};

static const struct operation_field stat_result[] = {
	ENTRY,
	FIELD("user", OPERATION_NUMBER, true, "Number of its owner."),
	FIELD("group", OPERATION_NUMBER, true, "Number of its group."),
	FIELD("links", OPERATION_NUMBER, true, "Names that it has."),
	FIELD("target", OPERATION_PATH, false, "What a symlink says."),
	END,
};

static const struct operation_field mkdir_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "The directory, below the root."),
	DEFAULT("parents", OPERATION_BOOLEAN, "true",
	    "Make what is missing above it, and accept that it is there."),
	END,
};

static const struct operation_field path_result[] = {
	FIELD("path", OPERATION_PATH, true, "Where it is now."),
	END,
};

static const struct operation_field remove_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "What to remove, below the root."),
	DEFAULT(
	    "recursive", OPERATION_BOOLEAN, "false", "Remove a directory with all that is in it."),
	DEFAULT("trash", OPERATION_BOOLEAN, "false", "Move it to .rws/trash instead."),
	END,
};

static const struct operation_field remove_result[] = {
	FIELD("path", OPERATION_PATH, true, "What was removed."),
	FIELD("trash", OPERATION_PATH, false, "Where it is in the trash."),
	END,
};

static const struct operation_field rename_parameters[] = {
	FIELD("path", OPERATION_PATH, true, "What to rename, below the root."),
	FIELD("to", OPERATION_PATH, true, "Its new path, below the root."),
	DEFAULT("overwrite", OPERATION_BOOLEAN, "false", "Replace what is there."),
	DEFAULT(
	    "parents", OPERATION_BOOLEAN, "false", "Make directories that are missing above it."),
	END,
};

static const struct operation_field search_parameters[] = {
	FIELD("pattern", OPERATION_TEXT, true, "The text to look for."),
	DEFAULT("path", OPERATION_PATH, ".", "The directory to look in, below the root."),
	DEFAULT("regex", OPERATION_BOOLEAN, "false", "pattern is an extended regular expression."),
	DEFAULT("ignore_case", OPERATION_BOOLEAN, "false", "Upper and lower case are the same."),
	FIELD("glob", OPERATION_TEXT, false,
	    "Only in files whose path matches; without a slash, at any depth."),
	FIELD("exclude", OPERATION_LIST, false,
	    "Patterns of paths to leave out besides .rws, node_modules and .git."),
	BOUNDED("limit", OPERATION_NUMBER, 1, 10000, "200", "Matching lines at most."),
	END,
};

static const struct operation_field match_fields[] = {
	FIELD("path", OPERATION_PATH, true, "The file, below the directory."),
	FIELD("line", OPERATION_NUMBER, true, "Number of the line, counted from 1."),
	FIELD("text", OPERATION_BYTES, true, "The line, cut after 1000 bytes."),
	END,
};

static const struct operation_field search_result[] = {
	NESTED("matches", OPERATION_OBJECTS, true, "The matching lines, by path.", match_fields),
	FIELD("truncated", OPERATION_BOOLEAN, true, "Are there more?"),
	END,
};

static const struct operation_field snapshot_parameters[] = {
	FIELD("label", OPERATION_TEXT, false, "A name for people."),
	FIELD("metadata", OPERATION_PAIRS, false, "Whatever is to be kept with it."),
	FIELD("exclude", OPERATION_LIST, false,
	    "Patterns of paths to leave out besides .rws, node_modules and .git: dir, dir/**, **/name/**, *.o."),
	BOUNDED("max_file_bytes", OPERATION_SIZE, 0, TIB, "the login's max_file_bytes (10MiB)",
	    "Larger files are skipped, and left alone by a restore."),
	END,
};

static const struct operation_field id_parameter[] = {
	FIELD("id", OPERATION_TEXT, true, "The snapshot's id."),
	END,
};

static const struct operation_field restore_parameters[] = {
	FIELD("id", OPERATION_TEXT, true, "The snapshot's id."),
	DEFAULT("dry_run", OPERATION_BOOLEAN, "false", "Only say what would be done."),
	END,
};

/* The fields that every record has. */
#define RECORD                                                                                \
	FIELD("id", OPERATION_TEXT, true, "The snapshot's id."),                              \
	    FIELD("created", OPERATION_NUMBER, true, "When, in seconds since 1970."),         \
	    FIELD("label", OPERATION_BYTES, false, "Its name for people."),                   \
	    FIELD("metadata", OPERATION_PAIRS, true, "What is kept with it."),                \
	    FIELD("exclude", OPERATION_LIST, true, "The patterns it was made with."),         \
	    FIELD("max_file_bytes", OPERATION_SIZE, true, "The largest file it could hold."), \
	    FIELD("files", OPERATION_NUMBER, true, "Regular files that it holds."),           \
	    FIELD("bytes", OPERATION_SIZE, true, "Their sizes together."),                    \
	    FIELD("archive_bytes", OPERATION_SIZE, false, "The size of its archive.")

static const struct operation_field record_fields[] = { RECORD, END };

static const struct operation_field show_result[] = {
	RECORD,
	FIELD("skipped", OPERATION_PATHS, true,
	    "Files that were over max_file_bytes, could not be read, or are pipes, sockets or devices."),
	END,
};

static const struct operation_field snapshots_result[] = {
	NESTED("snapshots", OPERATION_OBJECTS, true, "Oldest first.", record_fields),
	END,
};

static const struct operation_field restore_result[] = {
	FIELD("id", OPERATION_TEXT, true, "The snapshot's id."),
	FIELD("dry_run", OPERATION_BOOLEAN, true, "Was it only said what would be done?"),
	FIELD("restored", OPERATION_PATHS, true, "Every file and link of the archive."),
	FIELD("deleted", OPERATION_PATHS, true, "What was made since."),
	FIELD("kept", OPERATION_PATHS, true,
	    "What was left alone: excluded, skipped, or too large to be in it."),
	END,
};

static const struct operation_field export_result[] = {
	FIELD("id", OPERATION_TEXT, true, "The snapshot's id."),
	FIELD("bytes", OPERATION_SIZE, true, "Bytes that were sent."),
	END,
};

const struct operation operation_table[] = {
	{ "info", "About the workspace",
	    "Says which sandbox the login has, where its root is and who uses it.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, nothing, info_result, "" },
	{ "exec", "Run a command",
	    "Runs a command in the workspace and gives its exit code and output. Give either command, a "
	    "line for sh -c, or argv. It is stopped after timeout with exit code 124, and with 143 "
	    "when it writes more than max_stream_bytes. For a server or a watcher set detach, and use "
	    "jobs, logs and signal afterwards.",
	    OPERATION_DESTRUCTIVE, exec_parameters, exec_result, "command" },
	{ "input", "Send input",
	    "Sends bytes to the stdin of a running request or job, or to an import. The answer comes when they were "
	    "taken: wait for it when a few are unanswered.",
	    OPERATION_NO_TOOL | OPERATION_PLAIN, input_parameters, nothing, "" },
	{ "jobs", "List jobs",
	    "Lists the commands that run in the workspace and those that left processes running.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, nothing, jobs_result, "" },
	{ "logs", "Output of a job", "Gives the last of what a job has written.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, logs_parameters, logs_result, "job" },
	{ "attach", "Follow a job",
	    "Sends the output of a job as it comes, until it ends; input goes to its stdin.",
	    OPERATION_NO_TOOL, attach_parameters, exec_result, "job" },
	{ "signal", "Signal a job", "Sends a signal to every process of a job.",
	    OPERATION_DESTRUCTIVE, signal_parameters, signal_result, "job signal" },
	{ "read", "Read a file",
	    "Gives the content of a file, or a part of it. Pictures and sounds are given as such.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, read_parameters, read_result, "path" },
	{ "write", "Write a file",
	    "Makes or replaces a file in one step. For a small change of a large file, edit is better.",
	    OPERATION_DESTRUCTIVE | OPERATION_IDEMPOTENT, write_parameters, written_result,
	    "path" },
	{ "edit", "Edit a file", "Replaces a text in a file by another one, in one step.",
	    OPERATION_DESTRUCTIVE, edit_parameters, edit_result, "path old new" },
	{ "list", "List a directory", "Lists what is in a directory, sorted by name.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, list_parameters, list_result, "path" },
	{ "stat", "Look at a file", "Says what is known of a file without its content.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, stat_parameters, stat_result, "path" },
	{ "mkdir", "Make a directory", "Makes a directory.", OPERATION_IDEMPOTENT, mkdir_parameters,
	    path_result, "path" },
	{ "remove", "Remove a file or directory",
	    "Removes a file, a symlink or a directory. Refused with BUSY while a command runs or left processes.",
	    OPERATION_DESTRUCTIVE, remove_parameters, remove_result, "path" },
	{ "rename", "Rename a file or directory",
	    "Gives a file or directory another path. Refused with BUSY while a command runs or left processes.",
	    OPERATION_DESTRUCTIVE, rename_parameters, path_result, "path to" },
	{ "search", "Search in files", "Finds lines with a text in the files below a directory.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, search_parameters, search_result,
	    "pattern path" },
	{ "snapshot.create", "Make a snapshot",
	    "Keeps the files of the workspace as they are now, in the sandbox. Left out are .rws, node_modules and "
	    ".git at any depth, what exclude names, and files over max_file_bytes.",
	    0, snapshot_parameters, show_result, "" },
	{ "snapshot.list", "List snapshots", "Lists the snapshots of the workspace.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, nothing, snapshots_result, "" },
	{ "snapshot.show", "Show a snapshot", "Says what is known of one snapshot.",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT, id_parameter, show_result, "id" },
	{ "snapshot.restore", "Restore a snapshot",
	    "Brings every file of the snapshot back and removes what was made since. Left alone are what the "
	    "snapshot leaves out or skipped, files made since that are over its max_file_bytes, and directories "
	    "that hold any of these.",
	    OPERATION_DESTRUCTIVE | OPERATION_IDEMPOTENT, restore_parameters, restore_result,
	    "id" },
	{ "snapshot.delete", "Delete a snapshot", "Removes a snapshot for good.",
	    OPERATION_DESTRUCTIVE, id_parameter, id_parameter, "id" },
	{ "snapshot.export", "Export a snapshot",
	    "Sends the snapshot's archive, a tar file, as output of the stream \"archive\".",
	    OPERATION_READ_ONLY | OPERATION_IDEMPOTENT | OPERATION_NO_TOOL, id_parameter,
	    export_result, "id" },
	{ "snapshot.import", "Import a snapshot",
	    "Makes a snapshot of a tar file, which comes in input requests; the last has end set. Every entry is "
	    "checked. Restore it to have its files.",
	    OPERATION_NO_TOOL, snapshot_parameters, show_result, "" },
	{ "sandbox.start", "Start the sandbox",
	    "Creates or starts the sandbox when it does not run; every other operation does so by itself.",
	    OPERATION_IDEMPOTENT, nothing, sandbox_result, "" },
	{ "sandbox.stop", "Stop the sandbox",
	    "Ends everything that runs in the sandbox and stops it; its files survive. The next use starts it again.",
	    OPERATION_DESTRUCTIVE | OPERATION_IDEMPOTENT, nothing, sandbox_result, "" },
	{ "sandbox.destroy", "Destroy the sandbox",
	    "Ends everything and deletes the sandbox with its files and snapshots. The next use makes a new one.",
	    OPERATION_DESTRUCTIVE | OPERATION_IDEMPOTENT, nothing, sandbox_result, "" },
	{ "sandbox.extend", "Extend the sandbox's life",
	    "Pushes back the time at which the provider ends the sandbox.", OPERATION_IDEMPOTENT,
	    nothing, sandbox_result, "" },
	{ .name = NULL },
};
/* clang-format on */

const struct operation *
operation_find(const char *name)
{
	const struct operation *operation;

	for (operation = operation_table; operation->name != NULL; operation++)
		if (strcmp(operation->name, name) == 0)
			return operation;
	return NULL;
}

const struct operation *
operation_find_tool(const char *name)
{
	const struct operation *operation;
	char tool[OPERATION_NAME_MAX];

	for (operation = operation_table; operation->name != NULL; operation++)
		if ((operation->flags & OPERATION_NO_TOOL) == 0 &&
		    strcmp(operation_name(tool, operation, '_'), name) == 0)
			return operation;
	return NULL;
}

const struct operation_field *
operation_field_find(const struct operation_field *fields, const char *name)
{
	for (; fields->name != NULL; fields++)
		if (strcmp(fields->name, name) == 0)
			return fields;
	return NULL;
}

const char *
operation_name(char out[OPERATION_NAME_MAX], const struct operation *operation, char separator)
{
	size_t i;

	for (i = 0; i < OPERATION_NAME_MAX - 1 && operation->name[i] != '\0'; i++)
		out[i] = operation->name[i] == '.' ? separator : operation->name[i];
	out[i] = '\0';
	return out;
}
