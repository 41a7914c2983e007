// SPDX-License-Identifier: GPL-2.0-only
/* RNBD's pure parts: what is written to map_device, rules of allowed_clients, modes, names. */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include <rail/addr.h>

#include "../../drivers/rtrs/rnbd/client_parse.h"
#include "../../drivers/rtrs/rnbd/server_access.h"

/* ---- map_device ---- */

static struct cli_map *map_alloc(struct kunit *test)
{
	struct cli_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, map);
	return map;
}

static int parse(const char *text, struct cli_map *map, const char **why)
{
	return cli_map_parse(text, strlen(text), map, why);
}

static void map_defaults(struct kunit *test)
{
	struct cli_map *map = map_alloc(test);
	const char *why = "";

	KUNIT_ASSERT_EQ(test, parse("sessname=s device_path=d\n", map, &why), 0);
	KUNIT_EXPECT_NULL(test, why);
	KUNIT_EXPECT_STREQ(test, map->sessname, "s");
	KUNIT_EXPECT_STREQ(test, map->device_path, "d");
	KUNIT_EXPECT_EQ(test, map->access, RAIL_RNBD_ACCESS_RW);
	KUNIT_EXPECT_EQ(test, map->port, RAIL_RTRS_PORT);
	KUNIT_EXPECT_EQ(test, map->nr_poll_queues, -1);
	KUNIT_EXPECT_EQ(test, map->no_path_timeout, -1);
	KUNIT_EXPECT_EQ(test, map->nr_paths, 0);
}

static void map_everything(struct kunit *test)
{
	static const char text[] =
		" \tpath=ip:192.0.2.1,ip:192.0.2.2  dest_port=7 nr_poll_queues=3\tsessname=a@b\n"
		"access_mode=migration device_path=/dev/x=y path=gid:fe80::1 no_path_timeout=0\n\n";
	struct cli_map *map = map_alloc(test);
	const char *why;

	KUNIT_ASSERT_EQ(test, parse(text, map, &why), 0);
	KUNIT_EXPECT_STREQ(test, map->sessname, "a@b");
	KUNIT_EXPECT_STREQ(test, map->device_path, "/dev/x=y");
	KUNIT_EXPECT_EQ(test, map->access, RAIL_RNBD_ACCESS_MIGRATION);
	KUNIT_EXPECT_EQ(test, map->port, 7);
	KUNIT_EXPECT_EQ(test, map->nr_poll_queues, 3);
	KUNIT_EXPECT_EQ(test, map->no_path_timeout, 0);
	KUNIT_ASSERT_EQ(test, map->nr_paths, 2);
	KUNIT_EXPECT_EQ(test, map->paths[0].len, strlen("ip:192.0.2.1,ip:192.0.2.2"));
	KUNIT_EXPECT_EQ(test, memcmp(map->paths[0].at, "ip:192.0.2.1,", 13), 0);
	KUNIT_EXPECT_EQ(test, map->paths[1].len, strlen("gid:fe80::1"));
}

static void map_refused(struct kunit *test)
{
	static const char * const bad[] = {
		"", " ", "\n", "sessname=s", "device_path=d", "sessname= device_path=d",
		"sessname=s device_path=", "sessname=a.b device_path=d",
		"sessname=a/b device_path=d", "sessname=s device_path=d\001",
		"sessname device_path=d", "=s device_path=d sessname=s",
		"sessname=s device_path=d path=", "sessname=s device_path=d sessname=s",
		"sessname=s device_path=d device_path=d",
		"sessname=s device_path=d Path=ip:1.2.3.4",
		"sessname=s device_path=d access_mode=", "sessname=s device_path=d access_mode=RO",
		"sessname=s device_path=d access_mode=rw,", "sessname=s device_path=d dest_port=0",
		"sessname=s device_path=d dest_port=65536", "sessname=s device_path=d dest_port=-1",
		"sessname=s device_path=d dest_port=1x", "sessname=s device_path=d dest_port=",
		"sessname=s device_path=d dest_port=99999999999999999999",
		"sessname=s device_path=d nr_poll_queues=1025",
		"sessname=s device_path=d nr_poll_queues=+1",
		"sessname=s device_path=d no_path_timeout=86401",
		"sessname=s device_path=d no_path_timeout=-1", "sessname=s device_path=d force",
	};
	struct cli_map *map = map_alloc(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = NULL;

		KUNIT_EXPECT_EQ_MSG(test, parse(bad[i], map, &why), -EINVAL, "\"%s\"", bad[i]);
		KUNIT_EXPECT_NOT_NULL_MSG(test, why, "\"%s\"", bad[i]);
	}
}

/* The longest name that fits has 254 bytes; the text may hold one path more than a session. */
static void map_long(struct kunit *test)
{
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct cli_map *map = map_alloc(test);
	const char *why;
	unsigned int i, n;

	KUNIT_ASSERT_NOT_NULL(test, text);
	for (n = 254; n <= 255; n++) {
		i = sprintf(text, "sessname=");
		memset(text + i, 's', n);
		strcpy(text + i + n, " device_path=d");
		KUNIT_EXPECT_EQ(test, parse(text, map, &why), n == 254 ? 0 : -EINVAL);
		i = sprintf(text, "sessname=s device_path=");
		memset(text + i, 'd', n);
		text[i + n] = '\0';
		KUNIT_EXPECT_EQ(test, parse(text, map, &why), n == 254 ? 0 : -EINVAL);
	}
	for (n = 128; n <= 129; n++) {
		int len = sprintf(text, "sessname=s device_path=d");

		for (i = 0; i < n; i++)
			len += sprintf(text + len, " path=x");
		KUNIT_EXPECT_EQ(test, parse(text, map, &why), n == 128 ? 0 : -EINVAL);
	}
}

static void link_names(struct kunit *test)
{
	char *path = kunit_kzalloc(test, 512, GFP_KERNEL);
	char buf[512];

	KUNIT_ASSERT_NOT_NULL(test, path);
	KUNIT_EXPECT_EQ(test, cli_link_name(buf, sizeof(buf), "/dev/a/b", "s"), 0);
	KUNIT_EXPECT_STREQ(test, buf, "!dev!a!b@s");
	memset(path, 'd', NAME_MAX - 2);
	KUNIT_EXPECT_EQ(test, cli_link_name(buf, sizeof(buf), path, "s"), 0);
	path[NAME_MAX - 2] = 'd';
	KUNIT_EXPECT_EQ(test, cli_link_name(buf, sizeof(buf), path, "s"), -ENAMETOOLONG);
}

/* ---- rules ---- */

/**
 * struct rule_case - does a rule admit a client?
 * @rule: the rule
 * @name: the client's session name
 * @addr: its address
 * @admits: whether
 */
struct rule_case {
	const char *rule;
	const char *name;
	const char *addr;
	bool admits;
};

static const struct rule_case rule_cases[] = {
	{ "ip:192.0.2.1", "s", "ip:192.0.2.1", true },
	{ "192.0.2.1", "s", "ip:192.0.2.1", true },
	{ "ip:192.0.2.1", "s", "ip:192.0.2.2", false },
	{ "ip:192.0.2.1", "s", "ip:2001:db8::1", false },
	/* A client of IPv4 that came in by a socket of IPv6. */
	{ "ip:192.0.2.1", "s", "ip:::ffff:192.0.2.1", true },
	{ "ip:::ffff:192.0.2.1", "s", "ip:192.0.2.1", true },
	{ "192.0.2.0!24", "s", "ip:192.0.2.255", true },
	{ "192.0.2.0!24", "s", "ip:192.0.3.0", false },
	{ "192.0.2.128!25", "s", "ip:192.0.2.127", false },
	{ "192.0.2.128!25", "s", "ip:192.0.2.129", true },
	{ "192.0.2.9!31", "s", "ip:192.0.2.8", true },
	{ "192.0.2.9!32", "s", "ip:192.0.2.8", false },
	{ "0.0.0.0!0", "s", "ip:203.0.113.7", true },
	{ "0.0.0.0!0", "s", "ip:2001:db8::1", false },
	{ "2001:db8::!32", "s", "ip:2001:db8:ffff::1", true },
	{ "2001:db8::!32", "s", "ip:2001:db9::1", false },
	{ "2001:db8::1", "s", "ip:2001:db8::1", true },
	{ "gid:fe80::1", "s", "gid:fe80::1", true },
	{ "gid:fe80::1", "s", "gid:fe80::2", false },
	{ "gid:fe80::!64", "s", "gid:fe80::2", true },
	{ "gid:fe80::1", "s", "ip:fe80::1", false },
	{ "*", "s", "ip:203.0.113.7", true },
	{ "host-*", "host-7", "ip:203.0.113.7", true },
	{ "host-*", "ghost-7", "ip:203.0.113.7", false },
	{ "host-[1-3]", "host-3", "gid:fe80::1", true },
	{ "host-[1-3]", "host-4", "gid:fe80::1", false },
	{ "s?", "s", "ip:203.0.113.7", false },
	{ "s@ip:192.0.2.1", "s", "ip:192.0.2.1", true },
	{ "s@ip:192.0.2.1", "t", "ip:192.0.2.1", false },
	{ "s@192.0.2.0!24", "s", "ip:192.0.3.1", false },
	{ "a@b@192.0.2.0!24", "a@b", "ip:192.0.2.1", true },
};

static void rules(struct kunit *test)
{
	struct sockaddr_storage addr;
	struct srv_rule rule;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rule_cases); i++) {
		const struct rule_case *c = &rule_cases[i];

		KUNIT_ASSERT_EQ_MSG(test, srv_rule_parse(c->rule, &rule), 0, "%s", c->rule);
		KUNIT_ASSERT_EQ_MSG(test, rail_addr_parse(&init_net, c->addr, strlen(c->addr), 7,
							  &addr), 0, "%s", c->addr);
		KUNIT_EXPECT_EQ_MSG(test, srv_rule_admits(&rule, c->name, (void *)&addr),
				    c->admits, "%s: %s from %s", c->rule, c->name, c->addr);
	}
}

static void rules_refused(struct kunit *test)
{
	static const char * const bad[] = {
		"", "ip:", "gid:", "ip:192.0.2", "192.0.2", "192.0.2.256", "192.0.2.0!33",
		"192.0.2.0!", "192.0.2.0!-1", "192.0.2.0!+1", "192.0.2.0!24x", "192.0.2.0!!24",
		"ip:192.0.2.1:7", "2001:db8::!129", "2001:db8:::1", "fe80", "gid:1", "a.b", "a/b",
		"@192.0.2.1", "s@", "s@*", "s.t@192.0.2.1", "ip:*",
	};
	struct srv_rule rule;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		/* A word of hex digits alone is a fine name of a session. */
		int want = !strcmp(bad[i], "fe80") ? 0 : -EINVAL;

		KUNIT_EXPECT_EQ_MSG(test, srv_rule_parse(bad[i], &rule), want, "\"%s\"", bad[i]);
	}
}

/* What is all zeros, or what a failed parse left, lets nobody in. */
static void rules_empty(struct kunit *test)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct srv_rule rule = {};

	KUNIT_EXPECT_FALSE(test, srv_rule_admits(&rule, "s", (void *)&addr));
	KUNIT_EXPECT_FALSE(test, srv_rule_admits(&rule, "", (void *)&addr));
	KUNIT_ASSERT_EQ(test, srv_rule_parse("0.0.0.0!0", &rule), 0);
	addr.sin_family = AF_UNIX;
	KUNIT_EXPECT_FALSE(test, srv_rule_admits(&rule, "s", (void *)&addr));
}

/* ---- modes ---- */

static void modes(struct kunit *test)
{
	static const int want[3][4] = {
		[RAIL_RNBD_ACCESS_RO] = { 0, 0, 0, 0 },
		[RAIL_RNBD_ACCESS_RW] = { 0, -EPERM, -EPERM, -EPERM },
		[RAIL_RNBD_ACCESS_MIGRATION] = { 0, 0, -EPERM, -EPERM },
	};
	unsigned int mode, writers;

	for (mode = 0; mode < 3; mode++)
		for (writers = 0; writers < 4; writers++)
			KUNIT_EXPECT_EQ(test, srv_may_open(mode, writers), want[mode][writers]);
	KUNIT_EXPECT_EQ(test, srv_may_open(3, 0), -EPERM);
	for (mode = 0; mode < 3; mode++)
		KUNIT_EXPECT_EQ(test, cli_access_parse(rail_rnbd_access_text(mode),
						       strlen(rail_rnbd_access_text(mode))), mode);
}

static void operations(struct kunit *test)
{
	unsigned int op;

	for (op = 0; op <= RAIL_RNBD_OP_WRITE_ZEROES; op++) {
		bool harmless = op == RAIL_RNBD_OP_READ || op == RAIL_RNBD_OP_FLUSH;

		KUNIT_EXPECT_EQ(test, srv_may_io(op, false), 0);
		KUNIT_EXPECT_EQ(test, srv_may_io(op, true), harmless ? 0 : -EPERM);
	}
}

/* ---- names ---- */

static void device_paths(struct kunit *test)
{
	char path[8];

	KUNIT_EXPECT_EQ(test, srv_device_path_parse("/dev/a\n", 7, path, sizeof(path)), 0);
	KUNIT_EXPECT_STREQ(test, path, "/dev/a");
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("/dev/ab", 7, path, sizeof(path)), 0);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("/dev/abc", 8, path, sizeof(path)),
			-ENAMETOOLONG);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("", 0, path, sizeof(path)), -EINVAL);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("\n", 1, path, sizeof(path)), -EINVAL);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("dev", 3, path, sizeof(path)), -EINVAL);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("/a\0b", 4, path, sizeof(path)), -EINVAL);
	KUNIT_EXPECT_EQ(test, srv_device_path_parse("/a\nb", 4, path, sizeof(path)), -EINVAL);
}

static void search_paths(struct kunit *test)
{
	char buf[32];
	size_t root;

	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/dev", "s", "a/b", &root), 0);
	KUNIT_EXPECT_STREQ(test, buf, "/dev/a/b");
	KUNIT_EXPECT_EQ(test, root, 4);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/x/%SESSNAME%/%SESSNAME%", "ab",
					      "/d", &root), 0);
	KUNIT_EXPECT_STREQ(test, buf, "/x/ab/ab//d");
	KUNIT_EXPECT_EQ(test, root, 8);
	/* What a client calls itself is not looked through again. */
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/%SESSNAME%", "%SESSNAME%", "d",
					      &root), 0);
	KUNIT_EXPECT_STREQ(test, buf, "/%SESSNAME%/d");
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/d", "s", "..", &root), -EACCES);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/d", "s", "a/../..", &root),
			-EACCES);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, sizeof(buf), "/d", "s", "..a", &root), 0);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, 10, "/dev", "s", "abcd", &root), 0);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, 10, "/dev", "s", "abcde", &root),
			-ENAMETOOLONG);
	KUNIT_EXPECT_EQ(test, srv_search_join(buf, 10, "/%SESSNAME%", "123456789", "d", &root),
			-ENAMETOOLONG);
}

static void export_names(struct kunit *test)
{
	char buf[6];

	KUNIT_EXPECT_EQ(test, srv_export_name(buf, sizeof(buf), "a/b/c"), 0);
	KUNIT_EXPECT_STREQ(test, buf, "a!b!c");
	KUNIT_EXPECT_EQ(test, srv_export_name(buf, sizeof(buf), "a/b/cd"), -ENAMETOOLONG);
}

static struct kunit_case rnbd_cases[] = {
	KUNIT_CASE(map_defaults),
	KUNIT_CASE(map_everything),
	KUNIT_CASE(map_refused),
	KUNIT_CASE(map_long),
	KUNIT_CASE(link_names),
	KUNIT_CASE(rules),
	KUNIT_CASE(rules_refused),
	KUNIT_CASE(rules_empty),
	KUNIT_CASE(modes),
	KUNIT_CASE(operations),
	KUNIT_CASE(device_paths),
	KUNIT_CASE(search_paths),
	KUNIT_CASE(export_names),
	{}
};

static struct kunit_suite rnbd_suite = {
	.name = "rail_rnbd",
	.test_cases = rnbd_cases,
};

kunit_test_suite(rnbd_suite);

MODULE_DESCRIPTION("RAIL: KUnit suite of RNBD");
MODULE_LICENSE("GPL");
