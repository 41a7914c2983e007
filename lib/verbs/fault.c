// SPDX-License-Identifier: GPL-2.0-only
/* Faults for tests. What they are stands in fault.h. */
#include <linux/bottom_half.h>
#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include "verbs_priv.h"

/*
 * @skip events go well, then @count of them fail. Both are counted down without a lock: a race
 * can only move a fault by an event or two.
 */
static struct rail_fault_switch {
	atomic_t skip;
	atomic_t count;
} rail_faults[RAIL_NR_FAULTS];

static u32 rail_fault_delay_ms = 20;

static const char * const rail_fault_names[RAIL_NR_FAULTS] = {
	[RAIL_FAULT_POST] = "fail_posts",
	[RAIL_FAULT_RECV] = "fail_recvs",
	[RAIL_FAULT_MR] = "fail_mrs",
	[RAIL_FAULT_ALLOC] = "fail_allocs",
	[RAIL_FAULT_DELAY] = "delay_completions",
};

/**
 * rail_fault - whether this event is to fail
 * @fault: kind of event
 *
 * Context: any.
 * Return: true if a test asked for it.
 */
bool rail_fault(enum rail_fault fault)
{
	struct rail_fault_switch *sw = &rail_faults[fault];

	if (likely(!atomic_read(&sw->count)))
		return false;
	if (atomic_dec_if_positive(&sw->skip) >= 0)
		return false;
	return atomic_dec_if_positive(&sw->count) >= 0;
}

struct rail_held {
	struct delayed_work work;
	struct rail_conn *conn;
	struct ib_wc wc;
	void (*fn)(struct rail_conn *conn, struct ib_wc *wc);
};

static void rail_held_work(struct work_struct *work)
{
	struct rail_held *held = container_of(to_delayed_work(work), struct rail_held, work);
	struct rail_conn *conn = held->conn;

	/* In a context like that which it was taken from. */
	if (conn->poll == RAIL_POLL_WORKQUEUE || conn->poll == RAIL_POLL_UNBOUND) {
		held->fn(conn, &held->wc);
	} else {
		local_bh_disable();
		held->fn(conn, &held->wc);
		local_bh_enable();
	}
	kfree(held);
	if (atomic_dec_and_test(&conn->delayed))
		wake_up_var(&conn->delayed);
}

/**
 * rail_fault_delay - hold a completion back if a test asked for it
 * @conn: where it happened
 * @wc: the completion, copied
 * @fn: called later, from a workqueue
 *
 * Context: any.
 * Return: true if it is held back; the caller forgets it.
 */
bool rail_fault_delay(struct rail_conn *conn, struct ib_wc *wc,
		      void (*fn)(struct rail_conn *conn, struct ib_wc *wc))
{
	struct rail_held *held;

	if (!rail_fault(RAIL_FAULT_DELAY))
		return false;
	held = kmalloc(sizeof(*held), GFP_ATOMIC);
	if (!held)
		return false;
	INIT_DELAYED_WORK(&held->work, rail_held_work);
	held->conn = conn;
	held->wc = *wc;
	held->fn = fn;
	atomic_inc(&conn->delayed);
	queue_delayed_work(rail_wq, &held->work, msecs_to_jiffies(READ_ONCE(rail_fault_delay_ms)));
	return true;
}

/**
 * rail_faults_wait - wait until no completion is held back
 * @conn: the connection
 *
 * Context: sleeps.
 */
void rail_faults_wait(struct rail_conn *conn)
{
	wait_var_event(&conn->delayed, !atomic_read(&conn->delayed));
}

static int rail_fault_show(struct seq_file *m, void *unused)
{
	struct rail_fault_switch *sw = m->private;

	seq_printf(m, "%d@%d\n", atomic_read(&sw->count), atomic_read(&sw->skip));
	return 0;
}

static int rail_fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, rail_fault_show, inode->i_private);
}

static ssize_t rail_fault_write(struct file *file, const char __user *text, size_t len,
				loff_t *pos)
{
	struct rail_fault_switch *sw = file_inode(file)->i_private;
	unsigned int count, skip = 0;
	char buf[32], *at;
	int err;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, text, len))
		return -EFAULT;
	buf[len] = '\0';
	at = strchr(buf, '@');
	if (at) {
		*at = '\0';
		err = kstrtouint(strim(at + 1), 0, &skip);
		if (err)
			return err;
	}
	err = kstrtouint(strim(buf), 0, &count);
	if (err)
		return err;
	if (count > INT_MAX || skip > INT_MAX)
		return -ERANGE;
	atomic_set(&sw->skip, skip);
	atomic_set(&sw->count, count);
	return len;
}

static const struct file_operations rail_fault_fops = {
	.owner = THIS_MODULE,
	.open = rail_fault_open,
	.read = seq_read,
	.write = rail_fault_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void rail_fault_drop_one(struct rail_conn *conn, void *arg)
{
	unsigned int id = *(unsigned int *)arg;

	if (!id || id == conn->id)
		rail_conn_fail(conn, -ECONNRESET);
}

static ssize_t rail_fault_drop_write(struct file *file, const char __user *text, size_t len,
				     loff_t *pos)
{
	unsigned int id = 0;
	char buf[16];
	int err;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, text, len))
		return -EFAULT;
	buf[len] = '\0';
	if (strcmp(strim(buf), "all")) {
		err = kstrtouint(strim(buf), 0, &id);
		if (err)
			return err;
		if (!id)
			return -EINVAL;
	}
	rail_devs_visit_conns(rail_fault_drop_one, &id);
	return len;
}

static const struct file_operations rail_fault_drop_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.write = rail_fault_drop_write,
};

/**
 * rail_faults_init - make the switches
 * @root: rail's debugfs folder, which whoever made it removes
 */
void rail_faults_init(struct dentry *root)
{
	struct dentry *dir = debugfs_create_dir("faults", root);
	int i;

	for (i = 0; i < RAIL_NR_FAULTS; i++)
		debugfs_create_file(rail_fault_names[i], 0600, dir, &rail_faults[i],
				    &rail_fault_fops);
	debugfs_create_u32("delay_ms", 0600, dir, &rail_fault_delay_ms);
	debugfs_create_file("drop", 0200, dir, NULL, &rail_fault_drop_fops);
}
