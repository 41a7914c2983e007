/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Addresses as RAIL's users write them.
 *
 *	ip:192.0.2.1		ip:192.0.2.1:1234
 *	ip:2001:db8::1		ip:[2001:db8::1]:1234
 *	ip:fe80::1%eth0		ip:[fe80::1%2]:1234
 *	gid:fe80:0000:0000:0000:0000:0000:0000:0001		gid:fe80::1
 *
 * A path is "[source@]destination", or "[source,]destination" as sysfs users write it. Texts are
 * taken as they are: whoever has one from a user strips a trailing newline first.
 */
#ifndef RAIL_ADDR_H
#define RAIL_ADDR_H

#include <linux/socket.h>
#include <linux/types.h>

struct net;

/* The longest text rail_addr_print_port() makes, with its NUL: "ip:[v6%4294967295]:65535". */
#define RAIL_ADDR_STRLEN	80
/* Two of them, a separator between. */
#define RAIL_PATH_STRLEN	(2 * RAIL_ADDR_STRLEN)

int rail_addr_parse(struct net *net, const char *text, size_t len, u16 port,
		    struct sockaddr_storage *addr);
int rail_path_parse(struct net *net, const char *text, size_t len, u16 port,
		    struct sockaddr_storage *src, struct sockaddr_storage *dst);
size_t rail_addr_print(char *buf, size_t size, const struct sockaddr *addr);
size_t rail_addr_print_port(char *buf, size_t size, const struct sockaddr *addr);
size_t rail_path_print(char *buf, size_t size, const struct sockaddr *src,
		       const struct sockaddr *dst);
bool rail_addr_equal(const struct sockaddr *a, const struct sockaddr *b);
u16 rail_addr_port(const struct sockaddr *addr);
void rail_addr_set_port(struct sockaddr *addr, u16 port);

#endif /* RAIL_ADDR_H */
