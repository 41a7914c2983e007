// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: DMA-mapped buffers, on the RDMA device that the machine has. */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sort.h>

#include <rail/verbs.h>

#include "rdma_dev.h"

struct shape {
	u32 size;
	u32 count;
	enum dma_data_direction dir;
};

static const struct shape shapes[] = {
	{ 1, 1, DMA_TO_DEVICE },
	{ 7, 5, DMA_FROM_DEVICE },
	{ 64, 100, DMA_BIDIRECTIONAL },
	{ 100, 33, DMA_TO_DEVICE },
	{ 1024, 128, DMA_FROM_DEVICE },
	{ 1500, 64, DMA_FROM_DEVICE },
	{ 4096, 300, DMA_BIDIRECTIONAL },
	{ 4097, 9, DMA_FROM_DEVICE },
	{ 65536, 3, DMA_TO_DEVICE },
};

static void shape_desc(const struct shape *shape, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u of %u bytes, direction %d", shape->count,
		 shape->size, shape->dir);
}

KUNIT_ARRAY_PARAM(shapes, shapes, shape_desc);

/* What a unit's bytes hold depends on the unit and on the byte. */
static u8 pattern(u32 unit, u32 byte)
{
	return unit * 31 + byte * 7 + (byte >> 8) + 1;
}

static void fill(struct rail_buf *buf, u32 size, u32 unit)
{
	u8 *at = buf->addr;
	u32 i;

	for (i = 0; i < size; i++)
		at[i] = pattern(unit, i);
}

static u32 first_wrong(const struct rail_buf *buf, u32 size, u32 unit)
{
	const u8 *at = buf->addr;
	u32 i;

	for (i = 0; i < size; i++)
		if (at[i] != pattern(unit, i))
			break;
	return i;
}

static int by_addr(const void *a, const void *b)
{
	const struct rail_buf *const *x = a, *const *y = b;

	return (*x)->addr < (*y)->addr ? -1 : (*x)->addr > (*y)->addr;
}

static int by_dma(const void *a, const void *b)
{
	const struct rail_buf *const *x = a, *const *y = b;

	return (*x)->sge.addr < (*y)->sge.addr ? -1 : (*x)->sge.addr > (*y)->sge.addr;
}

struct bufs {
	struct rail_pd *pd;
	struct rail_buf_pool *pool;
	struct rail_buf **all;
};

static struct bufs take_all(struct kunit *test, const struct shape *shape)
{
	struct bufs b = {};
	u32 i;

	b.pd = rdma_dev_pd(test);
	b.all = kunit_kcalloc(test, shape->count, sizeof(*b.all), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b.all);
	b.pool = rail_buf_pool_create(b.pd, shape->size, shape->count, shape->dir, NUMA_NO_NODE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, b.pool);
	for (i = 0; i < shape->count; i++) {
		b.all[i] = rail_buf_get(b.pool);
		KUNIT_ASSERT_NOT_NULL_MSG(test, b.all[i], "unit %u of %u", i, shape->count);
	}
	return b;
}

static void put_all(struct bufs *b, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		rail_buf_put(b->all[i]);
	rail_buf_pool_destroy(b->pool);
}

static void buf_units(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct bufs b = take_all(test, shape);
	u32 i, size = rail_buf_pool_size(b.pool);

	KUNIT_EXPECT_GE(test, size, shape->size);
	for (i = 0; i < shape->count; i++) {
		struct rail_buf *buf = b.all[i];

		KUNIT_ASSERT_NOT_NULL(test, buf->addr);
		KUNIT_EXPECT_NE(test, buf->sge.addr, 0);
		KUNIT_EXPECT_EQ(test, buf->sge.length, size);
		KUNIT_EXPECT_EQ(test, buf->sge.lkey, b.pd->ib->local_dma_lkey);
		KUNIT_EXPECT_PTR_EQ(test, buf->pool, b.pool);
		/* Headers are read as 64-bit words, and units share no cache line. */
		KUNIT_EXPECT_TRUE_MSG(test, IS_ALIGNED((unsigned long)buf->addr, SMP_CACHE_BYTES),
				      "unit %u", i);
	}
	sort(b.all, shape->count, sizeof(*b.all), by_addr, NULL);
	for (i = 1; i < shape->count; i++)
		KUNIT_EXPECT_GE(test, b.all[i]->addr - b.all[i - 1]->addr, size);
	sort(b.all, shape->count, sizeof(*b.all), by_dma, NULL);
	for (i = 1; i < shape->count; i++)
		KUNIT_EXPECT_GE(test, b.all[i]->sge.addr - b.all[i - 1]->sge.addr, size);
	put_all(&b, shape->count);
}

static void buf_exhausted(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct bufs b = take_all(test, shape);
	struct rail_buf *buf;
	u32 i;

	KUNIT_EXPECT_NULL(test, rail_buf_get(b.pool));
	KUNIT_EXPECT_NULL(test, rail_buf_get(b.pool));
	/* One back, one out, no more. */
	for (i = 0; i < shape->count; i++) {
		rail_buf_put(b.all[i]);
		buf = rail_buf_get(b.pool);
		KUNIT_ASSERT_PTR_EQ(test, buf, b.all[i]);
		KUNIT_EXPECT_NULL(test, rail_buf_get(b.pool));
	}
	/* All back, all out: each once, and no more. */
	for (i = 0; i < shape->count; i++)
		rail_buf_put(b.all[i]);
	for (i = 0; i < shape->count; i++) {
		b.all[i] = rail_buf_get(b.pool);
		KUNIT_ASSERT_NOT_NULL(test, b.all[i]);
	}
	KUNIT_EXPECT_NULL(test, rail_buf_get(b.pool));
	sort(b.all, shape->count, sizeof(*b.all), by_addr, NULL);
	for (i = 1; i < shape->count; i++)
		KUNIT_EXPECT_PTR_NE(test, b.all[i], b.all[i - 1]);
	put_all(&b, shape->count);
}

static void buf_isolated(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct bufs b = take_all(test, shape);
	u32 i, size = rail_buf_pool_size(b.pool);

	for (i = 0; i < shape->count; i++)
		fill(b.all[i], size, i);
	for (i = 0; i < shape->count; i++)
		KUNIT_EXPECT_EQ(test, first_wrong(b.all[i], size, i), size);
	/* The pool's own book-keeping is not in the units. */
	for (i = 1; i < shape->count; i += 2)
		rail_buf_put(b.all[i]);
	for (i = 0; i < shape->count; i += 2)
		KUNIT_EXPECT_EQ(test, first_wrong(b.all[i], size, i), size);
	for (i = 1; i < shape->count; i += 2) {
		b.all[i] = rail_buf_get(b.pool);
		KUNIT_ASSERT_NOT_NULL(test, b.all[i]);
		memset(b.all[i]->addr, 0xee, size);
	}
	for (i = 0; i < shape->count; i += 2)
		KUNIT_EXPECT_EQ(test, first_wrong(b.all[i], size, i), size);
	put_all(&b, shape->count);
}

/* The user lowers the length for a short send; whoever has the unit next gets all of it. */
static void buf_length_restored(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct bufs b = take_all(test, shape);
	u32 i, size = rail_buf_pool_size(b.pool);

	for (i = 0; i < shape->count; i++) {
		b.all[i]->sge.length = 1;
		rail_buf_put(b.all[i]);
	}
	for (i = 0; i < shape->count; i++) {
		b.all[i] = rail_buf_get(b.pool);
		KUNIT_ASSERT_NOT_NULL(test, b.all[i]);
		KUNIT_EXPECT_EQ(test, b.all[i]->sge.length, size);
	}
	put_all(&b, shape->count);
}

/* DMA-API debug watches; rxe reads and writes the memory itself, so content must stay. */
static void buf_sync(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct bufs b = take_all(test, shape);
	u32 i, size = rail_buf_pool_size(b.pool);

	for (i = 0; i < shape->count; i++) {
		rail_buf_for_cpu(b.all[i], size);
		fill(b.all[i], size, i);
		rail_buf_for_device(b.all[i], size);
		rail_buf_for_cpu(b.all[i], 1);
		rail_buf_for_device(b.all[i], 1);
	}
	for (i = 0; i < shape->count; i++)
		KUNIT_EXPECT_EQ(test, first_wrong(b.all[i], size, i), size);
	put_all(&b, shape->count);
}

/* The pool holds the protection domain, and gives it back. */
static void buf_pool_holds_pd(struct kunit *test)
{
	struct rail_pd *pd = rdma_dev_pd(test);
	struct rail_buf_pool *pool;
	struct rail_buf *buf;

	KUNIT_EXPECT_EQ(test, refcount_read(&pd->refs), 1);
	pool = rail_buf_pool_create(pd, 128, 16, DMA_TO_DEVICE, numa_mem_id());
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pool);
	KUNIT_EXPECT_EQ(test, refcount_read(&pd->refs), 2);
	buf = rail_buf_get(pool);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	rail_buf_put(buf);
	rail_buf_pool_destroy(pool);
	KUNIT_EXPECT_EQ(test, refcount_read(&pd->refs), 1);
}

/* ---------------------------------------------------------------- race */

#define RACERS		4
#define RACE_UNITS	6
#define RACE_TURNS	20000

struct racer {
	struct rail_buf_pool *pool;
	struct task_struct *task;
	struct completion *done;
	u32 id;
	u32 wrong;
	u32 got;
};

static int buf_racer(void *data)
{
	struct racer *r = data;
	struct rail_buf *mine[2] = {};
	u32 turn;

	for (turn = 0; turn < RACE_TURNS; turn++) {
		struct rail_buf **slot = &mine[turn & 1];

		if (*slot) {
			/* Nobody else has written into what is mine. */
			if (*(u32 *)(*slot)->addr != r->id)
				r->wrong++;
			rail_buf_put(*slot);
			*slot = NULL;
		} else {
			*slot = rail_buf_get(r->pool);
			if (*slot) {
				*(u32 *)(*slot)->addr = r->id;
				r->got++;
			}
		}
		if (!(turn % 64))
			cond_resched();
	}
	for (turn = 0; turn < ARRAY_SIZE(mine); turn++)
		if (mine[turn])
			rail_buf_put(mine[turn]);
	complete(r->done);
	return 0;
}

/* More takers than units, on all CPUs: no unit is ever given to two. */
static void buf_race(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct rail_pd *pd = rdma_dev_pd(test);
	struct rail_buf *all[RACE_UNITS];
	struct rail_buf_pool *pool;
	struct racer *racers;
	u32 i, started = 0;

	racers = kunit_kcalloc(test, RACERS, sizeof(*racers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, racers);
	pool = rail_buf_pool_create(pd, 64, RACE_UNITS, DMA_BIDIRECTIONAL, NUMA_NO_NODE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pool);
	for (i = 0; i < RACERS; i++) {
		racers[i] = (struct racer) { .pool = pool, .done = &done, .id = i + 1 };
		racers[i].task = kthread_run(buf_racer, &racers[i], "rail_buf_race/%u", i);
		if (IS_ERR(racers[i].task))
			KUNIT_FAIL(test, "no thread: %pe", racers[i].task);
		else
			started++;
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&done);
	for (i = 0; i < RACERS; i++) {
		KUNIT_EXPECT_EQ_MSG(test, racers[i].wrong, 0, "racer %u", i);
		KUNIT_EXPECT_GT_MSG(test, racers[i].got, 0, "racer %u", i);
	}
	for (i = 0; i < RACE_UNITS; i++) {
		all[i] = rail_buf_get(pool);
		KUNIT_EXPECT_NOT_NULL_MSG(test, all[i], "unit %u was lost", i);
	}
	KUNIT_EXPECT_NULL(test, rail_buf_get(pool));
	for (i = 0; i < RACE_UNITS; i++)
		if (all[i])
			rail_buf_put(all[i]);
	rail_buf_pool_destroy(pool);
}

static struct kunit_case buf_cases[] = {
	KUNIT_CASE_PARAM(buf_units, shapes_gen_params),
	KUNIT_CASE_PARAM(buf_exhausted, shapes_gen_params),
	KUNIT_CASE_PARAM(buf_isolated, shapes_gen_params),
	KUNIT_CASE_PARAM(buf_length_restored, shapes_gen_params),
	KUNIT_CASE_PARAM(buf_sync, shapes_gen_params),
	KUNIT_CASE(buf_pool_holds_pd),
	KUNIT_CASE(buf_race),
	{}
};

static struct kunit_suite buf_suite = {
	.name = "rail_buf",
	.test_cases = buf_cases,
};

kunit_test_suite(buf_suite);

MODULE_DESCRIPTION("KUnit tests of RAIL's DMA buffers");
MODULE_LICENSE("GPL");
