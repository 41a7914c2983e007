// SPDX-License-Identifier: GPL-2.0-only
/* Listeners: addresses that peers connect to. What becomes of a request stands in cm.c. */
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "verbs_priv.h"

/**
 * struct rail_listener - an address that peers connect to
 * @ops: the owner's; constant
 * @context: the owner's; constant
 * @cm_id: constant from rail_listen() until destroyed
 * @timeout_ms: how long a request may take to come up; constant
 * @addr: where; constant
 */
struct rail_listener {
	const struct rail_listener_ops *ops;
	void *context;
	struct rdma_cm_id *cm_id;
	unsigned int timeout_ms;
	struct sockaddr_storage addr;
};

/*
 * A peer asks. The new cm_id becomes the connection's; unless nobody takes it: then the CM
 * destroys it, which a non-zero return asks for.
 */
static int rail_listener_request(struct rail_listener *listener, struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	struct rail_request *req;
	struct rail_conn *conn;
	int err;

	conn = rail_conn_alloc(NULL, NULL);
	if (!conn)
		return -ENOMEM;
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req) {
		rail_conn_free_unused(conn);
		return -ENOMEM;
	}
	conn->passive = true;
	conn->cm_id = id;
	rail_conn_take_addresses(conn);
	req->priv = event->param.conn.private_data;
	req->priv_len = req->priv ? event->param.conn.private_data_len : 0;

	conn->dev = rail_dev_find(id->device);
	err = -ENODEV;
	if (!conn->dev)
		goto refuse;
	id->context = conn;
	id->event_handler = rail_conn_cm_event;
	rail_conn_move(conn, RAIL_CONNECTING);
	rail_set_handler(conn, true);
	err = listener->ops->request(listener, conn, req);
	if (conn->ops) {
		/* Taken; should the owner have had second thoughts, it hears of the end. */
		if (err)
			rail_conn_reject(conn, req->reject_priv, req->reject_len);
		else if (rail_dev_add_conn(conn))
			rail_conn_fail(conn, -ENODEV);
		else
			rail_conn_start_timer(conn, listener->timeout_ms);
		rail_set_handler(conn, false);
		kfree(req);
		return 0;
	}
	rail_stats_inc(&conn->dev->stats, RAIL_STAT_REFUSALS);
refuse:
	rdma_reject(id, req->reject_priv, min_t(u8, req->reject_len, RAIL_REJECT_LEN),
		    IB_CM_REJ_CONSUMER_DEFINED);
	kfree(req);
	rail_conn_free_unused(conn);
	return err ?: -ECONNREFUSED;
}

static int rail_listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rail_listener *listener = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return rail_listener_request(listener, id, event);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		if (listener->ops->gone)
			listener->ops->gone(listener);
		return 0;
	default:
		return 0;
	}
}

/**
 * rail_listen - listen for peers
 * @net: network namespace of the address
 * @where: address and limits; not used after the call
 * @ops: the owner's callbacks
 * @context: the owner's
 *
 * A wildcard address hears all devices, those plugged in later too. An IPv6 listener hears IPv6
 * only, so that IPv4 can have one of its own at the same port.
 *
 * Context: sleeps.
 * Return: the listener, or an ERR_PTR: -EADDRINUSE, -EADDRNOTAVAIL, -ENODEV (no device has the
 *	   address) ...
 */
struct rail_listener *rail_listen(struct net *net, const struct rail_listen *where,
				  const struct rail_listener_ops *ops, void *context)
{
	struct rail_listener *listener;
	struct rdma_cm_id *id;
	int err;

	if (!rdma_addr_size(where->addr))
		return ERR_PTR(-EAFNOSUPPORT);
	if (rail_fault(RAIL_FAULT_ALLOC))
		return ERR_PTR(-ENOMEM);
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	listener->ops = ops;
	listener->context = context;
	listener->timeout_ms = where->timeout_ms;
	memcpy(&listener->addr, where->addr, rdma_addr_size(where->addr));

	id = rdma_create_id(net, rail_listener_event, listener,
			    where->addr->sa_family == AF_IB ? RDMA_PS_IB : RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		err = PTR_ERR(id);
		goto free;
	}
	listener->cm_id = id;
	err = rdma_set_reuseaddr(id, 1);
	if (!err && where->addr->sa_family == AF_INET6)
		err = rdma_set_afonly(id, 1);
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)&listener->addr);
	if (!err)
		err = rdma_listen(id, where->backlog);
	if (!err)
		return listener;
	rdma_destroy_id(id);
free:
	kfree(listener);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(rail_listen);

/**
 * rail_listener_destroy - no longer listen
 * @listener: the listener; not from within its callbacks
 *
 * Connections it made live on; no ops->request() runs when this returns.
 *
 * Context: sleeps.
 */
void rail_listener_destroy(struct rail_listener *listener)
{
	rdma_destroy_id(listener->cm_id);
	kfree(listener);
}
EXPORT_SYMBOL_GPL(rail_listener_destroy);

/**
 * rail_listener_context - what the owner gave with the listener
 * @listener: the listener
 *
 * Return: it.
 */
void *rail_listener_context(const struct rail_listener *listener)
{
	return listener->context;
}
EXPORT_SYMBOL_GPL(rail_listener_context);

/**
 * rail_listener_addr - where it listens
 * @listener: the listener
 *
 * Return: the address.
 */
const struct sockaddr *rail_listener_addr(const struct rail_listener *listener)
{
	return (const struct sockaddr *)&listener->addr;
}
EXPORT_SYMBOL_GPL(rail_listener_addr);
