/* SPDX-License-Identifier: ISC */
/*
 * The exec string that an scp client sends is meant for a shell. What a shell would do with it
 * beyond quotes and patterns we do not: such a string is not ours.
 */
#include <string.h>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "gateway/scp_command.h"

#define TEXT_MAX 65536U
#define PATHS_MAX 1024U
#define BLANKS " \t"
/* Unquoted, a shell takes these for something else. */
#define SPECIAL "\n;&|<>()$`!{}#"
#define PATTERN "*?["

/* One word being read: its text, and its pattern with what was quoted behind backslashes. */
struct word {
	struct buffer text, pattern;
	bool has_pattern, quoted;
};

static void
add_literal(struct word *word, char c)
{
	(void)buffer_append(&word->text, &c, 1);
	if (strchr("*?[]{}\\", c) != NULL)
		(void)buffer_append(&word->pattern, "\\", 1);
	(void)buffer_append(&word->pattern, &c, 1);
}

static void
add_plain(struct word *word, char c)
{
	if (strchr(PATTERN, c) != NULL)
		word->has_pattern = true;
	(void)buffer_append(&word->text, &c, 1);
	(void)buffer_append(&word->pattern, &c, 1);
}

/* From behind the opening quote to the closing one; NULL when there is none. */
static const char *
read_single(struct word *word, const char *at)
{
	for (; *at != '\0'; at++) {
		if (*at == '\'')
			return at;
		add_literal(word, *at);
	}
	return NULL;
}

static const char *
read_double(struct word *word, const char *at)
{
	for (; *at != '\0'; at++) {
		if (*at == '"')
			return at;
		if (*at == '$' || *at == '`')
			return NULL;
		if (*at == '\\' && at[1] != '\0' && strchr("$`\"\\\n", at[1]) != NULL)
			at++;
		add_literal(word, *at);
	}
	return NULL;
}

/* A word from *at on, which moves behind it; -1 when only a shell can tell what it is. */
static int
read_word(struct word *word, const char **at)
{
	const char *c = *at;

	for (; *c != '\0' && strchr(BLANKS, *c) == NULL; c++) {
		if (strchr(SPECIAL, *c) != NULL)
			return -1;
		if (*c == '\'' || *c == '"') {
			word->quoted = true;
			c = *c == '"' ? read_double(word, c + 1) : read_single(word, c + 1);
			if (c == NULL)
				return -1;
		} else if (*c == '\\') {
			if (*++c == '\0' || *c == '\n')
				return -1;
			word->quoted = true;
			add_literal(word, *c);
		} else {
			add_plain(word, *c);
		}
	}
	*at = c;
	return 0;
}

/* The letters of one word of options; -1 for one that we do not know. */
static int
read_options(struct scp_command *command, const char *letters, bool *direction)
{
	for (; *letters != '\0'; letters++) {
		if (*letters == 't' || *letters == 'f') {
			if (*direction)
				return -1;
			*direction = true;
			command->sink = *letters == 't';
		} else if (*letters == 'r') {
			command->recursive = true;
		} else if (*letters == 'p') {
			command->times = true;
		} else if (*letters == 'd') {
			command->directory = true;
		} else if (*letters != 'v' && *letters != 'q') {
			return -1;
		}
	}
	return 0;
}

/* "~" is where a session starts; somebody else's home is for a shell. */
static int
add_path(struct scp_command *command, struct word *word)
{
	const char *text, *pattern;
	struct scp_path *path;
	size_t skip = 0;

	(void)buffer_append(&word->text, "", 1);
	(void)buffer_append(&word->pattern, "", 1);
	text = (const char *)buffer_data(&word->text);
	pattern = (const char *)buffer_data(&word->pattern);
	if (text[0] == '~' && !word->quoted) {
		if (text[1] != '\0' && text[1] != '/')
			return -1;
		skip = 1 + strspn(text + 1, "/");
	}
	if (command->count == PATHS_MAX)
		return -1;
	command->paths = memory_resize(command->paths, command->count + 1, sizeof(*command->paths));
	path = &command->paths[command->count++];
	path->text = memory_text(text[skip] == '\0' ? "." : text + skip);
	path->pattern = word->has_pattern ? memory_text(pattern + skip) : NULL;
	return 0;
}

/* What the word is, after "scp". */
static int
take_word(struct scp_command *command, struct word *word, bool *direction, bool *options)
{
	char *text;
	int result;

	text = memory_text_bounded(buffer_data(&word->text), word->text.length);
	if (!*options || text[0] != '-' || text[1] == '\0') {
		*options = false;
		result = add_path(command, word);
	} else if (strcmp(text, "--") == 0) {
		*options = false;
		result = 0;
	} else {
		result = read_options(command, text + 1, direction);
	}
	memory_free(text);
	return result;
}

static void
init_word(struct word *word)
{
	memset(word, 0, sizeof(*word));
	buffer_init(&word->text, TEXT_MAX + 1);
	buffer_init(&word->pattern, 2 * TEXT_MAX + 1);
}

static void
free_word(struct word *word)
{
	buffer_free(&word->text);
	buffer_free(&word->pattern);
}

bool
scp_command_parse(const char *text, struct scp_command *command)
{
	bool direction = false, options = true;
	struct word word;
	int result = 0;

	memset(command, 0, sizeof(*command));
	if (strncmp(text, "scp", 3) != 0 || text[3] == '\0' || strchr(BLANKS, text[3]) == NULL ||
	    strlen(text) > TEXT_MAX)
		return false;
	text += 3;
	while (result == 0 && *(text += strspn(text, BLANKS)) != '\0') {
		init_word(&word);
		result = read_word(&word, &text);
		if (result == 0)
			result = take_word(command, &word, &direction, &options);
		free_word(&word);
	}
	if (result == 0 && direction && command->count > 0 &&
	    (!command->sink || command->count == 1))
		return true;
	scp_command_free(command);
	return false;
}

void
scp_command_free(struct scp_command *command)
{
	size_t i;

	for (i = 0; i < command->count; i++) {
		memory_free(command->paths[i].text);
		memory_free(command->paths[i].pattern);
	}
	memory_free(command->paths);
	memset(command, 0, sizeof(*command));
}
