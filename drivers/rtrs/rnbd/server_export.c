// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports: devices in configfs that clients may map.
 *
 *	/sys/kernel/config/rnbd/exports/<name>/device_path	block device
 *	/sys/kernel/config/rnbd/exports/<name>/access		ro or rw
 *	/sys/kernel/config/rnbd/exports/<name>/enable		0 or 1
 *	/sys/kernel/config/rnbd/exports/<name>/allowed_clients/<rule>/
 *
 * A client asks for <name>, with '/' for '!'. A rule is a folder: its name says which clients it
 * admits, see srv_rule_parse(). Without one, nobody is admitted.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include <rail/addr.h>

#include "server.h"

/* Those with a folder; srv_lock. */
static LIST_HEAD(srv_exports);

/**
 * struct srv_client - an entry of allowed_clients
 * @item: its folder
 * @entry: in srv_export.rules while the folder is there; srv_lock
 * @rule: which clients; constant
 */
struct srv_client {
	struct config_item item;
	struct list_head entry;
	struct srv_rule rule;
};

/* ---- allowed_clients ---- */

static void client_release(struct config_item *item)
{
	kfree(container_of(item, struct srv_client, item));
}

static struct configfs_item_operations client_item_ops = {
	.release = client_release,
};

static const struct config_item_type client_type = {
	.ct_owner	= THIS_MODULE,
	.ct_item_ops	= &client_item_ops,
};

static struct srv_export *clients_to_export(struct config_group *group)
{
	return container_of(group, struct srv_export, clients);
}

static struct config_item *clients_make(struct config_group *group, const char *name)
{
	struct srv_client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return ERR_PTR(-ENOMEM);
	if (srv_rule_parse(name, &client->rule)) {
		pr_err("allowed_clients: %s is neither an address (ip:192.0.2.1), nor a network (ip:192.0.2.0!24), nor a pattern of session names, nor PATTERN@ADDRESS\n",
		       name);
		kfree(client);
		return ERR_PTR(-EINVAL);
	}
	config_item_init_type_name(&client->item, name, &client_type);
	mutex_lock(&srv_lock);
	list_add_tail(&client->entry, &clients_to_export(group)->rules);
	mutex_unlock(&srv_lock);
	return &client->item;
}

static void clients_drop(struct config_group *group, struct config_item *item)
{
	mutex_lock(&srv_lock);
	list_del(&container_of(item, struct srv_client, item)->entry);
	mutex_unlock(&srv_lock);
	config_item_put(item);
}

static struct configfs_group_operations clients_group_ops = {
	.make_item	= clients_make,
	.drop_item	= clients_drop,
};

static const struct config_item_type clients_type = {
	.ct_owner	= THIS_MODULE,
	.ct_group_ops	= &clients_group_ops,
};

/* ---- an export ---- */

static struct srv_export *to_export(struct config_item *item)
{
	return container_of(to_config_group(item), struct srv_export, group);
}

static const char *export_name(const struct srv_export *export)
{
	return export->group.cg_item.ci_name;
}

static ssize_t export_device_path_show(struct config_item *item, char *page)
{
	ssize_t n;

	mutex_lock(&srv_lock);
	n = sysfs_emit(page, "%s\n", to_export(item)->device_path);
	mutex_unlock(&srv_lock);
	return n;
}

static ssize_t export_device_path_store(struct config_item *item, const char *page, size_t count)
{
	struct srv_export *export = to_export(item);
	char path[sizeof(export->device_path)];
	int error;

	error = srv_device_path_parse(page, count, path, sizeof(path));
	if (error) {
		pr_err("export %s: device_path has to be the absolute path of a block device, up to %zu bytes\n",
		       export_name(export), sizeof(path) - 1);
		return error;
	}
	mutex_lock(&srv_lock);
	if (export->enabled)
		error = -EBUSY;
	else
		strscpy(export->device_path, path, sizeof(export->device_path));
	mutex_unlock(&srv_lock);
	if (error)
		pr_err("export %s: write 0 to enable before you change it\n", export_name(export));
	return error ?: count;
}

static ssize_t export_access_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", READ_ONCE(to_export(item)->ro) ? "ro" : "rw");
}

static ssize_t export_access_store(struct config_item *item, const char *page, size_t count)
{
	struct srv_export *export = to_export(item);
	bool ro = sysfs_streq(page, "ro");
	int error = 0;

	if (!ro && !sysfs_streq(page, "rw")) {
		pr_err("export %s: access is ro or rw\n", export_name(export));
		return -EINVAL;
	}
	mutex_lock(&srv_lock);
	if (export->enabled && ro != export->ro)
		error = -EBUSY;
	else
		WRITE_ONCE(export->ro, ro);
	mutex_unlock(&srv_lock);
	if (error)
		pr_err("export %s: write 0 to enable before you change it\n", export_name(export));
	return error ?: count;
}

static ssize_t export_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_export(item)->enabled));
}

static void export_set(struct srv_export *export, bool enable)
{
	mutex_lock(&srv_lock);
	WRITE_ONCE(export->enabled, enable);
	mutex_unlock(&srv_lock);
	/* Those who have it lose it. */
	if (!enable)
		srv_map_close_export(export);
}

static ssize_t export_enable_store(struct config_item *item, const char *page, size_t count)
{
	struct srv_export *export = to_export(item);
	bool enable;

	if (kstrtobool(page, &enable))
		return -EINVAL;
	if (enable && !export->device_path[0]) {
		pr_err("export %s: write the path of its block device to device_path first\n",
		       export_name(export));
		return -EINVAL;
	}
	export_set(export, enable);
	return count;
}

CONFIGFS_ATTR(export_, device_path);
CONFIGFS_ATTR(export_, access);
CONFIGFS_ATTR(export_, enable);

static struct configfs_attribute *export_attrs[] = {
	&export_attr_device_path,
	&export_attr_access,
	&export_attr_enable,
	NULL,
};

static void export_release(struct config_item *item)
{
	kfree(to_export(item));
}

static struct configfs_item_operations export_item_ops = {
	.release = export_release,
};

static const struct config_item_type export_type = {
	.ct_owner	= THIS_MODULE,
	.ct_item_ops	= &export_item_ops,
	.ct_attrs	= export_attrs,
};

/* ---- exports ---- */

static struct config_group *exports_make(struct config_group *group, const char *name)
{
	struct srv_export *export = kzalloc(sizeof(*export), GFP_KERNEL);

	if (!export)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&export->rules);
	config_group_init_type_name(&export->group, name, &export_type);
	config_group_init_type_name(&export->clients, "allowed_clients", &clients_type);
	configfs_add_default_group(&export->clients, &export->group);
	mutex_lock(&srv_lock);
	list_add_tail(&export->entry, &srv_exports);
	mutex_unlock(&srv_lock);
	return &export->group;
}

static void exports_drop(struct config_group *group, struct config_item *item)
{
	struct srv_export *export = to_export(item);

	export_set(export, false);
	mutex_lock(&srv_lock);
	list_del(&export->entry);
	mutex_unlock(&srv_lock);
	config_item_put(item);
}

static struct configfs_group_operations exports_group_ops = {
	.make_group	= exports_make,
	.drop_item	= exports_drop,
};

static const struct config_item_type exports_type = {
	.ct_owner	= THIS_MODULE,
	.ct_group_ops	= &exports_group_ops,
};

static const struct config_item_type rnbd_type = {
	.ct_owner	= THIS_MODULE,
};

static struct config_group exports_group;

static struct configfs_subsystem rnbd_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "rnbd",
			.ci_type = &rnbd_type,
		},
	},
};

/* ---- for the rest of the server ---- */

/**
 * srv_export_admits - may this client use the export?
 * @export: the export
 * @sessname: name of its session
 * @addr: where a path of it comes from
 *
 * Context: process; srv_lock held.
 */
bool srv_export_admits(const struct srv_export *export, const char *sessname,
		       const struct sockaddr *addr)
{
	const struct srv_client *client;

	lockdep_assert_held(&srv_lock);
	list_for_each_entry(client, &export->rules, entry)
		if (srv_rule_admits(&client->rule, sessname, addr))
			return true;
	return false;
}

/* The first address that is not admitted; NULL: all are. */
static const struct sockaddr *not_admitted(const struct srv_export *export,
					   const struct srv_sess *sess)
{
	unsigned int i;

	for (i = 0; i < sess->nr_addrs; i++) {
		const struct sockaddr *addr = (const struct sockaddr *)&sess->addrs[i];

		if (!srv_export_admits(export, sess->name, addr))
			return addr;
	}
	return NULL;
}

/**
 * srv_export_is_for - may this session use the export?
 * @export: the export
 * @sess: the session
 *
 * Context: process; srv_lock held.
 */
bool srv_export_is_for(const struct srv_export *export, const struct srv_sess *sess)
{
	return export->enabled && !not_admitted(export, sess);
}

static void tell_how(const struct srv_sess *sess, const char *name)
{
	char text[RAIL_ADDR_STRLEN];

	rail_addr_print(text, sizeof(text), (const struct sockaddr *)&sess->addrs[0]);
	pr_warn_ratelimited("session %s from %s asks for %s, and nothing is exported. To allow it: mkdir /sys/kernel/config/rnbd/exports/%s, write the block device to its device_path, mkdir its allowed_clients/%s, and write 1 to its enable; or load rnbd_server with dev_search_path=\n",
			    sess->name, text, name, name, text);
}

/**
 * srv_export_find - the export that a client asks for
 * @sess: the client's session
 * @opening: what it asks for
 * @path: filled in: the export's device_path
 * @size: of @path
 * @export: filled in: the export, for srv_export_put(); NULL: none has the name, but there is
 *	dev_search_path
 *
 * Context: process.
 * Return: 0; -EACCES: not for this client; -EROFS: only for reading; -ENOENT: there are exports,
 *	but none of that name.
 */
int srv_export_find(const struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		    char *path, size_t size, struct srv_export **export)
{
	const struct sockaddr *addr = NULL;
	char name[RAIL_RNBD_NAME_LEN];
	struct srv_export *found = NULL, *e;
	char text[RAIL_ADDR_STRLEN];
	bool any = false;
	int error = 0;

	*export = NULL;
	error = srv_export_name(name, sizeof(name), opening->dev_name);
	if (error)
		return error;
	mutex_lock(&srv_lock);
	list_for_each_entry(e, &srv_exports, entry) {
		if (!e->enabled)
			continue;
		any = true;
		if (!strcmp(export_name(e), name)) {
			found = e;
			break;
		}
	}
	if (found)
		addr = not_admitted(found, sess);
	if (!found) {
		if (!srv_search_path)
			error = any ? -ENOENT : -EACCES;
	} else if (addr) {
		error = -EACCES;
		rail_addr_print(text, sizeof(text), addr);
	} else if (found->ro && opening->access != RAIL_RNBD_ACCESS_RO) {
		error = -EROFS;
	} else {
		strscpy(path, found->device_path, size);
		config_item_get(&found->group.cg_item);
		*export = found;
	}
	mutex_unlock(&srv_lock);
	if (addr)
		pr_warn_ratelimited("session %s from %s may not map export %s; mkdir /sys/kernel/config/rnbd/exports/%s/allowed_clients/%s to allow it\n",
				    sess->name, text, name, name, text);
	else if (error == -EROFS)
		pr_warn_ratelimited("session %s may map export %s only with access_mode=ro\n",
				    sess->name, name);
	else if (error == -ENOENT)
		pr_warn_ratelimited("session %s asks for %s, and no enabled export has that name\n",
				    sess->name, name);
	else if (error)
		tell_how(sess, name);
	return error;
}

/**
 * srv_export_put - the export is not needed any more
 * @export: what srv_export_find() gave
 *
 * Context: process.
 */
void srv_export_put(struct srv_export *export)
{
	config_item_put(&export->group.cg_item);
}

/**
 * srv_export_init - show the exports' folder
 *
 * Return: 0 or an errno.
 */
int srv_export_init(void)
{
	config_group_init(&rnbd_subsys.su_group);
	mutex_init(&rnbd_subsys.su_mutex);
	config_group_init_type_name(&exports_group, "exports", &exports_type);
	configfs_add_default_group(&exports_group, &rnbd_subsys.su_group);
	return configfs_register_subsystem(&rnbd_subsys);
}

/**
 * srv_export_exit - show it no more
 *
 * A folder keeps the module, so that there is none by now.
 */
void srv_export_exit(void)
{
	configfs_unregister_subsystem(&rnbd_subsys);
}
