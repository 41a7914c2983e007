// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: send-queue accounting against a model that remembers every work request, and with
 * posters and a completer that race.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/wait.h>

#include <rail/sq.h>

#define RANDOM_POSTS	1000000
#define RACE_POSTS	8000
/* Far more than any wait takes where the wake-up is not lost, even on an emulated, busy CPU. */
#define RACE_PATIENCE	(10 * HZ)

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Seed of the random runs; 0: another one each time. A failed run prints its own.");

static void sq_seed(struct rnd_state *rnd, u32 *used)
{
	*used = seed ?: get_random_u32();
	prandom_seed_state(rnd, *used);
}

/* ---------------------------------------------------------------- init */

struct shape {
	u32 depth;
	u32 max_chain;
	u32 interval;
};

static void shape_desc(const struct shape *shape, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "depth %u, chain %u, interval %u", shape->depth,
		 shape->max_chain, shape->interval);
}

static const struct shape legal[] = {
	{ 1, 1, 1 },
	{ 2, 1, 1 },
	{ 2, 1, 2 },
	{ 2, 2, 1 },
	{ 3, 2, 2 },
	{ 4, 3, 2 },
	{ 5, 1, 5 },
	{ 5, 5, 1 },
	{ 7, 4, 4 },
	{ 8, 2, 3 },
	{ 16, 1, 16 },
	{ 16, 16, 1 },
	{ 16, 4, 4 },
	{ 31, 16, 16 },
	{ 64, 3, 32 },
	{ 79, 16, 64 },
	{ 128, 64, 65 },
	{ 128, 64, 7 },
	{ 256, 33, 64 },
	{ 1000, 16, 24 },
	{ 1024, 1, 1 },
	/* No interval given. */
	{ 1, 1, 0 },
	{ 20, 12, 0 },
	{ 300, 8, 0 },
	/* Too seldom for the depth: cut. */
	{ 1, 1, 2 },
	{ 8, 8, 8 },
	{ 4, 1, 100 },
	{ 127, 64, 65 },
	{ 40, 17, U32_MAX },
};

KUNIT_ARRAY_PARAM(legal, legal, shape_desc);

static void sq_legal_shape(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rail_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);
	u32 most = shape->depth - shape->max_chain + 1;

	KUNIT_ASSERT_NOT_NULL(test, sq);
	/* Whatever was in the memory before must not matter. */
	memset(sq, 0xa5, sizeof(*sq));
	KUNIT_ASSERT_EQ(test, rail_sq_init(sq, shape->depth, shape->max_chain, shape->interval), 0);
	KUNIT_EXPECT_EQ(test, sq->depth, shape->depth);
	KUNIT_EXPECT_EQ(test, sq->max_chain, shape->max_chain);
	KUNIT_EXPECT_GE(test, sq->interval, 1);
	KUNIT_EXPECT_LE(test, sq->interval, most);
	if (shape->interval)
		KUNIT_EXPECT_EQ(test, sq->interval, min(shape->interval, most));
	KUNIT_EXPECT_EQ(test, sq->unsignalled, 0);
	KUNIT_EXPECT_EQ(test, rail_sq_space(sq), shape->depth);
	KUNIT_EXPECT_TRUE(test, sq->dead);
	KUNIT_EXPECT_EQ(test, sq->wanted, 0);
}

static const struct shape illegal[] = {
	{ 0, 0, 0 },
	{ 0, 0, 1 },
	{ 0, 1, 1 },
	{ 1, 0, 1 },
	{ 100, 0, 0 },
	{ 1, 2, 1 },
	{ 8, 9, 1 },
	{ 63, 64, 0 },
	{ 10, U32_MAX, 1 },
	{ 10, U32_MAX, 11 },
	{ 10, 1U << 31, (1U << 31) + 1 },
	/* Positions must differ by less than half of their range. */
	{ 1U << 31, 1, 1 },
	{ U32_MAX, 1, 1 },
	{ U32_MAX, U32_MAX, 0 },
};

KUNIT_ARRAY_PARAM(illegal, illegal, shape_desc);

static void sq_illegal_shape(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rail_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	KUNIT_EXPECT_EQ(test, rail_sq_init(sq, shape->depth, shape->max_chain, shape->interval),
			-EINVAL);
}

/* ---------------------------------------------------------------- model */

/**
 * struct model - a send queue as a device and its driver see it
 * @sq: what is tested
 * @rnd: random numbers
 * @head: position of the last work request posted
 * @tail: position of the last one whose end was told
 * @signalled: whether the one at a position is signalled; a ring
 * @mask: of the ring
 * @wanted: somebody sleeps, and every completion that frees something has to say so
 * @asked: somebody looked again and need not sleep: a completion may say so
 * @pending: length of the sleeper's chain
 * @posts: chains posted
 * @refused: chains that found no room
 * @forced: chains that had to be signalled
 * @seed: what @rnd began with
 */
struct model {
	struct rail_sq sq;
	struct rnd_state rnd;
	u32 head;
	u32 tail;
	bool *signalled;
	u32 mask;
	bool wanted;
	bool asked;
	u32 pending;
	u32 posts;
	u32 refused;
	u32 forced;
	u32 seed;
};

static u32 roll(struct model *m, u32 sides)
{
	return prandom_u32_state(&m->rnd) % sides;
}

static bool *model_at(struct model *m, u32 pos)
{
	return &m->signalled[pos & m->mask];
}

static struct model *model_create(struct kunit *test, const struct shape *shape)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 size = roundup_pow_of_two(2 * (shape->depth + shape->max_chain));

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->signalled = kunit_kcalloc(test, size, sizeof(*m->signalled), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->signalled);
	m->mask = size - 1;
	sq_seed(&m->rnd, &m->seed);
	return m;
}

static void model_reset(struct kunit *test, struct model *m, const struct shape *shape, u32 start)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, rail_sq_init(&m->sq, shape->depth, shape->max_chain,
					   shape->interval), 0);
	m->sq.head = start;
	m->sq.tail = start;
	m->head = start;
	m->tail = start;
	/* Nothing lies behind the first one. */
	for (i = 0; i <= m->mask; i++)
		m->signalled[i] = true;
	m->wanted = false;
	m->asked = false;
	m->pending = 0;
}

/* Posted since the last signalled one, whether the device is through with them or not. */
static u32 model_behind(struct model *m)
{
	u32 n = 0;

	while (!*model_at(m, m->head - n))
		n++;
	return n;
}

/* Whether the device will ever tell of something. */
static bool model_hope(struct model *m)
{
	u32 pos;

	for (pos = m->tail; pos != m->head; pos++)
		if (*model_at(m, pos + 1))
			return true;
	return false;
}

static u32 model_space(struct model *m)
{
	return m->sq.depth - (m->head - m->tail);
}

static void model_check(struct kunit *test, struct model *m)
{
	KUNIT_ASSERT_EQ_MSG(test, m->sq.head, m->head, "seed %u", m->seed);
	KUNIT_ASSERT_EQ_MSG(test, m->sq.tail, m->tail, "seed %u", m->seed);
	KUNIT_ASSERT_LE_MSG(test, m->head - m->tail, m->sq.depth, "overflow, seed %u", m->seed);
	KUNIT_ASSERT_EQ_MSG(test, rail_sq_space(&m->sq), model_space(m), "seed %u", m->seed);
}

/* Post a chain whose work requests are signalled as @bits says. Returns whether there was room. */
static bool model_post(struct kunit *test, struct model *m, u32 n, u64 bits)
{
	u32 signalled = fls64(bits), behind, i;
	bool room = model_space(m) >= n, force = false;

	behind = signalled ? n - signalled : model_behind(m) + n;
	KUNIT_ASSERT_EQ_MSG(test, rail_sq_take(&m->sq, n, signalled, &force), room,
			    "%u of %u, seed %u", n, model_space(m), m->seed);
	if (!room) {
		m->refused++;
		model_check(test, m);
		KUNIT_ASSERT_TRUE_MSG(test, model_hope(m),
				      "sleeps with nobody to wake it, seed %u", m->seed);
		KUNIT_ASSERT_TRUE_MSG(test, rail_sq_want(&m->sq, n), "seed %u", m->seed);
		m->wanted = true;
		m->pending = m->pending ?: n;
		return false;
	}
	KUNIT_ASSERT_EQ_MSG(test, force, behind >= m->sq.interval, "%u behind, seed %u", behind,
			    m->seed);
	if (force) {
		bits |= BIT_ULL(n - 1);
		m->forced++;
	}
	for (i = 0; i < n; i++)
		*model_at(m, ++m->head) = bits & BIT_ULL(i);
	m->posts++;
	KUNIT_ASSERT_LT_MSG(test, model_behind(m), m->sq.interval, "seed %u", m->seed);
	model_check(test, m);
	return true;
}

static u64 model_bits(struct model *m, u32 n, u32 rarity)
{
	u64 bits = 0;
	u32 i;

	for (i = 0; i < n; i++)
		if (rarity && !roll(m, rarity))
			bits |= BIT_ULL(i);
	return bits;
}

/* Serve who sleeps, as the connection does, under the post lock. */
static void model_serve(struct kunit *test, struct model *m)
{
	u32 n = m->pending;

	WRITE_ONCE(m->sq.wanted, 0);
	m->wanted = false;
	m->asked = false;
	m->pending = 0;
	if (n)
		model_post(test, m, n, model_bits(m, n, roll(m, 4)));
}

/* The CQ tells of the work request at @pos: of it and all before it the queue is free. */
static void model_tell(struct kunit *test, struct model *m, u32 pos)
{
	bool wake = rail_sq_complete(&m->sq, pos);

	m->tail = pos;
	model_check(test, m);
	if (m->wanted)
		KUNIT_ASSERT_TRUE_MSG(test, wake, "wake-up lost, seed %u", m->seed);
	else if (!m->asked)
		KUNIT_ASSERT_FALSE_MSG(test, wake, "nobody slept, seed %u", m->seed);
	/* More may be told before somebody has the post lock. */
	if (wake && roll(m, 4))
		model_serve(test, m);
}

/* The device works on to the next signalled one. False: there is none. */
static bool model_complete(struct kunit *test, struct model *m)
{
	u32 pos;

	for (pos = m->tail + 1; pos != m->head + 1; pos++) {
		if (*model_at(m, pos)) {
			model_tell(test, m, pos);
			return true;
		}
	}
	return false;
}

/* The connection broke: each one is told of, signalled or not. */
static void model_flush(struct kunit *test, struct model *m)
{
	while (m->tail != m->head)
		model_tell(test, m, m->tail + 1);
}

/* Something is told that is known already. It frees nothing. */
static void model_stale(struct kunit *test, struct model *m)
{
	u32 back = roll(m, m->sq.depth + 2);
	bool wake = rail_sq_complete(&m->sq, m->tail - back);

	model_check(test, m);
	if (!m->asked)
		KUNIT_ASSERT_LE_MSG(test, wake, m->wanted, "nobody slept, seed %u", m->seed);
}

/* A poster found no room, but when it looks again there is some. Others may sleep meanwhile. */
static void model_look_again(struct kunit *test, struct model *m)
{
	u32 space = model_space(m);

	if (space) {
		KUNIT_ASSERT_FALSE_MSG(test, rail_sq_want(&m->sq, 1 + roll(m, space)), "seed %u",
				       m->seed);
		m->asked = true;
	}
}

/* Everything the device tells of is told: nothing but the unsignalled rest may be in use. */
static void model_settle(struct kunit *test, struct model *m)
{
	do {
		while (model_complete(test, m))
			;
		KUNIT_ASSERT_EQ_MSG(test, model_space(m),
				    m->sq.depth - min(model_behind(m), m->head - m->tail),
				    "seed %u", m->seed);
		KUNIT_ASSERT_GE_MSG(test, model_space(m), m->sq.max_chain, "seed %u", m->seed);
		model_serve(test, m);
	} while (model_hope(m));
	KUNIT_ASSERT_EQ_MSG(test, m->pending, 0, "sleeps for ever, seed %u", m->seed);
}

static void model_run(struct kunit *test, struct model *m, u32 posts)
{
	static const u32 rarities[] = { 0, 1, 2, 5, 17, 100 };
	u32 until = m->posts + posts, rarity = 0, eager = 0, chain = 1, n;

	while (model_post(test, m, 1, 0))
		;
	while (m->posts < until) {
		/* Long enough for the queue to fill or to empty. */
		if (!roll(m, 200 + m->sq.depth)) {
			rarity = rarities[roll(m, ARRAY_SIZE(rarities))];
			eager = roll(m, 8);
			chain = 1 + roll(m, m->sq.max_chain);
		}
		n = 1 + roll(m, chain);
		if (!model_post(test, m, n, model_bits(m, n, rarity)) && !eager)
			while (model_complete(test, m))
				;
		if (roll(m, 8) < eager)
			model_complete(test, m);
		if (m->wanted && !roll(m, 2))
			model_complete(test, m);
		if (!roll(m, 16))
			model_stale(test, m);
		if (!roll(m, 16))
			model_look_again(test, m);
		if (!roll(m, 1000 + m->sq.depth))
			model_flush(test, m);
		if (!roll(m, 500 + m->sq.depth))
			model_settle(test, m);
	}
	model_settle(test, m);
	/* A drain is a signalled one behind all others. */
	KUNIT_ASSERT_TRUE(test, model_post(test, m, 1, 1));
	KUNIT_ASSERT_TRUE(test, model_complete(test, m));
	KUNIT_ASSERT_EQ_MSG(test, rail_sq_space(&m->sq), m->sq.depth, "leak, seed %u", m->seed);
}

static void sq_random(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct model *m = model_create(test, shape);
	u32 posts = DIV_ROUND_UP(RANDOM_POSTS, ARRAY_SIZE(legal) * 3);

	model_reset(test, m, shape, 0);
	model_run(test, m, posts);
	/* Past 2^32 and, in case somebody compares signed, past 2^31. */
	model_reset(test, m, shape, -(posts / 3));
	model_run(test, m, posts);
	KUNIT_EXPECT_LT(test, m->head, U32_MAX / 2);
	model_reset(test, m, shape, (1U << 31) - posts / 3);
	model_run(test, m, posts);
	KUNIT_EXPECT_GT(test, m->head, U32_MAX / 2);

	KUNIT_EXPECT_GE(test, m->posts, 3 * posts);
	KUNIT_EXPECT_GT(test, m->refused, 0);
	kunit_info(test, "%u posts, %u refused, %u forced to be signalled\n", m->posts,
		   m->refused, m->forced);
	cond_resched();
}

/* Singles that nobody wants to be told of: exactly every interval-th is signalled, no more. */
static void sq_signals_no_more_than_needed(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct model *m = model_create(test, shape);
	u32 i;

	model_reset(test, m, shape, 0);
	for (i = 1; i <= 20 * m->sq.interval; i++) {
		if (!model_space(m))
			KUNIT_ASSERT_TRUE(test, model_complete(test, m));
		KUNIT_ASSERT_TRUE(test, model_post(test, m, 1, 0));
		KUNIT_ASSERT_EQ(test, m->forced, i / m->sq.interval);
	}
	/* If the owner signals as often, nothing is forced. */
	model_reset(test, m, shape, 0);
	m->forced = 0;
	for (i = 1; i <= 20 * m->sq.interval; i++) {
		if (!model_space(m))
			KUNIT_ASSERT_TRUE(test, model_complete(test, m));
		KUNIT_ASSERT_TRUE(test, model_post(test, m, 1, i % m->sq.interval == 0));
		KUNIT_ASSERT_EQ(test, m->forced, 0);
	}
}

/* A completion wakes if somebody asked, until he is served. */
static void sq_wakes(struct kunit *test)
{
	struct rail_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);
	bool force;

	KUNIT_ASSERT_NOT_NULL(test, sq);
	KUNIT_ASSERT_EQ(test, rail_sq_init(sq, 2, 1, 1), 0);
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_complete(sq, 1));
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_TRUE(test, rail_sq_want(sq, 1));
	KUNIT_EXPECT_TRUE(test, rail_sq_want(sq, 1));
	/* What is known already frees nothing and wakes nobody. */
	KUNIT_EXPECT_FALSE(test, rail_sq_complete(sq, 1));
	KUNIT_EXPECT_TRUE(test, rail_sq_complete(sq, 2));
	KUNIT_EXPECT_TRUE(test, rail_sq_complete(sq, 3));
	KUNIT_EXPECT_EQ(test, rail_sq_space(sq), 2);
	WRITE_ONCE(sq->wanted, 0);
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 1, 1, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_complete(sq, 4));
}

/* Room came between take and want: nobody sleeps, and who slept before is not forgotten. */
static void sq_want_looks_again(struct kunit *test)
{
	struct rail_sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);
	bool force;

	KUNIT_ASSERT_NOT_NULL(test, sq);
	KUNIT_ASSERT_EQ(test, rail_sq_init(sq, 4, 2, 3), 0);
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 2, 2, &force));
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 2, 2, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_take(sq, 2, 2, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_complete(sq, 2));
	KUNIT_EXPECT_FALSE(test, rail_sq_want(sq, 2));
	KUNIT_EXPECT_TRUE(test, rail_sq_take(sq, 2, 2, &force));
	KUNIT_EXPECT_FALSE(test, rail_sq_take(sq, 2, 2, &force));
	KUNIT_EXPECT_TRUE(test, rail_sq_want(sq, 2));
	/* Room for one is none for two. */
	KUNIT_EXPECT_TRUE(test, rail_sq_complete(sq, 3));
	KUNIT_EXPECT_TRUE(test, rail_sq_want(sq, 2));
	KUNIT_EXPECT_FALSE(test, rail_sq_want(sq, 1));
	KUNIT_EXPECT_TRUE_MSG(test, rail_sq_complete(sq, 4), "the one who wants two is forgotten");
}

/* ---------------------------------------------------------------- race */

/**
 * struct race - posters that sleep where there is no room, and completers that wake them
 * @sq: what is tested
 * @lock: the post lock
 * @signalled: whether the one at a position is signalled; a ring
 * @mask: of the ring
 * @posted: position of the last work request posted
 * @sleepers: who asked and was not served yet; post lock
 * @woken: how often they were served; post lock to write
 * @cq_lock: completers take turns to look at the CQ, not to tell of what they found
 * @polled: position the device and the CQ are through with; cq_lock
 * @freed: position of the last one that the CQ had; not behind @sq.tail
 * @work: the completers wait here for work
 * @room: the posters wait here for room
 * @over: finished posters wait here to be stopped
 * @left: chains to post
 * @slept: how often a poster slept
 * @lost: how often nobody woke it
 * @forgotten: how often one who sleeps was no longer on record
 * @overflow: how often there were more than the queue holds
 * @running: posters at work
 * @done: all posters have finished
 */
struct race {
	struct rail_sq sq;
	spinlock_t lock; /* the posters' */
	bool *signalled;
	u32 mask;
	u32 posted;
	u32 sleepers;
	u32 woken;
	spinlock_t cq_lock; /* the completers' */
	u32 polled;
	u32 freed;
	wait_queue_head_t work;
	wait_queue_head_t room;
	wait_queue_head_t over;
	atomic_t left;
	atomic_t slept;
	atomic_t lost;
	atomic_t forgotten;
	atomic_t overflow;
	atomic_t running;
	struct completion done;
};

struct racer {
	struct race *race;
	struct rnd_state rnd;
	struct task_struct *task;
};

/* Shift the threads against each other by a little, so that they meet at every point. */
static void dawdle(struct rnd_state *rnd)
{
	u32 turns = prandom_u32_state(rnd);

	turns = turns & 0x300 ? turns % 16 : turns % 400;
	while (turns--)
		cpu_relax();
}

/* Post lock held and given up. Returns with it once served, or false if nobody did. */
static bool race_sleep(struct race *race)
	__must_hold(&race->lock)
{
	u32 woken = race->woken;
	long left;

	race->sleepers++;
	spin_unlock(&race->lock);
	atomic_inc(&race->slept);
	left = wait_event_timeout(race->room, READ_ONCE(race->woken) != woken ||
				  atomic_read(&race->lost), RACE_PATIENCE);
	if (!left) {
		atomic_inc(&race->lost);
		wake_up_all(&race->room);
	}
	spin_lock(&race->lock);
	return !atomic_read(&race->lost);
}

static void race_post(struct race *race, struct rnd_state *rnd)
{
	u32 n = 1 + prandom_u32_state(rnd) % race->sq.max_chain;
	u32 signalled = prandom_u32_state(rnd) % (n + 1);
	u32 i, pos;
	bool force;

	spin_lock(&race->lock);
	while (!rail_sq_take(&race->sq, n, signalled, &force)) {
		dawdle(rnd);
		if (rail_sq_want(&race->sq, n)) {
			if (!race_sleep(race))
				goto out;
		} else if (race->sleepers && !READ_ONCE(race->sq.wanted)) {
			atomic_inc(&race->forgotten);
		}
	}
	pos = race->posted;
	for (i = 1; i <= n; i++)
		race->signalled[++pos & race->mask] = i == signalled || (force && i == n);
	if (pos - READ_ONCE(race->freed) > race->sq.depth)
		atomic_inc(&race->overflow);
	/* Pairs with race_poll()'s acquire: the ring before the position. */
	smp_store_release(&race->posted, pos);
out:
	spin_unlock(&race->lock);
	wake_up(&race->work);
}

static int race_poster(void *data)
{
	struct racer *racer = data;
	struct race *race = racer->race;

	while (atomic_dec_return(&race->left) >= 0 && !atomic_read(&race->lost)) {
		dawdle(&racer->rnd);
		race_post(race, &racer->rnd);
		cond_resched();
	}
	if (atomic_dec_and_test(&race->running))
		complete(&race->done);
	wait_event_idle(race->over, kthread_should_stop());
	return 0;
}

/* What a device and its CQ do: the next signalled work request, if it is posted by now. */
static bool race_poll(struct race *race, u32 *pos)
{
	bool found = false;
	u32 posted;

	spin_lock(&race->cq_lock);
	/* Pairs with race_post()'s release. */
	posted = smp_load_acquire(&race->posted);
	while (!found && race->polled != posted)
		found = race->signalled[++race->polled & race->mask];
	*pos = race->polled;
	if (found)
		WRITE_ONCE(race->freed, *pos);
	spin_unlock(&race->cq_lock);
	return found;
}

static int race_completer(void *data)
{
	struct racer *racer = data;
	struct race *race = racer->race;
	bool stop;
	u32 pos;

	do {
		wait_event_idle(race->work, kthread_should_stop() ||
				READ_ONCE(race->posted) != READ_ONCE(race->polled));
		/* When asked to stop everything is posted, but perhaps not yet polled. */
		stop = kthread_should_stop();
		while (race_poll(race, &pos)) {
			dawdle(&racer->rnd);
			if (!rail_sq_complete(&race->sq, pos))
				continue;
			spin_lock(&race->lock);
			WRITE_ONCE(race->sq.wanted, 0);
			WRITE_ONCE(race->woken, race->woken + 1);
			race->sleepers = 0;
			spin_unlock(&race->lock);
			wake_up_all(&race->room);
			cond_resched();
		}
	} while (!stop);
	return 0;
}

static const struct shape races[] = {
	{ 1, 1, 1 },
	{ 2, 1, 2 },
	{ 3, 2, 2 },
	{ 7, 4, 4 },
	{ 31, 16, 16 },
};

KUNIT_ARRAY_PARAM(races, races, shape_desc);

static struct race *race_create(struct kunit *test, const struct shape *shape, u32 posters)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	u32 size = roundup_pow_of_two(2 * shape->depth);

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->signalled = kunit_kcalloc(test, size, sizeof(*race->signalled), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race->signalled);
	race->mask = size - 1;
	KUNIT_ASSERT_EQ(test, rail_sq_init(&race->sq, shape->depth, shape->max_chain,
					   shape->interval), 0);
	race->posted = -1000;
	race->polled = race->posted;
	race->freed = race->posted;
	race->sq.head = race->posted;
	race->sq.tail = race->posted;
	spin_lock_init(&race->lock);
	spin_lock_init(&race->cq_lock);
	init_waitqueue_head(&race->work);
	init_waitqueue_head(&race->room);
	init_waitqueue_head(&race->over);
	init_completion(&race->done);
	atomic_set(&race->left, RACE_POSTS);
	atomic_set(&race->running, posters);
	return race;
}

static void race_run(struct kunit *test, u32 posters, u32 completers)
{
	const struct shape *shape = test->param_value;
	unsigned int first = cpumask_first(cpu_online_mask);
	unsigned int last = cpumask_last(cpu_online_mask);
	struct race *race = race_create(test, shape, posters);
	u32 i, made, n = posters + completers, used;
	struct racer *racers;

	KUNIT_ASSERT_NE_MSG(test, first, last, "there is no race on one CPU");
	racers = kunit_kcalloc(test, n, sizeof(*racers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, racers);
	for (made = 0; made < n; made++) {
		struct racer *racer = &racers[made];

		racer->race = race;
		sq_seed(&racer->rnd, &used);
		racer->task = kthread_create(made < posters ? race_poster : race_completer,
					     racer, "rail_sq_race/%u", made);
		if (IS_ERR(racer->task)) {
			KUNIT_FAIL(test, "no thread: %pe", racer->task);
			break;
		}
		/* The first completer alone on its CPU, what posts on the other. */
		kthread_bind(racer->task, made == posters ? last : first);
	}
	if (made == n) {
		for (i = 0; i < n; i++)
			wake_up_process(racers[i].task);
		/* Bounded: each of their waits is. Slow it may be, so not as one who hangs. */
		wait_for_completion_state(&race->done, TASK_IDLE);
	}
	for (i = 0; i < made; i++)
		kthread_stop(racers[i].task);

	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&race->lost), 0, "a wake-up was lost");
	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&race->forgotten), 0, "a sleeper was forgotten");
	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&race->overflow), 0, "the queue overflowed");
	KUNIT_EXPECT_GT_MSG(test, atomic_read(&race->slept), 0, "nobody ever slept");
	/* The rest is what nobody was told of. */
	KUNIT_EXPECT_EQ(test, race->sq.head, race->posted);
	KUNIT_EXPECT_EQ(test, race->sq.tail, race->freed);
	KUNIT_EXPECT_LT(test, race->posted - race->freed, race->sq.interval);
	kunit_info(test, "%u posters slept %d times\n", posters, atomic_read(&race->slept));
}

static void sq_race_one_poster(struct kunit *test)
{
	race_run(test, 1, 1);
}

static void sq_race_posters(struct kunit *test)
{
	race_run(test, 4, 1);
}

static void sq_race_completers(struct kunit *test)
{
	race_run(test, 4, 2);
}

static struct kunit_case sq_cases[] = {
	KUNIT_CASE_PARAM(sq_legal_shape, legal_gen_params),
	KUNIT_CASE_PARAM(sq_illegal_shape, illegal_gen_params),
	KUNIT_CASE(sq_wakes),
	KUNIT_CASE(sq_want_looks_again),
	KUNIT_CASE_PARAM(sq_signals_no_more_than_needed, legal_gen_params),
	KUNIT_CASE_PARAM(sq_random, legal_gen_params),
	KUNIT_CASE_PARAM(sq_race_one_poster, races_gen_params),
	KUNIT_CASE_PARAM(sq_race_posters, races_gen_params),
	KUNIT_CASE_PARAM(sq_race_completers, races_gen_params),
	{}
};

static struct kunit_suite sq_suite = {
	.name = "rail_sq",
	.test_cases = sq_cases,
};

kunit_test_suite(sq_suite);

MODULE_DESCRIPTION("KUnit tests of RAIL's send-queue accounting");
MODULE_LICENSE("GPL");
