// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: states of a path, and who is let in. */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>

#include "../../drivers/rtrs/server.h"

/* What the module's parameters are in the server. */
unsigned int rsrv_max_chunk_size = 128 * 1024;
unsigned int rsrv_sess_queue_depth = 512;
bool rsrv_always_invalidate = true;
unsigned int rsrv_max_memory;
unsigned int rsrv_max_sessions;

static void rsrv_test_path_states(struct kunit *test)
{
	static const bool legal[RSRV_NR_PATH_STATES][RSRV_NR_PATH_STATES] = {
		[RSRV_PATH_CONNECTING] = { [RSRV_PATH_INFO] = true, [RSRV_PATH_CLOSING] = true },
		[RSRV_PATH_INFO] = { [RSRV_PATH_UP] = true, [RSRV_PATH_CLOSING] = true },
		[RSRV_PATH_UP] = { [RSRV_PATH_CLOSING] = true },
	};
	int from, to;

	for (from = 0; from < RSRV_NR_PATH_STATES; from++)
		for (to = 0; to < RSRV_NR_PATH_STATES; to++)
			KUNIT_EXPECT_EQ_MSG(test, rsrv_path_may(from, to), legal[from][to],
					    "from %d to %d", from, to);
}

static void rsrv_test_charge(struct kunit *test)
{
	rsrv_max_memory = 10;
	KUNIT_EXPECT_EQ(test, rsrv_charge(6 << 20), 0);
	KUNIT_EXPECT_EQ(test, rsrv_charge((4 << 20) + 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, rsrv_charge(4 << 20), 0);
	KUNIT_EXPECT_EQ(test, rsrv_charge(1), -ENOMEM);
	/* A limit that is lowered takes nothing away. */
	rsrv_max_memory = 1;
	rsrv_uncharge(6 << 20);
	KUNIT_EXPECT_EQ(test, rsrv_charge(1), -ENOMEM);
	rsrv_uncharge(4 << 20);
	KUNIT_EXPECT_EQ(test, rsrv_charge(1 << 20), 0);
	rsrv_uncharge(1 << 20);
	/* No limit of the user's: there is the machine's. */
	rsrv_max_memory = 0;
	KUNIT_EXPECT_EQ(test, rsrv_charge(U32_MAX * (u64)U32_MAX / 4), -ENOMEM);
	KUNIT_EXPECT_EQ(test, rsrv_charge(4096), 0);
	rsrv_uncharge(4096);
}

static void rsrv_test_params(struct kunit *test)
{
	struct rail_rtrs_params params;

	KUNIT_EXPECT_EQ(test, rsrv_params(&params), 0);
	KUNIT_EXPECT_EQ(test, params.queue_depth, 512);
	KUNIT_EXPECT_EQ(test, params.max_io_size, 126976);
	KUNIT_EXPECT_EQ(test, params.max_hdr_size, 4096);
	KUNIT_EXPECT_TRUE(test, params.new_rkey);
	/* 12 bits for the buffer leave 16 for the offset. */
	rsrv_sess_queue_depth = 4096;
	rsrv_max_chunk_size = 65536;
	KUNIT_EXPECT_EQ(test, rsrv_params(&params), 0);
	rsrv_sess_queue_depth = 4097;
	KUNIT_EXPECT_EQ(test, rsrv_params(&params), -EINVAL);
}

static void rsrv_test_same_host(struct kunit *test)
{
	struct sockaddr_storage a = {}, b = {};
	struct sockaddr_in *a4 = (struct sockaddr_in *)&a, *b4 = (struct sockaddr_in *)&b;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&a, *b6 = (struct sockaddr_in6 *)&b;

	/* Nothing is known of either. */
	KUNIT_EXPECT_FALSE(test, rsrv_same_host(&a, &b));
	a4->sin_family = AF_INET;
	a4->sin_port = htons(1);
	a4->sin_addr.s_addr = htonl(0x0a000001);
	KUNIT_EXPECT_FALSE(test, rsrv_same_host(&a, &b));
	*b4 = *a4;
	b4->sin_port = htons(2);
	KUNIT_EXPECT_TRUE(test, rsrv_same_host(&a, &b));
	b4->sin_addr.s_addr = htonl(0x0a000002);
	KUNIT_EXPECT_FALSE(test, rsrv_same_host(&a, &b));

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	a6->sin6_family = AF_INET6;
	b6->sin6_family = AF_INET6;
	b6->sin6_port = htons(7);
	KUNIT_EXPECT_TRUE(test, rsrv_same_host(&a, &b));
	b6->sin6_addr.s6_addr[15] = 1;
	KUNIT_EXPECT_FALSE(test, rsrv_same_host(&a, &b));
}

static struct kunit_case rsrv_cases[] = {
	KUNIT_CASE(rsrv_test_path_states),
	KUNIT_CASE(rsrv_test_charge),
	KUNIT_CASE(rsrv_test_params),
	KUNIT_CASE(rsrv_test_same_host),
	{ }
};

static struct kunit_suite rsrv_suite = {
	.name = "rail_rtrs_server",
	.test_cases = rsrv_cases,
};

kunit_test_suite(rsrv_suite);

MODULE_DESCRIPTION("RAIL: KUnit tests of the RTRS server");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
