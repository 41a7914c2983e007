// SPDX-License-Identifier: GPL-2.0-only
/* Buffers: units of one size, mapped for the device as long as the pool lives. */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/slab.h>
#include "verbs_priv.h"

/* Small units share a slab of at most this order of pages. */
#define RAIL_SLAB_ORDER	4

/**
 * struct rail_slab - pages that are mapped in one piece
 * @page: first of them
 * @dma: where the device sees them
 */
struct rail_slab {
	struct page *page;
	u64 dma;
};

/**
 * struct rail_buf_pool - units of one size
 * @lock: @free
 * @free: unit to take next
 * @out: units taken
 * @pd: protection domain, referenced
 * @size: bytes a unit; constant
 * @dir: constant
 * @order: of each slab's pages; constant
 * @nr_slabs: how many slabs; constant
 * @slabs: the memory
 * @bufs: the units
 */
struct rail_buf_pool {
	spinlock_t lock;
	struct rail_buf *free;
	u32 out;
	struct rail_pd *pd;
	u32 size;
	enum dma_data_direction dir;
	unsigned int order;
	u32 nr_slabs;
	struct rail_slab *slabs;
	struct rail_buf *bufs;
};

/**
 * rail_buf_get - take a unit
 * @pool: the pool
 *
 * Context: any.
 * Return: the unit, its sge covering all of it; NULL when none is left.
 */
struct rail_buf *rail_buf_get(struct rail_buf_pool *pool)
{
	struct rail_buf *buf;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	buf = pool->free;
	if (buf) {
		pool->free = buf->free;
		pool->out++;
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return buf;
}
EXPORT_SYMBOL_GPL(rail_buf_get);

/**
 * rail_buf_put - give a unit back
 * @buf: the unit, no longer in flight
 *
 * Context: any.
 */
void rail_buf_put(struct rail_buf *buf)
{
	struct rail_buf_pool *pool = buf->pool;
	unsigned long flags;

	buf->sge.length = pool->size;
	spin_lock_irqsave(&pool->lock, flags);
	buf->free = pool->free;
	pool->free = buf;
	pool->out--;
	spin_unlock_irqrestore(&pool->lock, flags);
}
EXPORT_SYMBOL_GPL(rail_buf_put);

/**
 * rail_buf_for_cpu - the device wrote, the CPU is going to read
 * @buf: the unit
 * @len: how much of it, in bytes
 *
 * Context: any.
 */
void rail_buf_for_cpu(struct rail_buf *buf, u32 len)
{
	ib_dma_sync_single_for_cpu(buf->pool->pd->dev->ib, buf->sge.addr, len, buf->pool->dir);
}
EXPORT_SYMBOL_GPL(rail_buf_for_cpu);

/**
 * rail_buf_for_device - the CPU wrote, the device is going to read
 * @buf: the unit
 * @len: how much of it, in bytes
 *
 * Context: any.
 */
void rail_buf_for_device(struct rail_buf *buf, u32 len)
{
	ib_dma_sync_single_for_device(buf->pool->pd->dev->ib, buf->sge.addr, len, buf->pool->dir);
}
EXPORT_SYMBOL_GPL(rail_buf_for_device);

static int rail_slab_make(struct rail_buf_pool *pool, struct rail_slab *slab, int node)
{
	struct ib_device *ib = pool->pd->dev->ib;
	struct page *page;

	if (rail_fault(RAIL_FAULT_ALLOC))
		return -ENOMEM;
	page = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO | __GFP_COMP, pool->order);
	if (!page)
		return -ENOMEM;
	slab->dma = ib_dma_map_single(ib, page_address(page), PAGE_SIZE << pool->order, pool->dir);
	if (ib_dma_mapping_error(ib, slab->dma)) {
		__free_pages(page, pool->order);
		return -EIO;
	}
	slab->page = page;
	return 0;
}

/**
 * rail_buf_pool_create - make a pool
 * @pd: protection domain; the pool takes a reference of its own
 * @size: bytes a unit
 * @count: units
 * @dir: DMA_TO_DEVICE for sends, DMA_FROM_DEVICE for receives
 * @node: NUMA node of the memory; NUMA_NO_NODE: the device's
 *
 * Units begin at a cache line of their own.
 *
 * Context: sleeps.
 * Return: the pool, or an ERR_PTR.
 */
struct rail_buf_pool *rail_buf_pool_create(struct rail_pd *pd, u32 size, u32 count,
					   enum dma_data_direction dir, int node)
{
	u32 stride = ALIGN(size, max_t(u32, L1_CACHE_BYTES, dma_get_cache_alignment()));
	u32 per_slab, i;
	struct rail_buf_pool *pool;
	int err = -ENOMEM;

	if (!size || !count || size > KMALLOC_MAX_SIZE)
		return ERR_PTR(-EINVAL);
	if (node == NUMA_NO_NODE)
		node = pd->dev->node;
	pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, node);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&pool->lock);
	pool->size = size;
	pool->dir = dir;
	pool->pd = pd;
	rail_pd_get(pd);

	pool->order = min_t(u64, get_order((u64)stride * count), RAIL_SLAB_ORDER);
	pool->order = max_t(u32, pool->order, get_order(stride));
	per_slab = (PAGE_SIZE << pool->order) / stride;
	pool->bufs = kvcalloc(count, sizeof(*pool->bufs), GFP_KERNEL);
	pool->slabs = kvcalloc(DIV_ROUND_UP(count, per_slab), sizeof(*pool->slabs), GFP_KERNEL);
	if (!pool->bufs || !pool->slabs)
		goto fail;

	for (i = 0; i < count; i++) {
		struct rail_slab *slab = &pool->slabs[i / per_slab];
		struct rail_buf *buf = &pool->bufs[i];
		u32 offset = i % per_slab * stride;

		if (!offset) {
			err = rail_slab_make(pool, slab, node);
			if (err)
				goto fail;
			pool->nr_slabs++;
		}
		buf->addr = page_address(slab->page) + offset;
		buf->sge.addr = slab->dma + offset;
		buf->sge.length = size;
		buf->sge.lkey = pd->ib->local_dma_lkey;
		buf->pool = pool;
		buf->free = pool->free;
		pool->free = buf;
	}
	return pool;

fail:
	rail_buf_pool_destroy(pool);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(rail_buf_pool_create);

/**
 * rail_buf_pool_destroy - end a pool
 * @pool: the pool, every unit given back
 *
 * Context: sleeps.
 */
void rail_buf_pool_destroy(struct rail_buf_pool *pool)
{
	u32 i;

	WARN(pool->out, "rail: %u buffers were not given back\n", pool->out);
	for (i = 0; i < pool->nr_slabs; i++) {
		ib_dma_unmap_single(pool->pd->dev->ib, pool->slabs[i].dma, PAGE_SIZE << pool->order,
				    pool->dir);
		__free_pages(pool->slabs[i].page, pool->order);
	}
	kvfree(pool->slabs);
	kvfree(pool->bufs);
	rail_pd_put(pool->pd);
	kfree(pool);
}
EXPORT_SYMBOL_GPL(rail_buf_pool_destroy);

/**
 * rail_buf_pool_size - bytes a unit
 * @pool: the pool
 *
 * Return: that number.
 */
u32 rail_buf_pool_size(const struct rail_buf_pool *pool)
{
	return pool->size;
}
EXPORT_SYMBOL_GPL(rail_buf_pool_size);
