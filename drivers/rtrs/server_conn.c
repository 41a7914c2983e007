// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: a connection, from a client's request until it is attached to a path, and its QP. */
#include <linux/module.h>
#include <linux/slab.h>

#include <trace/events/rail_rtrs.h>

#include "server.h"

/* ---------------------------------------------------------------- memory */

/* No answer gathers any more, and no receive has them. */
static void rsrv_free_bufs(struct rsrv_conn *conn)
{
	rsrv_rsps_free(conn);
	if (conn->bufs)
		rail_buf_pool_destroy(conn->bufs);
	if (conn->data_bufs)
		rail_buf_pool_destroy(conn->data_bufs);
	conn->bufs = NULL;
	conn->data_bufs = NULL;
}

/**
 * rsrv_conn_free - forget a connection
 * @conn: its rail_conn is closed, or was never ours
 *
 * Context: sleeps.
 */
void rsrv_conn_free(struct rsrv_conn *conn)
{
	u32 i;

	for (i = 0; conn->recvs && i < conn->nr_recvs; i++) {
		if (conn->recvs[i].buf)
			rail_buf_put(conn->recvs[i].buf);
		if (conn->recvs[i].data)
			rail_buf_put(conn->recvs[i].data);
	}
	kvfree(conn->recvs);
	rsrv_free_bufs(conn);
	if (conn->rail)
		rail_conn_put(conn->rail);
	kfree(conn);
}

/* A connection that was not attached is gone, or about to be. */
static void rsrv_conn_drop(struct rsrv_conn *conn)
{
	struct rail_srv *srv = conn->srv;

	rail_conn_wait_closed(conn->rail);
	rsrv_conn_free(conn);
	mutex_lock(&srv->lock);
	srv->nr_pending--;
	mutex_unlock(&srv->lock);
	wake_up(&srv->empty);
}

static void rsrv_drop_work(struct work_struct *work)
{
	rsrv_conn_drop(container_of(work, struct rsrv_conn, attach));
}

static int rsrv_make_bufs(struct rsrv_conn *conn, struct rail_buf_pool **pool, u32 size, u32 count)
{
	struct rail_buf_pool *made;

	made = rail_buf_pool_create(conn->path->pd, size, count, DMA_FROM_DEVICE, NUMA_NO_NODE);
	if (IS_ERR(made))
		return PTR_ERR(made);
	*pool = made;
	return 0;
}

/* Before the client is told that it may send small requests. false: it may not. */
static bool rsrv_make_small(struct rsrv_conn *conn)
{
	u32 n = conn->path->sess->params.queue_depth + RSRV_SPARE_RECVS;
	int err;

	err = rsrv_make_bufs(conn, &conn->bufs, RAIL_RTRS_SMALL_HDR, n);
	if (!err)
		err = rsrv_make_bufs(conn, &conn->data_bufs, RAIL_RTRS_SMALL_DATA, n);
	if (!err)
		err = rsrv_rsps_make(conn);
	if (!err)
		return true;
	rsrv_free_bufs(conn);
	return false;
}

static int rsrv_make_recvs(struct rsrv_conn *conn)
{
	u32 i, nr_bufs = conn->small ? conn->nr_recvs : 0, n = conn->nr_recvs;
	struct rail_recv_batch batch;
	int err;

	rail_recv_batch_init(&conn->again);
	conn->recvs = kvcalloc(n, sizeof(*conn->recvs), GFP_KERNEL);
	if (!conn->recvs)
		return -ENOMEM;
	if (!conn->ask.cid) {
		nr_bufs = RSRV_INFO_RECVS;
		err = rsrv_make_bufs(conn, &conn->bufs, sizeof(struct rail_rtrs_info_req), nr_bufs);
		if (err)
			return err;
	}
	rail_recv_batch_init(&batch);
	for (i = 0; i < n; i++) {
		struct rsrv_recv *recv = &conn->recvs[i];

		recv->conn = conn;
		rail_cqe_init_recv(&recv->cqe, rsrv_received);
		if (i < nr_bufs) {
			recv->buf = rail_buf_get(conn->bufs);
			recv->sges[0] = recv->buf->sge;
			recv->wr.sg_list = recv->sges;
			recv->wr.num_sge = 1;
			rail_buf_for_device(recv->buf, recv->buf->sge.length);
		}
		if (conn->small) {
			recv->data = rail_buf_get(conn->data_bufs);
			recv->sges[1] = recv->data->sge;
			recv->wr.num_sge = 2;
			rail_buf_for_device(recv->data, recv->data->sge.length);
		}
		rail_recv_batch_add(&batch, &recv->wr, &recv->cqe);
	}
	return rail_post_recvs(conn->rail, &batch);
}

/* ---------------------------------------------------------------- what rail tells */

static int rsrv_configure(struct rail_conn *rail, struct rail_qp_attr *attr)
{
	struct rsrv_conn *conn = rail_conn_context(rail);
	struct rsrv_path *path = conn->path;
	u32 depth = path->sess->params.queue_depth;

	conn->nr_recvs = depth + RSRV_SPARE_RECVS;
	attr->pd = path->pd;
	attr->max_chain = conn->ask.cid ? RSRV_ANSWER_CHAIN : RSRV_REG_CHAIN;
	attr->send_depth = clamp_t(u32, 3 * depth, 64, 4096);
	attr->recv_depth = conn->nr_recvs;
	attr->max_send_sge = min_t(u32, RSRV_MAX_SGE, path->dev->max_sge);
	attr->max_recv_sge = conn->small ? 2 : 1;
	attr->poll = RAIL_POLL_WORKQUEUE;
	attr->comp_vector = conn->ask.cid ? conn->ask.cid - 1 : 0;
	return 0;
}

static int rsrv_created(struct rail_conn *rail)
{
	return rsrv_make_recvs(rail_conn_context(rail));
}

static void rsrv_established(struct rail_conn *rail, const void *priv, u8 len)
{
	struct rsrv_conn *conn = rail_conn_context(rail);

	rsrv_path_conn_up(conn->path, conn);
}

static void rsrv_closing(struct rail_conn *rail, const void *priv, u8 len)
{
	struct rsrv_conn *conn = rail_conn_context(rail);
	struct rsrv_path *path;

	/* Should it be attached just now: then accepting it fails. */
	mutex_lock(&conn->srv->lock);
	path = conn->path;
	if (path)
		rsrv_path_fail(path, rail_conn_reason(rail));
	mutex_unlock(&conn->srv->lock);
}

static void rsrv_closed(struct rail_conn *rail)
{
	struct rsrv_conn *conn = rail_conn_context(rail);
	bool mine;

	mutex_lock(&conn->srv->lock);
	/* The path's close work, or the attach work, sees to it. */
	mine = !conn->path && !conn->attaching;
	conn->closed = true;
	mutex_unlock(&conn->srv->lock);
	if (!mine)
		return;
	/* Not from here: nothing of ours may run any more when the server is closed. */
	INIT_WORK(&conn->attach, rsrv_drop_work);
	queue_work(rsrv_wq, &conn->attach);
}

static const struct rail_conn_ops rsrv_conn_ops = {
	.configure = rsrv_configure,
	.created = rsrv_created,
	.established = rsrv_established,
	.closing = rsrv_closing,
	.closed = rsrv_closed,
	.space = rsrv_space,
};

/* ---------------------------------------------------------------- attach */

static bool rsrv_is_newer(u16 recon_cnt, const struct rsrv_path *path)
{
	return (s16)(recon_cnt - path->recon_cnt) > 0;
}

/* The server is locked. Is this connection one that the path still lacks? */
static int rsrv_path_take(struct rsrv_path *path, struct rsrv_conn *conn)
{
	const struct rail_rtrs_conn *ask = &conn->ask;

	if (READ_ONCE(path->state) != RSRV_PATH_CONNECTING || path->recon_cnt != ask->recon_cnt ||
	    path->conns[ask->cid]) {
		struct sockaddr_storage peer = {};
		const struct sockaddr *dst = rail_conn_dst(conn->rail);

		memcpy(&peer, dst, rdma_addr_size(dst));
		/*
		 * The client has given the old path up, and we have not noticed yet: make way. Only
		 * for the same host, as the uuids are no secret to those who can listen.
		 */
		if (rsrv_is_newer(ask->recon_cnt, path) && rsrv_same_host(&peer, &path->src))
			rsrv_path_fail(path, -ESTALE);
		return -EBUSY;
	}
	if (path->cid_num != ask->cid_num || path->dev != rail_conn_dev(conn->rail))
		return -EINVAL;
	return 0;
}

/*
 * The server is locked. A client that has no path left says that its session is new. Where we
 * still have paths of it they are stale, and have to go first, so that our user forgets the
 * session as the client's takes for granted. But it may also be that a path came up while this one
 * was on its way; or that the client (mainline's) says so of a path that once was the first. So
 * they are asked for a sign of life: the connection is refused for now, and when the client tries
 * again we know.
 *
 * true: let it join.
 */
static bool rsrv_may_join(struct rail_srv_sess *sess)
{
	struct rsrv_path *path;
	bool alive = false, wait = false;

	list_for_each_entry(path, &sess->paths, entry) {
		switch (READ_ONCE(path->state)) {
		case RSRV_PATH_UP:
			if (rsrv_path_challenge(path))
				alive = true;
			wait = true;
			break;
		case RSRV_PATH_CONNECTING:
			break;
		default:
			wait = true;
		}
	}
	return alive || !wait;
}

/* The server is locked. */
static struct rsrv_path *rsrv_find_path(struct rsrv_conn *conn)
{
	const struct rail_rtrs_conn *ask = &conn->ask;
	struct rail_srv *srv = conn->srv;
	struct rail_srv_sess *sess;
	struct rsrv_path *path;
	int err;

	if (srv->closing)
		return ERR_PTR(-ESHUTDOWN);
	sess = rsrv_sess_find(srv, ask->sess_uuid);
	if (!sess) {
		if (!ask->first_conn)
			return ERR_PTR(-ENOENT);
		sess = rsrv_sess_create(srv, ask->sess_uuid, rail_conn_dst(conn->rail));
		if (IS_ERR(sess))
			return ERR_CAST(sess);
	} else {
		if (sess->state == RSRV_SESS_CLOSING)
			return ERR_PTR(-EBUSY);
		path = rsrv_path_find(sess, ask->path_uuid);
		if (path) {
			err = rsrv_path_take(path, conn);
			return err ? ERR_PTR(err) : path;
		}
		if (ask->first_conn && !rsrv_may_join(sess))
			return ERR_PTR(-EBUSY);
		refcount_inc(&sess->refs);
	}
	path = rsrv_path_create(sess, conn);
	if (IS_ERR(path))
		rsrv_sess_forget(sess);
	return path;
}

static void rsrv_refuse(struct rail_conn *rail, int err)
{
	struct rail_rtrs_conn_rsp rsp;

	trace_rail_srv_refused(rail_conn_name(rail), err);
	rail_rtrs_reject_encode(&rsp, err);
	rail_conn_reject(rail, &rsp, sizeof(rsp));
}

static void rsrv_attach_work(struct work_struct *work)
{
	struct rsrv_conn *conn = container_of(work, struct rsrv_conn, attach);
	struct rail_rtrs_conn_rsp rsp;
	struct rail_accept how = { .priv = &rsp, .priv_len = sizeof(rsp) };
	struct rail_conn *rail = conn->rail;
	struct rail_srv *srv = conn->srv;
	struct rail_rtrs_params params;
	struct rsrv_path *path;
	bool small;

	rail_conn_get(rail);
	mutex_lock(&srv->lock);
	conn->attaching = false;
	if (conn->closed) {
		mutex_unlock(&srv->lock);
		rsrv_conn_drop(conn);
		goto put;
	}
	path = rsrv_find_path(conn);
	if (!IS_ERR(path)) {
		path->conns[conn->ask.cid] = conn;
		WRITE_ONCE(conn->path, path);
		srv->nr_pending--;
		wake_up(&srv->empty);
	}
	mutex_unlock(&srv->lock);
	if (IS_ERR(path)) {
		/* Not ours from here on: closed() may have come. */
		pr_info_ratelimited("rtrs-server: %s: connection refused: %pe\n",
				    rail_conn_name(rail), path);
		rsrv_refuse(rail, PTR_ERR(path));
		goto put;
	}
	/* The path's close work waits for us. */
	small = rsrv_path_small(path, conn);
	if (small && conn->ask.cid) {
		small = rsrv_make_small(conn);
		conn->small = small;
	}
	params = path->sess->params;
	params.ext = small ? RAIL_RTRS_EXT_SMALL : 0;
	rail_rtrs_accept_encode(&rsp, &params);
	if (rail_conn_accept(rail, &how))
		rsrv_path_fail(path, -ECONNABORTED);
put:
	rail_conn_put(rail);
}

/* Looks at nothing but the message; the rest may have to wait and is for the attach work. */
static int rsrv_request(struct rail_listener *listener, struct rail_conn *rail,
			struct rail_request *req)
{
	struct rail_srv *srv = rail_listener_context(listener);
	struct rail_rtrs_conn_rsp *rsp = (struct rail_rtrs_conn_rsp *)req->reject_priv;
	enum rail_rtrs_reason reason;
	struct rsrv_conn *conn;
	int err = 0;

	req->reject_len = sizeof(*rsp);
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn) {
		rail_rtrs_reject_encode(rsp, -ENOMEM);
		return -ENOMEM;
	}
	reason = rail_rtrs_conn_req_decode(req->priv, req->priv_len, &conn->ask);
	if (reason) {
		pr_warn_ratelimited("rtrs-server: %s: connection refused: %s\n",
				    rail_conn_name(rail), rail_rtrs_reason_text(reason));
		err = reason == RAIL_RTRS_BAD_VERSION ? -EPROTONOSUPPORT : -EINVAL;
		goto free;
	}
	conn->srv = srv;
	conn->rail = rail;
	conn->attaching = true;
	INIT_WORK(&conn->attach, rsrv_attach_work);
	spin_lock_init(&conn->again_lock);
	rsrv_rsps_init(conn);
	spin_lock_init(&conn->room_lock);
	INIT_LIST_HEAD(&conn->no_room);

	mutex_lock(&srv->lock);
	if (srv->closing)
		err = -ESHUTDOWN;
	else if (srv->nr_pending >= RSRV_MAX_PENDING)
		err = -EBUSY;
	else
		srv->nr_pending++;
	mutex_unlock(&srv->lock);
	if (err)
		goto free;
	rail_conn_adopt(rail, &rsrv_conn_ops, conn);
	queue_work(rsrv_wq, &conn->attach);
	return 0;

free:
	trace_rail_srv_refused(rail_conn_name(rail), err);
	rail_rtrs_reject_encode(rsp, err);
	kfree(conn);
	return err;
}

static void rsrv_gone(struct rail_listener *listener)
{
	pr_warn("rtrs-server: the address %pISpc it listens on went away; load the modules that use rtrs-server anew once it is back\n",
		rail_listener_addr(listener));
}

const struct rail_listener_ops rsrv_listener_ops = {
	.request = rsrv_request,
	.gone = rsrv_gone,
};
