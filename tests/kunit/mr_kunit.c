// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: key bytes, and memory regions on the RDMA device that the machine has. */
#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>

#include <rail/verbs.h>

#include "rdma_dev.h"

/* ---------------------------------------------------------------- key bytes */

#define KEY_DRAWS	262144

/*
 * Chi-square of @n bins that ought to hold @each: n - 1 is what chance gives, with a standard
 * deviation of sqrt(2n). For n about 256 more than n + 200 is no chance any more (1 in 10^13).
 */
static u64 chi_square(const u32 *bin, u32 n, u32 each)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		s64 off = (s64)bin[i] - each;

		sum += off * off;
	}
	return div_u64(sum, each);
}

static void key_sequence(struct kunit *test)
{
	u32 *value = kunit_kcalloc(test, 256, sizeof(*value), GFP_KERNEL);
	u32 *step = kunit_kcalloc(test, 256, sizeof(*step), GFP_KERNEL);
	u32 *second = kunit_kcalloc(test, 256, sizeof(*second), GFP_KERNEL);
	u32 i;
	u8 last = 0, key, delta, last_delta = 0;

	KUNIT_ASSERT_NOT_NULL(test, value);
	KUNIT_ASSERT_NOT_NULL(test, step);
	KUNIT_ASSERT_NOT_NULL(test, second);
	for (i = 0; i < KEY_DRAWS; i++) {
		key = rail_key_byte(last);
		KUNIT_ASSERT_NE_MSG(test, key, last, "draw %u", i);
		delta = key - last;
		value[key]++;
		step[delta]++;
		second[(u8)(delta - last_delta)]++;
		last = key;
		last_delta = delta;
	}
	KUNIT_EXPECT_EQ(test, step[0], 0);
	KUNIT_EXPECT_LE_MSG(test, chi_square(value, 256, KEY_DRAWS / 256), 256 + 200,
			    "values are not even");
	KUNIT_EXPECT_LE_MSG(test, chi_square(step + 1, 255, KEY_DRAWS / 255), 256 + 200,
			    "steps are not even");
	/* The step of 1 that a counter has: as often as any other, eight deviations about it. */
	KUNIT_EXPECT_GT(test, step[1], KEY_DRAWS / 255 - 256);
	KUNIT_EXPECT_LT(test, step[1], KEY_DRAWS / 255 + 256);
	/* The same step twice, as of any fixed stride. */
	KUNIT_EXPECT_LT(test, second[0], KEY_DRAWS / 255 + 256);
}

/* Whatever the last one was, each of the other 255 is as likely: nothing to guess from. */
static void key_from_any(struct kunit *test)
{
	u32 *value = kunit_kcalloc(test, 256, sizeof(*value), GFP_KERNEL);
	static const u8 lasts[] = { 0, 1, 0x7f, 0x80, 0xfe, 0xff };
	u32 i, j, n = KEY_DRAWS / 8;
	u64 chi;

	KUNIT_ASSERT_NOT_NULL(test, value);
	for (i = 0; i < ARRAY_SIZE(lasts); i++) {
		u8 last = lasts[i];

		memset(value, 0, 256 * sizeof(*value));
		for (j = 0; j < n; j++)
			value[rail_key_byte(last)]++;
		KUNIT_EXPECT_EQ_MSG(test, value[last], 0, "last %u", last);
		/* The bin that has to be empty must not count as uneven. */
		value[last] = n / 255;
		chi = chi_square(value, 256, n / 255);
		KUNIT_EXPECT_LE_MSG(test, chi, 256 + 200, "last %u", last);
	}
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE(key_sequence),
	KUNIT_CASE(key_from_any),
	{}
};

static struct kunit_suite key_suite = {
	.name = "rail_key",
	.test_cases = key_cases,
};

/* ---------------------------------------------------------------- memory */

#define MEM_PAGES	64

struct mem {
	void *at;
	struct scatterlist *sg;
	int nents;
	u32 len;
};

static void mem_free(void *at)
{
	free_pages_exact(at, MEM_PAGES * PAGE_SIZE);
}

static struct mem *mem_create(struct kunit *test)
{
	struct mem *mem = kunit_kzalloc(test, sizeof(*mem), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	mem->at = alloc_pages_exact(MEM_PAGES * PAGE_SIZE, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, mem->at);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, mem_free, mem->at), 0);
	mem->sg = kunit_kcalloc(test, MEM_PAGES, sizeof(*mem->sg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem->sg);
	return mem;
}

/* A list of @n entries from scratch. */
static void mem_list(struct mem *mem, int n)
{
	sg_init_table(mem->sg, n);
	mem->nents = 0;
	mem->len = 0;
}

static void mem_add(struct mem *mem, u32 page, u32 offset, u32 len)
{
	sg_set_buf(&mem->sg[mem->nents++], mem->at + page * PAGE_SIZE + offset, len);
	mem->len += len;
}

/* @n pages, each an entry, none beside the one before it: from the end, every second one. */
static void mem_scattered(struct mem *mem, int n)
{
	int i;

	mem_list(mem, n);
	for (i = 0; i < n; i++)
		mem_add(mem, MEM_PAGES - 2 - 2 * i, 0, PAGE_SIZE);
}

static int map(struct rail_mr *mr, struct mem *mem)
{
	return rail_mr_map(mr, mem->sg, mem->nents, mem->len, DMA_BIDIRECTIONAL);
}

/* ---------------------------------------------------------------- pools */

/* Growth and replacement are quick; but the machine may be emulated and busy. */
#define PATIENCE	(20 * HZ)
#define PAGES		16

struct owner {
	struct rail_pd *pd;
	struct rail_mr_pool *pool;
	struct completion refilled;
	atomic_t calls;
};

static void owner_refilled(void *context)
{
	struct owner *owner = context;

	might_sleep();
	atomic_inc(&owner->calls);
	complete(&owner->refilled);
}

static struct owner *owner_create(struct kunit *test, u32 count, u32 max)
{
	struct owner *owner = kunit_kzalloc(test, sizeof(*owner), GFP_KERNEL);
	struct rail_mr_pool_attr attr = {
		.count = count,
		.max = max,
		.pages = PAGES,
		.refilled = owner_refilled,
		.context = owner,
	};

	KUNIT_ASSERT_NOT_NULL(test, owner);
	init_completion(&owner->refilled);
	owner->pd = rdma_dev_pd(test);
	attr.pd = owner->pd;
	owner->pool = rail_mr_pool_create(&attr);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, owner->pool);
	KUNIT_EXPECT_EQ(test, refcount_read(&owner->pd->refs), 2);
	return owner;
}

/* The pool's regions on the device; the protection domain is the test's own. */
static int owner_regions(const struct owner *owner)
{
	return atomic_read(&owner->pd->ib->usecnt);
}

static void owner_destroy(struct kunit *test, struct owner *owner)
{
	rail_mr_pool_destroy(owner->pool);
	KUNIT_EXPECT_EQ_MSG(test, owner_regions(owner), 0, "regions are left on the device");
	KUNIT_EXPECT_EQ(test, refcount_read(&owner->pd->refs), 1);
}

/* A region; waits for refilled() as an owner would. */
static struct rail_mr *owner_get(struct owner *owner)
{
	struct rail_mr *mr;

	while (!(mr = rail_mr_get(owner->pool)))
		if (!wait_for_completion_timeout(&owner->refilled, PATIENCE))
			return NULL;
	return mr;
}

static void mr_pool_shapes(struct kunit *test)
{
	struct rail_pd *pd = rdma_dev_pd(test);
	struct rail_mr_pool_attr attr = { .pd = pd, .count = 1, .pages = 1 };
	struct rail_mr_pool *pool;

	attr.count = 0;
	KUNIT_EXPECT_TRUE(test, rail_mr_pool_create(&attr) == ERR_PTR(-EINVAL));
	attr.count = 1;
	attr.pages = 0;
	KUNIT_EXPECT_TRUE(test, rail_mr_pool_create(&attr) == ERR_PTR(-EINVAL));

	attr.pages = 1;
	pool = rail_mr_pool_create(&attr);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pool);
	KUNIT_EXPECT_EQ(test, rail_mr_pool_pages(pool), 1);
	rail_mr_pool_destroy(pool);

	/* Cut to what the device can. */
	attr.pages = U32_MAX;
	attr.gaps = true;
	pool = rail_mr_pool_create(&attr);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pool);
	KUNIT_EXPECT_EQ(test, rail_mr_pool_pages(pool), pd->dev->max_mr_pages);
	KUNIT_EXPECT_GE(test, pd->dev->max_mr_pages, 16);
	rail_mr_pool_destroy(pool);
	KUNIT_EXPECT_EQ(test, refcount_read(&pd->refs), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->ib->usecnt), 0);
}

static void mr_exhausted(struct kunit *test)
{
	struct owner *owner = owner_create(test, 8, 0);
	struct rail_mr *mr[8];
	int i, j;

	KUNIT_EXPECT_EQ(test, owner_regions(owner), 8);
	for (i = 0; i < 8; i++) {
		mr[i] = rail_mr_get(owner->pool);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr[i], "region %d", i);
		KUNIT_EXPECT_EQ(test, mr[i]->state, RAIL_MR_FREE);
		KUNIT_EXPECT_NOT_NULL(test, mr[i]->ib);
		for (j = 0; j < i; j++) {
			KUNIT_EXPECT_PTR_NE(test, mr[i], mr[j]);
			KUNIT_EXPECT_NE(test, mr[i]->ib->rkey >> 8, mr[j]->ib->rkey >> 8);
		}
	}
	KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
	KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
	KUNIT_EXPECT_EQ(test, owner_regions(owner), 8);

	/* One back is told once, and is the one that is then got. */
	rail_mr_put(mr[3]);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&owner->refilled, PATIENCE), 0);
	KUNIT_EXPECT_PTR_EQ(test, rail_mr_get(owner->pool), mr[3]);
	for (i = 0; i < 8; i++)
		rail_mr_put(mr[i]);
	/* Nobody asked in vain since. */
	KUNIT_EXPECT_EQ(test, atomic_read(&owner->calls), 1);
	owner_destroy(test, owner);
	KUNIT_EXPECT_EQ(test, atomic_read(&owner->calls), 1);
}

static void mr_grows(struct kunit *test)
{
	struct owner *owner = owner_create(test, 2, 50);
	struct rail_mr *mr[50];
	int i;

	KUNIT_EXPECT_EQ(test, owner_regions(owner), 2);
	for (i = 0; i < 50; i++) {
		mr[i] = owner_get(owner);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr[i], "region %d, refilled() was not called", i);
		KUNIT_EXPECT_EQ(test, mr[i]->state, RAIL_MR_FREE);
		KUNIT_EXPECT_LE(test, owner_regions(owner), 50);
	}
	KUNIT_EXPECT_EQ(test, owner_regions(owner), 50);
	/* And no further. */
	KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
	msleep(50);
	KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
	KUNIT_EXPECT_EQ(test, owner_regions(owner), 50);
	for (i = 0; i < 50; i++)
		rail_mr_put(mr[i]);
	/* All are there, the grown ones too. */
	for (i = 0; i < 50; i++) {
		mr[i] = rail_mr_get(owner->pool);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr[i], "region %d", i);
	}
	for (i = 0; i < 50; i++)
		rail_mr_put(mr[i]);
	owner_destroy(test, owner);
}

/* Without anybody to tell. */
static void mr_grows_quietly(struct kunit *test)
{
	struct rail_pd *pd = rdma_dev_pd(test);
	struct rail_mr_pool_attr attr = { .pd = pd, .count = 1, .max = 3, .pages = PAGES };
	unsigned long end = jiffies + PATIENCE;
	struct rail_mr_pool *pool;
	struct rail_mr *mr[3];
	int i;

	pool = rail_mr_pool_create(&attr);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pool);
	for (i = 0; i < 3; i++) {
		while (!(mr[i] = rail_mr_get(pool)) && time_before(jiffies, end))
			msleep(20);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr[i], "region %d", i);
	}
	for (i = 0; i < 3; i++)
		rail_mr_put(mr[i]);
	rail_mr_pool_destroy(pool);
}

/* ---------------------------------------------------------------- mapping */

static void expect_mapped(struct kunit *test, struct rail_mr *mr, struct mem *mem)
{
	int err = map(mr, mem);

	KUNIT_EXPECT_EQ_MSG(test, err, 0, "%d entries, %u bytes", mem->nents, mem->len);
	if (err)
		return;
	KUNIT_EXPECT_EQ(test, mr->state, RAIL_MR_MAPPED);
	KUNIT_EXPECT_EQ(test, mr->ib->length, mem->len);
	KUNIT_EXPECT_EQ(test, mr->ib->iova, sg_dma_address(mem->sg));
	KUNIT_EXPECT_PTR_EQ(test, mr->sg, mem->sg);
	KUNIT_EXPECT_EQ(test, mr->nents, mem->nents);
	KUNIT_EXPECT_EQ(test, mr->dir, DMA_BIDIRECTIONAL);
	rail_mr_unmap(mr);
	KUNIT_EXPECT_EQ(test, mr->state, RAIL_MR_FREE);
}

static void expect_refused(struct kunit *test, struct rail_mr *mr, struct mem *mem,
			   const char *what)
{
	KUNIT_EXPECT_EQ_MSG(test, map(mr, mem), -EINVAL, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, mr->state, RAIL_MR_FREE, "%s", what);
}

static void mr_maps(struct kunit *test)
{
	struct owner *owner = owner_create(test, 1, 0);
	struct rail_mr *mr = rail_mr_get(owner->pool);
	struct mem *mem = mem_create(test);
	int n;

	KUNIT_ASSERT_NOT_NULL(test, mr);

	/* A page; a bit of one; from its middle to its end. */
	mem_list(mem, 1);
	mem_add(mem, 0, 0, PAGE_SIZE);
	expect_mapped(test, mr, mem);
	mem_list(mem, 1);
	mem_add(mem, 7, 0, 1);
	expect_mapped(test, mr, mem);
	mem_list(mem, 1);
	mem_add(mem, 7, PAGE_SIZE - 1, 1);
	expect_mapped(test, mr, mem);
	mem_list(mem, 1);
	mem_add(mem, 3, 1000, PAGE_SIZE - 1000);
	expect_mapped(test, mr, mem);

	/* Over a page's edge in one entry. */
	mem_list(mem, 1);
	mem_add(mem, 3, PAGE_SIZE - 1, 2);
	expect_mapped(test, mr, mem);

	/* As many as fit: in one entry, and as an entry each. */
	mem_list(mem, 1);
	mem_add(mem, 0, 0, PAGES * PAGE_SIZE);
	expect_mapped(test, mr, mem);
	for (n = 1; n <= PAGES; n++) {
		mem_scattered(mem, n);
		expect_mapped(test, mr, mem);
	}

	/* The first one starts late, the last one ends early. */
	mem_list(mem, 3);
	mem_add(mem, 9, 100, PAGE_SIZE - 100);
	mem_add(mem, 2, 0, PAGE_SIZE);
	mem_add(mem, 30, 0, 17);
	expect_mapped(test, mr, mem);

	/* In pieces, but with nothing between them. */
	mem_list(mem, 3);
	mem_add(mem, 5, 512, 512);
	mem_add(mem, 5, 1024, PAGE_SIZE - 1024);
	mem_add(mem, 6, 0, 1);
	expect_mapped(test, mr, mem);

	rail_mr_put(mr);
	owner_destroy(test, owner);
}

static void mr_refuses(struct kunit *test)
{
	struct owner *owner = owner_create(test, 1, 0);
	struct rail_mr *mr = rail_mr_get(owner->pool);
	struct mem *mem = mem_create(test);

	KUNIT_ASSERT_NOT_NULL(test, mr);

	mem_scattered(mem, PAGES + 1);
	expect_refused(test, mr, mem, "one page too many, an entry each");
	mem_list(mem, 1);
	mem_add(mem, 0, 0, PAGES * PAGE_SIZE + 1);
	expect_refused(test, mr, mem, "one byte too many, one entry");
	mem_list(mem, 1);
	mem_add(mem, 0, 1, PAGES * PAGE_SIZE);
	expect_refused(test, mr, mem, "one page too many because of the offset");
	mem_list(mem, 2);
	mem_add(mem, 0, 0, PAGES * PAGE_SIZE);
	mem_add(mem, 40, 0, 1);
	expect_refused(test, mr, mem, "the last entry is one too many");

	if (owner->pd->dev->mr_type != IB_MR_TYPE_SG_GAPS) {
		mem_list(mem, 2);
		mem_add(mem, 4, 0, 512);
		mem_add(mem, 8, 0, 512);
		expect_refused(test, mr, mem, "the first one ends early");
		mem_list(mem, 2);
		mem_add(mem, 4, 0, PAGE_SIZE);
		mem_add(mem, 8, 512, 512);
		expect_refused(test, mr, mem, "the second one starts late");
		mem_list(mem, 3);
		mem_add(mem, 4, 0, PAGE_SIZE);
		mem_add(mem, 8, 0, PAGE_SIZE - 1);
		mem_add(mem, 12, 0, PAGE_SIZE);
		expect_refused(test, mr, mem, "a gap behind the second one");
	}

	/* The list is longer or shorter than the caller believes. */
	mem_scattered(mem, 4);
	mem->len -= 1;
	expect_refused(test, mr, mem, "more memory than bytes");
	mem->len += 2;
	expect_refused(test, mr, mem, "more bytes than memory");
	mem->len = 0;
	expect_refused(test, mr, mem, "no bytes");

	/* After all that it still works, and was not replaced. */
	mem_scattered(mem, PAGES);
	expect_mapped(test, mr, mem);
	rail_mr_put(mr);
	KUNIT_EXPECT_PTR_EQ(test, rail_mr_get(owner->pool), mr);
	rail_mr_put(mr);
	owner_destroy(test, owner);
}

/* ---------------------------------------------------------------- a region's life */

#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static u32 expect_registered(struct kunit *test, struct rail_mr *mr, u32 last)
{
	struct ib_send_wr *wr = rail_mr_reg_wr(mr, ACCESS);
	u32 key = rail_mr_rkey(mr);

	KUNIT_EXPECT_PTR_EQ(test, wr, &mr->reg.wr);
	KUNIT_EXPECT_EQ(test, mr->state, RAIL_MR_VALID);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, wr->num_sge, 0);
	KUNIT_EXPECT_EQ(test, reg_wr(wr)->access, ACCESS);
	KUNIT_EXPECT_PTR_EQ(test, reg_wr(wr)->mr, mr->ib);
	KUNIT_EXPECT_EQ(test, reg_wr(wr)->key, key);
	KUNIT_EXPECT_EQ(test, mr->ib->lkey & 0xff, key & 0xff);
	/* The device's part of the key stays, the other one never does. */
	KUNIT_EXPECT_EQ(test, key >> 8, last >> 8);
	KUNIT_EXPECT_NE(test, key & 0xff, last & 0xff);
	return key;
}

static void expect_invalidating(struct kunit *test, struct rail_mr *mr, u32 key)
{
	struct ib_send_wr *wr = rail_mr_inv_wr(mr);

	KUNIT_EXPECT_PTR_EQ(test, wr, &mr->inv);
	KUNIT_EXPECT_EQ(test, mr->state, RAIL_MR_INVALIDATING);
	KUNIT_EXPECT_EQ(test, wr->opcode, IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wr->num_sge, 0);
	KUNIT_EXPECT_EQ(test, wr->ex.invalidate_rkey, key);
}

static void mr_life(struct kunit *test)
{
	struct owner *owner = owner_create(test, 1, 0);
	struct rail_mr *mr = rail_mr_get(owner->pool);
	struct mem *mem = mem_create(test);
	u32 key, i, times, *seen;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	seen = kunit_kcalloc(test, 256, sizeof(*seen), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	key = mr->ib->rkey;
	for (i = 0; i < 1000; i++) {
		mem_scattered(mem, 1 + i % PAGES);
		KUNIT_ASSERT_EQ(test, map(mr, mem), 0);
		/* Over the same memory again, under another key. */
		for (times = 0; times < 1 + i % 3; times++) {
			key = expect_registered(test, mr, key);
			seen[key & 0xff]++;
			/* Invalidated by us or by the peer. */
			if (i & 1)
				expect_invalidating(test, mr, key);
			rail_mr_invalidated(mr);
			KUNIT_EXPECT_EQ(test, mr->state, RAIL_MR_MAPPED);
			KUNIT_EXPECT_EQ(test, mr->ib->rkey, key);
		}
		/* A mapped one can be given back; the key goes on from where it was. */
		if (i & 4) {
			rail_mr_unmap(mr);
		} else {
			rail_mr_put(mr);
			KUNIT_ASSERT_PTR_EQ(test, rail_mr_get(owner->pool), mr);
		}
		KUNIT_ASSERT_EQ(test, mr->state, RAIL_MR_FREE);
		KUNIT_EXPECT_EQ(test, mr->ib->rkey, key);
	}
	/* 2000 draws of 256: to see less than 200 or one more than 60 times is no chance. */
	for (i = 0, times = 0; i < 256; i++) {
		times += !!seen[i];
		KUNIT_EXPECT_LT(test, seen[i], 60);
	}
	KUNIT_EXPECT_GT(test, times, 200);
	KUNIT_EXPECT_EQ(test, owner_regions(owner), 1);
	rail_mr_put(mr);
	owner_destroy(test, owner);
}

/* Which way a region goes until it is given back. */
enum way {
	TO_FREE,
	TO_UNMAPPED,
	TO_MAPPED,
	TO_INVALIDATED,
	TO_VALID,
	TO_INVALIDATING,
	TO_BAD_FREE,
	TO_BAD_MAPPED,
	TO_BAD_VALID,
	TO_BAD_INVALIDATING,
	NR_WAYS,
};

#define FIRST_REPLACED	TO_VALID

struct way_case {
	enum way way;
	const char *name;
};

static const struct way_case ways[] = {
	{ TO_FREE, "free" },
	{ TO_UNMAPPED, "unmapped" },
	{ TO_MAPPED, "mapped" },
	{ TO_INVALIDATED, "invalidated, still mapped" },
	{ TO_VALID, "valid" },
	{ TO_INVALIDATING, "invalidating" },
	{ TO_BAD_FREE, "bad, was free" },
	{ TO_BAD_MAPPED, "bad, was mapped" },
	{ TO_BAD_VALID, "bad, was valid" },
	{ TO_BAD_INVALIDATING, "bad, was invalidating" },
};

KUNIT_ARRAY_PARAM_DESC(ways, ways, name);

static int go(struct rail_mr *mr, struct mem *mem, enum way way)
{
	int err;

	if (way == TO_FREE)
		return 0;
	if (way != TO_BAD_FREE) {
		err = map(mr, mem);
		if (err)
			return err;
	}
	switch (way) {
	case TO_UNMAPPED:
		rail_mr_unmap(mr);
		break;
	case TO_INVALIDATED:
		rail_mr_reg_wr(mr, ACCESS);
		rail_mr_invalidated(mr);
		break;
	case TO_INVALIDATING:
	case TO_BAD_INVALIDATING:
		rail_mr_reg_wr(mr, ACCESS);
		rail_mr_inv_wr(mr);
		break;
	case TO_VALID:
	case TO_BAD_VALID:
		rail_mr_reg_wr(mr, ACCESS);
		break;
	default:
		break;
	}
	if (way >= TO_BAD_FREE)
		rail_mr_failed(mr);
	return 0;
}

static const enum rail_mr_state way_ends[NR_WAYS] = {
	[TO_FREE] = RAIL_MR_FREE,
	[TO_UNMAPPED] = RAIL_MR_FREE,
	[TO_MAPPED] = RAIL_MR_MAPPED,
	[TO_INVALIDATED] = RAIL_MR_MAPPED,
	[TO_VALID] = RAIL_MR_VALID,
	[TO_INVALIDATING] = RAIL_MR_INVALIDATING,
	[TO_BAD_FREE] = RAIL_MR_BAD,
	[TO_BAD_MAPPED] = RAIL_MR_BAD,
	[TO_BAD_VALID] = RAIL_MR_BAD,
	[TO_BAD_INVALIDATING] = RAIL_MR_BAD,
};

/* One region only: recycled where the device knows no key of it, else replaced. */
static void mr_put_in(struct kunit *test)
{
	const struct way_case *c = test->param_value;
	struct owner *owner = owner_create(test, 1, 0);
	struct mem *mem = mem_create(test);
	struct rail_mr *mr, *again;
	u32 key, turn;

	mem_scattered(mem, 3);
	for (turn = 0; turn < 5; turn++) {
		mr = owner_get(owner);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr, "turn %u: no region came", turn);
		KUNIT_EXPECT_EQ(test, owner_regions(owner), 1);
		KUNIT_ASSERT_EQ(test, go(mr, mem, c->way), 0);
		KUNIT_EXPECT_EQ(test, mr->state, way_ends[c->way]);
		key = mr->ib->rkey;
		/* Asked for in vain, so that refilled() has to tell. */
		KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
		reinit_completion(&owner->refilled);
		rail_mr_put(mr);
		KUNIT_ASSERT_NE_MSG(test, wait_for_completion_timeout(&owner->refilled, PATIENCE),
				    0, "turn %u: refilled() was not called", turn);
		again = rail_mr_get(owner->pool);
		KUNIT_ASSERT_NOT_NULL(test, again);
		KUNIT_EXPECT_EQ(test, again->state, RAIL_MR_FREE);
		KUNIT_ASSERT_NOT_NULL(test, again->ib);
		if (c->way < FIRST_REPLACED)
			KUNIT_EXPECT_EQ(test, again->ib->rkey, key);
		else
			KUNIT_EXPECT_NE(test, again->ib->rkey >> 8, key >> 8);
		/* Good for use. */
		expect_mapped(test, again, mem);
		rail_mr_put(again);
	}
	KUNIT_EXPECT_EQ(test, owner_regions(owner), 1);
	owner_destroy(test, owner);
}

/* The key is dead when put returns: the region has left the device. */
static void mr_put_kills_key(struct kunit *test)
{
	struct owner *owner = owner_create(test, 1, 0);
	struct mem *mem = mem_create(test);
	struct rail_mr *mr = rail_mr_get(owner->pool);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	mem_scattered(mem, 2);
	KUNIT_ASSERT_EQ(test, go(mr, mem, TO_VALID), 0);
	rail_mr_put(mr);
	/* The list is the caller's again, and is no longer looked at. */
	sg_init_table(mem->sg, 2);
	mr = owner_get(owner);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_EXPECT_NULL(test, mr->sg);
	rail_mr_put(mr);
	owner_destroy(test, owner);
}

/* Destroyed with the worker at any point of replacing. */
static void mr_destroy_while_replacing(struct kunit *test)
{
	struct mem *mem = mem_create(test);
	struct rail_mr *mr[6];
	int i, turn;

	mem_scattered(mem, 1);
	for (turn = 0; turn < 40; turn++) {
		struct owner *owner = owner_create(test, ARRAY_SIZE(mr), 2 * ARRAY_SIZE(mr));

		for (i = 0; i < ARRAY_SIZE(mr); i++) {
			mr[i] = rail_mr_get(owner->pool);
			KUNIT_ASSERT_NOT_NULL(test, mr[i]);
			rail_mr_failed(mr[i]);
		}
		for (i = 0; i < ARRAY_SIZE(mr); i++)
			rail_mr_put(mr[i]);
		udelay(get_random_u32_below(500));
		owner_destroy(test, owner);
	}
}

/* ---------------------------------------------------------------- race */

#define RACERS		4
#define RACE_REGIONS	6
#define RACE_TURNS	300

struct racer {
	struct owner *owner;
	struct mem *mem;
	struct completion *done;
	struct task_struct *task;
	atomic_t *held;
	u32 wrong;
	u32 empty;
	u32 used[NR_WAYS];
};

static int mr_racer(void *data)
{
	struct racer *r = data;
	struct rail_mr *mr;
	enum way way;
	u32 turn;

	for (turn = 0; turn < RACE_TURNS; turn++) {
		mr = rail_mr_get(r->owner->pool);
		if (!mr) {
			r->empty++;
			usleep_range(100, 1000);
			continue;
		}
		if (atomic_inc_return(r->held) > RACE_REGIONS || mr->state != RAIL_MR_FREE ||
		    !mr->ib || mr->sg)
			r->wrong++;
		way = get_random_u32_below(NR_WAYS);
		if (go(mr, r->mem, way))
			r->wrong++;
		cond_resched();
		if (mr->state != way_ends[way])
			r->wrong++;
		r->used[way]++;
		atomic_dec(r->held);
		rail_mr_put(mr);
	}
	complete(r->done);
	return 0;
}

/* More takers than regions, which they give back in all states. */
static void mr_race(struct kunit *test)
{
	struct owner *owner = owner_create(test, RACE_REGIONS / 2, RACE_REGIONS);
	DECLARE_COMPLETION_ONSTACK(done);
	struct rail_mr *mr[RACE_REGIONS];
	atomic_t held = ATOMIC_INIT(0);
	struct racer *racers;
	int i, started = 0;

	racers = kunit_kcalloc(test, RACERS, sizeof(*racers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, racers);
	for (i = 0; i < RACERS; i++) {
		racers[i].owner = owner;
		racers[i].mem = mem_create(test);
		racers[i].done = &done;
		racers[i].held = &held;
		mem_scattered(racers[i].mem, 2);
		racers[i].task = kthread_run(mr_racer, &racers[i], "rail_mr_race/%d", i);
		if (IS_ERR(racers[i].task))
			KUNIT_FAIL(test, "no thread: %pe", racers[i].task);
		else
			started++;
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&done);
	for (i = 0; i < RACERS; i++) {
		KUNIT_EXPECT_EQ_MSG(test, racers[i].wrong, 0, "racer %d", i);
		KUNIT_EXPECT_GT_MSG(test, RACE_TURNS, racers[i].empty, "racer %d", i);
	}
	/* None was lost, none is there twice. */
	for (i = 0; i < RACE_REGIONS; i++) {
		mr[i] = owner_get(owner);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mr[i], "region %d was lost", i);
	}
	KUNIT_EXPECT_NULL(test, rail_mr_get(owner->pool));
	KUNIT_EXPECT_EQ(test, owner_regions(owner), RACE_REGIONS);
	for (i = 0; i < RACE_REGIONS; i++)
		rail_mr_put(mr[i]);
	owner_destroy(test, owner);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(mr_pool_shapes),
	KUNIT_CASE(mr_exhausted),
	KUNIT_CASE(mr_grows),
	KUNIT_CASE(mr_grows_quietly),
	KUNIT_CASE(mr_maps),
	KUNIT_CASE(mr_refuses),
	KUNIT_CASE(mr_life),
	KUNIT_CASE_PARAM(mr_put_in, ways_gen_params),
	KUNIT_CASE(mr_put_kills_key),
	KUNIT_CASE(mr_destroy_while_replacing),
	KUNIT_CASE(mr_race),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "rail_mr",
	.test_cases = mr_cases,
};

kunit_test_suites(&key_suite, &mr_suite);

MODULE_DESCRIPTION("KUnit tests of RAIL's memory regions and their keys");
MODULE_LICENSE("GPL");
