// SPDX-License-Identifier: GPL-2.0-only
/*
 * What users see of the client: /sys/class/rnbd-client/ctl, /sys/block/rnbd<N>/rnbd, the module.
 * Their texts are parsed by scripts.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include <rail/verbs.h>

#include "client.h"

MODULE_DESCRIPTION("RAIL: RNBD client, block devices over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);

static struct dentry *cli_dir;

/**
 * cli_debugfs - the client's folder in debugfs
 */
struct dentry *cli_debugfs(void)
{
	return cli_dir;
}

/* ---- /sys/block/rnbd<N>/rnbd ---- */

static struct cli_dev *to_dev(struct kobject *kobj)
{
	return container_of(kobj, struct cli_dev, kobj);
}

static ssize_t unmap_device_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "Usage: echo <normal|force> > %s\n", attr->attr.name);
}

static ssize_t unmap_device_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	struct cli_dev *dev = to_dev(kobj);
	bool force = sysfs_streq(buf, "force");
	int error;

	if (!force && !sysfs_streq(buf, "normal")) {
		pr_err("%s: write normal or force to unmap_device\n", dev->disk->disk_name);
		return -EINVAL;
	}
	/* The attribute goes on the way, and with it what keeps the module here. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	refcount_inc(&dev->refs);
	error = cli_dev_unmap(dev, force, &attr->attr);
	if (error == -EBUSY)
		pr_info("%s: is in use and stays mapped; close or unmount it, or write force to unmap_device\n",
			dev->disk->disk_name);
	cli_dev_put(dev);
	module_put(THIS_MODULE);
	return error ?: count;
}

static ssize_t remap_device_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "Usage: echo <1> > %s\n", attr->attr.name);
}

static ssize_t remap_device_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	struct cli_dev *dev = to_dev(kobj);
	int error;

	if (!sysfs_streq(buf, "1"))
		return -EINVAL;
	error = cli_dev_remap(dev);
	if (error && error != -EALREADY)
		pr_err("%s: %s of session %s cannot be opened again: %pe\n",
		       dev->disk->disk_name, dev->path, dev->sess->name, ERR_PTR(error));
	return error ?: count;
}

static ssize_t resize_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "Usage: echo <new size in sectors> > %s\n", attr->attr.name);
}

static ssize_t resize_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			    size_t count)
{
	struct cli_dev *dev = to_dev(kobj);
	u64 sectors;
	int error;

	error = kstrtou64(buf, 0, &sectors);
	if (!error)
		error = cli_dev_resize(dev, sectors);
	return error ?: count;
}

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	bool open = READ_ONCE(to_dev(kobj)->state) == CLI_OPEN;

	return sysfs_emit(page, "%s\n", open ? "open" : "closed");
}

static ssize_t session_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%s\n", to_dev(kobj)->sess->name);
}

static ssize_t mapping_path_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%s\n", to_dev(kobj)->path);
}

static ssize_t access_mode_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%s\n", rail_rnbd_access_text(to_dev(kobj)->access));
}

static ssize_t nr_poll_queues_show(struct kobject *kobj, struct kobj_attribute *attr, char *page)
{
	return sysfs_emit(page, "%u\n", to_dev(kobj)->sess->limits->nr_poll_queues);
}

static struct kobj_attribute unmap_device_attr = __ATTR_RW(unmap_device);
static struct kobj_attribute remap_device_attr = __ATTR_RW(remap_device);
static struct kobj_attribute resize_attr = __ATTR_RW(resize);
static struct kobj_attribute state_attr = __ATTR_RO(state);
static struct kobj_attribute session_attr = __ATTR_RO(session);
static struct kobj_attribute mapping_path_attr = __ATTR_RO(mapping_path);
static struct kobj_attribute access_mode_attr = __ATTR_RO(access_mode);
static struct kobj_attribute nr_poll_queues_attr = __ATTR_RO(nr_poll_queues);

static struct attribute *dev_attrs[] = {
	&unmap_device_attr.attr,
	&remap_device_attr.attr,
	&resize_attr.attr,
	&state_attr.attr,
	&session_attr.attr,
	&mapping_path_attr.attr,
	&access_mode_attr.attr,
	&nr_poll_queues_attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(dev);

static void dev_release(struct kobject *kobj)
{
	cli_dev_put(to_dev(kobj));
}

static const struct kobj_type dev_ktype = {
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= dev_groups,
	.release	= dev_release,
};

/* ---- /sys/class/rnbd-client/ctl ---- */

static ssize_t map_device_show(struct device *device, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page,
			  "Usage: echo \"[dest_port=server port number] sessname=<name of the rtrs session> path=<[srcaddr@]dstaddr> [path=<[srcaddr@]dstaddr>] device_path=<full path on remote side> [access_mode=<ro|rw|migration>] [nr_poll_queues=<number of queues>] [no_path_timeout=<seconds>]\" > %s\n\naddr ::= [ ip:<ipv4> | ip:<ipv6> | gid:<gid> ]\n",
			  attr->attr.name);
}

static ssize_t map_device_store(struct device *device, struct device_attribute *attr,
				const char *buf, size_t count)
{
	struct cli_map *map;
	const char *why;
	int error;

	map = kmalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	error = cli_map_parse(buf, count, map, &why);
	if (error)
		pr_err("map_device: %s; cat it for its usage\n", why);
	else
		error = cli_dev_map(map);
	kfree(map);
	return error ?: count;
}

static struct device_attribute map_device_attr = __ATTR_RW(map_device);

static struct attribute *ctl_attrs[] = {
	&map_device_attr.attr,
	NULL,
};
ATTRIBUTE_GROUPS(ctl);

static struct class cli_class = {
	.name = "rnbd-client",
};

static struct device *cli_ctl;
static struct kobject *cli_devices;

/**
 * cli_sysfs_add - show a mapping
 * @dev: the mapping, its disk added
 *
 * Context: process.
 * Return: 0 or an errno; cli_sysfs_del() undoes what was done in either case.
 */
int cli_sysfs_add(struct cli_dev *dev)
{
	int error;

	refcount_inc(&dev->refs);
	dev->kobj_live = true;
	error = kobject_init_and_add(&dev->kobj, &dev_ktype, &disk_to_dev(dev->disk)->kobj,
				     "rnbd");
	if (error)
		return error;
	error = cli_link_name(dev->link, sizeof(dev->link), dev->path, dev->sess->name);
	if (!error)
		/* "a/b" and "a!b" have the same name here, which is no reason for a stack trace. */
		error = sysfs_create_link_nowarn(cli_devices, &disk_to_dev(dev->disk)->kobj,
						 dev->link);
	if (error)
		dev->link[0] = '\0';
	return error;
}

/**
 * cli_sysfs_del - show a mapping no more
 * @dev: the mapping, its disk not yet removed
 *
 * Context: process; waits for users of its attributes.
 */
void cli_sysfs_del(struct cli_dev *dev)
{
	if (dev->link[0])
		sysfs_remove_link(cli_devices, dev->link);
	if (!dev->kobj_live)
		return;
	kobject_del(&dev->kobj);
	kobject_put(&dev->kobj);
}

static int __init cli_init(void)
{
	int error;

	cli_dir = debugfs_create_dir("rnbd-client", rail_debugfs_root());
	error = class_register(&cli_class);
	if (error)
		goto remove_dir;
	/* The folder before the file: a mapping made at once has its place. */
	cli_ctl = device_create(&cli_class, NULL, MKDEV(0, 0), NULL, "ctl");
	if (IS_ERR(cli_ctl)) {
		error = PTR_ERR(cli_ctl);
		goto unregister_class;
	}
	error = -ENOMEM;
	cli_devices = kobject_create_and_add("devices", &cli_ctl->kobj);
	if (!cli_devices)
		goto unregister_ctl;
	error = sysfs_create_groups(&cli_ctl->kobj, ctl_groups);
	if (error)
		goto del_devices;
	return 0;

del_devices:
	kobject_put(cli_devices);
unregister_ctl:
	device_unregister(cli_ctl);
unregister_class:
	class_unregister(&cli_class);
remove_dir:
	debugfs_remove_recursive(cli_dir);
	return error;
}

static void __exit cli_exit(void)
{
	sysfs_remove_groups(&cli_ctl->kobj, ctl_groups);
	cli_dev_unmap_all();
	kobject_put(cli_devices);
	device_unregister(cli_ctl);
	class_unregister(&cli_class);
	debugfs_remove_recursive(cli_dir);
}

module_init(cli_init);
module_exit(cli_exit);
