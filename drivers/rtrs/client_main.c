// SPDX-License-Identifier: GPL-2.0-only
/* Sessions: opening, closing, what they can do. And the module's beginning and end. */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "client.h"

static DEFINE_MUTEX(clt_sessions_lock);
static LIST_HEAD(clt_sessions);
static struct dentry *clt_debugfs;

/**
 * clt_make_reqs - make the requests of a session, now that it is known how many
 * @clt: session without
 * @params: what the server offers
 * @dev: device of the first path
 *
 * Context: clt->mutex held; sleeps.
 * Return: 0 or an error; then there is nothing to unmake.
 */
int clt_make_reqs(struct rail_clt *clt, const struct rail_rtrs_params *params,
		  const struct rail_dev *dev)
{
	struct rail_clt_limits *limits = &clt->limits;
	struct clt_req *reqs;
	u32 i, pages;
	int err;

	/* One more page than data fills, for data that begins in the midst of one. */
	pages = min_t(u32, DIV_ROUND_UP(params->max_io_size, PAGE_SIZE) + 1, dev->max_mr_pages);
	if (pages < 2)
		return -EOPNOTSUPP;
	reqs = kvcalloc(params->queue_depth, sizeof(*reqs), GFP_KERNEL);
	if (!reqs)
		return -ENOMEM;
	err = sbitmap_init_node(&clt->permits, params->queue_depth, -1, GFP_KERNEL, dev->node,
				false, true);
	if (err) {
		kvfree(reqs);
		return err;
	}
	for (i = 0; i < params->queue_depth; i++)
		clt_req_init(clt, &reqs[i], i);
	limits->queue_depth = params->queue_depth;
	limits->max_io_size = min_t(u32, params->max_io_size, (pages - 1) * PAGE_SIZE);
	limits->max_usr_len = min_t(u32, RAIL_CLT_USR_MAX,
				    params->max_hdr_size - RAIL_RTRS_REQ_HDR_MAX);
	limits->max_segments = pages;
	/* What one region covers, whatever the device of a path that is added later. */
	limits->virt_boundary = PAGE_SIZE - 1;
	limits->node = dev->node;
	clt->reqs = reqs;
	return 0;
}

/**
 * clt_free - the last reference to a session is gone
 * @clt: session without paths
 */
void clt_free(struct rail_clt *clt)
{
	/* Its paths, whose numbers are below, were freed before. */
	debugfs_remove_recursive(clt->dir);
	if (clt->reqs)
		sbitmap_free(&clt->permits);
	kvfree(clt->reqs);
	kfree(rcu_dereference_protected(clt->paths, true));
	free_percpu(clt->turn);
	if (clt->wq)
		destroy_workqueue(clt->wq);
	put_net(clt->net);
	kfree(clt);
}

static struct rail_clt *clt_create(const struct rail_clt_attr *attr)
{
	struct rail_clt *clt = kzalloc(sizeof(*clt), GFP_KERNEL);

	if (!clt)
		return NULL;
	strscpy(clt->name, attr->name, sizeof(clt->name));
	clt->net = get_net(attr->net);
	clt->ops = attr->ops;
	clt->priv = attr->priv;
	clt->limits.nr_queues = num_online_cpus();
	clt->limits.nr_poll_queues = attr->nr_poll_queues;
	clt->no_path_timeout = attr->no_path_timeout < 0 ? RAIL_CLT_NO_PATH_DEFAULT :
							   attr->no_path_timeout;
	clt->max_reconnect = -1;
	uuid_gen(&clt->uuid);
	mutex_init(&clt->mutex);
	init_waitqueue_head(&clt->wait);
	clt_wait_init(clt);
	clt->turn = alloc_percpu(struct clt_turn);
	/* I/O of the memory's last resort may wait for a path to come back. */
	clt->wq = alloc_workqueue("rtrs-client", WQ_UNBOUND | WQ_MEM_RECLAIM, 2 * CLT_MAX_PATHS);
	if (!clt->turn || !clt->wq) {
		clt_free(clt);
		return NULL;
	}
	return clt;
}

static int clt_register(struct rail_clt *clt)
{
	struct rail_clt *other;
	int err = 0;

	mutex_lock(&clt_sessions_lock);
	list_for_each_entry(other, &clt_sessions, entry)
		if (!strcmp(other->name, clt->name))
			err = -EEXIST;
	if (!err)
		list_add_tail(&clt->entry, &clt_sessions);
	mutex_unlock(&clt_sessions_lock);
	return err;
}

static void clt_unregister(struct rail_clt *clt)
{
	mutex_lock(&clt_sessions_lock);
	list_del(&clt->entry);
	mutex_unlock(&clt_sessions_lock);
}

/*
 * A path for the caller to remove; NULL: there is none left, or @others: somebody else is at it.
 * Under the mutex, for a path that is removed leaves the table under it.
 */
static struct clt_path *clt_take_path(struct rail_clt *clt, bool *others)
{
	const struct clt_paths *paths;
	struct clt_path *path, *found = NULL;
	u32 i;

	*others = false;
	mutex_lock(&clt->mutex);
	paths = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->mutex));
	for (i = 0; paths && i < paths->n && !found; i++) {
		path = clt_lane_path(paths->lane[i]);
		if (test_and_set_bit(0, &path->removing))
			*others = true;
		else
			found = path;
	}
	mutex_unlock(&clt->mutex);
	return found;
}

static bool clt_paths_tried(struct rail_clt *clt)
{
	const struct clt_paths *paths;
	bool all = true;
	u32 i;

	rcu_read_lock();
	paths = rcu_dereference(clt->paths);
	for (i = 0; i < paths->n; i++)
		all &= test_bit(CLT_PATH_TRIED, &clt_lane_path(paths->lane[i])->flags);
	rcu_read_unlock();
	return all;
}

/* Visits each path; clt->paths does not change: nobody adds one before the session is ready. */
static void clt_start_paths(struct rail_clt *clt)
{
	struct clt_paths *paths = rcu_dereference_protected(clt->paths, true);
	u32 i;

	for (i = 0; i < paths->n; i++)
		clt_path_want(clt_lane_path(paths->lane[i]), CLT_WANT_ON);
}

static int clt_show_paths(struct rail_clt *clt)
{
	struct clt_paths *paths = rcu_dereference_protected(clt->paths, true);
	int err = 0;
	u32 i;

	for (i = 0; !err && i < paths->n; i++)
		err = clt_sysfs_add_path(clt_lane_path(paths->lane[i]));
	return err;
}

static int clt_open_error(struct rail_clt *clt)
{
	struct clt_paths *paths = rcu_dereference_protected(clt->paths, true);

	return clt_lane_path(paths->lane[0])->error ?: -ENOLINK;
}

static void clt_remove_paths(struct rail_clt *clt)
{
	const struct clt_paths *paths;
	struct clt_path *path;
	bool others;
	u32 i;

	/* All at once, then one by one. */
	rcu_read_lock();
	paths = rcu_dereference(clt->paths);
	for (i = 0; paths && i < paths->n; i++)
		clt_path_want(clt_lane_path(paths->lane[i]), CLT_WANT_GONE);
	rcu_read_unlock();
	while ((path = clt_take_path(clt, &others)) || others)
		if (path)
			clt_path_remove(path);
		else
			msleep(20);
}

static int clt_check(const struct rail_clt_attr *attr)
{
	if (!attr->ops || !attr->net || !attr->nr_paths || attr->nr_paths > CLT_MAX_PATHS)
		return -EINVAL;
	if (rail_rtrs_name_check(attr->name, RAIL_RTRS_NAME_LEN))
		return -EINVAL;
	if (attr->nr_poll_queues + num_online_cpus() + 1 > RAIL_RTRS_MAX_CONS)
		return -EINVAL;
	return 0;
}

/**
 * rail_clt_open - open a session
 * @attr: what the user wants; not used after the call
 *
 * Sleeps until each path is up or has failed once. Those that failed go on trying.
 *
 * Context: sleeps.
 * Return: the session, with one path up at least; or an ERR_PTR: -EINVAL, -ENOMEM; -EEXIST: the
 *	   name is in use; or why the first path failed, the server's own errno where it refused.
 */
struct rail_clt *rail_clt_open(const struct rail_clt_attr *attr)
{
	struct clt_path *path;
	struct rail_clt *clt;
	u32 i;
	int err;

	err = clt_check(attr);
	if (err)
		return ERR_PTR(err);
	clt = clt_create(attr);
	if (!clt)
		return ERR_PTR(-ENOMEM);
	err = clt_register(clt);
	if (err) {
		clt_free(clt);
		return ERR_PTR(err);
	}
	clt->dir = debugfs_create_dir(clt->name, clt_debugfs);
	err = clt_sysfs_add(clt);
	if (err)
		goto unregister;
	for (i = 0; i < attr->nr_paths; i++) {
		path = clt_path_create(clt, &attr->paths[i]);
		err = PTR_ERR_OR_ZERO(path);
		if (err)
			goto remove;
		err = clt_path_add(path);
		if (err) {
			kobject_put(&path->kobj);
			goto remove;
		}
	}
	clt_start_paths(clt);
	wait_event_idle(clt->wait, clt_paths_tried(clt));
	if (!READ_ONCE(clt->opened)) {
		err = clt_open_error(clt);
		goto remove;
	}
	err = clt_show_paths(clt);
	if (err)
		goto remove;
	if (attr->place)
		WRITE_ONCE(*attr->place, clt);
	/* Pairs with clt_link_work() and add_path_store(). */
	smp_store_release(&clt->ready, true);
	/* It tells what happened to the link meanwhile. */
	queue_work(clt->wq, &clt->link_work);
	return clt;

remove:
	rail_clt_close(clt);
	return ERR_PTR(err);
unregister:
	clt_unregister(clt);
	put_device(&clt->dev);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(rail_clt_open);

/**
 * rail_clt_close - close a session
 * @clt: session
 *
 * What is outstanding ends with -ESHUTDOWN, or is answered still. No callback of the user runs any
 * more when this returns.
 *
 * Context: sleeps; not from a callback of the session.
 */
void rail_clt_close(struct rail_clt *clt)
{
	spin_lock_irq(&clt->lock);
	clt->closing = true;
	spin_unlock_irq(&clt->lock);
	clt_wait_fail_all(clt);
	wake_up_all(&clt->wait);
	/* Nobody adds a path any more. */
	clt_sysfs_del(clt);
	clt_remove_paths(clt);
	clt_sysfs_del_last(clt);
	cancel_work_sync(&clt->link_work);
	cancel_delayed_work_sync(&clt->expire_work);
	clt_unregister(clt);
	put_device(&clt->dev);
}
EXPORT_SYMBOL_GPL(rail_clt_close);

/**
 * rail_clt_limits - what a session can do
 * @clt: session
 *
 * Return: it; constant while the session is open.
 */
const struct rail_clt_limits *rail_clt_limits(const struct rail_clt *clt)
{
	return &clt->limits;
}
EXPORT_SYMBOL_GPL(rail_clt_limits);

/**
 * rail_clt_linked - is a path up?
 * @clt: session
 *
 * Context: any. May have changed when the caller looks at it.
 */
bool rail_clt_linked(const struct rail_clt *clt)
{
	return READ_ONCE(clt->nr_up);
}
EXPORT_SYMBOL_GPL(rail_clt_linked);

static int __init rtrs_client_init(void)
{
	int err;

	clt_debugfs = debugfs_create_dir("rtrs-client", rail_debugfs_root());
	err = clt_sysfs_init();
	if (err)
		debugfs_remove_recursive(clt_debugfs);
	return err;
}

static void __exit rtrs_client_exit(void)
{
	clt_sysfs_exit();
	debugfs_remove_recursive(clt_debugfs);
	/* Paths and tables that kfree_rcu() has still to free need no code of ours. */
}

module_init(rtrs_client_init);
module_exit(rtrs_client_exit);

MODULE_DESCRIPTION("RAIL: RTRS client");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
