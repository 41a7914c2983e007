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

struct rsrv_attr {
	struct attribute attr;
	ssize_t (*show)(struct rsrv_path *path, char *buf);
	ssize_t (*store)(struct rsrv_path *path, const char *buf, size_t len);
};

static ssize_t rsrv_attr_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	const struct rsrv_attr *a = container_of(attr, struct rsrv_attr, attr);

	return a->show ? a->show(container_of(kobj, struct rsrv_path, kobj), buf) : -EIO;
}

static ssize_t rsrv_attr_store(struct kobject *kobj, struct attribute *attr, const char *buf,
			       size_t len)
{
	const struct rsrv_attr *a = container_of(attr, struct rsrv_attr, attr);

	return a->store ? a->store(container_of(kobj, struct rsrv_path, kobj), buf, len) : -EIO;
}

static const struct sysfs_ops rsrv_sysfs_ops = {
	.show = rsrv_attr_show,
	.store = rsrv_attr_store,
};

static ssize_t disconnect_show(struct rsrv_path *path, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > disconnect\n");
}

static ssize_t disconnect_store(struct rsrv_path *path, const char *buf, size_t len)
{
	if (!sysfs_streq(buf, "1")) {
		rsrv_warn(path, "disconnect: write 1 to it\n");
		return -EINVAL;
	}
	rsrv_path_fail(path, -ECANCELED);
	return len;
}

static ssize_t hca_name_show(struct rsrv_path *path, char *buf)
{
	return sysfs_emit(buf, "%s\n", path->hca);
}

static ssize_t hca_port_show(struct rsrv_path *path, char *buf)
{
	return sysfs_emit(buf, "%u\n", path->port);
}

static ssize_t rsrv_show_addr(const struct sockaddr_storage *addr, char *buf)
{
	char text[RAIL_ADDR_STRLEN];

	rail_addr_print(text, sizeof(text), (const struct sockaddr *)addr);
	return sysfs_emit(buf, "%s\n", text);
}

static ssize_t src_addr_show(struct rsrv_path *path, char *buf)
{
	return rsrv_show_addr(&path->src, buf);
}

static ssize_t dst_addr_show(struct rsrv_path *path, char *buf)
{
	return rsrv_show_addr(&path->dst, buf);
}

static ssize_t rdma_show(struct rsrv_path *path, char *buf)
{
	return sysfs_emit(buf, "%llu %llu %llu %llu\n",
			  rail_stats_read(&path->stats, RSRV_STAT_READS),
			  rail_stats_read(&path->stats, RSRV_STAT_READ_BYTES),
			  rail_stats_read(&path->stats, RSRV_STAT_WRITES),
			  rail_stats_read(&path->stats, RSRV_STAT_WRITE_BYTES));
}

static ssize_t rdma_store(struct rsrv_path *path, const char *buf, size_t len)
{
	if (!sysfs_streq(buf, "1") && !sysfs_streq(buf, "0"))
		return -EINVAL;
	rail_stats_reset(&path->stats);
	return len;
}

#define RSRV_RO(_name) \
	static struct rsrv_attr _name##_attr = { \
		.attr = { .name = #_name, .mode = 0444 }, \
		.show = _name##_show, \
	}
#define RSRV_RW(_name) \
	static struct rsrv_attr _name##_attr = { \
		.attr = { .name = #_name, .mode = 0644 }, \
		.show = _name##_show, \
		.store = _name##_store, \
	}

RSRV_RW(disconnect);
RSRV_RO(hca_name);
RSRV_RO(hca_port);
RSRV_RO(src_addr);
RSRV_RO(dst_addr);
RSRV_RW(rdma);

static struct attribute *rsrv_path_attrs[] = {
	&disconnect_attr.attr,
	&hca_name_attr.attr,
	&hca_port_attr.attr,
	&src_addr_attr.attr,
	&dst_addr_attr.attr,
	NULL,
};

static struct attribute *rsrv_stats_attrs[] = {
	&rdma_attr.attr,
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
	.sysfs_ops = &rsrv_sysfs_ops,
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
