// SPDX-License-Identifier: GPL-2.0-only
/*
 * What users see of the server: /sys/class/rnbd-server/ctl, the module.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <net/net_namespace.h>

#include <rail/verbs.h>

#include "server.h"

MODULE_DESCRIPTION("RAIL: RNBD server, block devices over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);

static ushort port_nr = RAIL_RTRS_PORT;
module_param(port_nr, ushort, 0444);
MODULE_PARM_DESC(port_nr, "Port that clients connect to (default: 1234)");

char *srv_search_path;
module_param_named(dev_search_path, srv_search_path, charp, 0444);
MODULE_PARM_DESC(dev_search_path, "Folder below which any client may map any block device; %SESSNAME% in it stands for the name of the client's session. Not set: only what is exported in configfs may be mapped.");

struct workqueue_struct *srv_wq;

static struct class srv_class = {
	.name = "rnbd-server",
};

static struct device *srv_ctl;
static struct kobject *srv_devices;
static struct dentry *srv_dir;
static struct rail_srv *srv_rtrs;

/**
 * srv_debugfs - the server's folder in debugfs
 */
struct dentry *srv_debugfs(void)
{
	return srv_dir;
}

/* ---- devices/<device>/sessions/<session> ---- */

static struct srv_map *to_map(struct kobject *kobj)
{
	return container_of(kobj, struct srv_map, kobj);
}

static ssize_t read_only_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%d\n", to_map(kobj)->ro);
}

static ssize_t mapping_path_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%s\n", to_map(kobj)->path);
}

static ssize_t access_mode_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%s\n", rail_rnbd_access_text(to_map(kobj)->access));
}

static ssize_t force_close_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "Usage: echo 1 > %s\n", attr->attr.name);
}

static ssize_t force_close_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	if (!sysfs_streq(buf, "1")) {
		pr_err("%s: write 1 to force_close\n", to_map(kobj)->path);
		return -EINVAL;
	}
	/* The attribute goes on the way, and with it what keeps the module here. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	srv_map_force_close(to_map(kobj), &attr->attr);
	module_put(THIS_MODULE);
	return count;
}

static struct kobj_attribute read_only_attr = __ATTR_RO(read_only);
static struct kobj_attribute mapping_path_attr = __ATTR_RO(mapping_path);
static struct kobj_attribute access_mode_attr = __ATTR_RO(access_mode);
static struct kobj_attribute force_close_attr = __ATTR_RW(force_close);

static struct attribute *map_attrs[] = {
	&read_only_attr.attr,
	&mapping_path_attr.attr,
	&access_mode_attr.attr,
	&force_close_attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(map);

static void map_release(struct kobject *kobj)
{
	srv_map_free(to_map(kobj));
}

static const struct kobj_type map_ktype = {
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= map_groups,
	.release	= map_release,
};

/**
 * srv_sysfs_init_map - a new mapping, which from now on is freed by kobject_put()
 * @map: the mapping
 */
void srv_sysfs_init_map(struct srv_map *map)
{
	kobject_init(&map->kobj, &map_ktype);
}

/**
 * srv_sysfs_add_map - show a mapping
 * @map: the mapping
 *
 * Context: process; srv_lock held.
 * Return: 0 or an errno.
 */
int srv_sysfs_add_map(struct srv_map *map)
{
	return kobject_add(&map->kobj, map->dev->sessions, "%s", map->sess->name);
}

/**
 * srv_sysfs_del_map - show a mapping no more
 * @map: the mapping
 *
 * Context: process; srv_lock held; waits for users of its attributes.
 */
void srv_sysfs_del_map(struct srv_map *map)
{
	kobject_del(&map->kobj);
}

/* ---- devices/<device> ---- */

static void dev_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct srv_dev, kobj));
}

static const struct kobj_type dev_ktype = {
	.sysfs_ops	= &kobj_sysfs_ops,
	.release	= dev_release,
};

/**
 * srv_sysfs_add_dev - show a device
 * @dev: the device, freed if there is an error
 * @bdev: what it is
 *
 * Context: process; srv_lock held.
 * Return: 0 or an errno.
 */
int srv_sysfs_add_dev(struct srv_dev *dev, struct block_device *bdev)
{
	int error;

	error = kobject_init_and_add(&dev->kobj, &dev_ktype, srv_devices, "%pg", bdev);
	if (error)
		goto put;
	error = -ENOMEM;
	dev->sessions = kobject_create_and_add("sessions", &dev->kobj);
	if (!dev->sessions)
		goto del;
	error = sysfs_create_link(&dev->kobj, bdev_kobj(bdev), "block_dev");
	if (error)
		goto del_sessions;
	return 0;

del_sessions:
	kobject_del(dev->sessions);
	kobject_put(dev->sessions);
del:
	kobject_del(&dev->kobj);
put:
	kobject_put(&dev->kobj);
	return error;
}

/**
 * srv_sysfs_del_dev - show a device no more, and free it
 * @dev: the device, without mappings
 *
 * Context: process; srv_lock held.
 */
void srv_sysfs_del_dev(struct srv_dev *dev)
{
	sysfs_remove_link(&dev->kobj, "block_dev");
	kobject_del(dev->sessions);
	kobject_put(dev->sessions);
	kobject_del(&dev->kobj);
	kobject_put(&dev->kobj);
}

/* ---- the module ---- */

static int srv_listen(void)
{
	struct rail_srv_attr attr = {
		.net = &init_net,
		.port = port_nr,
		.usr_max = sizeof(struct rail_rnbd_open),
		.ops = &srv_ops,
	};

	srv_rtrs = rail_srv_open(&attr);
	return PTR_ERR_OR_ZERO(srv_rtrs);
}

static int __init srv_init(void)
{
	int error;

	if (srv_search_path && srv_search_path[0] != '/') {
		pr_err("dev_search_path=%s has to be an absolute path\n", srv_search_path);
		return -EINVAL;
	}
	/* Not for reclaim: opening a disk waits for works that are not. I/O does not come here. */
	srv_wq = alloc_workqueue("rnbd_server", WQ_UNBOUND, 0);
	if (!srv_wq)
		return -ENOMEM;
	srv_dir = debugfs_create_dir("rnbd-server", rail_debugfs_root());
	error = class_register(&srv_class);
	if (error)
		goto remove_dir;
	srv_ctl = device_create(&srv_class, NULL, MKDEV(0, 0), NULL, "ctl");
	if (IS_ERR(srv_ctl)) {
		error = PTR_ERR(srv_ctl);
		goto unregister_class;
	}
	error = -ENOMEM;
	srv_devices = kobject_create_and_add("devices", &srv_ctl->kobj);
	if (!srv_devices)
		goto unregister_ctl;
	error = srv_export_init();
	if (error)
		goto put_devices;
	error = srv_listen();
	if (error) {
		pr_err("cannot listen on port %u: %pe\n", port_nr, ERR_PTR(error));
		goto exit_exports;
	}
	if (srv_search_path)
		pr_warn("every host that reaches port %u may map every block device below %s\n",
			port_nr, srv_search_path);
	return 0;

exit_exports:
	srv_export_exit();
put_devices:
	kobject_put(srv_devices);
unregister_ctl:
	device_unregister(srv_ctl);
unregister_class:
	class_unregister(&srv_class);
remove_dir:
	debugfs_remove_recursive(srv_dir);
	destroy_workqueue(srv_wq);
	return error;
}

static void __exit srv_exit(void)
{
	rail_srv_close(srv_rtrs);
	srv_export_exit();
	kobject_put(srv_devices);
	device_unregister(srv_ctl);
	class_unregister(&srv_class);
	debugfs_remove_recursive(srv_dir);
	destroy_workqueue(srv_wq);
}

module_init(srv_init);
module_exit(srv_exit);
