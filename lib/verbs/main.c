// SPDX-License-Identifier: GPL-2.0-only
/* rail_verbs: the module's beginning and end. */
#include <linux/debugfs.h>
#include <linux/module.h>
#include "verbs_priv.h"

struct workqueue_struct *rail_wq;
struct workqueue_struct *rail_cq_wq;
struct workqueue_struct *rail_close_wq;

static struct dentry *rail_debugfs;

/**
 * rail_debugfs_root - rail's folder in debugfs
 *
 * Return: the folder, or an error pointer, which debugfs takes as "nowhere".
 */
struct dentry *rail_debugfs_root(void)
{
	return rail_debugfs;
}
EXPORT_SYMBOL_GPL(rail_debugfs_root);

static int __init rail_verbs_init(void)
{
	int err = -ENOMEM;

	/* Connections are made anew when memory is short: swap may be on them. */
	rail_wq = alloc_workqueue("rail_verbs", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rail_wq)
		return -ENOMEM;
	rail_cq_wq = alloc_workqueue("rail_cq", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rail_cq_wq)
		goto no_cq_wq;
	/*
	 * rdma_destroy_id() waits for work of ib_core's address resolution, whose queue cannot
	 * promise to go on without memory. So this one cannot either: who promises may not wait
	 * for who does not.
	 */
	rail_close_wq = alloc_workqueue("rail_verbs_close", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!rail_close_wq)
		goto no_close_wq;
	rail_debugfs = debugfs_create_dir("rail", NULL);
	rail_faults_init(rail_debugfs);
	err = rail_devs_init();
	if (!err)
		return 0;
	debugfs_remove_recursive(rail_debugfs);
	destroy_workqueue(rail_close_wq);
no_close_wq:
	destroy_workqueue(rail_cq_wq);
no_cq_wq:
	destroy_workqueue(rail_wq);
	return err;
}

static void __exit rail_verbs_exit(void)
{
	rail_devs_exit();
	debugfs_remove_recursive(rail_debugfs);
	destroy_workqueue(rail_close_wq);
	destroy_workqueue(rail_cq_wq);
	destroy_workqueue(rail_wq);
	rail_conns_exit();
}

module_init(rail_verbs_init);
module_exit(rail_verbs_exit);

MODULE_DESCRIPTION("RAIL: RDMA verbs helpers for storage transports");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
