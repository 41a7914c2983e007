// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may use what, and how: rules of allowed_clients, modes of access, names.
 */
#include <linux/errno.h>
#include <linux/glob.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>

#include <rail/addr.h>

#include "server_access.h"

#define SESSNAME	"%SESSNAME%"
/* A folder cannot have a '/' in its name; sysfs writes '!' in its place, and so do we. */
#define NET_SIGN	'!'

static const u8 *addr_bytes(const struct sockaddr *addr, sa_family_t *family, size_t *len)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;

	*family = addr->sa_family;
	switch (addr->sa_family) {
	case AF_INET:
		*len = sizeof(struct in_addr);
		return (const u8 *)&((const struct sockaddr_in *)addr)->sin_addr;
	case AF_INET6:
		*len = sizeof(struct in6_addr);
		if (!ipv6_addr_v4mapped(&in6->sin6_addr))
			return in6->sin6_addr.s6_addr;
		*family = AF_INET;
		*len = sizeof(struct in_addr);
		return &in6->sin6_addr.s6_addr[12];
	case AF_IB:
		*len = sizeof(struct ib_addr);
		return ((const struct sockaddr_ib *)addr)->sib_addr.sib_raw;
	default:
		return NULL;
	}
}

static bool same_bits(const u8 *a, const u8 *b, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole))
		return false;
	return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

/* "ADDRESS" or "ADDRESS!BITS", with or without "ip:". */
static int parse_net(const char *text, struct srv_rule *rule)
{
	char buf[RAIL_ADDR_STRLEN + sizeof("ip:")];
	const char *sign = strchrnul(text, NET_SIGN);
	struct sockaddr_storage addr;
	unsigned int bits;
	const u8 *bytes;
	size_t len;
	int n;

	n = snprintf(buf, sizeof(buf), "%s%.*s",
		     !strncmp(text, "ip:", 3) || !strncmp(text, "gid:", 4) ? "" : "ip:",
		     (int)(sign - text), text);
	if (n >= sizeof(buf))
		return -EINVAL;
	/* A client's port is any. */
	if (rail_addr_parse(&init_net, buf, n, 0, &addr) ||
	    rail_addr_port((struct sockaddr *)&addr))
		return -EINVAL;
	bytes = addr_bytes((struct sockaddr *)&addr, &rule->family, &len);
	memcpy(rule->addr, bytes, len);
	rule->bits = 8 * len;
	if (!*sign)
		return 0;
	if (!sign[1] || strspn(sign + 1, "0123456789") != strlen(sign + 1) ||
	    kstrtouint(sign + 1, 10, &bits) || bits > rule->bits)
		return -EINVAL;
	rule->bits = bits;
	return 0;
}

/* Session names have no '.', so that a mistyped address would be a pattern that nobody meets. */
static int parse_glob(const char *text, size_t len, struct srv_rule *rule)
{
	if (!len || len >= sizeof(rule->glob) || memchr(text, '.', len) ||
	    memchr(text, '/', len) ||
	    (memchr(text, ':', len) && strspn(text, "0123456789abcdefABCDEF:!%") >= len) ||
	    (len >= 3 && !memcmp(text, "ip:", 3)) || (len >= 4 && !memcmp(text, "gid:", 4)))
		return -EINVAL;
	memcpy(rule->glob, text, len);
	rule->glob[len] = '\0';
	return 0;
}

/**
 * srv_rule_parse - which clients are meant
 * @text: ADDRESS, ADDRESS!BITS, GLOB, GLOB@ADDRESS or GLOB@ADDRESS!BITS. An address may have
 *	"ip:" before it, or "gid:"; a glob is of session names.
 * @rule: filled in
 *
 * Return: 0 or -EINVAL.
 */
int srv_rule_parse(const char *text, struct srv_rule *rule)
{
	const char *at = strrchr(text, '@');
	int error;

	memset(rule, 0, sizeof(*rule));
	rule->family = AF_UNSPEC;
	if (at) {
		error = parse_glob(text, at - text, rule);
		return error ?: parse_net(at + 1, rule);
	}
	if (!parse_net(text, rule))
		return 0;
	memset(rule, 0, sizeof(*rule));
	rule->family = AF_UNSPEC;
	return parse_glob(text, strlen(text), rule);
}

/**
 * srv_rule_admits - is this client meant?
 * @rule: the rule
 * @sessname: the name it gives its session
 * @addr: where a path of it comes from
 */
bool srv_rule_admits(const struct srv_rule *rule, const char *sessname,
		     const struct sockaddr *addr)
{
	sa_family_t family;
	const u8 *bytes;
	size_t len;

	if (rule->glob[0] && !glob_match(rule->glob, sessname))
		return false;
	if (rule->family == AF_UNSPEC)
		return rule->glob[0];
	bytes = addr_bytes(addr, &family, &len);
	return bytes && family == rule->family && same_bits(bytes, rule->addr, rule->bits);
}

/**
 * srv_may_open - does a device take one more mapping?
 * @access: enum rail_rnbd_access of the new one
 * @writers: mappings of it that are not read-only
 *
 * Return: 0 or -EPERM.
 */
int srv_may_open(u8 access, unsigned int writers)
{
	switch (access) {
	case RAIL_RNBD_ACCESS_RO:
		return 0;
	case RAIL_RNBD_ACCESS_RW:
		return writers ? -EPERM : 0;
	case RAIL_RNBD_ACCESS_MIGRATION:
		return writers > 1 ? -EPERM : 0;
	default:
		return -EPERM;
	}
}

/**
 * srv_may_io - may a mapping have this done?
 * @op: enum rail_rnbd_op
 * @ro: it is read-only
 *
 * Return: 0 or -EPERM.
 */
int srv_may_io(u8 op, bool ro)
{
	return ro && rail_rnbd_op_modifies(op) ? -EPERM : 0;
}

/**
 * srv_export_name - name of the export that a client means
 * @buf: where to
 * @size: of @buf
 * @dev_name: what it calls the device; a '/' stands as '!' in configfs
 *
 * Return: 0 or -ENAMETOOLONG.
 */
int srv_export_name(char *buf, size_t size, const char *dev_name)
{
	if (strscpy(buf, dev_name, size) < 0)
		return -ENAMETOOLONG;
	strreplace(buf, '/', '!');
	return 0;
}

/**
 * srv_device_path_parse - what was written to device_path
 * @text: what was written
 * @len: bytes; a newline at the end is none of it
 * @path: where to
 * @size: of @path
 *
 * Return: 0; -EINVAL: no absolute path; -ENAMETOOLONG.
 */
int srv_device_path_parse(const char *text, size_t len, char *path, size_t size)
{
	if (len && text[len - 1] == '\n')
		len--;
	if (len >= size)
		return -ENAMETOOLONG;
	if (!len || text[0] != '/' || memchr(text, '\0', len) || memchr(text, '\n', len))
		return -EINVAL;
	memcpy(path, text, len);
	path[len] = '\0';
	return 0;
}

/**
 * srv_search_join - path of a device below dev_search_path
 * @buf: where to
 * @size: of @buf
 * @search: dev_search_path; each %SESSNAME% stands for the session's name
 * @sessname: the session's name, which has no '/' and no '.'
 * @dev_name: what the client calls the device
 * @root_len: length of the part of @buf that is the folder it has to stay in
 *
 * Return: 0; -EACCES: the name climbs out; -ENAMETOOLONG.
 */
int srv_search_join(char *buf, size_t size, const char *search, const char *sessname,
		    const char *dev_name, size_t *root_len)
{
	size_t len = 0;

	if (rail_rnbd_name_climbs(dev_name))
		return -EACCES;
	while (*search) {
		bool name = !strncmp(search, SESSNAME, strlen(SESSNAME));
		size_t n = name ? strlen(sessname) : 1;

		if (len + n >= size)
			return -ENAMETOOLONG;
		memcpy(buf + len, name ? sessname : search, n);
		len += n;
		search += name ? strlen(SESSNAME) : 1;
	}
	*root_len = len;
	if (len + 1 + strlen(dev_name) >= size)
		return -ENAMETOOLONG;
	buf[len] = '/';
	strscpy(buf + len + 1, dev_name, size - len - 1);
	return 0;
}
