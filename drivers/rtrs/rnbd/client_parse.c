// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is written to map_device: words of the form name=value, with white space between.
 */
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "client_parse.h"

enum cli_word {
	WORD_SESSNAME,
	WORD_PATH,
	WORD_DEVICE_PATH,
	WORD_ACCESS_MODE,
	WORD_DEST_PORT,
	WORD_NR_POLL_QUEUES,
	WORD_NO_PATH_TIMEOUT,
	NR_WORDS,
};

static const char * const words[NR_WORDS] = {
	[WORD_SESSNAME] = "sessname",
	[WORD_PATH] = "path",
	[WORD_DEVICE_PATH] = "device_path",
	[WORD_ACCESS_MODE] = "access_mode",
	[WORD_DEST_PORT] = "dest_port",
	[WORD_NR_POLL_QUEUES] = "nr_poll_queues",
	[WORD_NO_PATH_TIMEOUT] = "no_path_timeout",
};

/* Waiting longer than a day is waiting for ever, and fits an int of milliseconds. */
#define NO_PATH_TIMEOUT_MAX	86400
#define NR_POLL_QUEUES_MAX	1024

static bool same(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

/**
 * cli_access_parse - access mode from its name
 * @text: name
 * @len: bytes
 *
 * Return: enum rail_rnbd_access; -EINVAL: there is none of that name.
 */
int cli_access_parse(const char *text, size_t len)
{
	u8 i;

	for (i = RAIL_RNBD_ACCESS_RO; i <= RAIL_RNBD_ACCESS_MIGRATION; i++)
		if (same(text, len, rail_rnbd_access_text(i)))
			return i;
	return -EINVAL;
}

/* Decimal number, nothing else; -EINVAL, or -ERANGE above the maximum. */
static int number(const struct cli_text *val, unsigned int max)
{
	unsigned int sum = 0;
	size_t i;

	if (!val->len)
		return -EINVAL;
	for (i = 0; i < val->len; i++) {
		if (!isdigit(val->at[i]))
			return -EINVAL;
		sum = sum * 10 + (val->at[i] - '0');
		if (sum > max)
			return -ERANGE;
	}
	return sum;
}

static int copy(char *dst, size_t size, const struct cli_text *val)
{
	if (val->len >= size)
		return -EINVAL;
	memcpy(dst, val->at, val->len);
	dst[val->len] = '\0';
	return 0;
}

/* NULL: taken; else what is wrong with it. */
static const char *take(struct cli_map *map, enum cli_word word, const struct cli_text *val)
{
	int n;

	switch (word) {
	case WORD_SESSNAME:
		if (copy(map->sessname, sizeof(map->sessname), val) ||
		    rail_rtrs_name_check(map->sessname, sizeof(map->sessname)))
			return "sessname is empty, too long or has a '/', '.' or control character";
		break;
	case WORD_PATH:
		if (!val->len)
			return "path is empty";
		if (map->nr_paths == RAIL_CLI_MAX_PATHS)
			return "more than 128 paths";
		map->paths[map->nr_paths++] = *val;
		break;
	case WORD_DEVICE_PATH:
		if (copy(map->device_path, sizeof(map->device_path), val) ||
		    rail_rnbd_name_check(map->device_path, sizeof(map->device_path)))
			return "device_path is empty, too long (254), or has a control character";
		break;
	case WORD_ACCESS_MODE:
		n = cli_access_parse(val->at, val->len);
		if (n < 0)
			return "access_mode is neither ro nor rw nor migration";
		map->access = n;
		break;
	case WORD_DEST_PORT:
		n = number(val, U16_MAX);
		if (n <= 0)
			return "dest_port is not a number from 1 to 65535";
		map->port = n;
		break;
	case WORD_NR_POLL_QUEUES:
		n = number(val, NR_POLL_QUEUES_MAX);
		if (n < 0)
			return "nr_poll_queues is not a number from 0 to 1024";
		map->nr_poll_queues = n;
		break;
	case WORD_NO_PATH_TIMEOUT:
		n = number(val, NO_PATH_TIMEOUT_MAX);
		if (n < 0)
			return "no_path_timeout is not a number of seconds from 0 to 86400";
		map->no_path_timeout = n;
		break;
	default:
		return "unknown word";
	}
	return NULL;
}

/**
 * cli_map_parse - read what was written to map_device
 * @text: what was written; @map->paths points into it
 * @len: bytes; a newline at the end is white space like any other
 * @map: filled in
 * @why: on error, what is wrong, for the log
 *
 * Return: 0, or -EINVAL.
 */
int cli_map_parse(const char *text, size_t len, struct cli_map *map, const char **why)
{
	unsigned long seen = 0;
	size_t i = 0;

	memset(map, 0, sizeof(*map));
	map->access = RAIL_RNBD_ACCESS_RW;
	map->port = RAIL_RTRS_PORT;
	map->nr_poll_queues = -1;
	map->no_path_timeout = -1;
	for (;;) {
		struct cli_text val;
		const char *eq;
		size_t start;
		int word;

		while (i < len && isspace(text[i]))
			i++;
		if (i == len)
			break;
		start = i;
		while (i < len && !isspace(text[i]))
			i++;
		eq = memchr(text + start, '=', i - start);
		*why = "a word is not of the form name=value";
		if (!eq)
			return -EINVAL;
		for (word = 0; word < NR_WORDS; word++)
			if (same(text + start, eq - (text + start), words[word]))
				break;
		*why = "there is an option of another name than cat map_device tells";
		if (word == NR_WORDS)
			return -EINVAL;
		*why = "an option other than path is given twice";
		if (word != WORD_PATH && seen & (1UL << word))
			return -EINVAL;
		seen |= 1UL << word;
		val.at = eq + 1;
		val.len = text + i - val.at;
		*why = take(map, word, &val);
		if (*why)
			return -EINVAL;
	}
	*why = "there is no sessname=";
	if (!(seen & (1UL << WORD_SESSNAME)))
		return -EINVAL;
	*why = "there is no device_path=";
	if (!(seen & (1UL << WORD_DEVICE_PATH)))
		return -EINVAL;
	*why = NULL;
	return 0;
}

/**
 * cli_link_name - name of a mapping in ctl/devices
 * @buf: where to
 * @size: of @buf
 * @path: device_path; a '/' becomes a '!'
 * @sessname: name of the session
 *
 * Return: 0, or -ENAMETOOLONG where no file can have the name.
 */
int cli_link_name(char *buf, size_t size, const char *path, const char *sessname)
{
	int n;

	n = snprintf(buf, size, "%s@%s", path, sessname);
	if (n >= size || n > NAME_MAX)
		return -ENAMETOOLONG;
	strreplace(buf, '/', '!');
	return 0;
}
