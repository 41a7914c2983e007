// SPDX-License-Identifier: GPL-2.0-only
/* Memory regions: a pool of them, and the way of each. States stand in <rail/verbs.h>. */
#include <linux/dma-mapping.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "verbs_priv.h"

/**
 * struct rail_mr_pool - regions of one protection domain
 * @lock: @free, @empty, @total, @nr_free, @hungry
 * @free: regions to take
 * @empty: regions whose kernel object is gone; the worker makes a new one
 * @nr_free: length of @free
 * @total: regions there are, held ones and empty ones included
 * @hungry: rail_mr_get() found none
 * @closing: the worker makes no more
 * @attr: what the owner wanted; constant
 * @type: kind of region; constant
 * @work: the worker
 */
struct rail_mr_pool {
	spinlock_t lock;
	struct list_head free;
	struct list_head empty;
	u32 nr_free;
	u32 total;
	bool hungry;
	bool closing;
	struct rail_mr_pool_attr attr;
	enum ib_mr_type type;
	struct delayed_work work;
};

/* ---------------------------------------------------------------- one region */

/**
 * rail_key_byte - the variable byte of a key, for its next use
 * @last: what it was
 *
 * Context: any.
 * Return: a byte that a peer cannot predict, and not @last.
 */
u8 rail_key_byte(u8 last)
{
	return last + 1 + get_random_u32_below(U8_MAX);
}
EXPORT_SYMBOL_GPL(rail_key_byte);

/**
 * rail_mr_map - map memory and have the region cover it
 * @mr: FREE region
 * @sg: the memory; the caller's, and untouched until unmapped
 * @nents: its entries
 * @len: its length in bytes; the region has to cover just that
 * @dir: as the device sees it
 *
 * Context: any.
 * Return: 0: MAPPED. -EINVAL: this memory needs more than one region. -EIO: it cannot be mapped.
 */
int rail_mr_map(struct rail_mr *mr, struct scatterlist *sg, int nents, u32 len,
		enum dma_data_direction dir)
{
	struct ib_device *ib = mr->ib->device;
	int mapped, n;

	if (WARN_ON_ONCE(mr->state != RAIL_MR_FREE))
		return -EINVAL;
	if (rail_fault(RAIL_FAULT_MR))
		return -EIO;
	mapped = ib_dma_map_sg(ib, sg, nents, dir);
	if (mapped <= 0)
		return -EIO;
	n = ib_map_mr_sg(mr->ib, sg, mapped, NULL, PAGE_SIZE);
	if (n != mapped || mr->ib->length != len) {
		ib_dma_unmap_sg(ib, sg, nents, dir);
		return n < 0 ? n : -EINVAL;
	}
	mr->sg = sg;
	mr->nents = nents;
	mr->dir = dir;
	mr->state = RAIL_MR_MAPPED;
	return 0;
}
EXPORT_SYMBOL_GPL(rail_mr_map);

static void rail_mr_dma_unmap(struct rail_mr *mr)
{
	if (!mr->sg)
		return;
	ib_dma_unmap_sg(mr->pool->attr.pd->dev->ib, mr->sg, mr->nents, mr->dir);
	mr->sg = NULL;
}

/**
 * rail_mr_unmap - give the memory back
 * @mr: MAPPED region
 *
 * Context: any.
 */
void rail_mr_unmap(struct rail_mr *mr)
{
	if (WARN_ON_ONCE(mr->state != RAIL_MR_MAPPED))
		return;
	rail_mr_dma_unmap(mr);
	mr->state = RAIL_MR_FREE;
}
EXPORT_SYMBOL_GPL(rail_mr_unmap);

/**
 * rail_mr_for_cpu - the device wrote, the CPU is going to read
 * @mr: region with memory
 *
 * Context: any.
 */
void rail_mr_for_cpu(struct rail_mr *mr)
{
	struct ib_device *ib = mr->ib->device;

	if (!ib_uses_virt_dma(ib))
		dma_sync_sg_for_cpu(ib->dma_device, mr->sg, mr->nents, mr->dir);
}
EXPORT_SYMBOL_GPL(rail_mr_for_cpu);

/**
 * rail_mr_for_device - the CPU wrote, the device is going to read
 * @mr: region with memory
 *
 * Context: any.
 */
void rail_mr_for_device(struct rail_mr *mr)
{
	struct ib_device *ib = mr->ib->device;

	if (!ib_uses_virt_dma(ib))
		dma_sync_sg_for_device(ib->dma_device, mr->sg, mr->nents, mr->dir);
}
EXPORT_SYMBOL_GPL(rail_mr_for_device);

/**
 * rail_mr_reg_wr - the work request that makes the region valid under a fresh key
 * @mr: MAPPED region
 * @access: IB_ACCESS_* flags
 *
 * The key is known at once: rail_mr_rkey(). The region counts as VALID from here on, so a caller
 * who does not post the work request calls rail_mr_invalidated().
 *
 * Context: any.
 * Return: the work request, to be added to a chain.
 */
struct ib_send_wr *rail_mr_reg_wr(struct rail_mr *mr, int access)
{
	WARN_ON_ONCE(mr->state != RAIL_MR_MAPPED);
	ib_update_fast_reg_key(mr->ib, rail_key_byte(mr->ib->rkey & 0xff));
	mr->reg.wr.opcode = IB_WR_REG_MR;
	mr->reg.wr.num_sge = 0;
	mr->reg.wr.send_flags = 0;
	mr->reg.mr = mr->ib;
	mr->reg.key = mr->ib->rkey;
	mr->reg.access = access;
	mr->state = RAIL_MR_VALID;
	return &mr->reg.wr;
}
EXPORT_SYMBOL_GPL(rail_mr_reg_wr);

/**
 * struct rail_mr_reg - registration of several regions under way
 * @cqe: told of the last one
 * @done: completed then
 * @status: how it ended
 */
struct rail_mr_reg {
	struct rail_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void rail_mr_reg_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rail_mr_reg *reg = container_of(cqe, struct rail_mr_reg, cqe);

	reg->status = wc->status;
	complete(&reg->done);
}

/**
 * rail_mr_reg_all - make regions valid under fresh keys, and wait until they are
 * @conn: connection that is up
 * @mr: gives the region of a number, MAPPED
 * @arg: for @mr
 * @n: how many there are, at least 1
 * @access: IB_ACCESS_* flags
 *
 * Context: sleeps; not from a completion on the same connection.
 * Return: 0, or an error: the connection is closing.
 */
int rail_mr_reg_all(struct rail_conn *conn, struct rail_mr *(*mr)(void *arg, u32 i), void *arg,
		    u32 n, int access)
{
	struct rail_chain chain;
	struct rail_mr_reg reg;
	int err = 0;
	u32 i;

	rail_cqe_init_send(&reg.cqe, rail_mr_reg_done);
	init_completion(&reg.done);
	rail_chain_init(&chain);
	for (i = 0; !err && i < n; i++) {
		struct ib_send_wr *wr = rail_mr_reg_wr(mr(arg, i), access);

		if (i == n - 1)
			rail_chain_add_signalled(&chain, wr, &reg.cqe);
		else
			rail_chain_add(&chain, wr);
		if (chain.n == conn->sq.max_chain || i == n - 1) {
			err = rail_post_wait(conn, &chain);
			rail_chain_init(&chain);
		}
	}
	if (err)
		return err;
	wait_for_completion(&reg.done);
	return reg.status == IB_WC_SUCCESS ? 0 : -EIO;
}
EXPORT_SYMBOL_GPL(rail_mr_reg_all);

/**
 * rail_mr_inv_wr - the work request that makes the key dead
 * @mr: VALID region
 *
 * When it completed, call rail_mr_invalidated(); if it failed, rail_mr_failed().
 *
 * Context: any.
 * Return: the work request, to be added to a chain.
 */
struct ib_send_wr *rail_mr_inv_wr(struct rail_mr *mr)
{
	WARN_ON_ONCE(mr->state != RAIL_MR_VALID);
	mr->inv.opcode = IB_WR_LOCAL_INV;
	mr->inv.num_sge = 0;
	mr->inv.send_flags = 0;
	mr->inv.ex.invalidate_rkey = mr->ib->rkey;
	mr->state = RAIL_MR_INVALIDATING;
	return &mr->inv;
}
EXPORT_SYMBOL_GPL(rail_mr_inv_wr);

/**
 * rail_mr_invalidated - the key is dead
 * @mr: VALID region the peer invalidated, or INVALIDATING one whose work request completed
 *
 * Context: any.
 */
void rail_mr_invalidated(struct rail_mr *mr)
{
	if (!WARN_ON_ONCE(mr->state != RAIL_MR_VALID && mr->state != RAIL_MR_INVALIDATING))
		mr->state = RAIL_MR_MAPPED;
}
EXPORT_SYMBOL_GPL(rail_mr_invalidated);

/**
 * rail_mr_failed - a work request for the region failed
 * @mr: the region
 *
 * Context: any.
 */
void rail_mr_failed(struct rail_mr *mr)
{
	mr->state = RAIL_MR_BAD;
}
EXPORT_SYMBOL_GPL(rail_mr_failed);

/* ---------------------------------------------------------------- the pool */

/**
 * rail_mr_get - take a region
 * @pool: the pool
 *
 * Context: any.
 * Return: a FREE region; NULL when there is none now: attr.refilled() tells when there are again.
 */
struct rail_mr *rail_mr_get(struct rail_mr_pool *pool)
{
	struct rail_mr *mr;
	unsigned long flags;
	bool grow;

	spin_lock_irqsave(&pool->lock, flags);
	mr = list_first_entry_or_null(&pool->free, struct rail_mr, entry);
	if (likely(mr)) {
		list_del(&mr->entry);
		pool->nr_free--;
	} else {
		pool->hungry = true;
	}
	grow = !pool->nr_free && pool->total < pool->attr.max;
	spin_unlock_irqrestore(&pool->lock, flags);
	if (unlikely(!mr))
		rail_stats_inc(&pool->attr.pd->dev->stats, RAIL_STAT_MR_EMPTY);
	if (unlikely(grow))
		mod_delayed_work(rail_wq, &pool->work, 0);
	return mr;
}
EXPORT_SYMBOL_GPL(rail_mr_get);

/**
 * rail_mr_put - give a region back
 * @mr: region in any state. Its memory is unmapped and its key dead when this returns.
 *
 * Context: any for a FREE or MAPPED region; sleeps for the others.
 */
void rail_mr_put(struct rail_mr *mr)
{
	struct rail_mr_pool *pool = mr->pool;
	unsigned long flags;
	bool wake;

	if (likely(mr->state == RAIL_MR_MAPPED)) {
		rail_mr_unmap(mr);
	} else if (mr->state != RAIL_MR_FREE) {
		might_sleep();
		ib_dereg_mr(mr->ib);
		mr->ib = NULL;
		rail_mr_dma_unmap(mr);
		mr->state = RAIL_MR_FREE;
		rail_stats_inc(&pool->attr.pd->dev->stats, RAIL_STAT_MR_REPLACED);
	}

	spin_lock_irqsave(&pool->lock, flags);
	if (likely(mr->ib)) {
		list_add(&mr->entry, &pool->free);
		pool->nr_free++;
		wake = pool->hungry;
	} else {
		list_add(&mr->entry, &pool->empty);
		wake = true;
	}
	if (unlikely(wake))
		mod_delayed_work(rail_wq, &pool->work, 0);
	spin_unlock_irqrestore(&pool->lock, flags);
}
EXPORT_SYMBOL_GPL(rail_mr_put);

/* Give a region a kernel object. */
static int rail_mr_fill(struct rail_mr_pool *pool, struct rail_mr *mr)
{
	struct ib_mr *ib;

	if (rail_fault(RAIL_FAULT_ALLOC))
		return -ENOMEM;
	ib = ib_alloc_mr(pool->attr.pd->ib, pool->type, pool->attr.pages);
	if (IS_ERR(ib))
		return PTR_ERR(ib);
	mr->ib = ib;
	mr->state = RAIL_MR_FREE;
	mr->sg = NULL;
	return 0;
}

/* One more region, counted already. */
static struct rail_mr *rail_mr_new(struct rail_mr_pool *pool)
{
	struct rail_mr *mr = kzalloc_node(sizeof(*mr), GFP_KERNEL, pool->attr.pd->dev->node);

	if (!mr)
		return NULL;
	mr->pool = pool;
	if (rail_mr_fill(pool, mr)) {
		kfree(mr);
		return NULL;
	}
	return mr;
}

/* How many regions growth adds at once. */
#define RAIL_MR_GROW	32
/* When to try again after there was no memory for one. */
#define RAIL_MR_RETRY	HZ

/* What the worker has to do next, if anything: fill an empty region, or make one more. */
static bool rail_mr_pool_next(struct rail_mr_pool *pool, u32 grown, struct rail_mr **mr)
{
	bool more;

	spin_lock_irq(&pool->lock);
	*mr = list_first_entry_or_null(&pool->empty, struct rail_mr, entry);
	if (*mr)
		list_del(&(*mr)->entry);
	more = !*mr && pool->nr_free < RAIL_MR_GROW && grown < RAIL_MR_GROW &&
	       pool->total < pool->attr.max;
	if (more)
		pool->total++;
	spin_unlock_irq(&pool->lock);
	return *mr || more;
}

static void rail_mr_pool_add(struct rail_mr_pool *pool, struct rail_mr *mr)
{
	spin_lock_irq(&pool->lock);
	if (!mr) {
		pool->total--;
	} else if (!mr->ib) {
		list_add_tail(&mr->entry, &pool->empty);
	} else {
		list_add_tail(&mr->entry, &pool->free);
		pool->nr_free++;
	}
	spin_unlock_irq(&pool->lock);
}

static void rail_mr_pool_work(struct work_struct *work)
{
	struct rail_mr_pool *pool = container_of(to_delayed_work(work), struct rail_mr_pool, work);
	struct rail_mr *mr;
	bool tell, failed = false;
	u32 grown = 0;

	while (!READ_ONCE(pool->closing) && rail_mr_pool_next(pool, grown, &mr)) {
		if (!mr) {
			mr = rail_mr_new(pool);
			grown++;
		} else {
			rail_mr_fill(pool, mr);
		}
		rail_mr_pool_add(pool, mr);
		if (!mr || !mr->ib) {
			pr_warn_ratelimited("rail: %s: no memory for a memory region: going on with %u\n",
					    dev_name(&pool->attr.pd->dev->ib->dev),
					    READ_ONCE(pool->nr_free));
			failed = true;
			break;
		}
	}

	spin_lock_irq(&pool->lock);
	tell = pool->hungry && pool->nr_free;
	if (tell)
		pool->hungry = false;
	spin_unlock_irq(&pool->lock);
	if (failed)
		queue_delayed_work(rail_wq, &pool->work, RAIL_MR_RETRY);
	if (tell && pool->attr.refilled)
		pool->attr.refilled(pool->attr.context);
}

/**
 * rail_mr_pool_create - make a pool
 * @attr: what it is to be; not used after the call
 *
 * Context: sleeps.
 * Return: the pool with attr->count regions, or an ERR_PTR.
 */
struct rail_mr_pool *rail_mr_pool_create(const struct rail_mr_pool_attr *attr)
{
	struct rail_dev *dev = attr->pd->dev;
	struct rail_mr_pool *pool;
	struct rail_mr *mr;

	if (!attr->count || !attr->pages)
		return ERR_PTR(-EINVAL);
	pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, dev->node);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->empty);
	INIT_DELAYED_WORK(&pool->work, rail_mr_pool_work);
	pool->attr = *attr;
	pool->attr.max = max(attr->max, attr->count);
	pool->attr.pages = min(attr->pages, dev->max_mr_pages);
	pool->type = attr->gaps ? dev->mr_type : IB_MR_TYPE_MEM_REG;
	rail_pd_get(attr->pd);

	while (pool->total < attr->count) {
		mr = rail_mr_new(pool);
		if (!mr) {
			rail_mr_pool_destroy(pool);
			return ERR_PTR(-ENOMEM);
		}
		pool->total++;
		rail_mr_pool_add(pool, mr);
	}
	return pool;
}
EXPORT_SYMBOL_GPL(rail_mr_pool_create);

/**
 * rail_mr_pool_stop - make no more regions
 * @pool: a pool that is going to be destroyed
 *
 * Where many regions are given back with a key that is alive, each would have another made in its
 * place, for nothing.
 *
 * Context: any.
 */
void rail_mr_pool_stop(struct rail_mr_pool *pool)
{
	WRITE_ONCE(pool->closing, true);
}
EXPORT_SYMBOL_GPL(rail_mr_pool_stop);

/**
 * rail_mr_pool_destroy - end a pool
 * @pool: the pool, every region given back
 *
 * attr.refilled() is not called any more when this returns.
 *
 * Context: sleeps.
 */
void rail_mr_pool_destroy(struct rail_mr_pool *pool)
{
	struct rail_mr *mr, *next;
	u32 n = 0;

	rail_mr_pool_stop(pool);
	cancel_delayed_work_sync(&pool->work);
	list_splice_init(&pool->empty, &pool->free);
	list_for_each_entry_safe(mr, next, &pool->free, entry) {
		if (mr->ib)
			ib_dereg_mr(mr->ib);
		kfree(mr);
		n++;
	}
	WARN(n != pool->total, "rail: %u memory regions were not given back\n", pool->total - n);
	rail_pd_put(pool->attr.pd);
	kfree(pool);
}
EXPORT_SYMBOL_GPL(rail_mr_pool_destroy);

/**
 * rail_mr_pool_pages - how many pages a region covers at the most
 * @pool: the pool
 *
 * Return: that number: what was asked for, or what the device can.
 */
u32 rail_mr_pool_pages(const struct rail_mr_pool *pool)
{
	return pool->attr.pages;
}
EXPORT_SYMBOL_GPL(rail_mr_pool_pages);
