// SPDX-License-Identifier: GPL-2.0-only
/* Listeners, and the way of a connection from a client's request to nfsd. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include "svc.h"

static DEFINE_SPINLOCK(rsvc_accept_lock);

struct workqueue_struct *rsvc_wq;

/* ---------------------------------------------------------------- what rail tells */

static int rsvc_request(struct rail_listener *rail, struct rail_conn *conn,
			struct rail_request *req)
{
	struct rsvc_listener *l = rail_listener_context(rail);
	u8 priv[RAIL_RPCRDMA_CM_LEN];
	struct rail_accept how = { .priv = priv, .priv_len = sizeof(priv) };
	struct rsvc_conn *c;
	bool full;

	c = rsvc_conn_alloc(l, conn, req->priv, req->priv_len);
	if (!c)
		return -ENOMEM;
	spin_lock(&rsvc_accept_lock);
	full = l->nr >= RSVC_BACKLOG;
	if (!full) {
		c->listener = l;
		list_add_tail(&c->waiting_entry, &l->waiting);
		l->nr++;
	}
	spin_unlock(&rsvc_accept_lock);
	if (full) {
		rsvc_warn(c, "refused: %u connections wait for nfsd already\n", RSVC_BACKLOG);
		c->rail = NULL;
		svc_xprt_put(&c->xprt);
		return -EBUSY;
	}
	rail_conn_adopt(conn, &rsvc_conn_ops, c);
	rsvc_conn_priv(c, priv);
	/* Should that fail, it closes, and closing() takes it off the list. */
	rail_conn_accept(conn, &how);
	return 0;
}

static void rsvc_gone(struct rail_listener *rail)
{
	pr_warn("rpcrdma: the address %pISpc that nfsd listens on went away; once it is back, restart nfsd or add it anew to /proc/fs/nfsd/portlist\n",
		rail_listener_addr(rail));
}

const struct rail_listener_ops rsvc_listener_ops = {
	.request = rsvc_request,
	.gone = rsvc_gone,
};

/**
 * rsvc_offer - a connection is up: nfsd may accept it
 * @c: connection
 */
void rsvc_offer(struct rsvc_conn *c)
{
	struct rsvc_listener *l;

	spin_lock(&rsvc_accept_lock);
	l = c->listener;
	if (l) {
		list_move_tail(&c->waiting_entry, &l->ready);
		set_bit(XPT_CONN, &l->xprt.xpt_flags);
		svc_xprt_get(&l->xprt);
	}
	spin_unlock(&rsvc_accept_lock);
	if (!l)
		return;
	svc_xprt_enqueue(&l->xprt);
	svc_xprt_put(&l->xprt);
}

/**
 * rsvc_unlist - a connection is closing: nobody is to accept it any more
 * @c: connection
 */
void rsvc_unlist(struct rsvc_conn *c)
{
	struct rsvc_listener *l;

	spin_lock(&rsvc_accept_lock);
	l = c->listener;
	if (l) {
		list_del(&c->waiting_entry);
		c->listener = NULL;
		l->nr--;
	}
	spin_unlock(&rsvc_accept_lock);
	if (l)
		svc_xprt_put(&c->xprt);
}

/* ---------------------------------------------------------------- what sunrpc asks */

static const struct svc_xprt_ops rsvc_listen_ops;
static const struct svc_xprt_ops rsvc_ops;

static struct svc_xprt *rsvc_create(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				    int salen, int flags)
{
	struct rail_listen where = {
		.addr = sa,
		.backlog = RSVC_BACKLOG,
		.timeout_ms = RSVC_ACCEPT_MS,
	};
	struct rsvc_listener *l;
	int err;

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return ERR_PTR(-ENOMEM);
	svc_xprt_init(net, &rsvc_class, &l->xprt, serv);
	l->xprt.xpt_ops = &rsvc_listen_ops;
	set_bit(XPT_LISTENER, &l->xprt.xpt_flags);
	set_bit(XPT_CONG_CTRL, &l->xprt.xpt_flags);
	strscpy(l->xprt.xpt_remotebuf, "listener", sizeof(l->xprt.xpt_remotebuf));
	INIT_LIST_HEAD(&l->waiting);
	INIT_LIST_HEAD(&l->ready);

	l->rail = rail_listen(net, &where, &rsvc_listener_ops, l);
	if (IS_ERR(l->rail)) {
		err = PTR_ERR(l->rail);
		put_net_track(net, &l->xprt.ns_tracker);
		kfree(l);
		return ERR_PTR(err);
	}
	svc_xprt_set_local(&l->xprt, sa, salen);
	return &l->xprt;
}

static struct svc_xprt *rsvc_accept(struct svc_xprt *xprt)
{
	struct rsvc_listener *l = container_of(xprt, struct rsvc_listener, xprt);
	struct rsvc_conn *c;

	spin_lock(&rsvc_accept_lock);
	c = list_first_entry_or_null(&l->ready, struct rsvc_conn, waiting_entry);
	if (c) {
		list_del(&c->waiting_entry);
		c->listener = NULL;
		l->nr--;
	}
	if (list_empty(&l->ready))
		clear_bit(XPT_CONN, &xprt->xpt_flags);
	spin_unlock(&rsvc_accept_lock);
	if (!c)
		return NULL;
	/* sunrpc has taken a reference of its own on the module for it. */
	module_put(THIS_MODULE);
	return &c->xprt;
}

static void rsvc_listen_detach(struct svc_xprt *xprt)
{
	struct rsvc_listener *l = container_of(xprt, struct rsvc_listener, xprt);
	struct rsvc_conn *c, *next;
	LIST_HEAD(orphans);

	/* No more requests when this returns. */
	rail_listener_destroy(l->rail);
	spin_lock(&rsvc_accept_lock);
	list_splice_init(&l->waiting, &orphans);
	list_splice_init(&l->ready, &orphans);
	list_for_each_entry(c, &orphans, waiting_entry)
		c->listener = NULL;
	spin_unlock(&rsvc_accept_lock);
	list_for_each_entry_safe(c, next, &orphans, waiting_entry) {
		rail_conn_close(c->rail, 0);
		svc_xprt_put(&c->xprt);
	}
}

static void rsvc_listen_free(struct svc_xprt *xprt)
{
	kfree(container_of(xprt, struct rsvc_listener, xprt));
}

static int rsvc_listen_has_wspace(struct svc_xprt *xprt)
{
	return 1;
}

/* The port says nothing of who uses it: a client's CM chooses it. */
static void __maybe_unused rsvc_secure_port(struct svc_rqst *rqstp)
{
	set_bit(RQ_SECURE, &rqstp->rq_flags);
}

/* Called before the connection is closed, which does all that is needed. */
static void rsvc_kill_temp(struct svc_xprt *xprt)
{
}

static const struct svc_xprt_ops rsvc_listen_ops = {
	.xpo_create = rsvc_create,
	.xpo_accept = rsvc_accept,
	.xpo_has_wspace = rsvc_listen_has_wspace,
	.xpo_recvfrom = rsvc_recvfrom,
	.xpo_sendto = rsvc_sendto,
	.xpo_result_payload = rsvc_result_payload,
	.xpo_release_ctxt = rsvc_release_ctxt,
	.xpo_detach = rsvc_listen_detach,
	.xpo_free = rsvc_listen_free,
	.xpo_kill_temp_xprt = rsvc_kill_temp,
	RAIL_SVC_SECURE_PORT
};

static const struct svc_xprt_ops rsvc_ops = {
	.xpo_create = rsvc_create,
	.xpo_has_wspace = rsvc_has_wspace,
	.xpo_recvfrom = rsvc_recvfrom,
	.xpo_sendto = rsvc_sendto,
	.xpo_result_payload = rsvc_result_payload,
	.xpo_release_ctxt = rsvc_release_ctxt,
	.xpo_detach = rsvc_detach,
	.xpo_free = rsvc_free,
	.xpo_kill_temp_xprt = rsvc_kill_temp,
	RAIL_SVC_SECURE_PORT
};

struct svc_xprt_class rsvc_class = {
	.xcl_name = "rdma",
	.xcl_owner = THIS_MODULE,
	.xcl_ops = &rsvc_ops,
	.xcl_max_payload = RPCSVC_MAXPAYLOAD,
	.xcl_ident = XPRT_TRANSPORT_RDMA,
};

/**
 * rail_svc_init - offer NFS servers the transport
 *
 * Return: 0 or an error; -EEXIST when another module offers it already.
 */
int rail_svc_init(void)
{
	int err;

	rsvc_wq = alloc_workqueue("rpcrdma_svc", WQ_UNBOUND, 0);
	if (!rsvc_wq)
		return -ENOMEM;
	err = rsvc_stats_init();
	if (err)
		goto destroy;
	err = rsvc_back_init();
	if (err)
		goto stats;
	err = svc_reg_xprt_class(&rsvc_class);
	if (!err) {
		/* Whoever has the class has these names too, so they are not what fails first. */
		rsvc_sysctl_init();
		return 0;
	}
	rsvc_back_exit();
stats:
	rsvc_stats_exit();
destroy:
	destroy_workqueue(rsvc_wq);
	return err;
}

/**
 * rail_svc_exit - no longer offer it; no transport of ours is in use any more
 */
void rail_svc_exit(void)
{
	rsvc_sysctl_exit();
	svc_unreg_xprt_class(&rsvc_class);
	rsvc_back_exit();
	/* Connections that were given up and are still being taken down. */
	destroy_workqueue(rsvc_wq);
	rsvc_stats_exit();
}
