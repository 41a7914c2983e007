// SPDX-License-Identifier: GPL-2.0-only
/*
 * A path's life. Its work alone moves its state and makes and unmakes what belongs to an attempt;
 * everybody else leaves a wish or a failure and wakes it. States and the order of tear-down stand
 * in client.h.
 */
#include <linux/debugfs.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <trace/events/rail_rtrs.h>
#include "client.h"

const char * const clt_path_state_names[CLT_NR_PATH_STATES] = {
	[CLT_PATH_OFF] = "disconnected",
	[CLT_PATH_WAITING] = "reconnecting",
	[CLT_PATH_CONNECTING] = "connecting",
	[CLT_PATH_UP] = "connected",
	[CLT_PATH_CLOSING] = "closing",
	[CLT_PATH_GONE] = "removed",
};

static const char * const clt_stat_names[CLT_NR_STATS] = {
	[CLT_STAT_READS] = "reads",
	[CLT_STAT_READ_BYTES] = "read_bytes",
	[CLT_STAT_WRITES] = "writes",
	[CLT_STAT_WRITE_BYTES] = "write_bytes",
	[CLT_STAT_STARTED] = "started",
	[CLT_STAT_ENDED] = "ended",
	[CLT_STAT_FAILED_OVER] = "failed_over",
	[CLT_STAT_ERRORS] = "errors",
	[CLT_STAT_MIGRATED_FROM] = "migrated_from",
	[CLT_STAT_MIGRATED_TO] = "migrated_to",
	[CLT_STAT_REGISTERED_WRITES] = "registered_writes",
	[CLT_STAT_LOCAL_INVS] = "local_invalidations",
	[CLT_STAT_SMALL] = "small",
};

static const char * const clt_hist_names[CLT_NR_HISTS] = {
	[CLT_HIST_READ_NS] = "read_ns",
	[CLT_HIST_WRITE_NS] = "write_ns",
};

static const struct rail_stats_desc clt_stats_desc = {
	.name = "stats",
	.nr_counters = CLT_NR_STATS,
	.nr_hists = CLT_NR_HISTS,
	.counters = clt_stat_names,
	.hists = clt_hist_names,
};

/**
 * struct clt_info - the exchange of INFO messages at the end of an attempt
 * @path: of which
 * @bufs: [0] the request, [1] the answer
 * @buf: of @bufs
 * @sent: told of the request; nothing to do
 * @recv: told of the answer
 * @send_wr: the request
 * @recv_wr: the answer
 * @len: of the answer
 */
struct clt_info {
	struct clt_path *path;
	struct rail_buf_pool *bufs[2];
	struct rail_buf *buf[2];
	struct rail_cqe sent;
	struct rail_cqe recv;
	struct ib_send_wr send_wr;
	struct ib_recv_wr recv_wr;
	u32 len;
};

/* ---------------------------------------------------------------- wishes and failures */

static void clt_path_move(struct clt_path *path, enum clt_path_state to)
{
	WARN_ON_ONCE(!clt_path_may(path->state, to));
	trace_rail_clt_path(path->clt->name, path->name, clt_path_state_names[path->state],
			    clt_path_state_names[to], READ_ONCE(path->error));
	WRITE_ONCE(path->state, to);
	wake_up_all(&path->wq);
	/* Not from here: that takes memory, which may only be had once this path is up. */
	schedule_work(&path->tell);
}

static void clt_path_tell_work(struct work_struct *work)
{
	clt_sysfs_tell_path(container_of(work, struct clt_path, tell));
}

static void clt_path_kick(struct clt_path *path)
{
	mod_delayed_work(path->clt->wq, &path->work, 0);
}

/**
 * clt_path_fail - end an attempt, or a path that is up
 * @path: the path
 * @error: why, negative errno
 *
 * Context: any.
 * Return: true for the first one of this attempt, whose reason counts.
 */
bool clt_path_fail(struct clt_path *path, int error)
{
	if (test_and_set_bit(CLT_PATH_FAILED, &path->flags))
		return false;
	WRITE_ONCE(path->error, error);
	wake_up_all(&path->wq);
	/*
	 * During an attempt the work is there, waiting; later it is to come. Kicked in vain it
	 * looks at next_try and waits on.
	 */
	clt_path_kick(path);
	return true;
}

/**
 * clt_path_want - what the user wants of a path
 * @path: the path
 * @want: that; nobody wants a path back of which it was said that it shall go
 *
 * Context: any.
 */
void clt_path_want(struct clt_path *path, enum clt_want want)
{
	enum clt_want was = READ_ONCE(path->want);

	do {
		if (was == CLT_WANT_GONE)
			break;
	} while (!try_cmpxchg(&path->want, &was, want));
	WRITE_ONCE(path->next_try, jiffies);
	wake_up_all(&path->wq);
	clt_path_kick(path);
}

/**
 * clt_path_reconnect - connect a path anew, whatever its state
 * @path: the path
 *
 * Context: any.
 */
void clt_path_reconnect(struct clt_path *path)
{
	path->tries = 0;
	if (READ_ONCE(path->state) == CLT_PATH_UP)
		clt_path_fail(path, -ECONNABORTED);
	clt_path_want(path, CLT_WANT_ON);
}

/* Is there a reason for the work not to go on with an attempt? */
static bool clt_path_stop(struct clt_path *path)
{
	return test_bit(CLT_PATH_FAILED, &path->flags) || READ_ONCE(path->want) != CLT_WANT_ON;
}

static int clt_path_stop_error(struct clt_path *path)
{
	if (test_bit(CLT_PATH_FAILED, &path->flags))
		return READ_ONCE(path->error) ?: -ECONNABORTED;
	return -ECANCELED;
}

/* Sleep until @cond or a reason to stop. An expression: 0 or the error. */
#define clt_path_await(path, cond) ({ \
	struct clt_path *__p = (path); \
	wait_event_idle(__p->wq, (cond) || clt_path_stop(__p)); \
	clt_path_stop(__p) ? clt_path_stop_error(__p) : 0; })

/* ---------------------------------------------------------------- connections */

static int clt_conn_make_recvs(struct clt_conn *conn)
{
	struct clt_path *path = conn->path;
	u32 i, n = CLT_ADMIN_RECVS;

	/* An answer takes two: one that makes a key dead, and the answer itself. */
	if (conn->cid)
		n = 2 * path->params.queue_depth + CLT_RECV_BATCH;
	conn->recvs = kvcalloc(n, sizeof(*conn->recvs), GFP_KERNEL);
	if (!conn->recvs)
		return -ENOMEM;
	conn->bufs = rail_buf_pool_create(path->pd, CLT_RECV_SIZE, n, DMA_FROM_DEVICE,
					  NUMA_NO_NODE);
	if (IS_ERR(conn->bufs)) {
		int err = PTR_ERR(conn->bufs);

		conn->bufs = NULL;
		return err;
	}
	for (i = 0; i < n; i++) {
		struct clt_recv *recv = &conn->recvs[i];

		recv->conn = conn;
		recv->buf = rail_buf_get(conn->bufs);
		rail_cqe_init_recv(&recv->cqe, clt_conn_recv_done);
		recv->wr.sg_list = &recv->buf->sge;
		recv->wr.num_sge = 1;
	}
	conn->nr_recvs = n;
	return 0;
}

static void clt_conn_free_recvs(struct clt_conn *conn)
{
	u32 i;

	for (i = 0; i < conn->nr_recvs; i++)
		rail_buf_put(conn->recvs[i].buf);
	conn->nr_recvs = 0;
	if (conn->bufs)
		rail_buf_pool_destroy(conn->bufs);
	conn->bufs = NULL;
	kvfree(conn->recvs);
	conn->recvs = NULL;
}

static int clt_conn_configure(struct rail_conn *rail, struct rail_qp_attr *attr)
{
	struct clt_conn *conn = rail_conn_context(rail);
	struct rail_dev *dev = rail_conn_dev(rail);
	struct clt_path *path = conn->path;
	u32 depth;

	if (!conn->cid) {
		/* Alone: the others begin when this one is up. */
		path->pd = rail_pd_alloc(dev);
		if (IS_ERR(path->pd)) {
			int err = PTR_ERR(path->pd);

			path->pd = NULL;
			return err;
		}
		path->max_sge = min_t(u32, dev->max_sge, CLT_MAX_SGE);
		attr->send_depth = CLT_ADMIN_RECVS;
		attr->recv_depth = CLT_ADMIN_RECVS + 1;
	} else {
		if (path->pd->dev != dev)
			return -EXDEV;
		depth = path->params.queue_depth;
		/* Register, send; invalidate. */
		attr->send_depth = 3 * depth;
		attr->recv_depth = 2 * depth + CLT_RECV_BATCH;
		attr->comp_vector = conn->cid - 1;
	}
	attr->pd = path->pd;
	attr->max_chain = 2;
	attr->max_send_sge = path->max_sge;
	attr->poll = conn->poll ? RAIL_POLL_DIRECT : RAIL_POLL_SOFTIRQ;
	return 0;
}

/* clt->mutex held. Has another path the same addresses? */
static bool clt_path_is_double(const struct clt_path *path, const struct sockaddr *src)
{
	const struct clt_paths *paths;
	u32 i;

	paths = rcu_dereference_protected(path->clt->paths, lockdep_is_held(&path->clt->mutex));
	for (i = 0; i < paths->n; i++) {
		struct rail_clt_addr *addr = &clt_lane_path(paths->lane[i])->addr;

		if (addr != &path->addr &&
		    rail_addr_equal((struct sockaddr *)&addr->dst,
				    (struct sockaddr *)&path->addr.dst) &&
		    rail_addr_equal((struct sockaddr *)&addr->src, src))
			return true;
	}
	return false;
}

/* Connection 0 has a device and a source. */
static int clt_path_take_name(struct clt_path *path, struct rail_conn *rail)
{
	struct sockaddr *src = (struct sockaddr *)&path->addr.src;
	struct sockaddr_storage found = {};
	int err = 0;

	strscpy(path->hca_name, dev_name(&path->pd->dev->ib->dev), sizeof(path->hca_name));
	path->hca_port = rail_conn_port(rail);
	if (src->sa_family != AF_UNSPEC)
		return 0;
	/* A path is a pair of addresses: it stays with the one it found. */
	memcpy(&found, rail_conn_src(rail), rdma_addr_size((void *)rail_conn_src(rail)));
	rail_addr_set_port((struct sockaddr *)&found, 0);
	mutex_lock(&path->clt->mutex);
	if (clt_path_is_double(path, (struct sockaddr *)&found)) {
		err = -EEXIST;
	} else {
		path->addr.src = found;
		rail_path_print(path->name, sizeof(path->name), src,
				(struct sockaddr *)&path->addr.dst);
	}
	mutex_unlock(&path->clt->mutex);
	return err;
}

/* Connection 0 has its receives posted when INFO has come, which must find its own. */
static int clt_conn_created(struct rail_conn *rail)
{
	struct clt_conn *conn = rail_conn_context(rail);
	int err = 0;

	if (!conn->cid)
		err = clt_path_take_name(conn->path, rail);
	if (!err)
		err = clt_conn_make_recvs(conn);
	if (!err && conn->cid)
		err = clt_conn_post_recvs(conn);
	return err;
}

static void clt_conn_established(struct rail_conn *rail, const void *priv, u8 len)
{
	struct clt_conn *conn = rail_conn_context(rail);
	struct clt_path *path = conn->path;

	if (!conn->cid) {
		path->rsp_len = min_t(u8, len, sizeof(path->rsp));
		memcpy(path->rsp, priv, path->rsp_len);
	} else {
		struct rail_rtrs_params params;
		int err;

		/* What else it says there was said on connection 0. */
		conn->small = !rail_rtrs_conn_rsp_decode(priv, len, &params, &err) &&
			      params.ext & path->params.ext & RAIL_RTRS_EXT_SMALL;
	}
	atomic_inc(&path->nr_up);
	wake_up_all(&path->wq);
}

static void clt_conn_closing(struct rail_conn *rail, const void *priv, u8 len)
{
	struct clt_conn *conn = rail_conn_context(rail);
	int error = rail_conn_reason(rail);
	struct rail_rtrs_params params;
	int told;

	if (priv && rail_rtrs_conn_rsp_decode(priv, len, &params, &told) == RAIL_RTRS_REFUSED)
		error = told;
	clt_path_fail(conn->path, error ?: -ECONNABORTED);
}

/* The teardown waits for it with rail_conn_wait_closed(). */
static void clt_conn_closed(struct rail_conn *rail)
{
}

static const struct rail_conn_ops clt_conn_ops = {
	.configure = clt_conn_configure,
	.created = clt_conn_created,
	.established = clt_conn_established,
	.closing = clt_conn_closing,
	.closed = clt_conn_closed,
};

static int clt_conn_connect(struct clt_conn *conn, bool first, unsigned int timeout_ms)
{
	struct clt_path *path = conn->path;
	struct rail_rtrs_conn_req priv;
	struct rail_rtrs_conn hello = {
		.cid = conn->cid,
		.cid_num = path->nr_conns,
		.recon_cnt = path->recon_cnt,
		.first_conn = first,
		.ext = RAIL_RTRS_EXT_SMALL,
	};
	struct rail_connect how = {
		.dst = (struct sockaddr *)&path->addr.dst,
		.src = (struct sockaddr *)&path->addr.src,
		.timeout_ms = timeout_ms,
		.priv = &priv,
		.priv_len = sizeof(priv),
	};
	struct rail_conn *rail;

	export_uuid(hello.path_uuid, &path->uuid);
	export_uuid(hello.sess_uuid, &path->clt->uuid);
	rail_rtrs_conn_req_encode(&priv, &hello);
	conn->inval = false;
	conn->small = false;
	rail = rail_conn_create(path->clt->net, &clt_conn_ops, conn);
	if (IS_ERR(rail))
		return PTR_ERR(rail);
	conn->rail = rail;
	return rail_conn_connect(rail, &how);
}

/* ---------------------------------------------------------------- an attempt */

/*
 * Only one path at a time may try to be the session's first, or a server that knows nothing of the
 * session could not tell whose path is stale.
 * Return: 1: @path is to be it. 0: another one is up. Else the attempt is over.
 */
static int clt_first_begin(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;
	int ret;

	for (;;) {
		if (clt_path_stop(path))
			return clt_path_stop_error(path);
		spin_lock_irq(&clt->lock);
		ret = clt->nr_up ? 0 : !clt->first ? 1 : -EAGAIN;
		if (ret == 1)
			clt->first = path;
		spin_unlock_irq(&clt->lock);
		if (ret != -EAGAIN)
			return ret;
		/* A change of mind is seen a little later. */
		wait_event_idle_timeout(clt->wait, READ_ONCE(clt->nr_up) || !READ_ONCE(clt->first),
					HZ / 4);
	}
}

static void clt_first_end(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;

	spin_lock_irq(&clt->lock);
	if (clt->first == path)
		clt->first = NULL;
	spin_unlock_irq(&clt->lock);
	wake_up_all(&clt->wait);
}

/* What connection 0's accept says; the session's limits come from the first one ever. */
static int clt_path_take_params(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;
	struct rail_rtrs_params params;
	enum rail_rtrs_reason reason;
	int err;

	reason = rail_rtrs_conn_rsp_decode(path->rsp, path->rsp_len, &params, &err);
	if (reason) {
		clt_warn(path, "the server's answer to the connect is wrong: %s\n",
			 rail_rtrs_reason_text(reason));
		return -EPROTO;
	}
	mutex_lock(&clt->mutex);
	if (!clt->reqs)
		err = clt_make_reqs(clt, &params, path->pd->dev);
	else if (params.queue_depth < clt->limits.queue_depth ||
		 params.max_io_size < clt->limits.max_io_size ||
		 params.max_hdr_size < clt->limits.max_usr_len + RAIL_RTRS_REQ_HDR_MAX)
		err = -EMSGSIZE;
	mutex_unlock(&clt->mutex);
	if (err == -EMSGSIZE)
		clt_warn(path, "the server offers queue depth %u, I/O of %u bytes: less than the session was opened with (%u, %u)\n",
			 params.queue_depth, params.max_io_size, clt->limits.queue_depth,
			 clt->limits.max_io_size);
	path->params = params;
	return err;
}

/* Regions and buffers for each request the session may have outstanding. */
static int clt_path_make_slots(struct clt_path *path)
{
	const struct rail_clt_limits *limits = &path->clt->limits;
	struct rail_mr_pool_attr attr = {
		.pd = path->pd,
		.count = limits->queue_depth,
		.pages = limits->max_segments,
	};
	struct clt_slot *slots;
	u32 i;

	slots = kvcalloc(path->params.queue_depth, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	path->slots = slots;
	path->mrs = rail_mr_pool_create(&attr);
	if (IS_ERR(path->mrs)) {
		int err = PTR_ERR(path->mrs);

		path->mrs = NULL;
		return err;
	}
	if (rail_mr_pool_pages(path->mrs) < limits->max_segments)
		return -EXDEV;
	path->hdrs = rail_buf_pool_create(path->pd, CLT_HDR_SIZE, limits->queue_depth,
					  DMA_TO_DEVICE, NUMA_NO_NODE);
	if (IS_ERR(path->hdrs)) {
		int err = PTR_ERR(path->hdrs);

		path->hdrs = NULL;
		return err;
	}
	for (i = 0; i < limits->queue_depth; i++) {
		slots[i].mr = rail_mr_get(path->mrs);
		slots[i].hdr = rail_buf_get(path->hdrs);
	}
	clt_small_make(path);
	return 0;
}

static void clt_path_free_slots(struct clt_path *path)
{
	u32 i;

	for (i = 0; path->slots && i < path->params.queue_depth; i++) {
		if (path->slots[i].mr)
			rail_mr_put(path->slots[i].mr);
		if (path->slots[i].hdr)
			rail_buf_put(path->slots[i].hdr);
	}
	clt_small_free(path);
	if (path->mrs)
		rail_mr_pool_destroy(path->mrs);
	if (path->hdrs)
		rail_buf_pool_destroy(path->hdrs);
	path->mrs = NULL;
	path->hdrs = NULL;
	kvfree(path->slots);
	path->slots = NULL;
}

static bool clt_info_here(const struct clt_path *path)
{
	return test_bit(CLT_PATH_INFO, &path->flags);
}

static void clt_info_sent(struct rail_cqe *cqe, struct ib_wc *wc)
{
}

static int clt_info_post_recv(struct clt_info *info)
{
	struct rail_recv_batch batch;

	rail_recv_batch_init(&batch);
	rail_recv_batch_add(&batch, &info->recv_wr, &info->recv);
	return rail_post_recvs(info->path->conns[0].rail, &batch);
}

static void clt_info_received(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clt_info *info = container_of(cqe, struct clt_info, recv);
	struct clt_path *path = info->path;

	if (wc->status != IB_WC_SUCCESS)
		return;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM) {
		/* A heartbeat of an eager server. */
		if (clt_info_post_recv(info))
			clt_path_fail(path, -ENOTCONN);
		return;
	}
	rail_buf_for_cpu(info->buf[1], wc->byte_len);
	info->len = wc->byte_len;
	set_bit(CLT_PATH_INFO, &path->flags);
	wake_up_all(&path->wq);
}

static int clt_info_make(struct clt_path *path)
{
	const u32 size[2] = {
		sizeof(struct rail_rtrs_info_req),
		rail_rtrs_info_rsp_size(path->params.queue_depth),
	};
	struct clt_info *info;
	int i;

	info = kzalloc(sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	info->path = path;
	path->info = info;
	for (i = 0; i < 2; i++) {
		info->bufs[i] = rail_buf_pool_create(path->pd, size[i], 1,
						     i ? DMA_FROM_DEVICE : DMA_TO_DEVICE,
						     NUMA_NO_NODE);
		if (IS_ERR(info->bufs[i])) {
			int err = PTR_ERR(info->bufs[i]);

			info->bufs[i] = NULL;
			return err;
		}
		info->buf[i] = rail_buf_get(info->bufs[i]);
	}
	rail_cqe_init_send(&info->sent, clt_info_sent);
	rail_cqe_init_recv(&info->recv, clt_info_received);
	info->recv_wr.sg_list = &info->buf[1]->sge;
	info->recv_wr.num_sge = 1;
	info->send_wr.opcode = IB_WR_SEND;
	info->send_wr.sg_list = &info->buf[0]->sge;
	info->send_wr.num_sge = 1;
	return 0;
}

static void clt_info_free(struct clt_path *path)
{
	struct clt_info *info = path->info;
	int i;

	if (!info)
		return;
	for (i = 0; i < 2; i++) {
		if (info->buf[i])
			rail_buf_put(info->buf[i]);
		if (info->bufs[i])
			rail_buf_pool_destroy(info->bufs[i]);
	}
	kfree(info);
	path->info = NULL;
}

/* Where the chunks are. */
static int clt_info_take(struct clt_path *path)
{
	const struct clt_info *info = path->info;
	enum rail_rtrs_reason reason;
	u32 cnt, n, id = 0;

	reason = rail_rtrs_info_rsp_decode(info->buf[1]->addr, info->len, &path->params, &cnt);
	if (reason) {
		clt_warn(path, "the server's INFO is wrong: %s\n", rail_rtrs_reason_text(reason));
		return -EPROTO;
	}
	for (n = 0; n < cnt; n++) {
		struct rail_rtrs_mem mem;
		u32 off;

		rail_rtrs_info_rsp_get(info->buf[1]->addr, n, &mem);
		for (off = 0; off < mem.len && id < path->params.queue_depth; id++) {
			path->slots[id].addr = mem.addr + off;
			path->slots[id].rkey = mem.key;
			off += path->params.chunk_size;
		}
	}
	return 0;
}

static int clt_path_exchange_info(struct clt_path *path)
{
	struct clt_conn *conn = &path->conns[0];
	struct rail_chain chain;
	int err;

	err = clt_info_make(path);
	if (!err)
		err = clt_info_post_recv(path->info);
	if (err)
		return err;
	if (rail_rtrs_info_req_encode(path->info->buf[0]->addr, path->clt->name))
		return -EINVAL;
	rail_buf_for_device(path->info->buf[0], sizeof(struct rail_rtrs_info_req));
	rail_chain_init(&chain);
	rail_chain_add_signalled(&chain, &path->info->send_wr, &path->info->sent);
	err = rail_post_wait(conn->rail, &chain);
	if (err)
		return err;
	wait_event_idle_timeout(path->wq, clt_info_here(path) || clt_path_stop(path),
				msecs_to_jiffies(CLT_CONNECT_MS));
	if (clt_path_stop(path))
		return clt_path_stop_error(path);
	if (!clt_info_here(path))
		return -ETIMEDOUT;
	err = clt_info_take(path);
	if (!err)
		err = clt_conn_post_recvs(conn);
	return err;
}

static int clt_path_connect(struct clt_path *path)
{
	int first, err;
	u32 cid;

	clear_bit(CLT_PATH_INFO, &path->flags);
	atomic_set(&path->nr_up, 0);
	clear_bit(CLT_PATH_FAILED, &path->flags);
	first = clt_first_begin(path);
	if (first < 0)
		return first;
	err = clt_conn_connect(&path->conns[0], first,
			       first ? CLT_FIRST_MS : CLT_CONNECT_MS);
	if (err)
		return err;
	err = clt_path_await(path, atomic_read(&path->nr_up) == 1);
	if (err)
		return err;
	err = clt_path_take_params(path);
	if (err)
		return err;
	for (cid = 1; cid < path->nr_conns; cid++) {
		err = clt_conn_connect(&path->conns[cid], first, CLT_CONNECT_MS);
		if (err)
			return err;
	}
	/* The connections need their time anyway. */
	err = clt_path_make_slots(path);
	if (err)
		return err;
	err = clt_path_await(path, atomic_read(&path->nr_up) == path->nr_conns);
	if (!err)
		err = clt_small_register(path);
	if (err)
		return err;
	return clt_path_exchange_info(path);
}

/* ---------------------------------------------------------------- tear-down */

/* Whose requests are these now? Completions are over, submitters gone: all of them ours. */
static void clt_path_take_reqs(struct clt_path *path, struct list_head *list)
{
	struct rail_clt *clt = path->clt;
	u32 i;

	for (i = 0; clt->reqs && i < clt->limits.queue_depth; i++)
		if (clt->reqs[i].path == path)
			list_add_tail(&clt->reqs[i].entry, list);
}

/* They are on nobody's wire any more. */
static void clt_path_give_reqs(struct clt_path *path, struct list_head *list)
{
	struct clt_req *req, *next;
	unsigned int n = 0;

	list_for_each_entry_safe(req, next, list, entry) {
		list_del_init(&req->entry);
		if (req->answered) {
			clt_req_done(req, req->error);
		} else if (req->permit.kind == RAIL_CLT_ADMIN) {
			clt_req_done(req, -ENOLINK);
		} else {
			n++;
			rail_stats_inc(&path->stats, CLT_STAT_FAILED_OVER);
			trace_rail_clt_req_failover(path->clt->name, path->name, req->permit.id);
			clt_req_send(req);
		}
	}
	if (n)
		clt_info(path, "%u requests that were on it are sent again\n", n);
}

/* The end of an attempt or of a path that was up. */
static void clt_path_teardown(struct clt_path *path, int error)
{
	struct clt_req *req;
	LIST_HEAD(reqs);
	u32 cid;

	if (path->state == CLT_PATH_UP) {
		/* First, or it would make the lane usable once more. */
		cancel_delayed_work_sync(&path->prove);
		clt_link_lost(path);
	}
	clt_path_move(path, CLT_PATH_CLOSING);
	for (cid = 0; cid < path->nr_conns; cid++)
		if (path->conns[cid].rail)
			rail_conn_close(path->conns[cid].rail, error);
	for (cid = 0; cid < path->nr_conns; cid++)
		if (path->conns[cid].rail)
			rail_conn_wait_closed(path->conns[cid].rail);
	synchronize_rcu();
	rail_hb_stop(&path->hb);
	/* Regions that are given back with a living key are not to be replaced. */
	if (path->mrs)
		rail_mr_pool_stop(path->mrs);
	clt_path_take_reqs(path, &reqs);
	/* With their connections gone nobody can use the keys; with the regions gone, ever. */
	list_for_each_entry(req, &reqs, entry) {
		struct rail_mr *mr = req->slot->mr;

		if (req->mr && mr->state != RAIL_MR_MAPPED) {
			rail_mr_put(mr);
			req->slot->mr = NULL;
			req->mr = false;
		}
		clt_req_release(req);
	}
	for (cid = 0; cid < path->nr_conns; cid++) {
		clt_conn_free_recvs(&path->conns[cid]);
		if (path->conns[cid].rail)
			rail_conn_put(path->conns[cid].rail);
		path->conns[cid].rail = NULL;
	}
	clt_info_free(path);
	clt_path_free_slots(path);
	if (path->pd)
		rail_pd_put(path->pd);
	path->pd = NULL;
	clt_path_give_reqs(path, &reqs);
}

/* ---------------------------------------------------------------- the work */

static void clt_path_settled(struct clt_path *path)
{
	set_bit(CLT_PATH_TRIED, &path->flags);
	wake_up_all(&path->clt->wait);
}

/* Flapping: it was up, and not for long. */
static void clt_path_count_flap(struct clt_path *path)
{
	if (time_before(jiffies, path->up_at + msecs_to_jiffies(CLT_STEADY_MS)))
		path->flaps++;
	else
		path->flaps = 1;
}

static void clt_path_came_up(struct clt_path *path)
{
	bool prove = path->flaps;

	path->tries = 0;
	path->up_at = jiffies;
	if (path->was_up)
		path->reconnects_ok++;
	path->was_up = true;
	path->recon_cnt++;
	path->lane.node = path->pd->dev->node;
	path->lane.latency_ns = 0;
	path->lane.service_ns = 0;
	path->hb.interval_ms = prove ? CLT_PROVE_HB_MS : RAIL_RTRS_HB_INTERVAL_MS;
	/* Quick beats are for proving, not for giving up sooner. */
	path->hb.missed_max = RAIL_RTRS_HB_MISSED_MAX *
			      (RAIL_RTRS_HB_INTERVAL_MS / path->hb.interval_ms);
	rail_hb_start(&path->hb, path->conns[0].rail);
	clt_path_move(path, CLT_PATH_UP);
	clt_info(path, "connected over %s port %u with %u connections%s\n", path->hca_name,
		 path->hca_port, path->nr_conns, prove ? "; it is on probation" : "");
	clt_link_found(path, prove ? CLT_UNPROVED : CLT_USABLE);
	if (prove)
		queue_delayed_work(path->clt->wq, &path->prove,
				   msecs_to_jiffies(clt_prove_ms(path->flaps - 1)));
}

static void clt_prove_work(struct work_struct *work)
{
	struct clt_path *path = container_of(to_delayed_work(work), struct clt_path, prove);

	/* One answer in its time is little, but a link that is not there gives none. */
	if (!READ_ONCE(path->hb.acked)) {
		queue_delayed_work(path->clt->wq, &path->prove,
				   msecs_to_jiffies(CLT_PROVE_HB_MS));
		return;
	}
	WRITE_ONCE(path->hb.missed, 0);
	WRITE_ONCE(path->hb.missed_max, RAIL_RTRS_HB_MISSED_MAX);
	WRITE_ONCE(path->hb.interval_ms, RAIL_RTRS_HB_INTERVAL_MS);
	WRITE_ONCE(path->lane.usable, CLT_USABLE);
}

static void clt_path_hb_dead(struct rail_hb *hb)
{
	struct clt_path *path = container_of(hb, struct clt_path, hb);

	if (clt_path_fail(path, -ETIMEDOUT))
		clt_warn(path, "no sign of life from the server: closing the path\n");
}

/* After a failure: how it goes on. */
static void clt_path_after(struct clt_path *path, bool was_up, int error)
{
	struct rail_clt *clt = path->clt;
	unsigned int ms;

	if (READ_ONCE(path->want) != CLT_WANT_ON) {
		clt_path_move(path, CLT_PATH_OFF);
		return;
	}
	if (was_up) {
		clt_path_count_flap(path);
		clt_warn(path, "lost (%pe); connecting anew\n", ERR_PTR(error));
	} else {
		if (path->was_up)
			path->reconnects_failed++;
		/* Told once; then now and then. */
		if (is_power_of_2(path->tries + 1))
			clt_warn(path, "cannot connect (%pe), attempt %u\n", ERR_PTR(error),
				 path->tries + 1);
		path->tries++;
	}
	if (clt->opened && clt->max_reconnect >= 0 && path->tries > clt->max_reconnect) {
		clt_warn(path, "gave up after %u attempts; write 1 to its 'reconnect' to try again\n",
			 path->tries);
		/* Unless somebody wants it gone by now. */
		cmpxchg(&path->want, CLT_WANT_ON, CLT_WANT_OFF);
		clt_path_move(path, CLT_PATH_OFF);
		return;
	}
	ms = clt_backoff_ms(path->tries, get_random_u32());
	WRITE_ONCE(path->next_try, jiffies + msecs_to_jiffies(ms));
	clt_path_move(path, CLT_PATH_WAITING);
	/* A wish that came meanwhile was not seen by anybody. */
	queue_delayed_work(clt->wq, &path->work,
			   READ_ONCE(path->want) == CLT_WANT_ON ? msecs_to_jiffies(ms) : 0);
}

static void clt_path_attempt(struct clt_path *path)
{
	int err;

	clt_path_move(path, CLT_PATH_CONNECTING);
	err = clt_path_connect(path);
	if (!err && clt_path_stop(path))
		err = clt_path_stop_error(path);
	if (!err)
		clt_path_came_up(path);
	else
		clt_path_teardown(path, err);
	clt_first_end(path);
	if (err) {
		if (!test_bit(CLT_PATH_TRIED, &path->flags))
			path->error = err;
		clt_path_after(path, false, err);
	}
	clt_path_settled(path);
	/* What came between the last look and UP has kicked us. */
}

static void clt_path_work(struct work_struct *work)
{
	struct clt_path *path = container_of(to_delayed_work(work), struct clt_path, work);
	enum clt_want want = READ_ONCE(path->want);
	unsigned long next;

	switch (path->state) {
	case CLT_PATH_UP:
		if (clt_path_stop(path)) {
			int error = clt_path_stop_error(path);

			clt_path_teardown(path, error);
			clt_path_after(path, true, error);
			if (READ_ONCE(path->want) == CLT_WANT_GONE)
				clt_path_kick(path);
		}
		break;
	case CLT_PATH_WAITING:
		if (want != CLT_WANT_ON) {
			clt_path_move(path, CLT_PATH_OFF);
			if (want == CLT_WANT_GONE)
				clt_path_kick(path);
			break;
		}
		next = READ_ONCE(path->next_try);
		if (time_before(jiffies, next)) {
			queue_delayed_work(path->clt->wq, &path->work, next - jiffies);
			break;
		}
		clt_path_attempt(path);
		break;
	case CLT_PATH_OFF:
		if (want == CLT_WANT_ON)
			clt_path_attempt(path);
		else if (want == CLT_WANT_GONE)
			clt_path_move(path, CLT_PATH_GONE);
		break;
	default:
		break;
	}
}

/* ---------------------------------------------------------------- making and removing */

/**
 * clt_path_create - make a path that is not connected
 * @clt: session
 * @addr: where it goes
 *
 * Context: sleeps.
 * Return: the path, with a reference of the caller's (its kobject's), or an ERR_PTR.
 */
struct clt_path *clt_path_create(struct rail_clt *clt, const struct rail_clt_addr *addr)
{
	u32 nr = 1 + clt->limits.nr_queues + clt->limits.nr_poll_queues;
	struct clt_path *path;
	u32 cid;

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->clt = clt;
	path->addr = *addr;
	rail_path_print(path->name, sizeof(path->name), (struct sockaddr *)&addr->src,
			(struct sockaddr *)&addr->dst);
	uuid_gen(&path->uuid);
	path->want = CLT_WANT_OFF;
	path->next_try = jiffies;
	path->lane.node = NUMA_NO_NODE;
	INIT_DELAYED_WORK(&path->work, clt_path_work);
	INIT_DELAYED_WORK(&path->prove, clt_prove_work);
	INIT_WORK(&path->tell, clt_path_tell_work);
	init_waitqueue_head(&path->wq);
	rail_hb_init(&path->hb, clt->wq, clt_path_hb_dead);

	path->lane.vtime = alloc_percpu(u64);
	path->conns = kvcalloc(nr, sizeof(*path->conns), GFP_KERNEL);
	if (!path->lane.vtime || !path->conns)
		goto free;
	path->nr_conns = nr;
	for (cid = 0; cid < nr; cid++) {
		path->conns[cid].path = path;
		path->conns[cid].cid = cid;
		path->conns[cid].poll = cid > clt->limits.nr_queues;
	}
	clt_sysfs_init_path(path);
	return path;

free:
	free_percpu(path->lane.vtime);
	kvfree(path->conns);
	kfree(path);
	return ERR_PTR(-ENOMEM);
}

/**
 * clt_path_free - the last reference to a path is gone
 * @path: path that was never started, or is GONE
 *
 * Context: sleeps.
 */
void clt_path_free(struct clt_path *path)
{
	if (path->stats.desc)
		rail_stats_destroy(&path->stats);
	debugfs_remove_recursive(path->dir);
	free_percpu(path->lane.vtime);
	kvfree(path->conns);
	kfree_rcu(path, rcu);
}

/* clt->mutex held. The same table but for one path. */
static int clt_paths_set(struct rail_clt *clt, struct clt_path *add, struct clt_path *del)
{
	struct clt_paths *old, *new;
	u32 i, n;

	old = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->mutex));
	n = old ? old->n : 0;
	if (add && n >= CLT_MAX_PATHS)
		return -ENOSPC;
	new = kzalloc(struct_size(new, lane, n + 1), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (!del || old->lane[i] != &del->lane)
			new->lane[new->n++] = old->lane[i];
	if (add)
		new->lane[new->n++] = &add->lane;
	rcu_assign_pointer(clt->paths, new);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

/**
 * clt_path_add - make a path one of its session's
 * @path: new path
 *
 * Context: sleeps.
 * Return: 0; -EEXIST: the session has one with the same addresses; -ENOSPC, -ENOMEM.
 */
int clt_path_add(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;
	const struct clt_paths *paths;
	int err = 0;
	u32 i;

	mutex_lock(&clt->mutex);
	paths = rcu_dereference_protected(clt->paths, lockdep_is_held(&clt->mutex));
	for (i = 0; !err && paths && i < paths->n; i++) {
		const struct rail_clt_addr *addr = &clt_lane_path(paths->lane[i])->addr;

		if (rail_addr_equal((struct sockaddr *)&addr->dst,
				    (struct sockaddr *)&path->addr.dst) &&
		    (addr->src.ss_family == path->addr.src.ss_family &&
		     (addr->src.ss_family == AF_UNSPEC ||
		      rail_addr_equal((struct sockaddr *)&addr->src,
				      (struct sockaddr *)&path->addr.src))))
			err = -EEXIST;
	}
	if (!err) {
		path->dir = debugfs_create_dir(path->name, clt->dir);
		err = rail_stats_init(&path->stats, &clt_stats_desc, path->dir);
	}
	if (!err)
		err = clt_paths_set(clt, path, NULL);
	mutex_unlock(&clt->mutex);
	return err;
}

/**
 * clt_path_remove - end a path and take it from its session
 * @path: added path; the caller's reference goes with it
 *
 * Context: sleeps; not from a work of the session.
 */
void clt_path_remove(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;

	clt_path_want(path, CLT_WANT_GONE);
	wait_event_idle(path->wq, READ_ONCE(path->state) == CLT_PATH_GONE);
	clt_sysfs_del_path(path);
	rail_stats_destroy(&path->stats);
	debugfs_remove_recursive(path->dir);
	path->dir = NULL;
	/* Nobody is left who could start them. */
	cancel_delayed_work_sync(&path->work);
	cancel_delayed_work_sync(&path->prove);
	cancel_work_sync(&path->tell);
	clt_sysfs_tell_path(path);
	/* The session may be gone once the path is off its table. */
	mutex_lock(&clt->mutex);
	/* A smaller table cannot be too large; memory for it there is, sooner or later. */
	while (clt_paths_set(clt, NULL, path))
		cond_resched();
	mutex_unlock(&clt->mutex);
	synchronize_rcu();
	kobject_put(&path->kobj);
}
