// SPDX-License-Identifier: GPL-2.0-only
/* Devices: plug and unplug, protection domains, what is on a device for people to read. */
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "verbs_priv.h"

/* Protects the list; a device is on it from plug to unplug. */
static DEFINE_MUTEX(rail_devs_lock);
static LIST_HEAD(rail_devs);

/* How long unplug waits before it says what it waits for. */
#define RAIL_UNPLUG_WARN	(10 * HZ)

static struct ib_client rail_ib_client;

static const char * const rail_dev_counters[RAIL_NR_DEV_STATS] = {
	[RAIL_STAT_DOORBELLS] = "send_doorbells",
	[RAIL_STAT_WR_WRITE] = "wr_write",
	[RAIL_STAT_WR_WRITE_IMM] = "wr_write_imm",
	[RAIL_STAT_WR_SEND] = "wr_send",
	[RAIL_STAT_WR_SEND_IMM] = "wr_send_imm",
	[RAIL_STAT_WR_READ] = "wr_read",
	[RAIL_STAT_WR_SEND_INV] = "wr_send_inv",
	[RAIL_STAT_WR_LOCAL_INV] = "wr_local_inv",
	[RAIL_STAT_WR_REG_MR] = "wr_reg_mr",
	[RAIL_STAT_WR_OTHER] = "wr_other",
	[RAIL_STAT_SEND_DONE] = "send_completions",
	[RAIL_STAT_RECV_DOORBELLS] = "recv_doorbells",
	[RAIL_STAT_RECV_POSTED] = "recv_posted",
	[RAIL_STAT_RECV_DONE] = "recv_completions",
	[RAIL_STAT_FORCED_SIGNALS] = "forced_signals",
	[RAIL_STAT_SQ_FULL] = "send_queue_full",
	[RAIL_STAT_CONNECTS] = "connects",
	[RAIL_STAT_ACCEPTS] = "accepts",
	[RAIL_STAT_REFUSALS] = "refusals",
	[RAIL_STAT_FAILURES] = "failures",
	[RAIL_STAT_TIMEOUTS] = "connect_timeouts",
	[RAIL_STAT_SILENT_PEERS] = "silent_peers",
	[RAIL_STAT_MR_REPLACED] = "mr_replaced",
	[RAIL_STAT_MR_EMPTY] = "mr_pool_empty",
};

static const char * const rail_dev_hists[RAIL_NR_DEV_HISTS] = {
	[RAIL_HIST_CHAIN_WRS] = "chain_wrs",
	[RAIL_HIST_CONNECT_US] = "connect_us",
};

static const struct rail_stats_desc rail_dev_stats_desc = {
	.name = "stats",
	.nr_counters = RAIL_NR_DEV_STATS,
	.nr_hists = RAIL_NR_DEV_HISTS,
	.counters = rail_dev_counters,
	.hists = rail_dev_hists,
};

static int rail_dev_conns_show(struct seq_file *m, void *unused)
{
	struct rail_dev *dev = m->private;
	struct rail_conn *conn;

	seq_puts(m, "# id state depth in_flight reason source@destination\n");
	spin_lock_irq(&dev->lock);
	list_for_each_entry(conn, &dev->conns, dev_entry)
		seq_printf(m, "%u %s %u %u %d %s\n", conn->id, rail_state_name(conn->state),
			   conn->sq.depth, conn->sq.depth - rail_sq_space(&conn->sq),
			   conn->reason, conn->name);
	spin_unlock_irq(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rail_dev_conns);

/**
 * rail_dev_find - the device behind the kernel's, with a reference
 * @ib: the kernel's device; the caller knows that it is not freed meanwhile
 *
 * Context: sleeps.
 * Return: the device; NULL when it is unplugged or on its way out.
 */
struct rail_dev *rail_dev_find(struct ib_device *ib)
{
	struct rail_dev *dev;

	mutex_lock(&rail_devs_lock);
	list_for_each_entry(dev, &rail_devs, all) {
		if (dev->ib == ib) {
			refcount_inc(&dev->refs);
			goto out;
		}
	}
	dev = NULL;
out:
	mutex_unlock(&rail_devs_lock);
	return dev;
}
EXPORT_SYMBOL_GPL(rail_dev_find);

/**
 * rail_dev_get - take one more reference
 * @dev: a device the caller has a reference on
 *
 * Context: any.
 */
void rail_dev_get(struct rail_dev *dev)
{
	refcount_inc(&dev->refs);
}
EXPORT_SYMBOL_GPL(rail_dev_get);

/**
 * rail_dev_put - give a reference back
 * @dev: the device; unplug goes on when this was the last one
 *
 * Context: any.
 */
void rail_dev_put(struct rail_dev *dev)
{
	if (refcount_dec_and_test(&dev->refs))
		complete(&dev->gone);
}
EXPORT_SYMBOL_GPL(rail_dev_put);

/**
 * rail_dev_watch - ask to be told of unplug
 * @dev: a device the caller has a reference on
 * @watch: what is called; the caller's, until rail_dev_unwatch()
 *
 * Holds a reference on @dev until rail_dev_unwatch().
 *
 * Context: sleeps. Neither this nor rail_dev_unwatch() may be called under a lock that
 *	    watch->removed() takes.
 * Return: 0, or -ENODEV when the device is being unplugged: then nothing is called.
 */
int rail_dev_watch(struct rail_dev *dev, struct rail_dev_watch *watch)
{
	int err = 0;

	watch->dev = dev;
	mutex_lock(&dev->watch_lock);
	if (READ_ONCE(dev->unplugged)) {
		err = -ENODEV;
	} else {
		refcount_inc(&dev->refs);
		list_add_tail(&watch->entry, &dev->watchers);
	}
	mutex_unlock(&dev->watch_lock);
	return err;
}
EXPORT_SYMBOL_GPL(rail_dev_watch);

/**
 * rail_dev_unwatch - no longer ask
 * @watch: what rail_dev_watch() was given
 *
 * watch->removed() is not running when this returns, unless it is the one who calls.
 *
 * Context: sleeps.
 */
void rail_dev_unwatch(struct rail_dev_watch *watch)
{
	struct rail_dev *dev = watch->dev;
	bool told = READ_ONCE(dev->teller) == current;

	if (!told)
		mutex_lock(&dev->watch_lock);
	list_del(&watch->entry);
	if (!told)
		mutex_unlock(&dev->watch_lock);
	rail_dev_put(dev);
}
EXPORT_SYMBOL_GPL(rail_dev_unwatch);

/**
 * rail_dev_add_conn - unplug closes a connection from now on
 * @conn: connection that has a device and a reference on it
 *
 * Return: 0, or -ENODEV when the device is being unplugged: the caller closes the connection.
 */
int rail_dev_add_conn(struct rail_conn *conn)
{
	struct rail_dev *dev = conn->dev;
	int err = 0;

	spin_lock_irq(&dev->lock);
	if (dev->unplugged)
		err = -ENODEV;
	else
		list_add_tail(&conn->dev_entry, &dev->conns);
	spin_unlock_irq(&dev->lock);
	return err;
}

/**
 * rail_dev_del_conn - a connection is no longer on its device
 * @conn: the connection; its reference on the device is given back
 */
void rail_dev_del_conn(struct rail_conn *conn)
{
	struct rail_dev *dev = conn->dev;

	if (!dev)
		return;
	spin_lock_irq(&dev->lock);
	list_del_init(&conn->dev_entry);
	spin_unlock_irq(&dev->lock);
	rail_dev_put(dev);
}

/**
 * rail_devs_visit_conns - show a function every connection that is on a device
 * @fn: the function; called in atomic context
 * @arg: passed on
 *
 * Context: sleeps.
 */
void rail_devs_visit_conns(void (*fn)(struct rail_conn *conn, void *arg), void *arg)
{
	struct rail_conn *conn;
	struct rail_dev *dev;

	mutex_lock(&rail_devs_lock);
	list_for_each_entry(dev, &rail_devs, all) {
		spin_lock_irq(&dev->lock);
		list_for_each_entry(conn, &dev->conns, dev_entry)
			fn(conn, arg);
		spin_unlock_irq(&dev->lock);
	}
	mutex_unlock(&rail_devs_lock);
}

/**
 * rail_pd_alloc - make a protection domain
 * @dev: a device the caller has a reference on
 *
 * Context: sleeps.
 * Return: the domain with one reference, or an ERR_PTR.
 */
struct rail_pd *rail_pd_alloc(struct rail_dev *dev)
{
	struct rail_pd *pd;
	struct ib_pd *ib;

	if (rail_fault(RAIL_FAULT_ALLOC))
		return ERR_PTR(-ENOMEM);
	pd = kmalloc(sizeof(*pd), GFP_KERNEL);
	if (!pd)
		return ERR_PTR(-ENOMEM);
	ib = ib_alloc_pd(dev->ib, 0);
	if (IS_ERR(ib)) {
		kfree(pd);
		return ERR_CAST(ib);
	}
	pd->ib = ib;
	pd->dev = dev;
	refcount_set(&pd->refs, 1);
	rail_dev_get(dev);
	return pd;
}
EXPORT_SYMBOL_GPL(rail_pd_alloc);

/**
 * rail_pd_get - take one more reference
 * @pd: a domain the caller has a reference on
 *
 * Context: any.
 */
void rail_pd_get(struct rail_pd *pd)
{
	refcount_inc(&pd->refs);
}
EXPORT_SYMBOL_GPL(rail_pd_get);

/**
 * rail_pd_put - give a reference back
 * @pd: the domain; gone when this was the last one
 *
 * Context: sleeps.
 */
void rail_pd_put(struct rail_pd *pd)
{
	struct rail_dev *dev = pd->dev;

	if (!refcount_dec_and_test(&pd->refs))
		return;
	ib_dealloc_pd(pd->ib);
	kfree(pd);
	rail_dev_put(dev);
}
EXPORT_SYMBOL_GPL(rail_pd_put);

static int rail_dev_plug(struct ib_device *ib)
{
	const struct ib_device_attr *attrs = &ib->attrs;
	struct rail_dev *dev;
	int err;

	if (!(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		pr_info("rail: %s: has no fast memory registration, not used\n",
			dev_name(&ib->dev));
		return -EOPNOTSUPP;
	}
	dev = kzalloc_node(sizeof(*dev), GFP_KERNEL, ibdev_to_node(ib));
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	refcount_set(&dev->refs, 1);
	init_completion(&dev->gone);
	spin_lock_init(&dev->lock);
	mutex_init(&dev->watch_lock);
	INIT_LIST_HEAD(&dev->conns);
	INIT_LIST_HEAD(&dev->watchers);
	dev->max_sge = attrs->max_send_sge;
	dev->max_recv_sge = attrs->max_recv_sge;
	dev->max_mr_pages = attrs->max_fast_reg_page_list_len;
	dev->mr_type = attrs->kernel_cap_flags & IBK_SG_GAPS_REG ? IB_MR_TYPE_SG_GAPS :
								   IB_MR_TYPE_MEM_REG;
	dev->node = ibdev_to_node(ib);
	dev->dir = debugfs_create_dir(dev_name(&ib->dev), rail_debugfs_root());
	err = rail_stats_init(&dev->stats, &rail_dev_stats_desc, dev->dir);
	if (err) {
		debugfs_remove_recursive(dev->dir);
		kfree(dev);
		return err;
	}
	debugfs_create_file("connections", 0400, dev->dir, dev, &rail_dev_conns_fops);

	mutex_lock(&rail_devs_lock);
	list_add_tail(&dev->all, &rail_devs);
	mutex_unlock(&rail_devs_lock);
	ib_set_client_data(ib, &rail_ib_client, dev);
	return 0;
}

static void rail_dev_unplug(struct ib_device *ib, void *data)
{
	struct rail_dev *dev = data;
	struct rail_dev_watch *watch;
	struct rail_conn *conn;
	LIST_HEAD(told);

	mutex_lock(&rail_devs_lock);
	list_del(&dev->all);
	mutex_unlock(&rail_devs_lock);

	spin_lock_irq(&dev->lock);
	dev->unplugged = true;
	list_for_each_entry(conn, &dev->conns, dev_entry)
		rail_conn_fail(conn, -ENODEV);
	spin_unlock_irq(&dev->lock);

	mutex_lock(&dev->watch_lock);
	WRITE_ONCE(dev->teller, current);
	while ((watch = list_first_entry_or_null(&dev->watchers, struct rail_dev_watch, entry))) {
		list_move(&watch->entry, &told);
		watch->removed(watch);
	}
	WRITE_ONCE(dev->teller, NULL);
	mutex_unlock(&dev->watch_lock);

	rail_dev_put(dev);
	while (!wait_for_completion_timeout(&dev->gone, RAIL_UNPLUG_WARN))
		pr_warn("rail: %s: unplug waits for %u objects on it to go away; see %s/connections in debugfs\n",
			dev_name(&ib->dev), refcount_read(&dev->refs), dev_name(&ib->dev));

	rail_stats_destroy(&dev->stats);
	debugfs_remove_recursive(dev->dir);
	kfree(dev);
}

static struct ib_client rail_ib_client = {
	.name = "rail",
	.add = rail_dev_plug,
	.remove = rail_dev_unplug,
};

/**
 * rail_devs_init - begin to hear of devices
 *
 * Return: 0 or an error.
 */
int rail_devs_init(void)
{
	return ib_register_client(&rail_ib_client);
}

/**
 * rail_devs_exit - no longer hear of devices; all users are gone by now
 */
void rail_devs_exit(void)
{
	ib_unregister_client(&rail_ib_client);
}
