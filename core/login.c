/* SPDX-License-Identifier: ISC */
/* Logins are checked by what they may be, not by what they may not: they come from anyone. */
#include <string.h>

#include "core/login.h"

static bool
is_name_character(char character)
{
	return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
	       (character >= '0' && character <= '9') || character == '.' || character == '_' ||
	       character == '-';
}

static bool
is_dots(const char *text)
{
	return strcmp(text, ".") == 0 || strcmp(text, "..") == 0;
}

bool
login_name_valid(const char *text)
{
	size_t length;

	for (length = 0; text[length] != '\0'; length++)
		if (length == LOGIN_NAME_LENGTH || !is_name_character(text[length]))
			return false;
	return length > 0 && !is_dots(text);
}

bool
login_id_valid(const char *text)
{
	size_t length;

	for (length = 0; text[length] != '\0'; length++)
		if (length == LOGIN_ID_LENGTH || text[length] <= ' ' || text[length] > '~' ||
		    strchr("/\\\"'`", text[length]) != NULL)
			return false;
	return length > 0 && !is_dots(text);
}

int
login_parse(const char *text, struct login *login)
{
	size_t length;

	memset(login, 0, sizeof(*login));
	length = strcspn(text, "+=");
	if (length > LOGIN_NAME_LENGTH)
		return -1;
	memcpy(login->name, text, length);
	if (!login_name_valid(login->name))
		return -1;
	text += length;
	if (*text == '+') {
		if (!login_name_valid(text + 1))
			return -1;
		memcpy(login->instance, text + 1, strlen(text + 1));
	} else if (*text == '=') {
		if (!login_id_valid(text + 1))
			return -1;
		memcpy(login->id, text + 1, strlen(text + 1));
	}
	return 0;
}
