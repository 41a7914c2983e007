// SPDX-License-Identifier: GPL-2.0-only
/* The address parser and printer. */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>
#include <rdma/rdma_cm.h>

#include <rail/addr.h>

/* The loopback interface is there in every net, with this index. */
#define LO_INDEX	1
#define DEFAULT_PORT	4791
#define MUTATIONS	100000
#define TEXT_MAX	128

#define SA(storage)	((struct sockaddr *)(storage))

/**
 * struct good - a text that is an address
 * @text: the text
 * @print: what rail_addr_print() makes of it; NULL where that is @text
 * @print_port: what rail_addr_print_port() makes of it
 * @port: its port, where DEFAULT_PORT was given
 * @family: its family
 * @scope: its scope
 * @bytes: its address
 */
struct good {
	const char *text;
	const char *print;
	const char *print_port;
	u16 port;
	sa_family_t family;
	u32 scope;
	u8 bytes[16];
};

static const struct good goods[] = {
	{ "ip:192.0.2.1", NULL, "ip:192.0.2.1:4791", DEFAULT_PORT, AF_INET, 0, { 192, 0, 2, 1 } },
	{ "ip:0.0.0.0", NULL, "ip:0.0.0.0:4791", DEFAULT_PORT, AF_INET, 0, { } },
	{ "ip:255.255.255.255", NULL, "ip:255.255.255.255:4791", DEFAULT_PORT, AF_INET, 0,
	  { 255, 255, 255, 255 } },
	{ "ip:192.0.2.1:1", "ip:192.0.2.1", "ip:192.0.2.1:1", 1, AF_INET, 0, { 192, 0, 2, 1 } },
	{ "ip:192.0.2.1:65535", "ip:192.0.2.1", "ip:192.0.2.1:65535", 65535, AF_INET, 0,
	  { 192, 0, 2, 1 } },
	{ "ip:2001:db8::1", NULL, "ip:[2001:db8::1]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
	{ "ip:[2001:db8::1]", "ip:2001:db8::1", "ip:[2001:db8::1]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
	{ "ip:[2001:db8::1]:1234", "ip:2001:db8::1", "ip:[2001:db8::1]:1234", 1234, AF_INET6, 0,
	  { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
	/* Without brackets the last part is no port. */
	{ "ip:2001:db8::1:1234", NULL, "ip:[2001:db8::1:1234]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { 0x20, 0x01, 0x0d, 0xb8, [13] = 1, 0x12, 0x34 } },
	{ "ip:2001:DB8:0:0:0:0:0:aBcD", "ip:2001:db8::abcd", "ip:[2001:db8::abcd]:4791",
	  DEFAULT_PORT, AF_INET6, 0, { 0x20, 0x01, 0x0d, 0xb8, [14] = 0xab, 0xcd } },
	{ "ip:::", NULL, "ip:[::]:4791", DEFAULT_PORT, AF_INET6, 0, { } },
	{ "ip:::1", NULL, "ip:[::1]:4791", DEFAULT_PORT, AF_INET6, 0, { [15] = 1 } },
	{ "ip:1:2:3:4:5:6:7:8", NULL, "ip:[1:2:3:4:5:6:7:8]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8 } },
	{ "ip:1:2:3:4:5:6:7::", "ip:1:2:3:4:5:6:7:0", "ip:[1:2:3:4:5:6:7:0]:4791", DEFAULT_PORT,
	  AF_INET6, 0, { 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7 } },
	{ "ip:::ffff:192.0.2.1", NULL, "ip:[::ffff:192.0.2.1]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
	{ "ip:[::ffff:192.0.2.1]:80", "ip:::ffff:192.0.2.1", "ip:[::ffff:192.0.2.1]:80", 80,
	  AF_INET6, 0, { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
	{ "ip:fe80::1", NULL, "ip:[fe80::1]:4791", DEFAULT_PORT, AF_INET6, 0,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "ip:fe80::1%lo", "ip:fe80::1%1", "ip:[fe80::1%1]:4791", DEFAULT_PORT, AF_INET6, LO_INDEX,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "ip:fe80::1%1", NULL, "ip:[fe80::1%1]:4791", DEFAULT_PORT, AF_INET6, LO_INDEX,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "ip:[fe80::1%lo]:1234", "ip:fe80::1%1", "ip:[fe80::1%1]:1234", 1234, AF_INET6, LO_INDEX,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "gid:fe80:0000:0000:0000:0000:0000:0000:0001", NULL,
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001", DEFAULT_PORT, AF_IB, 0,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "gid:fe80::1", "gid:fe80:0000:0000:0000:0000:0000:0000:0001",
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001", DEFAULT_PORT, AF_IB, 0,
	  { 0xfe, 0x80, [15] = 1 } },
	{ "gid:0000:0000:0000:0000:0000:ffff:c000:0201", NULL,
	  "gid:0000:0000:0000:0000:0000:ffff:c000:0201", DEFAULT_PORT, AF_IB, 0,
	  { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
};

/**
 * struct bad - a text that is no address
 * @text: the text
 * @error: what the parser says
 * @len: of @text; 0 where it ends with the NUL
 */
struct bad {
	const char *text;
	int error;
	size_t len;
};

static const struct bad bads[] = {
	/* prefix */
	{ "", -EINVAL },
	{ "i", -EINVAL },
	{ "ip:", -EINVAL },
	{ "gid:", -EINVAL },
	{ "192.0.2.1", -EINVAL },
	{ "2001:db8::1", -EINVAL },
	{ "IP:192.0.2.1", -EINVAL },
	{ "Gid:fe80::1", -EINVAL },
	{ "ip192.0.2.1", -EINVAL },
	{ "ib:fe80::1", -EINVAL },
	{ "ip:ip:192.0.2.1", -EINVAL },
	{ " ip:192.0.2.1", -EINVAL },
	{ "ip: 192.0.2.1", -EINVAL },
	{ "ip:192.0.2.1 ", -EINVAL },
	{ "ip:192.0.2.1\n", -EINVAL },
	{ "ip:localhost", -EINVAL },
	{ "%", -EINVAL },
	{ "ip:%", -EINVAL },
	{ "ip:%lo", -EINVAL },
	{ "ip:\000192.0.2.1", -EINVAL, 13 },
	{ "ip:192.0.2.1\0", -EINVAL, 13 },
	{ "ip:192.0\0.2.1", -EINVAL, 13 },
	{ "ip:::1\0", -EINVAL, 7 },
	/* IPv4 */
	{ "ip:192.0.2", -EINVAL },
	{ "ip:192.0.2.", -EINVAL },
	{ "ip:192.0.2.1.", -EINVAL },
	{ "ip:192.0.2.1.1", -EINVAL },
	{ "ip:192..2.1", -EINVAL },
	{ "ip:.192.0.2.1", -EINVAL },
	{ "ip:192.0.2.256", -EINVAL },
	{ "ip:192.0.2.01", -EINVAL },
	{ "ip:00000000000192.0.2.1", -EINVAL },
	{ "ip:0xc0.0.2.1", -EINVAL },
	{ "ip:192.0.2.-1", -EINVAL },
	{ "ip:3221225985", -EINVAL },
	{ "ip:192.0.2.1%lo", -EINVAL },
	{ "ip:192.0.2.1/24", -EINVAL },
	{ "ip:[192.0.2.1]", -EINVAL },
	{ "ip:[192.0.2.1]:80", -EINVAL },
	/* port */
	{ "ip:192.0.2.1:", -EINVAL },
	{ "ip:192.0.2.1:0", -EINVAL },
	{ "ip:192.0.2.1:65536", -EINVAL },
	{ "ip:192.0.2.1:4294967297", -EINVAL },
	{ "ip:192.0.2.1:18446744073709551617", -EINVAL },
	{ "ip:192.0.2.1:080", -EINVAL },
	{ "ip:192.0.2.1:0x50", -EINVAL },
	{ "ip:192.0.2.1:+80", -EINVAL },
	{ "ip:192.0.2.1:-80", -EINVAL },
	{ "ip:192.0.2.1:80\n", -EINVAL },
	{ "ip:192.0.2.1:80 ", -EINVAL },
	{ "ip:192.0.2.1:80:80", -EINVAL },
	{ "ip:192.0.2.1:http", -EINVAL },
	{ "ip:192.0.2.1:8\0000", -EINVAL, 16 },
	{ "ip:[2001:db8::1]:", -EINVAL },
	{ "ip:[2001:db8::1]:0", -EINVAL },
	{ "ip:[2001:db8::1]:65536", -EINVAL },
	{ "ip:[2001:db8::1]80", -EINVAL },
	{ "ip:[2001:db8::1].80", -EINVAL },
	/* IPv6 */
	{ "ip:[", -EINVAL },
	{ "ip:[]", -EINVAL },
	{ "ip:[]:80", -EINVAL },
	{ "ip:[2001:db8::1", -EINVAL },
	{ "ip:2001:db8::1]", -EINVAL },
	{ "ip:[2001:db8::1]]", -EINVAL },
	{ "ip:[[2001:db8::1]]", -EINVAL },
	{ "ip::", -EINVAL },
	{ "ip::::", -EINVAL },
	{ "ip:::1::", -EINVAL },
	{ "ip:1::2::3", -EINVAL },
	{ "ip:1:2:3:4:5:6:7", -EINVAL },
	{ "ip:1:2:3:4:5:6:7:", -EINVAL },
	{ "ip:1:2:3:4:5:6:7:8:", -EINVAL },
	{ "ip:1:2:3:4:5:6:7:8:9", -EINVAL },
	{ "ip:1:2:3:4:5:6:7::8", -EINVAL },
	{ "ip::1:2:3:4:5:6:7:8", -EINVAL },
	{ "ip:2001:db8::g", -EINVAL },
	{ "ip:2001:db8::12345", -EINVAL },
	{ "ip:2001:db8::00001", -EINVAL },
	{ "ip:2001:db8::1/64", -EINVAL },
	{ "ip:::ffff:192.0.2", -EINVAL },
	{ "ip:::ffff:192.0.2.256", -EINVAL },
	{ "ip:::ffff:192.0.2.01", -EINVAL },
	{ "ip:::ffff:192.0.2.1.1", -EINVAL },
	{ "ip:::192.0.2.1:1", -EINVAL },
	{ "ip:1:2:3:4:5:6:7:192.0.2.1", -EINVAL },
	{ "ip:1:2:3:4:5:6::192.0.2.1", -EINVAL },
	{ "ip:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", -EINVAL },
	{ "ip:0000000000000000000000000000000000000000000000000::1", -EINVAL },
	/* scope */
	{ "ip:fe80::1%", -EINVAL },
	{ "ip:[fe80::1%]:80", -EINVAL },
	{ "ip:fe80::1%%lo", -ENODEV },
	{ "ip:fe80::1%nosuchif", -ENODEV },
	{ "ip:fe80::1%999999", -ENODEV },
	{ "ip:fe80::1%0", -EINVAL },
	{ "ip:fe80::1%01", -EINVAL },
	{ "ip:fe80::1%2147483648", -EINVAL },
	{ "ip:fe80::1%4294967297", -EINVAL },
	{ "ip:fe80::1%lo:80", -EINVAL },
	{ "ip:fe80::1%lo\n", -EINVAL },
	{ "ip:fe80::1%lo/", -EINVAL },
	{ "ip:fe80::1%..", -EINVAL },
	{ "ip:fe80::1%l o", -EINVAL },
	{ "ip:fe80::1%lo\0", -EINVAL, 14 },
	{ "ip:fe80::1%interface-name16", -EINVAL },
	{ "ip:[fe80::1]%lo", -EINVAL },
	{ "ip:[fe80::1]%lo:80", -EINVAL },
	{ "ip:2001:db8::1%lo", -EINVAL },
	{ "ip:[2001:db8::1%1]:80", -EINVAL },
	{ "ip:::ffff:192.0.2.1%lo", -EINVAL },
	/* GID */
	{ "gid:192.0.2.1", -EINVAL },
	{ "gid:fe80", -EINVAL },
	{ "gid:fe80::1%lo", -EINVAL },
	{ "gid:[fe80::1]", -EINVAL },
	{ "gid:[fe80::1]:80", -EINVAL },
	{ "gid:fe80:0000:0000:0000:0000:0000:0000", -EINVAL },
	{ "gid:fe80:0000:0000:0000:0000:0000:0000:0001:1234", -EINVAL },
	{ "gid:fe80:0000:0000:0000:0000:0000:0000:00001", -EINVAL },
	{ "gid:fe80000000000000:0000000000000001", -EINVAL },
	{ "gid:0xfe800000000000000000000000000001", -EINVAL },
};

static const u8 *addr_bytes(const struct sockaddr_storage *addr, size_t *len)
{
	switch (addr->ss_family) {
	case AF_INET:
		*len = 4;
		return (const u8 *)&((const struct sockaddr_in *)addr)->sin_addr;
	case AF_INET6:
		*len = 16;
		return (const u8 *)&((const struct sockaddr_in6 *)addr)->sin6_addr;
	case AF_IB:
		*len = 16;
		return ((const struct sockaddr_ib *)addr)->sib_addr.sib_raw;
	default:
		*len = 0;
		return NULL;
	}
}

/* From a copy of exactly @len bytes, so that KASAN sees a byte read too many. */
static int parse_exact(struct kunit *test, const char *text, size_t len,
		       struct sockaddr_storage *addr)
{
	char *copy = kmemdup(text, len, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memset(addr, 0xa5, sizeof(*addr));
	ret = rail_addr_parse(&init_net, copy, len, DEFAULT_PORT, addr);
	kfree(copy);
	if (ret)
		KUNIT_EXPECT_PTR_EQ_MSG(test, memchr_inv(addr, 0xa5, sizeof(*addr)), NULL,
					"\"%.*s\": refused, yet something was written",
					(int)len, text);
	return ret;
}

static void parse_good(struct kunit *test)
{
	struct sockaddr_storage addr;
	const struct good *g;
	const u8 *bytes;
	size_t len;

	for (g = goods; g < goods + ARRAY_SIZE(goods); g++) {
		KUNIT_EXPECT_EQ_MSG(test, parse_exact(test, g->text, strlen(g->text), &addr), 0,
				    "%s", g->text);
		KUNIT_ASSERT_EQ_MSG(test, addr.ss_family, g->family, "%s", g->text);
		bytes = addr_bytes(&addr, &len);
		KUNIT_EXPECT_MEMEQ_MSG(test, bytes, g->bytes, len, "%s", g->text);
		KUNIT_EXPECT_EQ_MSG(test, rail_addr_port(SA(&addr)), g->port, "%s", g->text);
		if (g->family == AF_INET6) {
			KUNIT_EXPECT_EQ_MSG(test, ((struct sockaddr_in6 *)&addr)->sin6_scope_id,
					    g->scope, "%s", g->text);
			KUNIT_EXPECT_EQ(test, ((struct sockaddr_in6 *)&addr)->sin6_flowinfo, 0);
		}
	}
}

static void parse_bad(struct kunit *test)
{
	struct sockaddr_storage addr;
	const struct bad *b;

	for (b = bads; b < bads + ARRAY_SIZE(bads); b++)
		KUNIT_EXPECT_EQ_MSG(test,
				    parse_exact(test, b->text, b->len ?: strlen(b->text), &addr),
				    b->error, "\"%s\"", b->text);
}

/* The service id is what rdma_cm expects for the port space RDMA_PS_IB. */
static void gid_service_id(struct kunit *test)
{
	struct sockaddr_storage addr;
	struct sockaddr_ib *sib = (struct sockaddr_ib *)&addr;

	KUNIT_ASSERT_EQ(test, parse_exact(test, "gid:fe80::1", 11, &addr), 0);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(sib->sib_sid), 0x13f0000ULL | DEFAULT_PORT);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(sib->sib_sid_mask), U64_MAX);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(sib->sib_pkey), 0xffff);

	rail_addr_set_port(SA(&addr), 7);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(sib->sib_sid), 0x13f0007ULL);
	KUNIT_EXPECT_EQ(test, rail_addr_port(SA(&addr)), 7);
}

static void print_good(struct kunit *test)
{
	struct sockaddr_storage addr;
	char buf[RAIL_ADDR_STRLEN];
	const struct good *g;
	const char *want;
	size_t n;

	for (g = goods; g < goods + ARRAY_SIZE(goods); g++) {
		want = g->print ?: g->text;
		KUNIT_ASSERT_EQ(test, parse_exact(test, g->text, strlen(g->text), &addr), 0);
		n = rail_addr_print(buf, sizeof(buf), SA(&addr));
		KUNIT_EXPECT_STREQ(test, buf, want);
		KUNIT_EXPECT_EQ(test, n, strlen(want));
		n = rail_addr_print_port(buf, sizeof(buf), SA(&addr));
		KUNIT_EXPECT_STREQ(test, buf, g->print_port);
		KUNIT_EXPECT_EQ(test, n, strlen(g->print_port));
		rail_addr_set_port(SA(&addr), 0);
		rail_addr_print_port(buf, sizeof(buf), SA(&addr));
		KUNIT_EXPECT_STREQ(test, buf, want);
	}
}

static void print_longest(struct kunit *test)
{
	struct sockaddr_storage addr = { };
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&addr;
	char buf[RAIL_PATH_STRLEN];

	/* An ISATAP address is the longest that the kernel prints. */
	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = (struct in6_addr){ { { 0xfe, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0,
						 0x5e, 0xfe, 255, 255, 255, 255 } } };
	sin6->sin6_scope_id = U32_MAX;
	sin6->sin6_port = htons(65535);
	rail_addr_print_port(buf, sizeof(buf), SA(&addr));
	KUNIT_EXPECT_STREQ(test, buf,
			   "ip:[fe80:0:ffff:ffff:200:5efe:255.255.255.255%4294967295]:65535");
	KUNIT_EXPECT_LT(test, strlen(buf), RAIL_ADDR_STRLEN);

	/* A scope that means nothing is not printed: the parser would refuse it. */
	sin6->sin6_addr.s6_addr[0] = 0x20;
	rail_addr_print(buf, sizeof(buf), SA(&addr));
	KUNIT_EXPECT_STREQ(test, buf, "ip:2080:0:ffff:ffff:200:5efe:255.255.255.255");
}

static void print_other(struct kunit *test)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	char buf[RAIL_ADDR_STRLEN];

	rail_addr_print_port(buf, sizeof(buf), SA(&addr));
	KUNIT_EXPECT_STREQ(test, buf, "unspecified");
	addr.ss_family = AF_UNIX;
	KUNIT_EXPECT_EQ(test, rail_addr_print(buf, sizeof(buf), SA(&addr)), strlen("family:1"));
	KUNIT_EXPECT_STREQ(test, buf, "family:1");
	KUNIT_EXPECT_EQ(test, rail_addr_port(SA(&addr)), 0);
	rail_addr_set_port(SA(&addr), 5);
	KUNIT_EXPECT_EQ(test, rail_addr_port(SA(&addr)), 0);
}

/* Into a buffer of every size: cut, ended with a NUL, nothing written behind it. */
static void print_cut(struct kunit *test)
{
	struct sockaddr_storage addr;
	char whole[RAIL_PATH_STRLEN];
	char buf[RAIL_PATH_STRLEN];
	const struct good *g;
	size_t n, size;

	for (g = goods; g < goods + ARRAY_SIZE(goods); g++) {
		KUNIT_ASSERT_EQ(test, parse_exact(test, g->text, strlen(g->text), &addr), 0);
		rail_path_print(whole, sizeof(whole), SA(&addr), SA(&addr));
		for (size = 0; size <= strlen(whole) + 1; size++) {
			memset(buf, '#', sizeof(buf));
			n = rail_path_print(buf, size, SA(&addr), SA(&addr));
			KUNIT_EXPECT_EQ(test, n, size ? size - 1 : 0);
			KUNIT_EXPECT_PTR_EQ(test, memchr_inv(buf + size, '#', sizeof(buf) - size),
					    NULL);
			if (size) {
				KUNIT_EXPECT_EQ(test, buf[n], '\0');
				KUNIT_EXPECT_MEMEQ(test, buf, whole, n);
			}

			memset(buf, '#', sizeof(buf));
			n = rail_addr_print_port(buf, size, SA(&addr));
			KUNIT_EXPECT_EQ(test, n, size ? min(size - 1, strlen(g->print_port)) : 0);
			KUNIT_EXPECT_PTR_EQ(test, memchr_inv(buf + size, '#', sizeof(buf) - size),
					    NULL);
		}
	}
}

/* Every text cut at every length reads the same, whatever follows. */
static void truncated(struct kunit *test)
{
	static const char guards[] = { '\0', '0', '1', ':', '.', '%', ']', 'x', '\xff' };
	struct sockaddr_storage exact, guarded;
	const struct good *g;
	char buf[TEXT_MAX];
	size_t len, i;
	int ret;

	for (g = goods; g < goods + ARRAY_SIZE(goods); g++) {
		for (len = 0; len <= strlen(g->text); len++) {
			ret = parse_exact(test, g->text, len, &exact);
			for (i = 0; i < ARRAY_SIZE(guards); i++) {
				memset(buf, guards[i], sizeof(buf));
				memcpy(buf, g->text, len);
				memset(&guarded, 0xa5, sizeof(guarded));
				KUNIT_EXPECT_EQ_MSG(test,
						    rail_addr_parse(&init_net, buf, len,
								    DEFAULT_PORT, &guarded),
						    ret, "\"%.*s\" before %#x", (int)len, g->text,
						    guards[i]);
				KUNIT_EXPECT_MEMEQ(test, &exact, &guarded, sizeof(exact));
			}
		}
	}
}

static void equal(struct kunit *test)
{
	struct sockaddr_storage a, b;
	size_t i, j;

	/* Of the table, equal are those which print alike, port included. */
	for (i = 0; i < ARRAY_SIZE(goods); i++) {
		for (j = 0; j < ARRAY_SIZE(goods); j++) {
			const struct good *x = &goods[i], *y = &goods[j];

			KUNIT_ASSERT_EQ(test, parse_exact(test, x->text, strlen(x->text), &a), 0);
			KUNIT_ASSERT_EQ(test, parse_exact(test, y->text, strlen(y->text), &b), 0);
			KUNIT_EXPECT_EQ_MSG(test, rail_addr_equal(SA(&a), SA(&b)),
					    !strcmp(x->print_port, y->print_port), "%s and %s",
					    x->text, y->text);
		}
		rail_addr_set_port(SA(&b), 1);
		KUNIT_EXPECT_EQ(test, rail_addr_port(SA(&b)), 1);
		a = b;
		KUNIT_EXPECT_TRUE(test, rail_addr_equal(SA(&a), SA(&b)));
		rail_addr_set_port(SA(&b), 2);
		KUNIT_EXPECT_FALSE(test, rail_addr_equal(SA(&a), SA(&b)));
	}

	/* The scope counts for link-local addresses alone. */
	KUNIT_ASSERT_EQ(test, parse_exact(test, "ip:2001:db8::1", 14, &a), 0);
	b = a;
	((struct sockaddr_in6 *)&b)->sin6_scope_id = 3;
	KUNIT_EXPECT_TRUE(test, rail_addr_equal(SA(&a), SA(&b)));

	a = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	b = a;
	KUNIT_EXPECT_FALSE(test, rail_addr_equal(SA(&a), SA(&b)));
}

/**
 * struct path_case - a text that may be a path
 * @text: the text
 * @error: what the parser says
 * @src: its source as rail_addr_print_port() prints it
 * @dst: its destination, likewise
 * @print: what rail_path_print() makes of it
 */
struct path_case {
	const char *text;
	int error;
	const char *src;
	const char *dst;
	const char *print;
};

static const struct path_case paths[] = {
	{ "ip:192.0.2.2", 0, "unspecified", "ip:192.0.2.2:4791", "ip:192.0.2.2" },
	{ "ip:192.0.2.1@ip:192.0.2.2", 0, "ip:192.0.2.1", "ip:192.0.2.2:4791",
	  "ip:192.0.2.1@ip:192.0.2.2" },
	{ "ip:192.0.2.1,ip:192.0.2.2", 0, "ip:192.0.2.1", "ip:192.0.2.2:4791",
	  "ip:192.0.2.1@ip:192.0.2.2" },
	{ "ip:192.0.2.1:5,ip:192.0.2.2:6", 0, "ip:192.0.2.1:5", "ip:192.0.2.2:6",
	  "ip:192.0.2.1@ip:192.0.2.2" },
	{ "ip:fe80::1%lo@ip:[fe80::2%1]:7", 0, "ip:fe80::1%1", "ip:[fe80::2%1]:7",
	  "ip:fe80::1%1@ip:fe80::2%1" },
	{ "ip:::ffff:192.0.2.1@ip:::ffff:192.0.2.2", 0, "ip:::ffff:192.0.2.1",
	  "ip:[::ffff:192.0.2.2]:4791", "ip:::ffff:192.0.2.1@ip:::ffff:192.0.2.2" },
	{ "gid:fe80::1@gid:fe80::2", 0, "gid:fe80:0000:0000:0000:0000:0000:0000:0001",
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0002",
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001@gid:fe80:0000:0000:0000:0000:0000:0000:0002"
	},
	{ "", -EINVAL },
	{ "@", -EINVAL },
	{ ",", -EINVAL },
	{ "@ip:192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1@", -EINVAL },
	{ "ip:192.0.2.1@ip:", -EINVAL },
	{ "ip:192.0.2.1@192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1@@ip:192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1,@ip:192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1, ip:192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1 ip:192.0.2.2", -EINVAL },
	{ "ip:192.0.2.1@ip:192.0.2.2@ip:192.0.2.3", -EINVAL },
	{ "ip:192.0.2.1,ip:192.0.2.2,", -EINVAL },
	{ "ip:192.0.2.1@ip:192.0.2.2\n", -EINVAL },
	{ "ip:fe80::1%nosuchif@ip:fe80::2%lo", -ENODEV },
	{ "ip:fe80::1%lo@ip:fe80::2%nosuchif", -ENODEV },
	{ "ip:192.0.2.1@ip:2001:db8::2", -EAFNOSUPPORT },
	{ "ip:192.0.2.1@ip:::ffff:192.0.2.2", -EAFNOSUPPORT },
	{ "ip:fe80::1@gid:fe80::2", -EAFNOSUPPORT },
	{ "gid:fe80::1,ip:192.0.2.2", -EAFNOSUPPORT },
};

static int path_exact(struct kunit *test, const char *text, size_t len,
		      struct sockaddr_storage *src, struct sockaddr_storage *dst)
{
	char *copy = kmemdup(text, len, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memset(src, 0xa5, sizeof(*src));
	memset(dst, 0xa5, sizeof(*dst));
	ret = rail_path_parse(&init_net, copy, len, DEFAULT_PORT, src, dst);
	kfree(copy);
	if (ret) {
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(src, 0xa5, sizeof(*src)), NULL);
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(dst, 0xa5, sizeof(*dst)), NULL);
	}
	return ret;
}

static void path(struct kunit *test)
{
	struct sockaddr_storage src, dst;
	char buf[RAIL_PATH_STRLEN];
	const struct path_case *p;
	size_t len;
	int ret;

	for (p = paths; p < paths + ARRAY_SIZE(paths); p++) {
		for (len = 0; len < strlen(p->text); len++)
			path_exact(test, p->text, len, &src, &dst);
		ret = path_exact(test, p->text, len, &src, &dst);
		KUNIT_EXPECT_EQ_MSG(test, ret, p->error, "\"%s\"", p->text);
		if (ret || p->error)
			continue;
		rail_addr_print_port(buf, sizeof(buf), SA(&src));
		KUNIT_EXPECT_STREQ(test, buf, p->src);
		rail_addr_print_port(buf, sizeof(buf), SA(&dst));
		KUNIT_EXPECT_STREQ(test, buf, p->dst);
		KUNIT_EXPECT_EQ(test, rail_path_print(buf, sizeof(buf), SA(&src), SA(&dst)),
				strlen(p->print));
		KUNIT_EXPECT_STREQ(test, buf, p->print);
	}

	KUNIT_ASSERT_EQ(test, parse_exact(test, "ip:192.0.2.2", 12, &dst), 0);
	rail_path_print(buf, sizeof(buf), NULL, SA(&dst));
	KUNIT_EXPECT_STREQ(test, buf, "ip:192.0.2.2");
}

static size_t mutate(struct rnd_state *rnd, char *text, size_t len)
{
	static const char alphabet[] = "0123456789abcdefF:::..%%[]@,ipgdlo x\n\xff";
	u32 times = 1 + prandom_u32_state(rnd) % 4;
	size_t at;
	char c;

	while (times--) {
		/* The last of sizeof() is the NUL, wanted here too. */
		c = alphabet[prandom_u32_state(rnd) % sizeof(alphabet)];
		at = prandom_u32_state(rnd) % (len + 1);
		switch (prandom_u32_state(rnd) % 3) {
		case 0:
			if (at < len)
				text[at] = c;
			break;
		case 1:
			if (len == TEXT_MAX)
				break;
			memmove(text + at + 1, text + at, len - at);
			text[at] = c;
			len++;
			break;
		case 2:
			if (at == len)
				break;
			memmove(text + at, text + at + 1, len - at - 1);
			len--;
			break;
		}
	}
	return len;
}

/* What parses must print within the limit, and parse again to the same. */
static bool round_trip(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage again;
	char buf[RAIL_PATH_STRLEN];
	size_t n;

	n = rail_addr_print(buf, sizeof(buf), SA(addr));
	if (n >= RAIL_ADDR_STRLEN ||
	    rail_addr_parse(&init_net, buf, n, rail_addr_port(SA(addr)), &again) ||
	    !rail_addr_equal(SA(addr), SA(&again)))
		return false;

	n = rail_addr_print_port(buf, sizeof(buf), SA(addr));
	if (n >= RAIL_ADDR_STRLEN ||
	    rail_addr_parse(&init_net, buf, n, addr->ss_family == AF_IB ? DEFAULT_PORT : 0, &again))
		return false;
	return rail_addr_equal(SA(addr), SA(&again));
}

static void mutated(struct kunit *test)
{
	struct sockaddr_storage addr;
	unsigned int i, parsed = 0;
	struct rnd_state rnd;
	char text[TEXT_MAX];
	char *room, *end;
	const char *from;
	size_t len;

	/* The text always ends where the room does, so that KASAN sees a byte read too many. */
	room = kunit_kmalloc(test, TEXT_MAX, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, room);
	end = room + TEXT_MAX;

	prandom_seed_state(&rnd, 20260119);
	for (i = 0; i < MUTATIONS; i++) {
		from = goods[prandom_u32_state(&rnd) % ARRAY_SIZE(goods)].text;
		len = strlen(from);
		memcpy(text, from, len);
		len = mutate(&rnd, text, len);
		memcpy(end - len, text, len);
		if (rail_addr_parse(&init_net, end - len, len, DEFAULT_PORT, &addr))
			continue;
		parsed++;
		if (!round_trip(&addr))
			KUNIT_FAIL_AND_ABORT(test, "mutation %u, \"%*pE\": no round trip", i,
					     (int)len, text);
	}
	kunit_info(test, "%u of %u mutations are addresses\n", parsed, MUTATIONS);
	/* Else the mutations have lost their bite. */
	KUNIT_EXPECT_GT(test, parsed, MUTATIONS / 50);
	KUNIT_EXPECT_LT(test, parsed, MUTATIONS / 2);
}

static void mutated_paths(struct kunit *test)
{
	struct sockaddr_storage src, dst, src2, dst2;
	unsigned int i, parsed = 0;
	char buf[RAIL_PATH_STRLEN];
	struct rnd_state rnd;
	char text[TEXT_MAX];
	char *room, *end;
	const char *from;
	size_t len;
	u16 port;

	room = kunit_kmalloc(test, TEXT_MAX, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, room);
	end = room + TEXT_MAX;

	prandom_seed_state(&rnd, 20260120);
	for (i = 0; i < MUTATIONS; i++) {
		from = paths[prandom_u32_state(&rnd) % ARRAY_SIZE(paths)].text;
		len = strlen(from);
		memcpy(text, from, len);
		len = mutate(&rnd, text, len);
		memcpy(end - len, text, len);
		if (rail_path_parse(&init_net, end - len, len, DEFAULT_PORT, &src, &dst))
			continue;
		parsed++;
		port = rail_addr_port(SA(&dst));
		len = rail_path_print(buf, sizeof(buf), SA(&src), SA(&dst));
		if (rail_path_parse(&init_net, buf, len, port, &src2, &dst2))
			KUNIT_FAIL_AND_ABORT(test, "mutation %u: \"%s\" does not parse again", i,
					     buf);
		rail_addr_set_port(SA(&src2), rail_addr_port(SA(&src)));
		if (!rail_addr_equal(SA(&dst), SA(&dst2)) || src.ss_family != src2.ss_family ||
		    (src.ss_family && !rail_addr_equal(SA(&src), SA(&src2))))
			KUNIT_FAIL_AND_ABORT(test, "mutation %u: \"%s\" parses to another path",
					     i, buf);
	}
	kunit_info(test, "%u of %u mutations are paths\n", parsed, MUTATIONS);
	KUNIT_EXPECT_GT(test, parsed, MUTATIONS / 100);
	KUNIT_EXPECT_LT(test, parsed, MUTATIONS / 2);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(parse_good),
	KUNIT_CASE(parse_bad),
	KUNIT_CASE(gid_service_id),
	KUNIT_CASE(print_good),
	KUNIT_CASE(print_longest),
	KUNIT_CASE(print_other),
	KUNIT_CASE(print_cut),
	KUNIT_CASE(truncated),
	KUNIT_CASE(equal),
	KUNIT_CASE(path),
	KUNIT_CASE_SLOW(mutated),
	KUNIT_CASE_SLOW(mutated_paths),
	{ }
};

static struct kunit_suite suite = {
	.name = "rail_addr",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("RAIL: KUnit tests of the address parser");
MODULE_LICENSE("GPL");
