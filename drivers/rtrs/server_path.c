// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: a path's life. States and the order of its end stand in server.h. */
#include <linux/slab.h>

#include <rail/addr.h>
#include <trace/events/rail_rtrs.h>

#include "server.h"

static const char * const rsrv_counters[RSRV_NR_STATS] = {
	[RSRV_STAT_READS] = "reads",
	[RSRV_STAT_READ_BYTES] = "read_bytes",
	[RSRV_STAT_WRITES] = "writes",
	[RSRV_STAT_WRITE_BYTES] = "write_bytes",
	[RSRV_STAT_ERRORS] = "errors",
	[RSRV_STAT_PARKED] = "parked",
	[RSRV_STAT_SMALL] = "small",
	[RSRV_STAT_GATHERED] = "gathered",
	[RSRV_STAT_NO_ROOM] = "no_room",
	[RSRV_STAT_UNANSWERED] = "unanswered",
};

static const char * const rsrv_hists[RSRV_NR_HISTS] = {
	[RSRV_HIST_READ_NS] = "read_ns",
	[RSRV_HIST_WRITE_NS] = "write_ns",
};

static const struct rail_stats_desc rsrv_stats_desc = {
	.name = "stats",
	.nr_counters = RSRV_NR_STATS,
	.nr_hists = RSRV_NR_HISTS,
	.counters = rsrv_counters,
	.hists = rsrv_hists,
};

static void rsrv_close_work(struct work_struct *work);
static void rsrv_info_work(struct work_struct *work);

/* ---------------------------------------------------------------- states */

static const char * const rsrv_path_state_names[RSRV_NR_PATH_STATES] = {
	[RSRV_PATH_CONNECTING] = "connecting",
	[RSRV_PATH_INFO] = "info",
	[RSRV_PATH_UP] = "up",
	[RSRV_PATH_CLOSING] = "closing",
};

/* State lock held. @reason is of a path that closes. */
static bool rsrv_path_move(struct rsrv_path *path, enum rsrv_path_state to, int reason)
{
	if (!rsrv_path_may(path->state, to))
		return false;
	trace_rail_srv_path(rsrv_sess_label(path->sess), path->name,
			    rsrv_path_state_names[path->state], rsrv_path_state_names[to], reason);
	WRITE_ONCE(path->state, to);
	return true;
}

/**
 * rsrv_path_fail - the one way to end a path
 * @path: the path
 * @reason: why, negative errno; 0: the client is done with it
 *
 * Context: any.
 * Return: true for the first one, whose reason counts.
 */
bool rsrv_path_fail(struct rsrv_path *path, int reason)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&path->state_lock, flags);
	first = rsrv_path_move(path, RSRV_PATH_CLOSING, reason);
	if (first) {
		path->reason = reason;
		queue_work(rsrv_close_wq, &path->close);
	}
	spin_unlock_irqrestore(&path->state_lock, flags);
	return first;
}

static void rsrv_reap_work(struct work_struct *work)
{
	struct rsrv_path *path = container_of(to_delayed_work(work), struct rsrv_path, reap);

	if (READ_ONCE(path->state) < RSRV_PATH_UP && rsrv_path_fail(path, -ETIMEDOUT))
		rsrv_warn(path, "%u of %u connections after %u s, and no more: closing\n",
			  path->nr_up, path->cid_num, RSRV_HALF_OPEN_MS / 1000);
}

static void rsrv_hb_dead(struct rail_hb *hb)
{
	struct rsrv_path *path = container_of(hb, struct rsrv_path, hb);

	if (rsrv_path_fail(path, -ETIMEDOUT))
		rsrv_warn(path, "no sign of life for %u s: closing\n",
			  hb->missed_max * hb->interval_ms / 1000);
}

/* How long a path may take to give a sign of life when asked for it. */
#define RSRV_CHALLENGE		(5 * HZ)

/**
 * rsrv_path_challenge - does the client still use this path?
 * @path: path that is UP; its server is locked
 *
 * Asks with a heartbeat, and ends the path when there was no answer for long.
 *
 * Return: true: something was received since it was first asked.
 */
bool rsrv_path_challenge(struct rsrv_path *path)
{
	lockdep_assert_held(&path->sess->srv->lock);
	if (path->challenged && READ_ONCE(path->heard)) {
		path->challenged = 0;
		return true;
	}
	if (!path->challenged) {
		path->challenged = jiffies | 1;
		WRITE_ONCE(path->heard, false);
		/* Where there is no room, answers are on their way that will do as well. */
		rail_hb_ask(path->conns[0]->rail);
	} else if (time_after(jiffies, path->challenged + RSRV_CHALLENGE) &&
		   rsrv_path_fail(path, -ESTALE)) {
		rsrv_warn(path, "the client starts anew, and does not answer here: closing\n");
	}
	return false;
}

/* ---------------------------------------------------------------- make */

/**
 * rsrv_path_find - a path by its uuid
 * @sess: session, whose server is locked
 * @uuid: the path's
 *
 * Return: the path, maybe CLOSING; NULL: none.
 */
struct rsrv_path *rsrv_path_find(struct rail_srv_sess *sess, const u8 *uuid)
{
	struct rsrv_path *path;

	lockdep_assert_held(&sess->srv->lock);
	list_for_each_entry(path, &sess->paths, entry)
		if (!memcmp(path->uuid, uuid, sizeof(path->uuid)))
			return path;
	return NULL;
}

static u32 rsrv_half_open(struct rail_srv *srv, const struct sockaddr_storage *src)
{
	struct rail_srv_sess *sess;
	struct rsrv_path *path;
	u32 n = 0;

	list_for_each_entry(sess, &srv->sessions, entry)
		list_for_each_entry(path, &sess->paths, entry)
			n += READ_ONCE(path->state) < RSRV_PATH_UP &&
			     rsrv_same_host(&path->src, src);
	return n;
}

/* The session's protection domain on this device: nobody else's keys are valid in it. */
static int rsrv_path_get_pd(struct rsrv_path *path)
{
	struct rsrv_path *other;

	list_for_each_entry(other, &path->sess->paths, entry) {
		if (!other->pd || other->pd->dev != path->dev)
			continue;
		rail_pd_get(other->pd);
		path->pd = other->pd;
		return 0;
	}
	path->pd = rail_pd_alloc(path->dev);
	if (!IS_ERR(path->pd))
		return 0;
	return PTR_ERR(path->pd);
}

/*
 * How many connections of a path have memory for small requests: as many as take no more in all
 * than the session's chunks do.
 */
static u32 rsrv_nr_small(const struct rail_srv_sess *sess, const struct rail_rtrs_conn *ask)
{
	const struct rail_rtrs_params *params = &sess->params;
	u32 conn = (params->queue_depth + RSRV_SPARE_RECVS) * RSRV_SMALL_SIZE;
	u64 most = div_u64((u64)params->queue_depth * params->chunk_size, conn);

	if (!(ask->ext & RAIL_RTRS_EXT_SMALL))
		return 0;
	return min_t(u64, ask->cid_num - 1, max_t(u64, most, 1));
}

/**
 * rsrv_path_small - does a connection take small requests?
 * @path: its path
 * @conn: connection, before there is a QP
 *
 * Return: true: both ends can, and there is memory for it.
 */
bool rsrv_path_small(const struct rsrv_path *path, const struct rsrv_conn *conn)
{
	if (!(conn->ask.ext & RAIL_RTRS_EXT_SMALL) || path->dev->max_recv_sge < 2)
		return false;
	/* Of the first connection, which has none, it says that the others may ask. */
	return conn->ask.cid <= path->nr_small;
}

static u64 rsrv_path_cost(const struct rail_srv_sess *sess, u32 cid_num, u32 nr_small)
{
	u64 depth = sess->params.queue_depth;
	/* A rough guess at what drivers take for an entry of a queue, and the completion of one. */
	u64 conn = (depth + RSRV_SPARE_RECVS) * (sizeof(struct rsrv_recv) + 192);
	u64 small = (depth + RSRV_SPARE_RECVS) * RSRV_SMALL_SIZE;

	return sizeof(struct rsrv_path) + cid_num * conn + nr_small * small +
	       depth * (sizeof(struct rsrv_req) + sizeof(struct scatterlist) +
			sizeof(struct rail_mr));
}

static void rsrv_idle(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct rsrv_path, inflight)->idle);
}

/**
 * rsrv_path_create - make a path for its first connection
 * @sess: session, whose server is locked; the path takes over a reference
 * @conn: the connection; not attached here
 *
 * Return: the path, or an ERR_PTR that the client is told; then the caller keeps the reference.
 */
struct rsrv_path *rsrv_path_create(struct rail_srv_sess *sess, struct rsrv_conn *conn)
{
	const struct sockaddr *src = rail_conn_dst(conn->rail);
	const struct sockaddr *dst = rail_conn_src(conn->rail);
	const struct rail_rtrs_conn *ask = &conn->ask;
	struct rsrv_path *path;
	int err;

	if (sess->nr_paths >= RSRV_MAX_PATHS)
		return ERR_PTR(-EMFILE);
	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->sess = sess;
	spin_lock_init(&path->state_lock);
	path->state = RSRV_PATH_CONNECTING;
	memcpy(path->uuid, ask->path_uuid, sizeof(path->uuid));
	path->recon_cnt = ask->recon_cnt;
	path->cid_num = ask->cid_num;
	path->dev = rail_conn_dev(conn->rail);
	init_completion(&path->idle);
	init_completion(&path->kobj_gone);
	INIT_WORK(&path->info, rsrv_info_work);
	INIT_WORK(&path->close, rsrv_close_work);
	INIT_DELAYED_WORK(&path->reap, rsrv_reap_work);
	rail_hb_init(&path->hb, rsrv_wq, rsrv_hb_dead);
	memcpy(&path->src, src, rdma_addr_size(src));
	memcpy(&path->dst, dst, rdma_addr_size(dst));
	strscpy(path->hca, dev_name(&path->dev->ib->dev), sizeof(path->hca));
	rail_path_print(path->name, sizeof(path->name), src, dst);

	err = -EBUSY;
	if (rsrv_half_open(sess->srv, &path->src) >= RSRV_MAX_HALF_OPEN)
		goto free;
	path->nr_small = rsrv_nr_small(sess, ask);
	path->charged = rsrv_path_cost(sess, path->cid_num, path->nr_small);
	err = rsrv_charge(path->charged);
	if (err) {
		pr_warn_ratelimited("rtrs-server: path %s refused: no memory left for its %u connections; rtrs_server.max_memory is the limit\n",
				    path->name, path->cid_num);
		goto free;
	}
	err = -ENOMEM;
	path->conns = kvcalloc(path->cid_num, sizeof(*path->conns), GFP_KERNEL);
	if (!path->conns)
		goto uncharge;
	err = rail_stats_init(&path->stats, &rsrv_stats_desc, NULL);
	if (err)
		goto free_conns;
	err = percpu_ref_init(&path->inflight, rsrv_idle, 0, GFP_KERNEL);
	if (err)
		goto destroy_stats;
	err = rsrv_path_get_pd(path);
	if (err)
		goto exit_ref;
	list_add_tail(&path->entry, &sess->paths);
	sess->nr_paths++;
	queue_delayed_work(rsrv_wq, &path->reap, msecs_to_jiffies(RSRV_HALF_OPEN_MS));
	return path;

exit_ref:
	percpu_ref_exit(&path->inflight);
destroy_stats:
	rail_stats_destroy(&path->stats);
free_conns:
	kvfree(path->conns);
uncharge:
	rsrv_uncharge(path->charged);
free:
	kfree(path);
	return ERR_PTR(err);
}

/* ---------------------------------------------------------------- come up */

/* State lock held. */
static void rsrv_path_check_info(struct rsrv_path *path)
{
	/* INFO_REQ may be faster than the news that the last connection is up. */
	if (path->info_seen && path->nr_up == path->cid_num &&
	    rsrv_path_move(path, RSRV_PATH_INFO, 0))
		queue_work(rsrv_wq, &path->info);
}

/**
 * rsrv_path_conn_up - one of its connections is established
 * @path: the path
 * @conn: the connection
 */
void rsrv_path_conn_up(struct rsrv_path *path, struct rsrv_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&path->state_lock, flags);
	path->port = rail_conn_port(conn->rail);
	path->nr_up++;
	rsrv_path_check_info(path);
	spin_unlock_irqrestore(&path->state_lock, flags);
}

/**
 * rsrv_path_info_req - a message came on connection 0
 * @path: the path
 * @msg: message; hostile
 * @len: its length
 *
 * Context: completion.
 */
void rsrv_path_info_req(struct rsrv_path *path, const void *msg, u32 len)
{
	unsigned long flags;
	bool again;

	spin_lock_irqsave(&path->state_lock, flags);
	again = path->info_seen;
	if (!again) {
		path->info_reason = rail_rtrs_info_req_decode(msg, len, path->info_name);
		path->info_seen = true;
		rsrv_path_check_info(path);
	}
	spin_unlock_irqrestore(&path->state_lock, flags);
	if (again && rsrv_path_fail(path, -EPROTO))
		rsrv_warn(path, "the client sent INFO_REQ twice: closing\n");
}

static struct rail_mr *rsrv_path_mr(void *path, u32 i)
{
	return ((struct rsrv_path *)path)->reqs[i].mr;
}

static int rsrv_path_register(struct rsrv_path *path)
{
	return rail_mr_reg_all(path->conns[0]->rail, rsrv_path_mr, path,
			       path->sess->params.queue_depth,
			       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
}

static int rsrv_map_small(struct rsrv_req *req)
{
	struct rsrv_path *path = req->path;
	struct ib_device *ib = path->dev->ib;

	if (!path->nr_small)
		return 0;
	req->small_dma = ib_dma_map_page(ib, req->chunk->small, 0, RAIL_RTRS_SMALL_DATA,
					 DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, req->small_dma))
		return -EIO;
	req->small_mapped = true;
	return 0;
}

static int rsrv_path_map(struct rsrv_path *path)
{
	const struct rail_rtrs_params *params = &path->sess->params;
	struct scatterlist *sg = path->sgs;
	u32 i, j;
	int err;

	for (i = 0; i < params->queue_depth; i++) {
		struct rsrv_chunk *chunk = &path->sess->chunks[i];
		struct rsrv_req *req = &path->reqs[i];

		rsrv_req_init(req, path, i);
		req->mr = rail_mr_get(path->mrs);
		if (!req->mr)
			return -ENOMEM;
		sg_init_table(sg, chunk->nr_pieces);
		for (j = 0; j < chunk->nr_pieces; j++)
			sg_set_page(&sg[j], chunk->pieces[j].bv_page, chunk->pieces[j].bv_len, 0);
		err = rail_mr_map(req->mr, sg, chunk->nr_pieces, params->chunk_size,
				  DMA_BIDIRECTIONAL);
		if (!err)
			err = rsrv_map_small(req);
		if (err)
			return err;
		sg += chunk->nr_pieces;
		if (params->new_rkey)
			req->rkey_msg = rail_buf_get(path->rkey_bufs);
	}
	return 0;
}

static struct rail_buf_pool *rsrv_path_bufs(struct rsrv_path *path, u32 size, u32 count)
{
	return rail_buf_pool_create(path->pd, size, count, DMA_TO_DEVICE, NUMA_NO_NODE);
}

/* Requests, regions and messages. What was made when it fails is freed by the close work. */
static int rsrv_path_make_reqs(struct rsrv_path *path)
{
	const struct rail_rtrs_params *params = &path->sess->params;
	u32 i, pieces = 0, depth = params->queue_depth;
	struct rail_mr_pool_attr attr = {
		.pd = path->pd,
		.count = depth,
		.pages = params->chunk_size >> PAGE_SHIFT,
	};
	struct rail_buf_pool *bufs;
	struct rail_mr_pool *mrs;

	if (attr.pages > path->dev->max_mr_pages) {
		rsrv_warn(path, "device %s registers at most %u pages in one region: make max_chunk_size smaller than %u\n",
			  path->hca, path->dev->max_mr_pages, params->chunk_size);
		return -EINVAL;
	}
	for (i = 0; i < depth; i++)
		pieces += path->sess->chunks[i].nr_pieces;
	path->sgs = kvmalloc_array(pieces, sizeof(*path->sgs), GFP_KERNEL);
	if (!path->sgs)
		return -ENOMEM;
	if (params->new_rkey) {
		bufs = rsrv_path_bufs(path, sizeof(struct rail_rtrs_rkey_rsp), depth);
		if (IS_ERR(bufs))
			return PTR_ERR(bufs);
		path->rkey_bufs = bufs;
	}
	bufs = rsrv_path_bufs(path, rail_rtrs_info_rsp_size(depth), 1);
	if (IS_ERR(bufs))
		return PTR_ERR(bufs);
	path->rsp_bufs = bufs;
	mrs = rail_mr_pool_create(&attr);
	if (IS_ERR(mrs))
		return PTR_ERR(mrs);
	path->mrs = mrs;
	path->reqs = kvcalloc(depth, sizeof(*path->reqs), GFP_KERNEL);
	if (!path->reqs)
		return -ENOMEM;
	return rsrv_path_map(path);
}

static int rsrv_path_tell_client(struct rsrv_path *path)
{
	const struct rail_rtrs_params *params = &path->sess->params;
	struct rail_buf *rsp = rail_buf_get(path->rsp_bufs);
	u32 i, len = rail_rtrs_info_rsp_size(params->queue_depth);
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.sg_list = &rsp->sge,
		.num_sge = 1,
	};
	struct rail_chain chain;
	int err;

	rail_rtrs_info_rsp_encode(rsp->addr, params->queue_depth);
	for (i = 0; i < params->queue_depth; i++) {
		struct ib_mr *ib = path->reqs[i].mr->ib;
		struct rail_rtrs_mem mem = {
			.addr = ib->iova,
			.key = ib->rkey,
			.len = params->chunk_size,
		};

		rail_rtrs_info_rsp_put(rsp->addr, i, &mem);
	}
	rsp->sge.length = len;
	rail_buf_for_device(rsp, len);
	rail_chain_init(&chain);
	rail_chain_add(&chain, &wr);
	err = rail_post_wait(path->conns[0]->rail, &chain);
	/* Nobody takes it a second time; its memory goes with the pool, when the QP is gone. */
	rail_buf_put(rsp);
	return err;
}

/* up_lock held. */
static int rsrv_path_tell_user(struct rsrv_path *path)
{
	struct rail_srv_sess *sess = path->sess;
	const struct rail_srv_attr *attr = &sess->srv->attr;
	int err = 0;

	if (sess->told) {
		if (attr->ops->path_up)
			err = attr->ops->path_up(sess, (struct sockaddr *)&path->src);
	} else {
		err = attr->ops->sess_up(attr->context, sess);
		sess->told = !err;
	}
	if (err) {
		rsrv_warn(path, "refused: %pe\n", ERR_PTR(err));
		return err;
	}
	mutex_lock(&sess->srv->lock);
	if (sess->state == RSRV_SESS_NEW)
		sess->state = RSRV_SESS_UP;
	mutex_unlock(&sess->srv->lock);
	return 0;
}

static int rsrv_path_come_up(struct rsrv_path *path)
{
	struct rail_srv_sess *sess = path->sess;
	bool up;
	int err;

	lockdep_assert_held(&sess->up_lock);
	if (path->info_reason) {
		rsrv_warn(path, "%s: closing\n", rail_rtrs_reason_text(path->info_reason));
		return -EPROTO;
	}
	err = rsrv_sess_set_name(sess, path->info_name);
	if (err) {
		rsrv_warn(path, "the name %s is %s: closing\n", path->info_name,
			  err == -EEXIST ? "another session's" : "not that of its other paths");
		return err;
	}
	err = rsrv_sess_make_chunks(sess, path->dev->node);
	if (!err)
		err = rsrv_path_make_reqs(path);
	if (!err)
		err = rsrv_path_register(path);
	if (err) {
		rsrv_warn(path, "no memory for its requests: %pe: closing\n", ERR_PTR(err));
		return err;
	}
	err = rsrv_path_tell_user(path);
	if (err)
		return err;
	err = rsrv_sysfs_add(path);
	if (err) {
		rsrv_warn(path, "not to be made in sysfs: %pe: closing\n", ERR_PTR(err));
		return err;
	}
	/* Before the client knows: its first request may be faster than we are. */
	spin_lock_irq(&path->state_lock);
	up = rsrv_path_move(path, RSRV_PATH_UP, 0);
	spin_unlock_irq(&path->state_lock);
	if (!up)
		return -ECONNABORTED;
	err = rsrv_path_tell_client(path);
	if (err)
		return err;
	rail_hb_start(&path->hb, path->conns[0]->rail);
	rsrv_info(path, "up, %u connections, %u requests of %u bytes%s\n", path->cid_num,
		  sess->params.queue_depth, sess->params.max_io_size,
		  sess->params.new_rkey ? ", new keys" : "");
	return 0;
}

static void rsrv_info_work(struct work_struct *work)
{
	struct rsrv_path *path = container_of(work, struct rsrv_path, info);
	int err;

	mutex_lock(&path->sess->up_lock);
	err = rsrv_path_come_up(path);
	mutex_unlock(&path->sess->up_lock);
	if (err)
		rsrv_path_fail(path, err);
}

/* ---------------------------------------------------------------- the end */

/* Nothing is posted any more: the chunks leave the device. Requests may still be with the user. */
static void rsrv_path_free_mrs(struct rsrv_path *path)
{
	struct rail_mr *mr;
	u32 i;

	if (path->mrs)
		rail_mr_pool_stop(path->mrs);
	for (i = 0; path->reqs && i < path->sess->params.queue_depth; i++) {
		struct rsrv_req *req = &path->reqs[i];

		if (!req->path)
			break;
		mr = rsrv_req_sweep(req);
		if (mr)
			rail_mr_put(mr);
		if (req->rkey_msg)
			rail_buf_put(req->rkey_msg);
		if (req->small_mapped)
			ib_dma_unmap_page(path->dev->ib, req->small_dma, RAIL_RTRS_SMALL_DATA,
					  DMA_TO_DEVICE);
		cond_resched();
	}
	if (path->mrs)
		rail_mr_pool_destroy(path->mrs);
	if (path->rkey_bufs)
		rail_buf_pool_destroy(path->rkey_bufs);
	if (path->rsp_bufs)
		rail_buf_pool_destroy(path->rsp_bufs);
	kvfree(path->sgs);
}

static void rsrv_path_leave_device(struct rsrv_path *path)
{
	struct rail_srv *srv = path->sess->srv;
	struct rail_pd *pd;
	u32 i;

	for (i = 0; i < path->cid_num; i++)
		if (path->conns[i])
			rsrv_conn_free(path->conns[i]);
	mutex_lock(&srv->lock);
	pd = path->pd;
	path->pd = NULL;
	path->dev = NULL;
	mutex_unlock(&srv->lock);
	rail_pd_put(pd);
}

static void rsrv_path_free(struct rsrv_path *path)
{
	struct rail_srv_sess *sess = path->sess;

	percpu_ref_exit(&path->inflight);
	rail_stats_destroy(&path->stats);
	kvfree(path->reqs);
	kvfree(path->conns);
	rsrv_uncharge(path->charged);
	kfree(path);
	rsrv_sess_put(sess);
}

static void rsrv_close_work(struct work_struct *work)
{
	struct rsrv_path *path = container_of(work, struct rsrv_path, close);
	struct rail_srv_sess *sess = path->sess;
	u32 i;

	/* Whoever saw an earlier state and attaches a connection does so under this lock. */
	mutex_lock(&sess->srv->lock);
	mutex_unlock(&sess->srv->lock);

	percpu_ref_kill(&path->inflight);
	for (i = 0; i < path->cid_num; i++) {
		if (!path->conns[i])
			continue;
		flush_work(&path->conns[i]->attach);
		rail_conn_close(path->conns[i]->rail, path->reason);
	}
	cancel_delayed_work_sync(&path->reap);
	cancel_work_sync(&path->info);
	rail_hb_stop(&path->hb);
	for (i = 0; i < path->cid_num; i++)
		if (path->conns[i])
			rail_conn_wait_closed(path->conns[i]->rail);

	rsrv_path_free_mrs(path);
	rsrv_path_leave_device(path);
	rsrv_sysfs_del(path);
	if (path->reason && path->reason != -ECONNRESET)
		rsrv_info(path, "closed: %pe\n", ERR_PTR(path->reason));
	else
		rsrv_info(path, "closed by the client\n");

	mutex_lock(&sess->srv->lock);
	list_del(&path->entry);
	if (!--sess->nr_paths)
		sess->state = RSRV_SESS_CLOSING;
	mutex_unlock(&sess->srv->lock);

	/* What is with the user is still to be replied to, and uses the session's chunks. */
	wait_for_completion(&path->idle);
	rsrv_path_free(path);
}
