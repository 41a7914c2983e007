// SPDX-License-Identifier: GPL-2.0-only
/* A connection's life: attempts and their back-off, what lives on the device, the end. */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "clnt.h"

/* The first wait after a failed attempt; it doubles up to xprt.max_reconnect_timeout. */
#define CLNT_FIRST_BACKOFF	HZ
/* After a loss, within so long, at a random time. */
#define CLNT_LOSS_JITTER	(HZ / 4)
/* Regions to begin with; the pool grows. */
#define CLNT_FIRST_MRS		32

/* Sends that are neither calls nor reverse replies: errors. */
#define CLNT_SPARE_SENDS	8

unsigned int clnt_peer_timeout = 10;
module_param_named(peer_timeout, clnt_peer_timeout, uint, 0644);
MODULE_PARM_DESC(peer_timeout, "Seconds after which a server that gives no sign of life counts as dead; 0: only the network card decides (default 10)");

/* ---------------------------------------------------------------- what sunrpc is told */

/* Errors sunrpc tries again after, but for soft mounts that shall fail. */
static int clnt_connect_error(int reason)
{
	switch (reason) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EADDRINUSE:
		return reason;
	case -ENODEV:		/* no RDMA device leads there, or it was unplugged */
	case -EADDRNOTAVAIL:	/* our address is on no device, or moved */
		return -EHOSTUNREACH;
	case -ENOMEM:
	case -ENOBUFS:
		return -ENOBUFS;
	case 0:			/* closed by ourselves */
		return -ENOTCONN;
	default:
		return -ECONNABORTED;
	}
}

static void clnt_connect_failed(struct clnt_xprt *cx, int reason)
{
	struct rpc_xprt *xprt = &cx->xprt;

	/* Only then may the next one that is woken connect. */
	xprt_clear_connecting(xprt);
	xprt_wake_pending_tasks(xprt, clnt_connect_error(reason));
}

/* Calls of the connection that is gone are no longer outstanding. */
static void clnt_credits_end(struct clnt_xprt *cx)
{
	struct rpc_xprt *xprt = &cx->xprt;

	spin_lock(&xprt->transport_lock);
	xprt->cong -= (unsigned long)clnt_credit_end(&cx->credit) << RPC_CWNDSHIFT;
	xprt->cwnd = RPC_CWNDSCALE;
	spin_unlock(&xprt->transport_lock);
}

/* ---------------------------------------------------------------- what is on the device */

static void clnt_conn_refilled(void *context)
{
	clnt_wake_senders(context);
}

static int clnt_make_sends(struct clnt_conn *conn)
{
	u32 i, n = conn->asked + CLNT_BACK_SLOTS + CLNT_SPARE_SENDS + 2 * CLNT_SIGNAL_EVERY;
	u32 ring = roundup_pow_of_two(n + 1);

	conn->send_bufs = rail_buf_pool_create(conn->pd, conn->cx->inline_send, n, DMA_TO_DEVICE,
					       NUMA_NO_NODE);
	if (IS_ERR(conn->send_bufs)) {
		int err = PTR_ERR(conn->send_bufs);

		conn->send_bufs = NULL;
		return err;
	}
	conn->sends = kvcalloc(n, sizeof(*conn->sends), GFP_KERNEL);
	conn->ring = kvcalloc(ring, sizeof(*conn->ring), GFP_KERNEL);
	if (!conn->sends || !conn->ring)
		return -ENOMEM;
	conn->ring_mask = ring - 1;
	conn->nr_sends = n;
	for (i = 0; i < n; i++) {
		conn->sends[i].conn = conn;
		conn->sends[i].buf = rail_buf_get(conn->send_bufs);
		clnt_send_init(&conn->sends[i]);
		list_add_tail(&conn->sends[i].entry, &conn->free_sends);
	}
	return 0;
}

static int clnt_make_recvs(struct clnt_conn *conn)
{
	u32 i, n = conn->asked + CLNT_BACK_SLOTS + CLNT_RECV_BATCH;

	conn->recv_bufs = rail_buf_pool_create(conn->pd, conn->cx->inline_recv, n,
					       DMA_FROM_DEVICE, NUMA_NO_NODE);
	if (IS_ERR(conn->recv_bufs)) {
		int err = PTR_ERR(conn->recv_bufs);

		conn->recv_bufs = NULL;
		return err;
	}
	conn->recvs = kvcalloc(n, sizeof(*conn->recvs), GFP_KERNEL);
	if (!conn->recvs)
		return -ENOMEM;
	conn->nr_recvs = n;
	for (i = 0; i < n; i++) {
		conn->recvs[i].conn = conn;
		conn->recvs[i].buf = rail_buf_get(conn->recv_bufs);
		clnt_recv_init(&conn->recvs[i]);
	}
	return 0;
}

static int clnt_make_mrs(struct clnt_conn *conn)
{
	struct rail_mr_pool_attr attr = {
		.pd = conn->pd,
		.count = CLNT_FIRST_MRS,
		.max = max_t(u32, 4 * conn->asked, 4 * CLNT_CALL_SEGS),
		.pages = CLNT_MR_PAGES,
		.refilled = clnt_conn_refilled,
		.context = conn->cx,
	};
	struct rail_mr_pool *mrs = rail_mr_pool_create(&attr);

	if (IS_ERR(mrs))
		return PTR_ERR(mrs);
	conn->mrs = mrs;
	conn->cx->stats.regions_made += attr.count;
	return 0;
}

/* Nothing of it is in flight. */
static void clnt_unmake(struct clnt_conn *conn)
{
	u32 i;

	for (i = 0; i < conn->nr_recvs; i++)
		rail_buf_put(conn->recvs[i].buf);
	for (i = 0; i < conn->nr_sends; i++)
		rail_buf_put(conn->sends[i].buf);
	kvfree(conn->recvs);
	kvfree(conn->sends);
	kvfree(conn->ring);
	if (conn->recv_bufs)
		rail_buf_pool_destroy(conn->recv_bufs);
	if (conn->send_bufs)
		rail_buf_pool_destroy(conn->send_bufs);
	if (conn->mrs)
		rail_mr_pool_destroy(conn->mrs);
	if (conn->pd)
		rail_pd_put(conn->pd);
}

/* ---------------------------------------------------------------- what rail_verbs tells */

static int clnt_conn_configure(struct rail_conn *rc, struct rail_qp_attr *attr)
{
	struct clnt_conn *conn = rail_conn_context(rc);
	struct clnt_xprt *cx = conn->cx;
	struct rail_dev *dev = rail_conn_dev(rc);
	u32 spare = CLNT_BACK_SLOTS + CLNT_RECV_BATCH;
	bool swapper = atomic_read(&cx->xprt.swapper);
	unsigned int nofs = memalloc_nofs_save();
	unsigned int noreclaim = 0;
	int err;

	/* As in clnt_connect_work(), of which this is a part in another thread. */
	if (swapper)
		noreclaim = memalloc_noreclaim_save();

	/* Each call takes a receive, and one more ends the queue. */
	conn->asked = cx->xprt.max_reqs;
	if (dev->ib->attrs.max_qp_wr > spare + 1)
		conn->asked = min_t(u32, conn->asked, dev->ib->attrs.max_qp_wr - spare - 1);
	conn->max_sge = min_t(u32, CLNT_SEND_SGE, dev->max_sge);

	conn->pd = rail_pd_alloc(dev);
	if (IS_ERR(conn->pd)) {
		err = PTR_ERR(conn->pd);
		conn->pd = NULL;
		goto out;
	}
	err = clnt_make_mrs(conn);
	if (err)
		goto out;
	err = clnt_make_sends(conn);
	if (err)
		goto out;
	err = clnt_make_recvs(conn);
	if (err)
		goto out;

	conn->limits.mr_pages = rail_mr_pool_pages(conn->mrs);
	conn->limits.page_size = PAGE_SIZE;
	attr->pd = conn->pd;
	/* A call, its registrations and their invalidation; if that is not enough, senders wait. */
	attr->send_depth = conn->nr_sends + 4 * conn->asked + CLNT_CALL_SEGS;
	attr->max_chain = CLNT_CALL_SEGS + 1;
	attr->recv_depth = conn->nr_recvs;
	attr->max_send_sge = conn->max_sge;
	/* sunrpc's locks are not for softirq; and its own work has a normal priority. */
	attr->poll = RAIL_POLL_UNBOUND;
out:
	if (swapper)
		memalloc_noreclaim_restore(noreclaim);
	memalloc_nofs_restore(nofs);
	return err;
}

static int clnt_conn_created(struct rail_conn *rc)
{
	struct clnt_conn *conn = rail_conn_context(rc);
	struct rail_recv_batch batch;
	u32 i;

	rail_recv_batch_init(&batch);
	for (i = 0; i < conn->nr_recvs; i++)
		rail_recv_batch_add(&batch, &conn->recvs[i].wr, &conn->recvs[i].cqe);
	return rail_post_recvs(rc, &batch);
}

static void clnt_conn_established(struct rail_conn *rc, const void *priv, u8 len)
{
	struct clnt_conn *conn = rail_conn_context(rc);
	struct clnt_xprt *cx = conn->cx;
	struct rpc_xprt *xprt = &cx->xprt;
	struct rail_rpcrdma_conn ours = {
		.send_max = cx->inline_send,
		.recv_max = cx->inline_recv,
		.remote_inval = true,
	};
	struct rail_rpcrdma_conn theirs;
	struct rail_rpcrdma_agreed agreed;

	rail_rpcrdma_cm_decode(priv, len, &theirs);
	rail_rpcrdma_agree(&ours, &theirs, &agreed);
	conn->limits.call_max = agreed.call_max;
	conn->limits.reply_max = agreed.reply_max;
	conn->remote_inval = agreed.remote_inval;
	WRITE_ONCE(cx->back_max, min_t(u32, min(agreed.call_max, agreed.reply_max) -
					    RAIL_RPCRDMA_HDR_MIN, PAGE_SIZE));
	xprt->max_payload = clnt_max_payload(&conn->limits, CLNT_MAX_PAYLOAD);

	spin_lock(&xprt->transport_lock);
	clnt_credit_begin(&cx->credit, conn->asked);
	xprt->cwnd = RPC_CWNDSCALE;
	xprt->connect_cookie++;
	xprt->stat.connect_count++;
	xprt->stat.connect_time += (long)jiffies - xprt->stat.connect_start;
	xprt->reestablish_timeout = 0;
	spin_unlock(&xprt->transport_lock);

	conn->was_up = true;
	cx->was_lost = false;
	if (READ_ONCE(clnt_peer_timeout))
		rail_conn_watch_peer(rc, 1000 * min(READ_ONCE(clnt_peer_timeout), 3600U));
	xprt_set_connected(xprt);
	xprt_clear_connecting(xprt);
	xprt_wake_pending_tasks(xprt, -EAGAIN);
}

static void clnt_conn_closing(struct rail_conn *rc, const void *priv, u8 len)
{
	struct clnt_conn *conn = rail_conn_context(rc);
	struct clnt_xprt *cx = conn->cx;

	if (!conn->was_up || READ_ONCE(conn->ending))
		return;
	cx->was_lost = true;
	pr_info_ratelimited("%s: connection to the server lost (%pe): connecting again\n",
			    rail_conn_name(rc), ERR_PTR(rail_conn_reason(rc)));
	xprt_force_disconnect(&cx->xprt);
}

static void clnt_conn_closed(struct rail_conn *rc)
{
	struct clnt_conn *conn = rail_conn_context(rc);
	struct clnt_xprt *cx = conn->cx;

	clnt_reqs_disconnected(conn);
	clnt_credits_end(cx);
	clnt_unmake(conn);
	if (!conn->was_up)
		clnt_connect_failed(cx, rail_conn_reason(rc));
}

static void clnt_conn_space(struct rail_conn *rc)
{
	struct clnt_conn *conn = rail_conn_context(rc);

	clnt_wake_senders(conn->cx);
}

static const struct rail_conn_ops clnt_conn_ops = {
	.configure	= clnt_conn_configure,
	.created	= clnt_conn_created,
	.established	= clnt_conn_established,
	.closing	= clnt_conn_closing,
	.closed		= clnt_conn_closed,
	.space		= clnt_conn_space,
};

/* ---------------------------------------------------------------- beginning and end */

/* conn_lock held. The connection ends, if it did not, and is forgotten. */
static void clnt_conn_end(struct clnt_xprt *cx)
{
	struct clnt_conn *conn = cx->conn;

	if (!conn)
		return;
	WRITE_ONCE(conn->ending, true);
	rail_conn_close(conn->rc, 0);
	rail_conn_wait_closed(conn->rc);
	rail_conn_put(conn->rc);
	cx->conn = NULL;
	kfree(conn);
}

/* conn_lock held. On error nobody will be told. */
static int clnt_conn_begin(struct clnt_xprt *cx)
{
	struct rpc_xprt *xprt = &cx->xprt;
	struct rail_rpcrdma_conn ours = {
		.send_max = cx->inline_send,
		.recv_max = cx->inline_recv,
		.remote_inval = true,
	};
	u8 priv[RAIL_RPCRDMA_CM_LEN];
	struct rail_connect how = {
		.dst = (struct sockaddr *)&xprt->addr,
		.src = (struct sockaddr *)&cx->src,
		.timeout_ms = jiffies_to_msecs(READ_ONCE(xprt->connect_timeout)),
		.priv = priv,
		.priv_len = sizeof(priv),
	};
	struct clnt_conn *conn;
	struct rail_conn *rc;
	int err;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return -ENOMEM;
	conn->cx = cx;
	INIT_LIST_HEAD(&conn->reqs);
	INIT_LIST_HEAD(&conn->free_sends);
	init_waitqueue_head(&conn->idle);
	rail_recv_batch_init(&conn->repost);
	rc = rail_conn_create(xprt->xprt_net, &clnt_conn_ops, conn);
	if (IS_ERR(rc)) {
		kfree(conn);
		return PTR_ERR(rc);
	}
	conn->rc = rc;
	cx->conn = conn;
	rail_rpcrdma_cm_encode(priv, &ours);
	err = rail_conn_connect(rc, &how);
	if (err)
		rail_conn_close(rc, err);
	return 0;
}

static void clnt_connect_work(struct work_struct *work)
{
	struct clnt_xprt *cx = container_of(to_delayed_work(work), struct clnt_xprt, connect_work);
	bool swapper = atomic_read(&cx->xprt.swapper);
	unsigned int nofs = memalloc_nofs_save();
	unsigned int noreclaim = 0;
	int err;

	/* Memory can be short because nothing can be swapped out until we are connected. */
	if (swapper)
		noreclaim = memalloc_noreclaim_save();
	mutex_lock(&cx->conn_lock);
	clnt_conn_end(cx);
	err = clnt_conn_begin(cx);
	mutex_unlock(&cx->conn_lock);
	if (err)
		clnt_connect_failed(cx, err);
	if (swapper)
		memalloc_noreclaim_restore(noreclaim);
	memalloc_nofs_restore(nofs);
}

/*
 * How long to wait. Nothing at first, and after an orderly close. A thousand clients lose their
 * server at the same moment: each comes back at a random one, and the more seldom the longer it
 * does not answer.
 */
static unsigned long clnt_connect_delay(struct clnt_xprt *cx)
{
	struct rpc_xprt *xprt = &cx->xprt;
	unsigned long wait = xprt_reconnect_delay(xprt);

	if (wait)
		wait = wait / 2 + get_random_u32_below(wait + 1);
	else if (cx->was_lost)
		wait = get_random_u32_below(CLNT_LOSS_JITTER);
	xprt_reconnect_backoff(xprt, CLNT_FIRST_BACKOFF);
	return wait;
}

/**
 * clnt_connect - sunrpc wants a connection
 * @xprt: transport, XPRT_CONNECTING set by this caller
 * @task: task that holds XPRT_LOCKED
 */
void clnt_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);

	queue_delayed_work(xprtiod_workqueue, &cx->connect_work, clnt_connect_delay(cx));
}

/**
 * clnt_close - no connection, please
 * @xprt: transport, XPRT_LOCKED held
 *
 * When it returns nothing is on a device any more, and whoever waited for a reply or for a
 * connection is woken.
 */
void clnt_close(struct rpc_xprt *xprt)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);

	cancel_delayed_work_sync(&cx->connect_work);
	mutex_lock(&cx->conn_lock);
	clnt_conn_end(cx);
	mutex_unlock(&cx->conn_lock);
	xprt_clear_connecting(xprt);
	xprt_disconnect_done(xprt);
}

/**
 * clnt_inject_disconnect - a test wants the connection to fail
 * @xprt: transport, XPRT_LOCKED held
 */
void clnt_inject_disconnect(struct rpc_xprt *xprt)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);

	if (xprt_connected(xprt) && cx->conn)
		rail_conn_close(cx->conn->rc, -ECONNRESET);
}

/**
 * clnt_conn_init - no connection yet
 * @cx: new transport
 */
void clnt_conn_init(struct clnt_xprt *cx)
{
	mutex_init(&cx->conn_lock);
	INIT_DELAYED_WORK(&cx->connect_work, clnt_connect_work);
}

/**
 * clnt_conn_exit - the transport goes
 * @cx: transport nobody uses
 */
void clnt_conn_exit(struct clnt_xprt *cx)
{
	cancel_delayed_work_sync(&cx->connect_work);
	mutex_lock(&cx->conn_lock);
	clnt_conn_end(cx);
	mutex_unlock(&cx->conn_lock);
}
