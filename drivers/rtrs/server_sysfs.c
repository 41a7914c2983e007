// SPDX-License-Identifier: GPL-2.0-only
/*
 * RTRS server in sysfs, /sys/class/rtrs-server/<session>/paths/<source@destination>/, and in
 * debugfs, rail/rtrs-server/<session>/<source@destination>/.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include <rail/addr.h>

#include "server.h"

static struct class rsrv_class = {
	.name = "rtrs-server",
};

static struct dentry *rsrv_debugfs;

static struct rsrv_path *to_path(struct kobject *kobj)
{
	return container_of(kobj, struct rsrv_path, kobj);
}

static ssize_t disconnect_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > disconnect\n");
}

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t len)
{
	struct rsrv_path *path = to_path(kobj);

	if (!sysfs_streq(buf, "1")) {
		rsrv_warn(path, "disconnect: write 1 to it\n");
		return -EINVAL;
	}
	rsrv_path_fail(path, -ECANCELED);
	return len;
}

static ssize_t hca_name_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", to_path(kobj)->hca);
}

static ssize_t hca_port_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_path(kobj)->port);
}

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return rtrs_emit_addr(buf, &to_path(kobj)->src);
}

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return rtrs_emit_addr(buf, &to_path(kobj)->dst);
}

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct rail_stats *stats = &to_path(kobj)->stats;

	return sysfs_emit(buf, "%llu %llu %llu %llu\n",
			  rail_stats_read(stats, RSRV_STAT_READS),
			  rail_stats_read(stats, RSRV_STAT_READ_BYTES),
			  rail_stats_read(stats, RSRV_STAT_WRITES),
			  rail_stats_read(stats, RSRV_STAT_WRITE_BYTES));
}

static ssize_t rdma_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			  size_t len)
{
	struct rsrv_path *path = to_path(kobj);

	if (!sysfs_streq(buf, "1") && !sysfs_streq(buf, "0"))
		return -EINVAL;
	rail_stats_reset(&path->stats);
	return len;
}

RTRS_FILE(disconnect, RW);
RTRS_FILE(hca_name, RO);
RTRS_FILE(hca_port, RO);
RTRS_FILE(src_addr, RO);
RTRS_FILE(dst_addr, RO);
RTRS_FILE(rdma, RW);

static struct attribute *rsrv_path_attrs[] = {
	&disconnect_file.attr,
	&hca_name_file.attr,
	&hca_port_file.attr,
	&src_addr_file.attr,
	&dst_addr_file.attr,
	NULL,
};

static struct attribute *rsrv_stats_attrs[] = {
	&rdma_file.attr,
	NULL,
};

static const struct attribute_group rsrv_path_group = {
	.attrs = rsrv_path_attrs,
};

static const struct attribute_group rsrv_stats_group = {
	.name = "stats",
	.attrs = rsrv_stats_attrs,
};

static const struct attribute_group *rsrv_path_groups[] = {
	&rsrv_path_group,
	&rsrv_stats_group,
	NULL,
};

static void rsrv_path_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct rsrv_path, kobj)->kobj_gone);
}

static const struct kobj_type rsrv_path_type = {
	.release = rsrv_path_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = rsrv_path_groups,
};

static int rsrv_sysfs_add_sess(struct rail_srv_sess *sess)
{
	struct device *device;

	if (sess->device)
		return 0;
	device = device_create(&rsrv_class, NULL, MKDEV(0, 0), NULL, "%s", sess->name);
	if (IS_ERR(device))
		return PTR_ERR(device);
	sess->paths_dir = kobject_create_and_add("paths", &device->kobj);
	if (!sess->paths_dir) {
		device_unregister(device);
		return -ENOMEM;
	}
	sess->device = device;
	sess->dir = debugfs_create_dir(sess->name, rsrv_debugfs);
	return 0;
}

static int rsrv_text_show(struct seq_file *m, void *unused)
{
	struct rsrv_path *path = m->private;

	rail_stats_show_text(&path->stats, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rsrv_text);

static int rsrv_json_show(struct seq_file *m, void *unused)
{
	struct rsrv_path *path = m->private;

	rail_stats_show_json(&path->stats, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rsrv_json);

static bool rsrv_is_there(struct rsrv_path *path)
{
	struct rsrv_path *other;
	bool there = false;

	mutex_lock(&path->sess->srv->lock);
	list_for_each_entry(other, &path->sess->paths, entry)
		there |= other->kobj_added && !strcmp(other->name, path->name);
	mutex_unlock(&path->sess->srv->lock);
	return there;
}

/**
 * rsrv_sysfs_add - show a path, and its session if it is the first
 * @path: path with a name, session's up_lock held
 *
 * Return: 0, or an error: -EEXIST when the session has a path between these addresses already.
 */
int rsrv_sysfs_add(struct rsrv_path *path)
{
	struct rail_srv_sess *sess = path->sess;
	int err;

	/* sysfs would make a noise, for which no client has to be able to ask. */
	if (rsrv_is_there(path))
		return -EEXIST;
	err = rsrv_sysfs_add_sess(sess);
	if (err)
		return err;
	err = kobject_init_and_add(&path->kobj, &rsrv_path_type, sess->paths_dir, "%s",
				   path->name);
	if (err) {
		kobject_put(&path->kobj);
		wait_for_completion(&path->kobj_gone);
		return err;
	}
	path->kobj_added = true;
	path->dir = debugfs_create_dir(path->name, sess->dir);
	debugfs_create_file("stats", 0400, path->dir, path, &rsrv_text_fops);
	debugfs_create_file("stats.json", 0400, path->dir, path, &rsrv_json_fops);
	return 0;
}

/**
 * rsrv_sysfs_del - no longer show a path
 * @path: the path; nobody looks at it through sysfs or debugfs when this returns
 */
void rsrv_sysfs_del(struct rsrv_path *path)
{
	if (!path->kobj_added)
		return;
	debugfs_remove_recursive(path->dir);
	kobject_del(&path->kobj);
	kobject_put(&path->kobj);
	wait_for_completion(&path->kobj_gone);
}

/**
 * rsrv_sysfs_del_sess - no longer show a session
 * @sess: the session, without paths
 */
void rsrv_sysfs_del_sess(struct rail_srv_sess *sess)
{
	if (!sess->device)
		return;
	debugfs_remove_recursive(sess->dir);
	kobject_del(sess->paths_dir);
	kobject_put(sess->paths_dir);
	device_unregister(sess->device);
}

/**
 * rsrv_sysfs_init - make the class
 *
 * Return: 0 or an error.
 */
int rsrv_sysfs_init(void)
{
	int err = class_register(&rsrv_class);

	if (!err)
		rsrv_debugfs = debugfs_create_dir("rtrs-server", rail_debugfs_root());
	return err;
}

/**
 * rsrv_sysfs_exit - no session is left
 */
void rsrv_sysfs_exit(void)
{
	debugfs_remove_recursive(rsrv_debugfs);
	class_unregister(&rsrv_class);
}
