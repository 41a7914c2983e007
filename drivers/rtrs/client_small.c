// SPDX-License-Identifier: GPL-2.0-only
/*
 * Room for the data of small requests (struct rail_rtrs_small): made once a path, reached by the
 * server under one key as long as the path lives, so that a small read needs no region of its own.
 */
#include <linux/slab.h>
#include "client.h"

/* Pages of one region, 1 << this at the most. */
#define CLT_BOUNCE_ORDER	4

static int clt_bounce_make(struct clt_path *path, struct clt_bounce *bounce, unsigned int order)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_COMP | __GFP_NOWARN;
	u32 len = PAGE_SIZE << order;
	int err;

	bounce->page = alloc_pages_node(path->pd->dev->node, gfp, order);
	if (!bounce->page)
		return -ENOMEM;
	bounce->order = order;
	sg_init_table(&bounce->sg, 1);
	sg_set_page(&bounce->sg, bounce->page, len, 0);
	bounce->mr = rail_mr_get(path->bounce_mrs);
	if (!bounce->mr)
		return -ENOMEM;
	err = rail_mr_map(bounce->mr, &bounce->sg, 1, len, DMA_BIDIRECTIONAL);
	if (err) {
		rail_mr_put(bounce->mr);
		bounce->mr = NULL;
	}
	return err;
}

static int clt_bounces_make(struct clt_path *path, u32 depth, unsigned int order)
{
	struct rail_mr_pool_attr attr = { .pd = path->pd, .pages = 1 << order };
	u32 i, n = DIV_ROUND_UP(depth, 1 << order);
	int err = 0;

	attr.count = n;
	path->bounces = kvcalloc(n, sizeof(*path->bounces), GFP_KERNEL);
	if (!path->bounces)
		return -ENOMEM;
	path->nr_bounces = n;
	path->bounce_mrs = rail_mr_pool_create(&attr);
	if (IS_ERR(path->bounce_mrs)) {
		err = PTR_ERR(path->bounce_mrs);
		path->bounce_mrs = NULL;
		return err;
	}
	for (i = 0; !err && i < n; i++)
		err = clt_bounce_make(path, &path->bounces[i], order);
	return err;
}

/**
 * clt_small_make - make room for small requests' data, if there is memory for it
 * @path: path with slots
 *
 * Context: sleeps.
 */
void clt_small_make(struct clt_path *path)
{
	unsigned int order = min_t(unsigned int, CLT_BOUNCE_ORDER,
				   ilog2(path->pd->dev->max_mr_pages));

	if (!(path->params.ext & RAIL_RTRS_EXT_SMALL) || path->max_sge < 2)
		return;
	if (clt_bounces_make(path, path->clt->limits.queue_depth, order))
		clt_small_free(path);
}

static struct rail_mr *clt_bounce_mr(void *bounces, u32 i)
{
	return ((struct clt_bounce *)bounces)[i].mr;
}

/**
 * clt_small_register - let the server reach that room
 * @path: path whose connections are up
 *
 * Context: sleeps.
 * Return: 0, or an error: the attempt is over.
 */
int clt_small_register(struct clt_path *path)
{
	int err;
	u32 id;

	if (!path->bounces)
		return 0;
	err = rail_mr_reg_all(path->conns[0].rail, clt_bounce_mr, path->bounces, path->nr_bounces,
			      IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	if (err)
		return err;
	for (id = 0; id < path->clt->limits.queue_depth; id++) {
		struct clt_slot *slot = &path->slots[id];
		struct clt_bounce *bounce;
		u32 off;

		bounce = &path->bounces[id >> path->bounces->order];
		off = (id & ((1 << bounce->order) - 1)) << PAGE_SHIFT;
		slot->small = page_address(bounce->page) + off;
		slot->small_dma = sg_dma_address(&bounce->sg) + off;
		slot->small_addr = bounce->mr->ib->iova + off;
		slot->small_key = rail_mr_rkey(bounce->mr);
	}
	return 0;
}

/**
 * clt_small_free - take it back
 * @path: path without connections
 *
 * Context: sleeps.
 */
void clt_small_free(struct clt_path *path)
{
	u32 i;

	if (path->bounce_mrs)
		rail_mr_pool_stop(path->bounce_mrs);
	for (i = 0; i < path->nr_bounces; i++) {
		struct clt_bounce *bounce = &path->bounces[i];

		if (bounce->mr)
			rail_mr_put(bounce->mr);
		if (bounce->page)
			__free_pages(bounce->page, bounce->order);
	}
	if (path->bounce_mrs)
		rail_mr_pool_destroy(path->bounce_mrs);
	kvfree(path->bounces);
	path->bounce_mrs = NULL;
	path->bounces = NULL;
	path->nr_bounces = 0;
}
