// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: the module, its parameters, and a user's server from open to close. */
#include <linux/module.h>
#include <linux/slab.h>

#include <rail/addr.h>

#include "server.h"

MODULE_DESCRIPTION("RAIL: RTRS server");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);

struct workqueue_struct *rsrv_wq;
struct workqueue_struct *rsrv_close_wq;
struct workqueue_struct *rsrv_flush_wq;

/* ---------------------------------------------------------------- parameters */

unsigned int rsrv_max_chunk_size = 128 * 1024;
unsigned int rsrv_sess_queue_depth = 512;
bool rsrv_always_invalidate = true;
unsigned int rsrv_max_memory;
unsigned int rsrv_max_sessions = 64;

static int rsrv_set_chunk_size(const char *val, const struct kernel_param *kp)
{
	unsigned int size;
	int err = kstrtouint(val, 0, &size);

	if (err)
		return err;
	if (size % PAGE_SIZE || size < 2 * RSRV_HDR_SIZE || size > 1 << 26) {
		pr_err("rtrs-server: max_chunk_size=%u: has to be a multiple of %lu from %u to 67108864\n",
		       size, PAGE_SIZE, 2 * RSRV_HDR_SIZE);
		return -EINVAL;
	}
	rsrv_max_chunk_size = size;
	return 0;
}

static int rsrv_set_queue_depth(const char *val, const struct kernel_param *kp)
{
	unsigned int depth;
	int err = kstrtouint(val, 0, &depth);

	if (err)
		return err;
	if (!depth || depth > RAIL_RTRS_MAX_QUEUE_DEPTH) {
		pr_err("rtrs-server: sess_queue_depth=%u: has to be 1 to %u\n", depth,
		       RAIL_RTRS_MAX_QUEUE_DEPTH);
		return -EINVAL;
	}
	rsrv_sess_queue_depth = depth;
	return 0;
}

static const struct kernel_param_ops rsrv_chunk_size_ops = {
	.set = rsrv_set_chunk_size,
	.get = param_get_uint,
};

static const struct kernel_param_ops rsrv_queue_depth_ops = {
	.set = rsrv_set_queue_depth,
	.get = param_get_uint,
};

module_param_cb(max_chunk_size, &rsrv_chunk_size_ops, &rsrv_max_chunk_size, 0644);
MODULE_PARM_DESC(max_chunk_size, "Bytes of memory a request has, 4096 of them for headers (default 131072); for new sessions");
module_param_cb(sess_queue_depth, &rsrv_queue_depth_ops, &rsrv_sess_queue_depth, 0644);
MODULE_PARM_DESC(sess_queue_depth, "Requests a session may have outstanding (default 512); for new sessions");
module_param_named(always_invalidate, rsrv_always_invalidate, bool, 0644);
MODULE_PARM_DESC(always_invalidate, "Take a request's memory away from the client before looking at a write, and give it out under a new key with the answer (default Y); for new sessions");
module_param_named(max_memory, rsrv_max_memory, uint, 0644);
MODULE_PARM_DESC(max_memory, "MiB of memory all sessions together may have (default 0: half of the machine's)");
module_param_named(max_sessions, rsrv_max_sessions, uint, 0644);
MODULE_PARM_DESC(max_sessions, "Sessions a client host may have (default 64; 0: any number)");

/* ---------------------------------------------------------------- open and close */

static void rsrv_any_addr(struct sockaddr_storage *addr, sa_family_t family, u16 port)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	rail_addr_set_port((struct sockaddr *)addr, port);
}

/* IPv4 has to be; the others where the kernel and the devices have them. */
static int rsrv_listen(struct rail_srv *srv)
{
	static const sa_family_t family[RSRV_NR_LISTENERS] = { AF_INET, AF_INET6, AF_IB };
	struct sockaddr_storage addr;
	struct rail_listen where = {
		.addr = (struct sockaddr *)&addr,
		.backlog = RSRV_MAX_PENDING,
		.timeout_ms = RSRV_ACCEPT_MS,
	};
	struct rail_listener *l;
	int i;

	for (i = 0; i < RSRV_NR_LISTENERS; i++) {
		rsrv_any_addr(&addr, family[i], srv->attr.port);
		l = rail_listen(srv->attr.net, &where, &rsrv_listener_ops, srv);
		if (!IS_ERR(l)) {
			srv->listeners[i] = l;
		} else if (!i) {
			pr_err("rtrs-server: cannot listen on port %u: %pe\n", srv->attr.port, l);
			return PTR_ERR(l);
		} else if (i == 1) {
			pr_info("rtrs-server: no IPv6 clients on port %u: %pe\n", srv->attr.port,
				l);
		}
	}
	return 0;
}

static void rsrv_unlisten(struct rail_srv *srv)
{
	int i;

	for (i = 0; i < RSRV_NR_LISTENERS; i++)
		if (srv->listeners[i])
			rail_listener_destroy(srv->listeners[i]);
}

static void rsrv_fail_all(struct rail_srv *srv)
{
	struct rail_srv_sess *sess;
	struct rsrv_path *path;

	mutex_lock(&srv->lock);
	srv->closing = true;
	list_for_each_entry(sess, &srv->sessions, entry)
		list_for_each_entry(path, &sess->paths, entry)
			rsrv_path_fail(path, -ESHUTDOWN);
	mutex_unlock(&srv->lock);
}

static bool rsrv_empty(struct rail_srv *srv)
{
	bool empty;

	mutex_lock(&srv->lock);
	empty = list_empty(&srv->sessions) && !srv->nr_pending;
	mutex_unlock(&srv->lock);
	return empty;
}

/**
 * rail_srv_open - listen for clients
 * @attr: what the user wants; not used after the call
 *
 * Clients may come, and @attr->ops be called, before this returns.
 *
 * Context: sleeps.
 * Return: the server, or an ERR_PTR: -EADDRINUSE, -EINVAL (the module's parameters do not go
 *	   together) ...
 */
struct rail_srv *rail_srv_open(const struct rail_srv_attr *attr)
{
	struct rail_rtrs_params params;
	struct rail_srv *srv;
	int err;

	err = rsrv_params(&params);
	if (err)
		return ERR_PTR(err);
	if (attr->usr_max > RSRV_HDR_SIZE - RAIL_RTRS_REQ_HDR_MAX)
		return ERR_PTR(-EINVAL);
	srv = kzalloc(sizeof(*srv), GFP_KERNEL);
	if (!srv)
		return ERR_PTR(-ENOMEM);
	srv->attr = *attr;
	srv->attr.port = attr->port ?: RAIL_RTRS_PORT;
	mutex_init(&srv->lock);
	INIT_LIST_HEAD(&srv->sessions);
	init_waitqueue_head(&srv->empty);
	err = rsrv_listen(srv);
	if (!err)
		return srv;
	rail_srv_close(srv);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(rail_srv_open);

/**
 * rail_srv_close - let nobody in any more, and end all sessions
 * @srv: the server
 *
 * Waits until every request was replied to. None of the user's code is called once this returned.
 *
 * Context: sleeps; not from the user's callbacks.
 */
void rail_srv_close(struct rail_srv *srv)
{
	/* First, so that requests in progress are refused, not waited for. */
	rsrv_fail_all(srv);
	rsrv_unlisten(srv);
	wait_event(srv->empty, rsrv_empty(srv));
	/* The last one's works have told us; let them return. */
	flush_workqueue(rsrv_wq);
	flush_workqueue(rsrv_close_wq);
	kfree(srv);
}
EXPORT_SYMBOL_GPL(rail_srv_close);

static int __init rsrv_init(void)
{
	struct rail_rtrs_params params;
	int err;

	err = rsrv_params(&params);
	if (err)
		return err;
	rsrv_wq = alloc_workqueue("rtrs_server", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	rsrv_close_wq = alloc_workqueue("rtrs_server_close", WQ_UNBOUND, WQ_MAX_ACTIVE);
	rsrv_flush_wq = alloc_workqueue("rtrs_server_flush",
					WQ_PERCPU | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	err = -ENOMEM;
	if (!rsrv_wq || !rsrv_close_wq || !rsrv_flush_wq)
		goto destroy;
	err = rsrv_sysfs_init();
	if (!err)
		return 0;
destroy:
	if (rsrv_flush_wq)
		destroy_workqueue(rsrv_flush_wq);
	if (rsrv_close_wq)
		destroy_workqueue(rsrv_close_wq);
	if (rsrv_wq)
		destroy_workqueue(rsrv_wq);
	return err;
}

static void __exit rsrv_exit(void)
{
	destroy_workqueue(rsrv_close_wq);
	destroy_workqueue(rsrv_flush_wq);
	destroy_workqueue(rsrv_wq);
	rsrv_sysfs_exit();
}

module_init(rsrv_init);
module_exit(rsrv_exit);
