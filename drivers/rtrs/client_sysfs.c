// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/rtrs-client/: sessions and their paths, for people and their scripts.
 *
 * The device of a session holds the session, the kobject of a path holds the path.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "client.h"

static struct clt_path *to_path(struct kobject *kobj)
{
	return container_of(kobj, struct clt_path, kobj);
}

static struct rail_clt *to_clt(struct device *dev)
{
	return container_of(dev, struct rail_clt, dev);
}

/* Files that are for writing say so when they are read. */
static ssize_t usage(char *buf, const char *what, const struct kobj_attribute *attr)
{
	return sysfs_emit(buf, "Usage: echo %s > %s\n", what, attr->attr.name);
}

static int parse_one(const char *buf)
{
	return sysfs_streq(buf, "1") ? 0 : -EINVAL;
}

/* ---------------------------------------------------------------- a path's numbers */

/* A number a CPU. */
static ssize_t migration_show(struct kobject *kobj, enum clt_stat stat, char *buf)
{
	struct rail_stats *stats = &to_path(kobj)->stats;
	int cpu, n = 0;

	for_each_possible_cpu(cpu)
		n += sysfs_emit_at(buf, n, "%llu ", per_cpu_ptr(stats->count, cpu)[stat]);
	return n + sysfs_emit_at(buf, n, "\n");
}

static ssize_t cpu_migration_from_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return migration_show(kobj, CLT_STAT_MIGRATED_FROM, buf);
}

static ssize_t cpu_migration_to_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return migration_show(kobj, CLT_STAT_MIGRATED_TO, buf);
}

/* Both, as the protocol's paper has it; mainline has the two above. */
static ssize_t cpu_migration_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	int n = migration_show(kobj, CLT_STAT_MIGRATED_FROM, buf);

	return n + migration_show(kobj, CLT_STAT_MIGRATED_TO, buf + n);
}

static ssize_t reconnects_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct clt_path *path = to_path(kobj);

	return sysfs_emit(buf, "%u %u\n", READ_ONCE(path->reconnects_ok),
			  READ_ONCE(path->reconnects_failed));
}

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct rail_stats *stats = &to_path(kobj)->stats;
	/* Ended first: what ends meanwhile must not make it negative. */
	u64 ended = rail_stats_read(stats, CLT_STAT_ENDED);

	return sysfs_emit(buf, "%llu %llu %llu %llu %llu %llu\n",
			  rail_stats_read(stats, CLT_STAT_READS),
			  rail_stats_read(stats, CLT_STAT_READ_BYTES),
			  rail_stats_read(stats, CLT_STAT_WRITES),
			  rail_stats_read(stats, CLT_STAT_WRITE_BYTES),
			  rail_stats_read(stats, CLT_STAT_STARTED) - ended,
			  rail_stats_read(stats, CLT_STAT_FAILED_OVER));
}

static ssize_t reset_all_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "echo 1 to reset all statistics\n");
}

/* What is outstanding is no number to be reset: started keeps the difference. */
static ssize_t reset_all_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	struct clt_path *path = to_path(kobj);
	u64 inflight;

	if (parse_one(buf))
		return -EINVAL;
	inflight = rail_stats_read(&path->stats, CLT_STAT_STARTED) -
		   rail_stats_read(&path->stats, CLT_STAT_ENDED);
	rail_stats_reset(&path->stats);
	rail_stats_add(&path->stats, CLT_STAT_STARTED, inflight);
	path->reconnects_ok = 0;
	path->reconnects_failed = 0;
	return count;
}

RTRS_FILE(reset_all, RW);
RTRS_FILE(rdma, RO);
RTRS_FILE(reconnects, RO);
RTRS_FILE(cpu_migration, RO);
RTRS_FILE(cpu_migration_from, RO);
RTRS_FILE(cpu_migration_to, RO);

static struct attribute *path_stats_attrs[] = {
	&reset_all_file.attr,
	&rdma_file.attr,
	&reconnects_file.attr,
	&cpu_migration_file.attr,
	&cpu_migration_from_file.attr,
	&cpu_migration_to_file.attr,
	NULL
};

/* ---------------------------------------------------------------- a path */

static ssize_t state_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", clt_path_state_names[READ_ONCE(to_path(kobj)->state)]);
}

static ssize_t reconnect_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return usage(buf, "1", attr);
}

static ssize_t reconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			       size_t count)
{
	if (parse_one(buf))
		return -EINVAL;
	clt_path_reconnect(to_path(kobj));
	return count;
}

static ssize_t disconnect_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return usage(buf, "1", attr);
}

/* Or somebody wants it otherwise. */
static bool path_is_off(struct clt_path *path)
{
	enum clt_path_state state = READ_ONCE(path->state);

	return state == CLT_PATH_OFF || state == CLT_PATH_GONE ||
	       READ_ONCE(path->want) != CLT_WANT_OFF;
}

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	struct clt_path *path = to_path(kobj);

	if (parse_one(buf))
		return -EINVAL;
	clt_path_want(path, CLT_WANT_OFF);
	if (wait_event_interruptible(path->wq, path_is_off(path)))
		return -EINTR;
	return count;
}

static ssize_t remove_path_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return usage(buf, "1", attr);
}

static ssize_t remove_path_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t count)
{
	struct clt_path *path = to_path(kobj);

	if (parse_one(buf))
		return -EINVAL;
	/* The attribute goes on the way, and with it what keeps the module here. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	if (test_and_set_bit(0, &path->removing)) {
		module_put(THIS_MODULE);
		return -EALREADY;
	}
	/* Or the removal would wait for this very write. */
	sysfs_remove_file_self(kobj, &attr->attr);
	clt_info(path, "removed by a user\n");
	clt_path_remove(path);
	module_put(THIS_MODULE);
	return count;
}

static ssize_t hca_name_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", to_path(kobj)->hca_name);
}

static ssize_t hca_port_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_path(kobj)->hca_port);
}

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return rtrs_emit_addr(buf, &to_path(kobj)->addr.src);
}

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return rtrs_emit_addr(buf, &to_path(kobj)->addr.dst);
}

static ssize_t cur_latency_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu ns\n", READ_ONCE(to_path(kobj)->hb.latency_ns));
}

RTRS_FILE(state, RO);
RTRS_FILE(reconnect, RW);
RTRS_FILE(disconnect, RW);
RTRS_FILE(remove_path, RW);
RTRS_FILE(hca_name, RO);
RTRS_FILE(hca_port, RO);
RTRS_FILE(src_addr, RO);
RTRS_FILE(dst_addr, RO);
RTRS_FILE(cur_latency, RO);

static struct attribute *path_attrs[] = {
	&state_file.attr,
	&reconnect_file.attr,
	&disconnect_file.attr,
	&remove_path_file.attr,
	&hca_name_file.attr,
	&hca_port_file.attr,
	&src_addr_file.attr,
	&dst_addr_file.attr,
	&cur_latency_file.attr,
	NULL
};

static const struct attribute_group path_group = { .attrs = path_attrs };
static const struct attribute_group path_stats_group = {
	.name = "stats",
	.attrs = path_stats_attrs,
};

static const struct attribute_group *path_groups[] = {
	&path_group,
	&path_stats_group,
	NULL
};

static void path_release(struct kobject *kobj)
{
	clt_path_free(to_path(kobj));
}

static const struct kobj_type path_ktype = {
	.release = path_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = path_groups,
};

/**
 * clt_sysfs_init_path - a path can be referenced from now on
 * @path: new path
 */
void clt_sysfs_init_path(struct clt_path *path)
{
	kobject_init(&path->kobj, &path_ktype);
}

/**
 * clt_sysfs_add_path - show a path
 * @path: path of a session that is shown
 *
 * Return: 0 or an error.
 */
int clt_sysfs_add_path(struct clt_path *path)
{
	return kobject_add(&path->kobj, path->clt->paths_kobj, "%s", path->name);
}

/**
 * clt_sysfs_del_path - no longer show a path
 * @path: path, shown or not
 *
 * Context: sleeps; waits for those who use its files.
 */
void clt_sysfs_del_path(struct clt_path *path)
{
	if (path->kobj.state_in_sysfs)
		kobject_del(&path->kobj);
}

/**
 * clt_sysfs_tell_path - tell user space that a path's state has changed, or that it has gone
 * @path: path
 *
 * A uevent of the session, for the path is no device.
 *
 * Context: sleeps; allocates, so not where I/O waits for this.
 */
void clt_sysfs_tell_path(struct clt_path *path)
{
	struct device *dev = &path->clt->dev;
	char *env[3] = { };

	/* While it is being opened there is nothing to see of it. */
	if (!device_is_registered(dev))
		return;
	env[0] = kasprintf(GFP_KERNEL, "RTRS_PATH=%s", path->name);
	env[1] = kasprintf(GFP_KERNEL, "RTRS_PATH_STATE=%s",
			   clt_path_state_names[READ_ONCE(path->state)]);
	/* Who looks for himself misses nothing without it. */
	if (env[0] && env[1])
		kobject_uevent_env(&dev->kobj, KOBJ_CHANGE, env);
	kfree(env[0]);
	kfree(env[1]);
}

/* ---------------------------------------------------------------- a session */

static ssize_t add_path_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo [SOURCE@]DESTINATION > %s\n"
			  "An address is ip:IPV4, ip:IPV6 or gid:GID.\n", attr->attr.name);
}

static u16 clt_port(struct rail_clt *clt)
{
	const struct clt_paths *paths;
	u16 port = RAIL_RTRS_PORT;

	rcu_read_lock();
	paths = rcu_dereference(clt->paths);
	if (paths && paths->n)
		port = rail_addr_port((struct sockaddr *)
				      &clt_lane_path(paths->lane[0])->addr.dst);
	rcu_read_unlock();
	return port;
}

/* Or there is no point in waiting for it. */
static bool path_tried(struct clt_path *path)
{
	return test_bit(CLT_PATH_TRIED, &path->flags) || READ_ONCE(path->clt->closing);
}

static ssize_t add_path_store(struct device *dev, struct device_attribute *attr, const char *buf,
			      size_t count)
{
	struct rail_clt *clt = to_clt(dev);
	struct rail_clt_addr addr = { };
	struct clt_path *path;
	size_t len = count;
	int err;

	/* Pairs with the release in rail_clt_open(), which has paths of its own to make first. */
	if (!smp_load_acquire(&clt->ready))
		return -EAGAIN;
	if (len && buf[len - 1] == '\n')
		len--;
	err = rail_path_parse(clt->net, buf, len, clt_port(clt), &addr.src, &addr.dst);
	if (err)
		return err;
	path = clt_path_create(clt, &addr);
	if (IS_ERR(path))
		return PTR_ERR(path);
	err = clt_path_add(path);
	if (err) {
		kobject_put(&path->kobj);
		return err;
	}
	clt_path_want(path, CLT_WANT_ON);
	wait_event_idle(clt->wait, path_tried(path));
	if (!path->was_up)
		err = path->error ?: -ENOLINK;
	else
		err = clt_sysfs_add_path(path);
	if (err && !test_and_set_bit(0, &path->removing))
		clt_path_remove(path);
	return err ?: count;
}

static ssize_t max_reconnect_attempts_show(struct device *dev, struct device_attribute *attr,
					   char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(to_clt(dev)->max_reconnect));
}

static ssize_t max_reconnect_attempts_store(struct device *dev, struct device_attribute *attr,
					    const char *buf, size_t count)
{
	int err, value;

	err = kstrtoint(buf, 10, &value);
	if (err)
		return err;
	if (value < -1)
		return -EINVAL;
	WRITE_ONCE(to_clt(dev)->max_reconnect, value);
	return count;
}

static ssize_t mpath_policy_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u8 policy = READ_ONCE(to_clt(dev)->policy);

	return sysfs_emit(buf, "%s (%s: %u)\n", clt_policy_name(policy),
			  clt_policy_short(policy), policy);
}

static ssize_t mpath_policy_store(struct device *dev, struct device_attribute *attr,
				  const char *buf, size_t count)
{
	int policy = clt_policy_parse(buf);

	if (policy < 0)
		return policy;
	WRITE_ONCE(to_clt(dev)->policy, policy);
	return count;
}

static ssize_t no_path_timeout_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(to_clt(dev)->no_path_timeout));
}

static ssize_t no_path_timeout_store(struct device *dev, struct device_attribute *attr,
				     const char *buf, size_t count)
{
	unsigned int value;
	int err;

	err = kstrtouint(buf, 10, &value);
	if (err)
		return err;
	rail_clt_set_no_path_timeout(to_clt(dev), value);
	return count;
}

static DEVICE_ATTR_RW(add_path);
static DEVICE_ATTR_RW(max_reconnect_attempts);
static DEVICE_ATTR_RW(mpath_policy);
/* By this name the protocol's paper knows it. */
static struct device_attribute dev_attr_mp_policy =
	__ATTR(mp_policy, 0644, mpath_policy_show, mpath_policy_store);
static DEVICE_ATTR_RW(no_path_timeout);

static struct attribute *clt_attrs[] = {
	&dev_attr_add_path.attr,
	&dev_attr_max_reconnect_attempts.attr,
	&dev_attr_mpath_policy.attr,
	&dev_attr_mp_policy.attr,
	&dev_attr_no_path_timeout.attr,
	NULL
};
ATTRIBUTE_GROUPS(clt);

static void clt_dev_release(struct device *dev)
{
	clt_free(to_clt(dev));
}

static struct class clt_class = {
	.name = "rtrs-client",
	.dev_groups = clt_groups,
};

/**
 * clt_sysfs_add - show a session
 * @clt: new session
 *
 * Its last reference is the device's from here on, on error too: put_device() frees it.
 *
 * Return: 0 or an error.
 */
int clt_sysfs_add(struct rail_clt *clt)
{
	int err;

	device_initialize(&clt->dev);
	clt->dev.class = &clt_class;
	clt->dev.release = clt_dev_release;
	err = dev_set_name(&clt->dev, "%s", clt->name);
	if (!err)
		err = device_add(&clt->dev);
	if (err)
		return err;
	clt->paths_kobj = kobject_create_and_add("paths", &clt->dev.kobj);
	if (!clt->paths_kobj) {
		device_del(&clt->dev);
		return -ENOMEM;
	}
	return 0;
}

/**
 * clt_sysfs_del - a session's own files go; paths stay
 * @clt: session
 *
 * Context: sleeps; waits for those who use the files.
 */
void clt_sysfs_del(struct rail_clt *clt)
{
	device_remove_groups(&clt->dev, clt_groups);
}

/**
 * clt_sysfs_del_last - a session's folder goes, when its paths are gone
 * @clt: session
 */
void clt_sysfs_del_last(struct rail_clt *clt)
{
	kobject_del(clt->paths_kobj);
	kobject_put(clt->paths_kobj);
	device_del(&clt->dev);
}

/**
 * clt_sysfs_init - make the class
 *
 * Return: 0 or an error.
 */
int clt_sysfs_init(void)
{
	return class_register(&clt_class);
}

/**
 * clt_sysfs_exit - unmake the class
 */
void clt_sysfs_exit(void)
{
	class_unregister(&clt_class);
}
