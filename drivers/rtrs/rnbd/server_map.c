// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of the server: made, and ended.
 */
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/slab.h>

#include "server.h"

DEFINE_MUTEX(srv_lock);
/* All devices that are mapped; srv_lock. */
static LIST_HEAD(srv_devs);

static const char * const srv_counters[SRV_NR_COUNTS] = {
	RNBD_COUNT_NAMES,
	[SRV_N_ERR_ACCESS] = "err_access",
	[SRV_N_ERR_RANGE] = "err_range",
	[SRV_N_ERR_DEVICE] = "err_device",
};

static const char * const srv_hists[RNBD_NR_HISTS] = {
	RNBD_HIST_NAMES,
};

static const struct rail_stats_desc srv_stats_desc = {
	.name = "io",
	.nr_counters = SRV_NR_COUNTS,
	.nr_hists = RNBD_NR_HISTS,
	.counters = srv_counters,
	.hists = srv_hists,
};

/* ---- which device is meant ---- */

/* The block device at @path; below @root, if there is one, once all links are followed. */
static int srv_lookup_here(const char *path, const char *root, dev_t *dev)
{
	struct path at, top;
	struct inode *inode;
	bool inside = true;
	int error;

	error = kern_path(path, LOOKUP_FOLLOW, &at);
	if (error)
		return error;
	if (root) {
		error = kern_path(root, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &top);
		if (error)
			goto put;
		inside = path_is_under(&at, &top);
		path_put(&top);
	}
	inode = d_backing_inode(at.dentry);
	if (!inside || at.mnt->mnt_flags & MNT_NODEV)
		error = -EACCES;
	else if (!S_ISBLK(inode->i_mode))
		error = -ENOTBLK;
	else
		*dev = inode->i_rdev;
put:
	path_put(&at);
	return error;
}

/* In a worker, which has no view of the file system of its own. */
static int srv_lookup(const char *path, const char *root, dev_t *dev)
{
	int error = -ENOENT;

	scoped_with_init_fs()
		error = srv_lookup_here(path, root, dev);
	return error;
}

/* No export has the name: look below dev_search_path. */
static int srv_search(const struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		      dev_t *dev)
{
	char *path, *root;
	size_t root_len;
	int error;

	path = kmalloc(PATH_MAX, GFP_KERNEL);
	root = kmalloc(PATH_MAX, GFP_KERNEL);
	error = -ENOMEM;
	if (path && root)
		error = srv_search_join(path, PATH_MAX, srv_search_path, sess->name,
					opening->dev_name, &root_len);
	if (!error) {
		snprintf(root, PATH_MAX, "%.*s/", (int)root_len, path);
		error = srv_lookup(path, root, dev);
	}
	if (error && error != -ENOMEM)
		pr_warn_ratelimited("session %s: %s below %s: %pe\n", sess->name, opening->dev_name,
				    srv_search_path, ERR_PTR(error));
	kfree(root);
	kfree(path);
	return error;
}

/* On success @export has a reference, or is NULL. */
static int srv_find(const struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		    dev_t *dev, struct srv_export **export)
{
	char path[RAIL_RNBD_NAME_LEN];
	int error;

	error = srv_export_find(sess, opening, path, sizeof(path), export);
	if (error)
		return error;
	if (!*export)
		return srv_search(sess, opening, dev);
	error = srv_lookup(path, NULL, dev);
	if (error) {
		pr_warn_ratelimited("session %s: export %s: its device_path %s: %pe\n", sess->name,
				    opening->dev_name, path, ERR_PTR(error));
		srv_export_put(*export);
	}
	return error;
}

/* ---- opening ---- */

static void srv_map_idle(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct srv_map, io)->idle);
}

static void srv_describe(const struct srv_map *map, struct rail_rnbd_device *info)
{
	struct block_device *bdev = map->bdev.bdev;
	u32 max_io = rail_srv_sess_max_io_size(map->sess->rtrs);

	memset(info, 0, sizeof(*info));
	info->device_id = map->id;
	info->nsectors = bdev_nr_sectors(bdev);
	info->logical_block_size = bdev_logical_block_size(bdev);
	info->physical_block_size = min_t(unsigned int, bdev_physical_block_size(bdev), 32768);
	/* A bio may be larger than what the device takes at once: it is split. */
	info->max_hw_sectors = max_io >> SECTOR_SHIFT;
	info->max_segments = min_t(u32, max_io / PAGE_SIZE + 1, U16_MAX);
	info->max_write_zeroes_sectors = bdev_write_zeroes_sectors(bdev);
	info->max_discard_sectors = bdev_max_discard_sectors(bdev);
	if (info->max_discard_sectors) {
		info->discard_granularity = bdev_discard_granularity(bdev);
		info->discard_alignment = bdev_discard_alignment(bdev);
		info->secure_discard = !!bdev_max_secure_erase_sectors(bdev);
	}
	if (bdev_write_cache(bdev))
		info->cache_policy |= RAIL_RNBD_CACHE_WRITEBACK;
	if (bdev_fua(bdev))
		info->cache_policy |= RAIL_RNBD_CACHE_FUA;
}

static struct srv_dev *srv_dev_get(struct block_device *bdev)
{
	struct srv_dev *dev;
	int error;

	lockdep_assert_held(&srv_lock);
	list_for_each_entry(dev, &srv_devs, entry)
		if (dev->dev == bdev->bd_dev)
			return dev;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->dev = bdev->bd_dev;
	INIT_LIST_HEAD(&dev->maps);
	error = srv_sysfs_add_dev(dev, bdev);
	if (error)
		return ERR_PTR(error);
	list_add_tail(&dev->entry, &srv_devs);
	return dev;
}

static void srv_dev_put(struct srv_dev *dev)
{
	lockdep_assert_held(&srv_lock);
	if (!list_empty(&dev->maps))
		return;
	list_del(&dev->entry);
	srv_sysfs_del_dev(dev);
}

static int srv_map_join(struct srv_map *map)
{
	struct srv_sess *sess = map->sess;
	struct srv_map *other;
	struct srv_dev *dev;
	int error;

	lockdep_assert_held(&srv_lock);
	if (sess->closed)
		return -ENOTCONN;
	/* Since it was found it may have been disabled, and paths may have come from elsewhere. */
	if (map->export && !srv_export_is_for(map->export, sess))
		return -EACCES;
	dev = srv_dev_get(map->bdev.bdev);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	list_for_each_entry(other, &dev->maps, dev_entry) {
		/* One that is being closed, or the same device by another name. */
		if (!strcmp(other->sess->name, sess->name)) {
			error = other->closing ? -EBUSY : -EEXIST;
			goto put_dev;
		}
	}
	error = srv_may_open(map->access, dev->writers);
	if (error)
		goto put_dev;
	map->dev = dev;
	error = srv_sysfs_add_map(map);
	if (error)
		goto put_dev;
	error = xa_alloc_cyclic(&sess->maps, &map->id, map, XA_LIMIT(0, INT_MAX), &sess->next,
				GFP_KERNEL);
	if (error < 0)
		goto del_map;
	list_add_tail(&map->dev_entry, &dev->maps);
	if (map->access != RAIL_RNBD_ACCESS_RO)
		dev->writers++;
	return 0;

del_map:
	srv_sysfs_del_map(map);
put_dev:
	srv_dev_put(dev);
	return error;
}

static struct srv_map *srv_map_alloc(struct srv_sess *sess,
				     const struct rail_rnbd_opening *opening)
{
	char dir[RAIL_RNBD_NAME_LEN + RAIL_RTRS_NAME_LEN + 1];
	struct srv_map *map = kzalloc(sizeof(*map), GFP_KERNEL);

	if (!map)
		return NULL;
	kref_get(&sess->refs);
	map->sess = sess;
	srv_sysfs_init_map(map);
	init_completion(&map->idle);
	map->access = opening->access;
	strscpy(map->path, opening->dev_name, sizeof(map->path));
	snprintf(dir, sizeof(dir), "%s@%s", map->path, sess->name);
	strreplace(dir, '/', '!');
	map->dir = debugfs_create_dir(dir, srv_debugfs());
	if (!percpu_ref_init(&map->io, srv_map_idle, 0, GFP_KERNEL) &&
	    !rail_stats_init(&map->stats, &srv_stats_desc, map->dir))
		return map;
	kobject_put(&map->kobj);
	return NULL;
}

/**
 * srv_map_free - free a mapping that nobody has any more
 * @map: what srv_map_alloc() made, its device closed
 *
 * Context: process.
 */
void srv_map_free(struct srv_map *map)
{
	rail_stats_destroy(&map->stats);
	debugfs_remove_recursive(map->dir);
	percpu_ref_exit(&map->io);
	srv_sess_put(map->sess);
	kfree(map);
}

/* 1: the session has it open already, and so it may have it again: the first answer was lost. */
static int srv_map_again(struct srv_sess *sess, const struct rail_rnbd_opening *opening,
			 struct rail_rnbd_device *info)
{
	struct srv_map *map;
	unsigned long id;
	int ret = 0;

	mutex_lock(&srv_lock);
	xa_for_each(&sess->maps, id, map) {
		if (strcmp(map->path, opening->dev_name))
			continue;
		ret = map->access == opening->access ? 1 : -EEXIST;
		srv_describe(map, info);
		break;
	}
	mutex_unlock(&srv_lock);
	return ret;
}

/**
 * srv_map_open - open a device for a session
 * @sess: the session
 * @opening: which, and how
 * @info: filled in: what the client has to know of it
 *
 * Context: process.
 * Return: 0; -EACCES: not for this client; -EROFS: not for writing; -ENOENT, -ENOTBLK: no such
 *	device; -EPERM: others use it in a way that excludes this one; -EEXIST: the session has it
 *	otherwise; or another errno.
 */
int srv_map_open(struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		 struct rail_rnbd_device *info)
{
	struct srv_export *export = NULL;
	struct srv_map *map;
	dev_t dev;
	int error;

	error = srv_map_again(sess, opening, info);
	if (error)
		return min(error, 0);
	error = srv_find(sess, opening, &dev, &export);
	if (error)
		return error;
	map = srv_map_alloc(sess, opening);
	if (!map) {
		error = -ENOMEM;
		goto put_export;
	}
	map->export = export;
	error = rail_bdev_open(&map->bdev, dev, opening->access != RAIL_RNBD_ACCESS_RO);
	if (error)
		goto free;
	map->ro = opening->access == RAIL_RNBD_ACCESS_RO || bdev_read_only(map->bdev.bdev);
	mutex_lock(&srv_lock);
	map->told_sectors = bdev_nr_sectors(map->bdev.bdev);
	error = srv_map_join(map);
	/* Under the lock, for it may be closed the moment it is there. */
	if (!error)
		srv_describe(map, info);
	mutex_unlock(&srv_lock);
	if (!error) {
		pr_info("session %s has opened %s\n", sess->name, opening->dev_name);
		return 0;
	}
	rail_bdev_close(&map->bdev);
free:
	kobject_put(&map->kobj);
put_export:
	if (export)
		srv_export_put(export);
	/* Asked twice, for a path went meanwhile, and the first time was as fast as the second. */
	if (error == -EEXIST && srv_map_again(sess, opening, info) == 1)
		return 0;
	pr_warn_ratelimited("session %s: %s cannot be opened: %pe\n", sess->name, opening->dev_name,
			    ERR_PTR(error));
	return error;
}

/* ---- closing ---- */

/**
 * srv_map_doom - a mapping is to end
 * @map: the mapping
 *
 * Context: process; srv_lock held.
 * Return: true: the caller has to call srv_map_end(), without the lock; false: somebody else does.
 */
bool srv_map_doom(struct srv_map *map)
{
	lockdep_assert_held(&srv_lock);
	if (map->closing)
		return false;
	map->closing = true;
	xa_erase(&map->sess->maps, map->id);
	return true;
}

/**
 * srv_map_end - end a mapping
 * @map: what srv_map_doom() left to the caller; may be gone on return
 *
 * Context: process; waits for the mapping's I/O.
 */
void srv_map_end(struct srv_map *map)
{
	struct srv_export *export = map->export;
	struct srv_dev *dev = map->dev;

	/* When this has run its course, whoever found it under RCU has a reference or none. */
	percpu_ref_kill(&map->io);
	wait_for_completion(&map->idle);
	pr_info("session %s has closed %s\n", map->sess->name, map->path);
	mutex_lock(&srv_lock);
	list_del(&map->dev_entry);
	if (map->access != RAIL_RNBD_ACCESS_RO)
		dev->writers--;
	srv_sysfs_del_map(map);
	srv_dev_put(dev);
	mutex_unlock(&srv_lock);
	rail_bdev_close(&map->bdev);
	kobject_put(&map->kobj);
	if (export)
		srv_export_put(export);
}

/**
 * srv_map_close_export - end all mappings made through an export
 * @export: the export, disabled
 *
 * Context: process; waits for their I/O.
 */
void srv_map_close_export(struct srv_export *export)
{
	struct srv_map *map, *found;
	struct srv_dev *dev;

	do {
		found = NULL;
		mutex_lock(&srv_lock);
		list_for_each_entry(dev, &srv_devs, entry) {
			list_for_each_entry(map, &dev->maps, dev_entry) {
				if (map->export == export && srv_map_doom(map)) {
					found = map;
					break;
				}
			}
			if (found)
				break;
		}
		mutex_unlock(&srv_lock);
		if (found)
			srv_map_end(found);
	} while (found);
}

/**
 * srv_map_force_close - end a mapping because the administrator says so
 * @map: the mapping, whose attribute is being written
 * @self: the attribute
 *
 * Context: process; waits for its I/O.
 */
void srv_map_force_close(struct srv_map *map, struct attribute *self)
{
	bool mine;

	/* Nobody who removes the attribute has to wait for us, and we may wait for srv_lock. */
	kobject_get(&map->kobj);
	sysfs_remove_file_self(&map->kobj, self);
	mutex_lock(&srv_lock);
	mine = srv_map_doom(map);
	mutex_unlock(&srv_lock);
	if (mine)
		srv_map_end(map);
	kobject_put(&map->kobj);
}
