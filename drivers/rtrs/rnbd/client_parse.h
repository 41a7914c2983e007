/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is written to map_device. Pure: no locks, no allocation.
 */
#ifndef RNBD_CLIENT_PARSE_H
#define RNBD_CLIENT_PARSE_H

#include <linux/types.h>

#include <rail/wire/rnbd.h>
#include <rail/wire/rtrs.h>

#define RAIL_CLI_MAX_PATHS	128

/**
 * struct cli_text - part of a text
 * @at: where it begins
 * @len: bytes
 */
struct cli_text {
	const char *at;
	size_t len;
};

/**
 * struct cli_map - a mapping as it is asked for
 * @access: enum rail_rnbd_access
 * @port: of destinations without one
 * @nr_poll_queues: as given; negative: not given
 * @no_path_timeout: seconds; negative: not given
 * @nr_paths: entries of @paths
 * @sessname: the session's name
 * @device_path: the device's name at the server
 * @paths: addresses as they were written, within the text that was parsed
 */
struct cli_map {
	u8 access;
	u16 port;
	int nr_poll_queues;
	int no_path_timeout;
	unsigned int nr_paths;
	char sessname[RAIL_RTRS_NAME_LEN];
	char device_path[RAIL_RNBD_NAME_LEN];
	struct cli_text paths[RAIL_CLI_MAX_PATHS];
};

int cli_map_parse(const char *text, size_t len, struct cli_map *map, const char **why);
int cli_access_parse(const char *text, size_t len);
int cli_link_name(char *buf, size_t size, const char *path, const char *sessname);

#endif /* RNBD_CLIENT_PARSE_H */
