/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place in RAIL that knows kernel versions. Everything else is written for the newest
 * kernel; what an older one lacks or names otherwise is made up here.
 */
#ifndef RAIL_COMPAT_H
#define RAIL_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "RAIL needs Linux 6.1 or newer: install the headers of a newer kernel and set KDIR to them."
#endif

/* 6.4 gave hexadecimal numbers a header of their own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#include <linux/kernel.h>
#else
#include <linux/hex.h>
#endif

#ifndef CONFIG_INFINIBAND_ADDR_TRANS
#error "RAIL needs a kernel with CONFIG_INFINIBAND_ADDR_TRANS (the RDMA connection manager)."
#endif

/* The largest order of pages, inclusive since 6.4, has its own name since 6.8. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define rail_max_order()	(MAX_ORDER - 1)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define rail_max_order()	MAX_ORDER
#else
#define rail_max_order()	MAX_PAGE_ORDER
#endif

/* 6.17 wants to be told of a workqueue that is not unbound. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define WQ_PERCPU		0
#endif

/* ---- sunrpc server ---- */

/*
 * 7.1 gave a thread's call and reply page arrays of their own. Before, the reply's pages follow the
 * call's in one array, so that the transport has to say where.
 *
 * rail_svc_arg_pages	the call takes the first n of rq_pages
 * rail_svc_took_pages	the transport took the first n of rq_pages away
 * rail_svc_no_arg	there is no call after all
 * rail_svc_left_pages	of the reply's pages sunrpc frees the first n, and finds NULL instead of the
 *			next taken ones; those behind are the thread's still
 * rail_svc_replaced	a page of the thread's that a page of the page cache stands in for now, and
 *			that sunrpc has not freed yet; NULL: none. It is the caller's then.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define rail_svc_arg_pages(rqstp, n) do { \
		(rqstp)->rq_respages = &(rqstp)->rq_pages[n]; \
		(rqstp)->rq_next_page = (rqstp)->rq_respages + 1; \
	} while (0)
#define rail_svc_took_pages(rqstp, n)
#define rail_svc_no_arg(rqstp) do { \
		(rqstp)->rq_respages = (rqstp)->rq_pages; \
		(rqstp)->rq_next_page = (rqstp)->rq_respages; \
	} while (0)
#define rail_svc_left_pages(rqstp, n, taken) \
	((rqstp)->rq_next_page = (rqstp)->rq_respages + (n))
#else
#define rail_svc_arg_pages(rqstp, n)	do { } while (0)
#define rail_svc_took_pages(rqstp, n)	((rqstp)->rq_pages_nfree = (n))
#define rail_svc_no_arg(rqstp)		do { } while (0)
#define rail_svc_left_pages(rqstp, n, taken) \
	((rqstp)->rq_next_page = (rqstp)->rq_respages + (n) + (taken))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define rail_svc_replaced(rqstp) \
	((rqstp)->rq_pvec.nr ? (rqstp)->rq_pvec.pages[--(rqstp)->rq_pvec.nr] : NULL)
#else
#define rail_svc_replaced(rqstp) \
	((rqstp)->rq_fbatch.nr ? \
	 folio_page((rqstp)->rq_fbatch.folios[--(rqstp)->rq_fbatch.nr], 0) : NULL)
#endif

/* Before 6.3 sunrpc asked for this after each receive. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define RAIL_SVC_SECURE_PORT	.xpo_secure_port = rsvc_secure_port,
#else
#define RAIL_SVC_SECURE_PORT
#endif

/* 6.11 made sysctl tables constant for their handlers and did away with an empty last entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define RAIL_CTL_CONST
#define RAIL_CTL_END		{ }
#else
#define RAIL_CTL_CONST		const
#define RAIL_CTL_END
#endif

/* ---- sunrpc client ---- */

/*
 * rail_bc_enqueue(rqst): hand a reverse call to the service that answers it. false: there is none,
 * and the call is still the caller's. A macro, for only rpcrdma has the structs. 6.7 made the queue
 * lockless; a late 7.x does the whole of it in sunrpc, which then also frees what nobody wants.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define rail_bc_enqueue(rqst) ({ \
		struct rpc_xprt *__xprt = (rqst)->rq_xprt; \
		struct svc_serv *__serv = READ_ONCE(__xprt->bc_serv); \
		if (__serv) { \
			xprt_get(__xprt); \
			spin_lock(&__serv->sv_cb_lock); \
			list_add_tail(&(rqst)->rq_bc_list, &__serv->sv_cb_list); \
			wake_up(&__serv->sv_cb_waitq); \
			spin_unlock(&__serv->sv_cb_lock); \
		} \
		__serv != NULL; })
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define rail_bc_enqueue(rqst) ({ \
		struct rpc_xprt *__xprt = (rqst)->rq_xprt; \
		struct svc_serv *__serv = READ_ONCE(__xprt->bc_serv); \
		if (__serv) { \
			xprt_get(__xprt); \
			lwq_enqueue(&(rqst)->rq_bc_list, &__serv->sv_cb_list); \
			svc_pool_wake_idle_thread(&__serv->sv_pools[0]); \
		} \
		__serv != NULL; })
#else
#define rail_bc_enqueue(rqst)	({ xprt_enqueue_bc_request(rqst); true; })
#endif

/* ---- block layer: a disk of ours ---- */

/* 6.14 merges always. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define RAIL_BLK_MERGE		BLK_MQ_F_SHOULD_MERGE
#else
#define RAIL_BLK_MERGE		0
#endif

/*
 * rail_blk_alloc_disk(set, lim, data, cache, fua): a disk with these limits, with a volatile cache
 * and FUA or without. 6.9 took the limits at allocation, 6.11 the two features among them. A macro,
 * for the lock class of the disk is its caller's.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
static inline void rail_blk_set_limits(struct request_queue *q, const struct queue_limits *lim)
{
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_max_segments(q, lim->max_segments);
	if (lim->virt_boundary_mask)
		blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	else
		blk_queue_max_segment_size(q, lim->max_segment_size);
	blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
	blk_queue_max_secure_erase_sectors(q, lim->max_secure_erase_sectors);
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
	q->limits.discard_granularity = lim->discard_granularity;
	q->limits.discard_alignment = lim->discard_alignment;
	blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
}

#define rail_blk_alloc_disk(set, lim, data, cache, fua) ({ \
		struct gendisk *__disk = blk_mq_alloc_disk(set, data); \
		if (!IS_ERR(__disk)) { \
			rail_blk_set_limits(__disk->queue, lim); \
			blk_queue_write_cache(__disk->queue, cache, fua); \
		} \
		__disk; })
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define rail_blk_alloc_disk(set, lim, data, cache, fua) ({ \
		struct gendisk *__disk = blk_mq_alloc_disk(set, lim, data); \
		if (!IS_ERR(__disk)) { \
			blk_queue_flag_set(QUEUE_FLAG_NONROT, __disk->queue); \
			blk_queue_write_cache(__disk->queue, cache, fua); \
		} \
		__disk; })
#else
#define rail_blk_alloc_disk(set, lim, data, cache, fua) ({ \
		(lim)->features |= ((cache) ? BLK_FEAT_WRITE_CACHE : 0) | \
				   ((fua) ? BLK_FEAT_FUA : 0); \
		blk_mq_alloc_disk(set, lim, data); })
#endif

/* 7.0 has a node that may be none: of blk_mq_ops.init_request. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define rail_blk_node_t		unsigned int
#else
#define rail_blk_node_t		int
#endif

/* RAIL_BLK_OPEN(fn): fn##_op for block_device_operations.open, which calls fn(disk). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define RAIL_BLK_OPEN(fn) \
	static int fn##_op(struct block_device *bdev, fmode_t mode) { return fn(bdev->bd_disk); }
#else
#define RAIL_BLK_OPEN(fn) \
	static int fn##_op(struct gendisk *disk, blk_mode_t mode) { return fn(disk); }
#endif

/* 6.16 takes the queue from the request. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define rail_blk_rq_map_sg(rq, sg)	blk_rq_map_sg((rq)->q, rq, sg)
#else
#define rail_blk_rq_map_sg(rq, sg)	blk_rq_map_sg(rq, sg)
#endif

/*
 * A late 7.x gave kernel threads an empty root of their own: who looks up a user's path in one, has
 * to ask for the user's root.
 */
#ifndef scoped_with_init_fs
#define scoped_with_init_fs()
#endif

/* ---- block layer: a disk of others ---- */

/**
 * struct rail_bdev - an opened block device
 * @bdev: the device; NULL: not open
 * @handle: what closes it
 */
struct rail_bdev {
	struct block_device *bdev;
	void *handle;
};

/*
 * rail_bdev_open(b, dev, write): open a device, not exclusively; 0 or an errno. What stands for it
 * was a mode until 6.5, the device until 6.7, a handle until 6.9, a file since.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
static inline int rail_bdev_open(struct rail_bdev *b, dev_t dev, bool write)
{
	fmode_t mode = FMODE_READ | (write ? FMODE_WRITE : 0);
	struct block_device *bdev = blkdev_get_by_dev(dev, mode, NULL);

	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	b->bdev = bdev;
	b->handle = (void *)(__force unsigned long)mode;
	return 0;
}

static inline void rail_bdev_close(struct rail_bdev *b)
{
	blkdev_put(b->bdev, (__force fmode_t)(unsigned long)b->handle);
	b->bdev = NULL;
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline int rail_bdev_open(struct rail_bdev *b, dev_t dev, bool write)
{
	struct block_device *bdev;

	bdev = blkdev_get_by_dev(dev, BLK_OPEN_READ | (write ? BLK_OPEN_WRITE : 0), NULL, NULL);
	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	b->bdev = bdev;
	return 0;
}

static inline void rail_bdev_close(struct rail_bdev *b)
{
	blkdev_put(b->bdev, NULL);
	b->bdev = NULL;
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
static inline int rail_bdev_open(struct rail_bdev *b, dev_t dev, bool write)
{
	struct bdev_handle *handle;

	handle = bdev_open_by_dev(dev, BLK_OPEN_READ | (write ? BLK_OPEN_WRITE : 0), NULL, NULL);
	if (IS_ERR(handle))
		return PTR_ERR(handle);
	b->bdev = handle->bdev;
	b->handle = handle;
	return 0;
}

static inline void rail_bdev_close(struct rail_bdev *b)
{
	bdev_release(b->handle);
	b->bdev = NULL;
}
#else
static inline int rail_bdev_open(struct rail_bdev *b, dev_t dev, bool write)
{
	struct file *file;

	file = bdev_file_open_by_dev(dev, BLK_OPEN_READ | (write ? BLK_OPEN_WRITE : 0), NULL, NULL);
	if (IS_ERR(file))
		return PTR_ERR(file);
	b->bdev = file_bdev(file);
	b->handle = file;
	return 0;
}

static inline void rail_bdev_close(struct rail_bdev *b)
{
	/* The last bit of fput() is deferred in user tasks: the device is to be free on return. */
	__fput_sync(b->handle);
	b->bdev = NULL;
}
#endif

#endif /* RAIL_COMPAT_H */
