// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the RTRS client's choice of a path, its states and its pauses, against models. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "../../drivers/rtrs/client_pure.h"

#define LANES	8
#define STEPS	20000

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random runs; 0: another one each time. A failed run prints its own.");

struct lanes {
	struct clt_lane lane[LANES];
	struct clt_lane *at[LANES];
	struct clt_turn turn;
	struct rnd_state rnd;
};

static int lanes_init(struct kunit *test)
{
	struct lanes *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	u32 used = seed ?: get_random_u32(), i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	kunit_info(test, "seed=%u", used);
	prandom_seed_state(&l->rnd, used);
	test->priv = l;
	for (i = 0; i < LANES; i++) {
		l->at[i] = &l->lane[i];
		l->lane[i].node = NUMA_NO_NODE;
		l->lane[i].usable = CLT_USABLE;
		l->lane[i].vtime = alloc_percpu(u64);
		KUNIT_ASSERT_NOT_NULL(test, l->lane[i].vtime);
	}
	/* The turn is this CPU's. */
	migrate_disable();
	return 0;
}

static void lanes_exit(struct kunit *test)
{
	struct lanes *l = test->priv;
	u32 i;

	migrate_enable();
	for (i = 0; l && i < LANES; i++)
		free_percpu(l->lane[i].vtime);
}

static u32 below(struct lanes *l, u32 n)
{
	return prandom_u32_state(&l->rnd) % n;
}

static struct clt_lane *take(struct lanes *l, enum clt_policy policy, u32 n, int node)
{
	struct clt_lane *lane;

	preempt_disable();
	lane = clt_pick(policy, l->at, n, &l->turn, node);
	preempt_enable();
	return lane;
}

/* Everything about lanes anew; some unusable. */
static void shuffle(struct lanes *l)
{
	u32 i;

	for (i = 0; i < LANES; i++) {
		l->lane[i].usable = below(l, CLT_USABLE + 1);
		l->lane[i].node = below(l, 3);
		l->lane[i].latency_ns = below(l, 4) * 1000;
		atomic_set(&l->lane[i].inflight, below(l, 4));
	}
}

static u8 best_usable(const struct lanes *l, u32 n)
{
	u8 best = CLT_UNUSABLE;
	u32 i;

	for (i = 0; i < n; i++)
		best = max(best, l->lane[i].usable);
	return best;
}

static u64 cost(enum clt_policy policy, const struct clt_lane *lane)
{
	switch (policy) {
	case CLT_MIN_INFLIGHT:
		return atomic_read(&lane->inflight);
	case CLT_MIN_LATENCY:
		return lane->latency_ns;
	default:
		return 0;
	}
}

/* Whatever the policy: of the best usable ones the cheapest, and with numa one of the node. */
static void pick_by_model(struct kunit *test)
{
	struct lanes *l = test->priv;
	u32 step, i;

	for (step = 0; step < STEPS; step++) {
		enum clt_policy policy = below(l, CLT_NR_POLICIES);
		u32 n = 1 + below(l, LANES);
		int node = below(l, 3);
		struct clt_lane *lane;
		bool on_node = false;
		u64 least = U64_MAX;
		u8 usable;

		shuffle(l);
		usable = best_usable(l, n);
		lane = take(l, policy, n, node);
		if (usable == CLT_UNUSABLE) {
			KUNIT_ASSERT_NULL(test, lane);
			continue;
		}
		KUNIT_ASSERT_NOT_NULL(test, lane);
		KUNIT_ASSERT_LT(test, lane - l->lane, (long)n);
		KUNIT_ASSERT_EQ(test, lane->usable, usable);
		for (i = 0; i < n; i++) {
			if (l->lane[i].usable != usable)
				continue;
			least = min(least, cost(policy, &l->lane[i]));
			on_node |= l->lane[i].node == node;
		}
		KUNIT_ASSERT_EQ(test, cost(policy, lane), least);
		if (policy == CLT_NUMA && on_node)
			KUNIT_ASSERT_EQ(test, lane->node, node);
	}
}

static void pick_in_turn(struct kunit *test)
{
	struct lanes *l = test->priv;
	u32 i, count[LANES] = { };

	l->lane[3].usable = CLT_UNUSABLE;
	l->lane[5].usable = CLT_UNPROVED;
	for (i = 0; i < 600; i++)
		count[take(l, CLT_ROUND_ROBIN, LANES, 0) - l->lane]++;
	for (i = 0; i < LANES; i++)
		KUNIT_EXPECT_EQ(test, count[i], i == 3 || i == 5 ? 0U : 100U);
	/* All alike: cheapest is in turn too. */
	memset(count, 0, sizeof(count));
	for (i = 0; i < 600; i++)
		count[take(l, CLT_MIN_INFLIGHT, LANES, 0) - l->lane]++;
	for (i = 0; i < LANES; i++)
		KUNIT_EXPECT_EQ(test, count[i], i == 3 || i == 5 ? 0U : 100U);
}

/* Shares in inverse proportion to the service time. */
static void pick_weighted_shares(struct kunit *test)
{
	static const u64 service[] = { 1000, 2000, 4000, 8000 };
	struct lanes *l = test->priv;
	u32 i, count[LANES] = { }, steps = 15000;

	for (i = 0; i < ARRAY_SIZE(service); i++)
		l->lane[i].service_ns = service[i];
	for (i = 0; i < steps; i++)
		count[take(l, CLT_WEIGHTED, ARRAY_SIZE(service), 0) - l->lane]++;
	for (i = 0; i < ARRAY_SIZE(service); i++) {
		u32 due = steps * (8000 / service[i]) / 15;

		KUNIT_EXPECT_GE(test, count[i], due - due / 50 - 1);
		KUNIT_EXPECT_LE(test, count[i], due + due / 50 + 1);
	}
}

/* One that was away is not owed what it missed. */
static void pick_weighted_absent(struct kunit *test)
{
	struct lanes *l = test->priv;
	u32 i, count[LANES] = { };

	l->lane[0].service_ns = 1000;
	l->lane[1].service_ns = 1000;
	l->lane[1].usable = CLT_UNUSABLE;
	for (i = 0; i < 5000; i++)
		take(l, CLT_WEIGHTED, 2, 0);
	l->lane[1].usable = CLT_USABLE;
	for (i = 0; i < 100; i++)
		count[take(l, CLT_WEIGHTED, 2, 0) - l->lane]++;
	KUNIT_EXPECT_GE(test, count[0], 48U);
	KUNIT_EXPECT_GE(test, count[1], 48U);
}

static void service_average(struct kunit *test)
{
	struct lanes *l = test->priv;
	struct clt_lane *lane = &l->lane[0];
	u32 i;

	clt_lane_served(lane, 160000);
	KUNIT_EXPECT_EQ(test, lane->service_ns, 160000ULL);
	for (i = 0; i < 200; i++)
		clt_lane_served(lane, 1600);
	KUNIT_EXPECT_LE(test, lane->service_ns, 1700ULL);
	KUNIT_EXPECT_GE(test, lane->service_ns, 1500ULL);
}

static void path_states(struct kunit *test)
{
	static const enum clt_path_state legal[][2] = {
		{ CLT_PATH_OFF, CLT_PATH_CONNECTING },
		{ CLT_PATH_OFF, CLT_PATH_GONE },
		{ CLT_PATH_WAITING, CLT_PATH_CONNECTING },
		{ CLT_PATH_WAITING, CLT_PATH_OFF },
		{ CLT_PATH_CONNECTING, CLT_PATH_UP },
		{ CLT_PATH_CONNECTING, CLT_PATH_CLOSING },
		{ CLT_PATH_UP, CLT_PATH_CLOSING },
		{ CLT_PATH_CLOSING, CLT_PATH_WAITING },
		{ CLT_PATH_CLOSING, CLT_PATH_OFF },
	};
	bool may[CLT_NR_PATH_STATES][CLT_NR_PATH_STATES] = { };
	u32 from, to;

	for (from = 0; from < ARRAY_SIZE(legal); from++)
		may[legal[from][0]][legal[from][1]] = true;
	for (from = 0; from < CLT_NR_PATH_STATES; from++)
		for (to = 0; to < CLT_NR_PATH_STATES; to++)
			KUNIT_EXPECT_EQ_MSG(test, clt_path_may(from, to), may[from][to],
					    "%u to %u", from, to);
}

static void pauses(struct kunit *test)
{
	struct lanes *l = test->priv;
	u32 tries, ms, whole, i;

	for (tries = 0; tries < 100; tries++) {
		whole = tries < 7 ? CLT_BACKOFF_MS << tries : CLT_BACKOFF_MAX_MS;
		whole = min_t(u32, whole, CLT_BACKOFF_MAX_MS);
		for (i = 0; i < 50; i++) {
			ms = clt_backoff_ms(tries, prandom_u32_state(&l->rnd));
			KUNIT_ASSERT_GE(test, ms, whole / 2);
			KUNIT_ASSERT_LE(test, ms, whole);
		}
		KUNIT_EXPECT_LE(test, clt_prove_ms(tries), (u32)CLT_PROVE_MAX_MS);
		KUNIT_EXPECT_GE(test, clt_prove_ms(tries + 1), clt_prove_ms(tries));
	}
	KUNIT_EXPECT_EQ(test, clt_prove_ms(0), (u32)CLT_PROVE_MS);
}

static void policy_names(struct kunit *test)
{
	char nr[4];
	int i;

	for (i = 0; i < CLT_NR_POLICIES; i++) {
		KUNIT_EXPECT_EQ(test, clt_policy_parse(clt_policy_name(i)), i);
		KUNIT_EXPECT_EQ(test, clt_policy_parse(clt_policy_short(i)), i);
		snprintf(nr, sizeof(nr), "%d\n", i);
		KUNIT_EXPECT_EQ(test, clt_policy_parse(nr), i);
	}
	KUNIT_EXPECT_EQ(test, clt_policy_parse("round-robin\n"), CLT_ROUND_ROBIN);
	KUNIT_EXPECT_EQ(test, clt_policy_parse("5"), -EINVAL);
	KUNIT_EXPECT_EQ(test, clt_policy_parse(""), -EINVAL);
	KUNIT_EXPECT_EQ(test, clt_policy_parse("round"), -EINVAL);
	KUNIT_EXPECT_EQ(test, clt_policy_parse("-1"), -EINVAL);
}

/* A server that lies about what it brought. */
static void small_answers(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, clt_small_fits(true, 0, 4096, 4096));
	KUNIT_EXPECT_TRUE(test, clt_small_fits(true, 0, 0, 0));
	KUNIT_EXPECT_TRUE(test, clt_small_fits(true, -EIO, 4096, 0));
	KUNIT_EXPECT_TRUE(test, clt_small_fits(false, 0, 4096, 0));
	KUNIT_EXPECT_TRUE(test, clt_small_fits(false, -EIO, 4096, 0));

	KUNIT_EXPECT_FALSE(test, clt_small_fits(true, 0, 4096, 0));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(true, 0, 4096, 4095));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(true, 0, 512, 4096));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(true, 0, 0, 1));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(true, -EIO, 4096, 4096));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(false, 0, 4096, 4096));
	KUNIT_EXPECT_FALSE(test, clt_small_fits(false, -EIO, 4096, 1));
}

static struct kunit_case rtrs_cases[] = {
	KUNIT_CASE(pick_by_model),
	KUNIT_CASE(pick_in_turn),
	KUNIT_CASE(pick_weighted_shares),
	KUNIT_CASE(pick_weighted_absent),
	KUNIT_CASE(service_average),
	KUNIT_CASE(path_states),
	KUNIT_CASE(pauses),
	KUNIT_CASE(policy_names),
	KUNIT_CASE(small_answers),
	{ }
};

static struct kunit_suite rtrs_suite = {
	.name = "rail_rtrs",
	.init = lanes_init,
	.exit = lanes_exit,
	.test_cases = rtrs_cases,
};

kunit_test_suite(rtrs_suite);

MODULE_DESCRIPTION("RAIL KUnit: RTRS client");
MODULE_LICENSE("GPL");
