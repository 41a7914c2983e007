// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the NFS/RDMA client's chunk choice and credit accounting, each against a model that does
 * it the slow way, with a check at each step.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include <rail/wire/rpcrdma.h>

#include "../../net/sunrpc/xprtrdma/clnt_pure.h"

#define RANDOM_CALLS	200000
#define RANDOM_STEPS	200000
#define CALLS		64

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random runs; 0: another one each time. A failed run prints its own.");

static void clnt_seed(struct rnd_state *rnd, u32 *used)
{
	*used = seed ?: get_random_u32();
	prandom_seed_state(rnd, *used);
}

static u32 below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/* ---------------------------------------------------------------- chunk choice */

static const struct clnt_limits usual = {
	.call_max = 4096,
	.reply_max = 4096,
	.mr_pages = 256,
	.page_size = 4096,
};

/* As NFS makes them: a head, and perhaps page data with a tail that begins with its pad. */
static struct clnt_shape shape(u32 head, u32 pages, u32 tail, bool eligible)
{
	struct clnt_shape s = {
		.head.len = head,
		.pages.len = pages,
		.tail.len = tail,
		.eligible = eligible,
	};

	if (eligible && pages)
		s.pad = -pages & 3;
	return s;
}

/* One page after the other, a region whenever the last one is full. */
static u32 model_segs(const struct clnt_piece *piece, const struct clnt_limits *limits)
{
	u32 segs = 0, room = 0, off = piece->off, left = piece->len;

	while (left) {
		u32 part = min(left, limits->page_size - off);

		if (!room) {
			segs++;
			room = limits->mr_pages;
		}
		room--;
		left -= part;
		off = 0;
	}
	return segs;
}

/* The longest reply that can come inline after the lists that come back. */
static u32 model_reply_inline(const struct clnt_shape *reply, const struct clnt_plan *plan)
{
	u32 n = RAIL_RPCRDMA_HDR_MIN + 8 * plan->reply_write + 16 * plan->write_segs;

	if (plan->reply_long)
		return n + 4 + 16 * plan->reply_segs;
	return n + reply->head.len + reply->tail.len + (plan->reply_write ? 0 : reply->pages.len);
}

static u32 model_call_hdr(const struct clnt_plan *plan)
{
	return RAIL_RPCRDMA_HDR_MIN + 24 * (plan->call_segs + plan->read_segs) +
	       8 * plan->reply_write + 16 * plan->write_segs +
	       (plan->reply_long ? 4 + 16 * plan->reply_segs : 0);
}

static void check_plan(struct kunit *test, const struct clnt_shape *call,
		       const struct clnt_shape *reply, const struct clnt_limits *limits,
		       const struct clnt_plan *plan)
{
	u32 rest = call->head.len + call->tail.len;
	u32 segs;

	/* What must not be taken out is not. */
	KUNIT_EXPECT_TRUE(test, !plan->call_read || (call->eligible && call->pages.len));
	KUNIT_EXPECT_TRUE(test, !plan->reply_write || (reply->eligible && reply->pages.len));

	/* Every byte of the call is in one place. */
	KUNIT_EXPECT_EQ(test, plan->read_segs,
			plan->call_read ? model_segs(&call->pages, limits) : 0);
	segs = 0;
	if (plan->call_long) {
		segs = model_segs(&call->head, limits) + model_segs(&call->tail, limits);
		if (!plan->call_read)
			segs += model_segs(&call->pages, limits);
		KUNIT_EXPECT_EQ(test, plan->body_len, 0);
	} else if (plan->call_read) {
		KUNIT_EXPECT_EQ(test, plan->body_len, rest);
	} else {
		KUNIT_EXPECT_EQ(test, plan->body_len, rest + call->pages.len + call->pad);
	}
	KUNIT_EXPECT_EQ(test, plan->call_segs, segs);

	/* Every byte of the reply has a place. */
	KUNIT_EXPECT_EQ(test, plan->write_segs,
			plan->reply_write ? model_segs(&reply->pages, limits) : 0);
	segs = 0;
	if (plan->reply_long) {
		segs = model_segs(&reply->head, limits) + model_segs(&reply->tail, limits);
		if (!plan->reply_write)
			segs += model_segs(&reply->pages, limits);
	}
	KUNIT_EXPECT_EQ(test, plan->reply_segs, segs);

	/* Both ends keep to the thresholds. */
	KUNIT_EXPECT_EQ(test, plan->hdr_len, model_call_hdr(plan));
	KUNIT_EXPECT_LE(test, plan->hdr_len + plan->body_len, limits->call_max);
	KUNIT_EXPECT_LE(test, model_reply_inline(reply, plan), limits->reply_max);
	KUNIT_EXPECT_LE(test, plan->hdr_len, CLNT_HDR_MAX);
	KUNIT_EXPECT_LE(test, plan->call_segs + plan->read_segs + plan->write_segs +
			plan->reply_segs, CLNT_CALL_SEGS);

	/* No registration without need. */
	if (plan->reply_write || plan->reply_long)
		KUNIT_EXPECT_GT(test, RAIL_RPCRDMA_HDR_MIN + reply->head.len + reply->pages.len +
				reply->tail.len, limits->reply_max);
	if (plan->reply_write && plan->reply_long)
		KUNIT_EXPECT_GT(test, RAIL_RPCRDMA_HDR_MIN + 8 + 16 * plan->write_segs +
				reply->head.len + reply->tail.len, limits->reply_max);
	segs = plan->call_segs + plan->read_segs;
	if (segs)
		KUNIT_EXPECT_GT(test, plan->hdr_len - 24 * segs + rest + call->pages.len +
				call->pad, limits->call_max);
	if (plan->call_long && plan->call_read)
		KUNIT_EXPECT_GT(test, plan->hdr_len - 24 * plan->call_segs + rest,
				limits->call_max);
}

static void choose_ok(struct kunit *test, struct clnt_shape call, struct clnt_shape reply,
		      struct clnt_plan *plan)
{
	KUNIT_ASSERT_EQ(test, clnt_choose(&call, &reply, &usual, plan), 0);
	check_plan(test, &call, &reply, &usual, plan);
}

/* What NFS does all day. */
static void test_choose_nfs(struct kunit *test)
{
	struct clnt_plan plan;

	/* GETATTR */
	choose_ok(test, shape(200, 0, 0, false), shape(400, 0, 0, false), &plan);
	KUNIT_EXPECT_EQ(test, plan.hdr_len, RAIL_RPCRDMA_HDR_MIN);
	KUNIT_EXPECT_EQ(test, plan.body_len, 200);

	/* READ of 3000 bytes fits, of 1 MiB does not. */
	choose_ok(test, shape(200, 0, 0, false), shape(128, 3000, 4, true), &plan);
	KUNIT_EXPECT_FALSE(test, plan.reply_write);
	choose_ok(test, shape(200, 0, 0, false), shape(128, 1 << 20, 4, true), &plan);
	KUNIT_EXPECT_TRUE(test, plan.reply_write);
	KUNIT_EXPECT_FALSE(test, plan.reply_long);
	KUNIT_EXPECT_EQ(test, plan.write_segs, 1);

	/* WRITE */
	choose_ok(test, shape(200, 3000, 0, true), shape(400, 0, 0, false), &plan);
	KUNIT_EXPECT_FALSE(test, plan.call_read);
	choose_ok(test, shape(200, (1 << 20) + 1, 0, true), shape(400, 0, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_read);
	KUNIT_EXPECT_FALSE(test, plan.call_long);
	KUNIT_EXPECT_EQ(test, plan.read_segs, 2);
	KUNIT_EXPECT_EQ(test, plan.body_len, 200);

	/* READDIR, and WRITE with krb5p */
	choose_ok(test, shape(200, 0, 0, false), shape(128, 32768, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.reply_long);
	KUNIT_EXPECT_FALSE(test, plan.reply_write);
	choose_ok(test, shape(300, 65536, 60, false), shape(400, 0, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_long);
	KUNIT_EXPECT_FALSE(test, plan.call_read);
	KUNIT_EXPECT_EQ(test, plan.call_segs, 3);
}

/* Both lists, and both with a reply chunk. */
static void test_choose_both(struct kunit *test)
{
	struct clnt_plan plan;

	choose_ok(test, shape(200, 65536, 40, true), shape(128, 65536, 40, true), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_read && plan.reply_write);
	choose_ok(test, shape(5000, 65536, 40, true), shape(5000, 65536, 40, true), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_read && plan.call_long && plan.reply_write &&
			  plan.reply_long);
}

/* Exactly at the threshold and one word past it. */
static void test_choose_edge(struct kunit *test)
{
	u32 room = 4096 - RAIL_RPCRDMA_HDR_MIN;
	struct clnt_plan plan;

	choose_ok(test, shape(room, 0, 0, false), shape(room, 0, 0, false), &plan);
	KUNIT_EXPECT_FALSE(test, plan.call_long || plan.reply_long);
	choose_ok(test, shape(room + 4, 0, 0, false), shape(room, 0, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_long);
	choose_ok(test, shape(200, 0, 0, false), shape(room + 4, 0, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.reply_long);
	/* The pad counts too. */
	choose_ok(test, shape(room - 2000, 1997, 0, true), shape(room, 0, 0, false), &plan);
	KUNIT_EXPECT_FALSE(test, plan.call_read);
	choose_ok(test, shape(room - 2000, 2001, 0, true), shape(room, 0, 0, false), &plan);
	KUNIT_EXPECT_TRUE(test, plan.call_read);
}

static void test_choose_random(struct kunit *test)
{
	static const u32 heads[] = { 40, 400, 1100, 6000, 40000 };
	static const u32 datas[] = { 1, 64, 3000, 8192, 300000, 1 << 20, 5 << 20 };
	u32 i, used, refused = 0;
	struct rnd_state rnd;

	clnt_seed(&rnd, &used);
	for (i = 0; i < RANDOM_CALLS; i++) {
		struct clnt_limits limits = {
			.call_max = 1024 << below(&rnd, 5),
			.reply_max = 1024 << below(&rnd, 5),
			.mr_pages = 1 + below(&rnd, 512),
			.page_size = below(&rnd, 8) ? 4096 : 65536,
		};
		struct clnt_shape msg[2];
		struct clnt_plan plan;
		u32 k;

		for (k = 0; k < 2; k++) {
			u32 head = 4 + 4 * below(&rnd, heads[below(&rnd, ARRAY_SIZE(heads))] / 4);
			u32 data = below(&rnd, 3) ?
				   1 + below(&rnd, datas[below(&rnd, ARRAY_SIZE(datas))]) : 0;

			msg[k] = shape(head, data, data ? 4 * below(&rnd, 100) : 0,
				       below(&rnd, 2));
			msg[k].head.off = below(&rnd, limits.page_size);
			msg[k].pages.off = below(&rnd, limits.page_size);
			msg[k].tail.off = below(&rnd, limits.page_size);
		}
		msg[1].pad = 0;
		if (clnt_choose(&msg[0], &msg[1], &limits, &plan)) {
			refused++;
			continue;
		}
		check_plan(test, &msg[0], &msg[1], &limits, &plan);
		if (test->status != KUNIT_SUCCESS) {
			kunit_err(test, "call %u of the run with seed=%u\n", i, used);
			return;
		}
	}
	/* Small regions cannot carry everything; most must pass. */
	KUNIT_EXPECT_LT(test, refused, RANDOM_CALLS / 2);
}

/* Payloads up to what is said to pass do pass, wherever they begin and with any flavour. */
static void test_max_payload(struct kunit *test)
{
	u32 pages;

	for (pages = 4; pages <= 512; pages++) {
		struct clnt_limits limits = usual;
		struct clnt_shape call, reply;
		struct clnt_plan plan;
		u32 most, off;

		limits.mr_pages = pages;
		most = clnt_max_payload(&limits, 4 << 20);
		KUNIT_ASSERT_GT(test, most, 0);
		KUNIT_ASSERT_LE(test, most, 4 << 20);
		for (off = 0; off < 4096; off += 4095) {
			call = shape(300, most, 60, false);
			call.pages.off = off;
			reply = shape(400, 0, 0, false);
			KUNIT_EXPECT_EQ(test, clnt_choose(&call, &reply, &limits, &plan), 0);
			call = shape(300, 0, 0, false);
			reply = shape(400, most, 60, true);
			reply.pages.off = off;
			KUNIT_EXPECT_EQ(test, clnt_choose(&call, &reply, &limits, &plan), 0);
		}
	}
}

/* ---------------------------------------------------------------- credits */

/*
 * sunrpc first forgets a killed call, then releases it, and the answer may come at any time:
 * before, between or after.
 */
enum call_state {
	FREE,
	WAITED_FOR,
	FORGOTTEN,
	ANSWERED,	/* between the two */
	LOST,
};

/* The model: every call the server has or that holds a credit, and what the server said last. */
struct model {
	enum call_state call[CALLS];
	u32 grant;
	u32 asked;
};

static u32 count(const struct model *model, enum call_state state)
{
	u32 i, n = 0;

	for (i = 0; i < CALLS; i++)
		n += model->call[i] == state;
	return n;
}

static int pick(struct rnd_state *rnd, const struct model *model, enum call_state state)
{
	u32 i, at = below(rnd, CALLS);

	for (i = 0; i < CALLS; i++, at = (at + 1) % CALLS)
		if (model->call[at] == state)
			return at;
	return -1;
}

/* Another connection. What was answered and is not released yet holds its credit still. */
static void model_begin(struct model *model, u32 asked)
{
	u32 i;

	for (i = 0; i < CALLS; i++)
		if (model->call[i] != ANSWERED)
			model->call[i] = FREE;
	model->asked = asked;
	model->grant = 1;
}

static int pick_either(struct rnd_state *rnd, const struct model *model, enum call_state one,
		       enum call_state other)
{
	bool swap = below(rnd, 2);
	int at = pick(rnd, model, swap ? other : one);

	return at >= 0 ? at : pick(rnd, model, swap ? one : other);
}

static void model_answer(struct rnd_state *rnd, struct model *model, u32 *grant)
{
	switch (below(rnd, 4)) {
	case 0:
		*grant = 0;
		break;
	case 1:
		*grant = prandom_u32_state(rnd);
		break;
	default:
		*grant = 1 + below(rnd, CALLS);
		break;
	}
	model->grant = *grant ?: 1;
	if (model->grant > model->asked)
		model->grant = model->asked;
}

/* @cong is what sunrpc counts: a call may go while cong < limit. */
static void test_credit_random(struct kunit *test)
{
	struct clnt_credit credit;
	struct rnd_state rnd;
	struct model model;
	u32 i, used, grant, cong = 0;
	bool sent, held;
	int at;

	clnt_seed(&rnd, &used);
	memset(&model, 0, sizeof(model));
	model_begin(&model, 32);
	clnt_credit_begin(&credit, 32);
	for (i = 0; i < RANDOM_STEPS; i++) {
		switch (below(&rnd, 40)) {
		case 0:		/* the connection is lost, and there is another one */
			cong -= clnt_credit_end(&credit);
			cong -= count(&model, WAITED_FOR) + count(&model, FORGOTTEN);
			model_begin(&model, 1 + below(&rnd, CALLS));
			clnt_credit_begin(&credit, model.asked);
			break;
		case 1 ... 20:	/* a call, if it may go */
			if (cong >= credit.limit)
				break;
			at = pick(&rnd, &model, FREE);
			KUNIT_ASSERT_GE(test, at, 0);
			model.call[at] = WAITED_FOR;
			cong++;
			break;
		case 21 ... 33:	/* a reply */
			at = pick(&rnd, &model, WAITED_FOR);
			if (at < 0)
				break;
			model.call[at] = FREE;
			model_answer(&rnd, &model, &grant);
			clnt_credit_grant(&credit, grant);
			cong--;
			break;
		case 34 ... 35:	/* a kill: sunrpc forgets the call */
			at = pick(&rnd, &model, WAITED_FOR);
			if (at >= 0)
				model.call[at] = FORGOTTEN;
			break;
		case 36:	/* and releases it */
			at = pick_either(&rnd, &model, FORGOTTEN, ANSWERED);
			if (at < 0)
				break;
			sent = model.call[at] == FORGOTTEN;
			model.call[at] = sent ? LOST : FREE;
			KUNIT_EXPECT_EQ(test, clnt_credit_release(&credit, sent), !sent);
			cong -= !sent;
			break;
		case 37 ... 38:	/* the reply to a killed call */
			at = pick_either(&rnd, &model, FORGOTTEN, LOST);
			if (at < 0)
				break;
			held = model.call[at] == FORGOTTEN;
			model.call[at] = held ? ANSWERED : FREE;
			KUNIT_EXPECT_EQ(test, clnt_credit_late(&credit, held), !held);
			cong -= !held;
			break;
		default:	/* a reply to nothing at all */
			if (!count(&model, LOST))
				KUNIT_EXPECT_FALSE(test, clnt_credit_late(&credit, false));
			break;
		}
		KUNIT_EXPECT_EQ(test, credit.limit, model.grant);
		KUNIT_EXPECT_GE(test, credit.limit, 1);
		KUNIT_EXPECT_LE(test, credit.limit, model.asked);
		KUNIT_EXPECT_EQ(test, credit.lost, count(&model, LOST));
		KUNIT_EXPECT_EQ(test, cong, CALLS - count(&model, FREE));
		KUNIT_EXPECT_EQ(test, clnt_credit_stalled(&credit),
				count(&model, LOST) && count(&model, LOST) >= model.grant);
		if (test->status != KUNIT_SUCCESS) {
			kunit_err(test, "step %u of the run with seed=%u\n", i, used);
			return;
		}
	}
}

static void test_credit_grant(struct kunit *test)
{
	struct clnt_credit credit;

	clnt_credit_begin(&credit, 128);
	KUNIT_EXPECT_EQ(test, credit.limit, 1);
	KUNIT_EXPECT_FALSE(test, clnt_credit_grant(&credit, 0));
	KUNIT_EXPECT_EQ(test, credit.limit, 1);
	KUNIT_EXPECT_TRUE(test, clnt_credit_grant(&credit, 64));
	KUNIT_EXPECT_EQ(test, credit.limit, 64);
	KUNIT_EXPECT_FALSE(test, clnt_credit_grant(&credit, 64));
	KUNIT_EXPECT_TRUE(test, clnt_credit_grant(&credit, U32_MAX));
	KUNIT_EXPECT_EQ(test, credit.limit, 128);
	KUNIT_EXPECT_TRUE(test, clnt_credit_grant(&credit, 0));
	KUNIT_EXPECT_EQ(test, credit.limit, 1);
}

static struct kunit_case clnt_cases[] = {
	KUNIT_CASE(test_choose_nfs),
	KUNIT_CASE(test_choose_both),
	KUNIT_CASE(test_choose_edge),
	KUNIT_CASE(test_choose_random),
	KUNIT_CASE(test_max_payload),
	KUNIT_CASE(test_credit_random),
	KUNIT_CASE(test_credit_grant),
	{ }
};

static struct kunit_suite clnt_suite = {
	.name = "rail_clnt",
	.test_cases = clnt_cases,
};

kunit_test_suite(clnt_suite);

MODULE_DESCRIPTION("KUnit: the NFS/RDMA client's chunk choice and credits");
MODULE_LICENSE("GPL");
