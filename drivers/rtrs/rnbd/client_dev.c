// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings: a disk each, made and ended.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "client.h"

static DEFINE_IDA(cli_index);

static const char * const cli_counters[CLI_NR_COUNTS] = {
	RNBD_COUNT_NAMES,
	[CLI_N_POLLED] = "polled",
	[CLI_N_NO_PERMIT] = "no_permit",
	[CLI_N_OVERDUE] = "overdue",
	[CLI_N_ERR_PATH] = "err_no_path",
	[CLI_N_ERR_CLOSED] = "err_closed",
	[CLI_N_ERR_CANCELLED] = "err_cancelled",
	[CLI_N_ERR_SERVER] = "err_server",
	[CLI_N_REOPENED] = "reopened",
};

static const char * const cli_hists[RNBD_NR_HISTS] = {
	RNBD_HIST_NAMES,
};

static const struct rail_stats_desc cli_stats_desc = {
	.name = "io",
	.nr_counters = CLI_NR_COUNTS,
	.nr_hists = RNBD_NR_HISTS,
	.counters = cli_counters,
	.hists = cli_hists,
};

/* ---- the disk ---- */

/* Under disk->open_mutex, under which an unmapping looks whether there are openers. */
static int cli_open(struct gendisk *disk)
{
	struct cli_dev *dev = disk->private_data;

	return READ_ONCE(dev->state) == CLI_GONE ? -ENXIO : 0;
}

RAIL_BLK_OPEN(cli_open)

static void cli_free_disk(struct gendisk *disk)
{
	cli_dev_put(disk->private_data);
}

static const struct block_device_operations cli_bdops = {
	.owner		= THIS_MODULE,
	.open		= cli_open_op,
	.free_disk	= cli_free_disk,
};

static u32 cli_block_sectors(const struct rail_rnbd_device *info, u32 sectors)
{
	/* A range is told in bytes, in 32 bits. */
	sectors = min_t(u32, sectors, U32_MAX >> SECTOR_SHIFT);
	return round_down(sectors, info->logical_block_size >> SECTOR_SHIFT);
}

static void cli_limits(const struct cli_dev *dev, struct queue_limits *lim)
{
	const struct rail_clt_limits *limits = dev->sess->limits;
	const struct rail_rnbd_device *info = &dev->info;
	u32 max;

	max = min(info->max_hw_sectors, limits->max_io_size >> SECTOR_SHIFT);
	lim->logical_block_size = info->logical_block_size;
	lim->physical_block_size = info->physical_block_size;
	lim->max_hw_sectors = cli_block_sectors(info, max);
	lim->max_segments = min_t(u32, dev->sess->max_segments, info->max_segments);
	lim->virt_boundary_mask = limits->virt_boundary;
	/* With a boundary the block layer makes it unlimited by itself and takes no other value. */
	if (!lim->virt_boundary_mask)
		lim->max_segment_size = UINT_MAX;
	if (info->max_discard_sectors) {
		lim->max_hw_discard_sectors = cli_block_sectors(info, info->max_discard_sectors);
		lim->discard_granularity = max_t(u32, info->discard_granularity,
						 info->logical_block_size);
		lim->discard_alignment = info->discard_alignment;
		if (info->secure_discard)
			lim->max_secure_erase_sectors = lim->max_hw_discard_sectors;
	}
	lim->max_write_zeroes_sectors = cli_block_sectors(info, info->max_write_zeroes_sectors);
}

/**
 * cli_dev_fits - is what the server says of a device true to what its disk was made for?
 * @dev: the device; without a disk everything fits
 * @info: what the server says now
 *
 * Context: process; cli_sess.lock held.
 * Return: 0 or -EINVAL.
 */
int cli_dev_fits(const struct cli_dev *dev, const struct rail_rnbd_device *info)
{
	const struct rail_rnbd_device *was = &dev->info;

	if (!dev->disk)
		return 0;
	if (info->logical_block_size == was->logical_block_size &&
	    info->max_hw_sectors >= was->max_hw_sectors &&
	    info->max_segments >= was->max_segments &&
	    (info->cache_policy & RAIL_RNBD_CACHE_WRITEBACK) <=
	    (was->cache_policy & RAIL_RNBD_CACHE_WRITEBACK))
		return 0;
	pr_err("%s: %s of session %s is another device than it was (block size, largest I/O or cache); unmap it and map it again\n",
	       dev->disk->disk_name, dev->path, dev->sess->name);
	return -EINVAL;
}

static int cli_make_disk(struct cli_dev *dev)
{
	struct queue_limits lim = {};
	struct gendisk *disk;

	cli_limits(dev, &lim);
	disk = rail_blk_alloc_disk(&dev->sess->tags, &lim, dev,
				   !!(dev->info.cache_policy & RAIL_RNBD_CACHE_WRITEBACK),
				   !!(dev->info.cache_policy & RAIL_RNBD_CACHE_FUA));
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	snprintf(disk->disk_name, sizeof(disk->disk_name), "rnbd%d", dev->index);
	disk->fops = &cli_bdops;
	disk->private_data = dev;
	refcount_inc(&dev->refs);
	set_disk_ro(disk, dev->access == RAIL_RNBD_ACCESS_RO);
	mutex_lock(&dev->sess->lock);
	/* It may have been opened again, under another size, since its limits were read. */
	set_capacity(disk, dev->info.nsectors);
	dev->disk = disk;
	mutex_unlock(&dev->sess->lock);
	return 0;
}

/* ---- a mapping ---- */

/**
 * cli_dev_put - drop a reference
 * @dev: the device
 *
 * Context: process.
 */
void cli_dev_put(struct cli_dev *dev)
{
	if (!refcount_dec_and_test(&dev->refs))
		return;
	rail_stats_destroy(&dev->stats);
	debugfs_remove_recursive(dev->dir);
	if (dev->index >= 0)
		ida_free(&cli_index, dev->index);
	kfree(dev);
}

static int cli_dev_stats(struct cli_dev *dev)
{
	char name[DISK_NAME_LEN];

	snprintf(name, sizeof(name), "rnbd%d", dev->index);
	dev->dir = debugfs_create_dir(name, cli_debugfs());
	return rail_stats_init(&dev->stats, &cli_stats_desc, dev->dir);
}

static struct cli_dev *cli_dev_alloc(const struct cli_map *map, struct cli_sess *sess)
{
	struct cli_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	refcount_set(&dev->refs, 1);
	dev->sess = sess;
	dev->state = CLI_NEW;
	dev->id = RAIL_CLI_NO_ID;
	dev->access = map->access;
	strscpy(dev->path, map->device_path, sizeof(dev->path));
	dev->index = ida_alloc(&cli_index, GFP_KERNEL);
	if (dev->index >= 0 && !cli_dev_stats(dev))
		return dev;
	cli_dev_put(dev);
	return NULL;
}

/* Into the session, and open at the server. */
static int cli_dev_join(struct cli_dev *dev)
{
	struct cli_sess *sess = dev->sess;
	struct cli_dev *other;
	int error;

	mutex_lock(&sess->lock);
	list_for_each_entry(other, &sess->devs, entry) {
		if (!strcmp(other->path, dev->path)) {
			pr_err("%s of session %s is mapped already\n", dev->path, sess->name);
			mutex_unlock(&sess->lock);
			return -EEXIST;
		}
	}
	error = cli_sess_open_dev(dev);
	if (!error)
		list_add_tail(&dev->entry, &sess->devs);
	mutex_unlock(&sess->lock);
	if (error)
		pr_err("%s of session %s cannot be mapped %s: %pe\n", dev->path, sess->name,
		       rail_rnbd_access_text(dev->access), ERR_PTR(error));
	return error;
}

static void cli_dev_leave(struct cli_dev *dev, bool tell)
{
	struct cli_sess *sess = dev->sess;

	mutex_lock(&sess->lock);
	if (tell)
		cli_sess_close_dev(dev);
	list_del(&dev->entry);
	mutex_unlock(&sess->lock);
}

/**
 * cli_dev_map - make a mapping
 * @map: which
 *
 * Context: process; waits for the server.
 * Return: 0 or an errno, of which the log has the reason.
 */
int cli_dev_map(const struct cli_map *map)
{
	char link[sizeof_field(struct cli_dev, link)];
	struct cli_sess *sess;
	struct cli_dev *dev;
	int error;

	/* Before anything is asked of the server. */
	error = cli_link_name(link, sizeof(link), map->device_path, map->sessname);
	if (error) {
		pr_err("device_path and sessname are together too long\n");
		return error;
	}
	sess = cli_sess_get(map);
	if (IS_ERR(sess))
		return PTR_ERR(sess);
	dev = cli_dev_alloc(map, sess);
	if (!dev) {
		error = -ENOMEM;
		goto put_sess;
	}
	error = cli_dev_join(dev);
	if (error)
		goto put_dev;
	error = cli_make_disk(dev);
	if (error)
		goto leave;
	error = add_disk(dev->disk);
	if (error)
		goto put_disk;
	error = cli_sysfs_add(dev);
	if (error) {
		/* It is a mapping, with a disk that somebody may have opened already. */
		pr_err("%s: no sysfs entries: %pe\n", dev->disk->disk_name, ERR_PTR(error));
		cli_dev_unmap(dev, true, NULL);
		return error;
	}
	/* udev was told of the disk before it could read in sysfs whose it is. */
	disk_uevent(dev->disk, KOBJ_CHANGE);
	pr_info("%s: %s of session %s, %s, %llu sectors\n", dev->disk->disk_name, dev->path,
		sess->name, rail_rnbd_access_text(dev->access), dev->told_sectors);
	return 0;

put_disk:
	put_disk(dev->disk);
leave:
	cli_dev_leave(dev, true);
put_dev:
	cli_dev_put(dev);
put_sess:
	cli_sess_put(sess);
	return error;
}

/* 0: the device is the caller's to end, and nobody can open it. */
static int cli_dev_doom(struct cli_dev *dev, bool force, enum cli_state *was)
{
	struct gendisk *disk = dev->disk;
	int error = 0;

	mutex_lock(&disk->open_mutex);
	mutex_lock(&dev->sess->lock);
	*was = READ_ONCE(dev->state);
	if (*was == CLI_GONE)
		error = -EALREADY;
	else if (!force && disk_openers(disk))
		error = -EBUSY;
	else
		*was = xchg(&dev->state, CLI_GONE);
	mutex_unlock(&dev->sess->lock);
	mutex_unlock(&disk->open_mutex);
	return error;
}

/**
 * cli_dev_unmap - end a mapping
 * @dev: the mapping; gone on return, unless an error is returned
 * @force: also if it is in use: its I/O fails
 * @self: the sysfs attribute that is being written, or NULL
 *
 * Context: process; waits for I/O.
 * Return: 0; -EBUSY: it is in use; -EALREADY: somebody else ends it.
 */
int cli_dev_unmap(struct cli_dev *dev, bool force, struct attribute *self)
{
	struct cli_sess *sess = dev->sess;
	struct gendisk *disk = dev->disk;
	enum cli_state was;
	int error;

	error = cli_dev_doom(dev, force, &was);
	if (error)
		return error;
	if (self)
		sysfs_remove_file_self(&dev->kobj, self);
	if (force) {
		blk_mark_disk_dead(disk);
		cli_cancel_all(dev);
	}
	cli_sysfs_del(dev);
	del_gendisk(disk);
	cli_dev_leave(dev, was == CLI_OPEN);
	pr_info("%s: %s of session %s is unmapped\n", disk->disk_name, dev->path, sess->name);
	put_disk(disk);
	cli_dev_put(dev);
	cli_sess_put(sess);
	return 0;
}

/**
 * cli_dev_remap - have the server open the device once more
 * @dev: the device
 *
 * Context: process; waits for the server.
 * Return: 0; -EALREADY: it is open; -ENODEV: it is being unmapped; else why not.
 */
int cli_dev_remap(struct cli_dev *dev)
{
	enum cli_state state;
	int error;

	mutex_lock(&dev->sess->lock);
	state = READ_ONCE(dev->state);
	if (state == CLI_GONE) {
		error = -ENODEV;
	} else if (state == CLI_OPEN) {
		error = -EALREADY;
	} else {
		error = cli_sess_open_dev(dev);
		/* What was held by RTRS since the link was lost has no other end. */
		if (error && error != -ENOLINK)
			cmpxchg(&dev->state, CLI_LOST, CLI_CLOSED);
	}
	mutex_unlock(&dev->sess->lock);
	if (!error)
		pr_info("%s: %s of session %s is open again\n", dev->disk->disk_name, dev->path,
			dev->sess->name);
	return error;
}

/**
 * cli_dev_resize - the device has another size now
 * @dev: the device
 * @sectors: of 512 bytes. The server checks each I/O, so that too many of them are no danger.
 *
 * Context: process.
 * Return: 0; -EINVAL; -ENODEV: it is being unmapped.
 */
int cli_dev_resize(struct cli_dev *dev, u64 sectors)
{
	int error = 0;

	if (!sectors || sectors >= 1ULL << 54 ||
	    sectors % (dev->info.logical_block_size >> SECTOR_SHIFT))
		return -EINVAL;
	mutex_lock(&dev->sess->lock);
	if (READ_ONCE(dev->state) == CLI_GONE)
		error = -ENODEV;
	else if (set_capacity_and_notify(dev->disk, sectors))
		pr_info("%s: has %llu sectors now\n", dev->disk->disk_name, sectors);
	mutex_unlock(&dev->sess->lock);
	return error;
}

/**
 * cli_dev_unmap_all - end all mappings, for the module goes
 *
 * Context: process; nobody makes mappings, and nobody has a disk open.
 */
void cli_dev_unmap_all(void)
{
	struct cli_dev *dev;

	while ((dev = cli_sess_first())) {
		cli_dev_unmap(dev, true, NULL);
		cli_dev_put(dev);
	}
	cli_sess_wait_none();
	/* Who closed a disk last has let go of the module, and may still be about to free it. */
	while (!ida_is_empty(&cli_index))
		msleep(20);
	ida_destroy(&cli_index);
}
