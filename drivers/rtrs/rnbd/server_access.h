/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may use what, and how. Pure: no locks, no allocation, no look at the file system.
 */
#ifndef RNBD_SERVER_ACCESS_H
#define RNBD_SERVER_ACCESS_H

#include <linux/socket.h>
#include <linux/types.h>

#include <rail/wire/rnbd.h>
#include <rail/wire/rtrs.h>

/**
 * struct srv_rule - which clients an entry of allowed_clients admits: those that meet all it names
 * @family: AF_INET, AF_INET6 or AF_IB: a network; AF_UNSPEC: any address
 * @bits: of the address that count
 * @addr: the network's address, in network byte order
 * @glob: pattern of session names; empty: any name
 */
struct srv_rule {
	sa_family_t family;
	u8 bits;
	u8 addr[16];
	char glob[RAIL_RTRS_NAME_LEN];
};

int srv_rule_parse(const char *text, struct srv_rule *rule);
bool srv_rule_admits(const struct srv_rule *rule, const char *sessname,
		     const struct sockaddr *addr);

int srv_may_open(u8 access, unsigned int writers);
int srv_may_io(u8 op, bool ro);

int srv_export_name(char *buf, size_t size, const char *dev_name);
int srv_device_path_parse(const char *text, size_t len, char *path, size_t size);
int srv_search_join(char *buf, size_t size, const char *search, const char *sessname,
		    const char *dev_name, size_t *root_len);

#endif /* RNBD_SERVER_ACCESS_H */
