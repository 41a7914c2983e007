// SPDX-License-Identifier: GPL-2.0-only
/*
 * RTRS server: requests, from the immediate value that announces one to the answer. The states of
 * a request, and who may touch what, stand in server.h.
 */
#include <linux/export.h>
#include <linux/ktime.h>

#include <trace/events/rail_rtrs.h>

#include "server.h"

/* ---------------------------------------------------------------- helpers */

static const struct rail_rtrs_params *rsrv_req_params(const struct rsrv_req *req)
{
	return &req->path->sess->params;
}

/* A client that breaks the protocol loses the path it does it on. */
static void rsrv_req_broken(struct rsrv_req *req, const char *why)
{
	if (rsrv_path_fail(req->path, -EPROTO))
		rsrv_warn(req->path, "buffer id %u: %s: closing\n", req->user.id, why);
}

/* A receive's memory is free again. */
static void rsrv_recv_again(struct rsrv_conn *conn, struct rsrv_recv *recv)
{
	unsigned long flags;

	if (recv->data) {
		rail_buf_for_device(recv->buf, recv->buf->sge.length);
		rail_buf_for_device(recv->data, recv->data->sge.length);
	}
	spin_lock_irqsave(&conn->again_lock, flags);
	rail_recv_batch_add(&conn->again, &recv->wr, &recv->cqe);
	if (conn->again.n == RSRV_RECV_BATCH) {
		rail_post_recvs(conn->rail, &conn->again);
		rail_recv_batch_init(&conn->again);
	}
	spin_unlock_irqrestore(&conn->again_lock, flags);
}

/*
 * Chunk locked. Nobody needs a small write's data any more. Before it is answered, for the client
 * may then send again, and there has to be a receive for it. Where the path is torn down the
 * receive is gone.
 */
static void rsrv_req_drop_data(struct rsrv_req *req)
{
	if (!req->recv)
		return;
	put_page(req->data.bv_page);
	if (req->mr)
		rsrv_recv_again(req->conn, req->recv);
	req->recv = NULL;
}

/* Chunk locked. A request was BUSY: what has it done to the chunk of those that wait? */
static void rsrv_req_spoil(struct rsrv_req *req)
{
	struct rsrv_req *other;

	if (req->hdr.type != RAIL_RTRS_READ || req->small)
		return;
	list_for_each_entry(other, &req->chunk->waiting, waiting)
		other->spoiled = max(other->spoiled, req->hdr.data_len);
}

/*
 * Chunk locked. The request is over, answered or not; the chunk goes to the next path's request
 * that waits for it. The caller unlocks, puts the path's inflight reference, and touches neither
 * request nor path again.
 */
static void rsrv_req_end(struct rsrv_req *req)
{
	struct rsrv_chunk *chunk = req->chunk;
	struct rsrv_req *next;

	rsrv_req_drop_data(req);
	req->state = RSRV_REQ_IDLE;
	if (chunk->busy != req)
		return;
	rsrv_req_spoil(req);
	next = list_first_entry_or_null(&chunk->waiting, struct rsrv_req, waiting);
	chunk->busy = next;
	if (next) {
		list_del_init(&next->waiting);
		next->state = RSRV_REQ_BUSY;
		queue_work(rsrv_wq, &next->work);
	}
}

/*
 * Chunk locked. Nothing is in the way of a WAITING request any more but, perhaps, another path's.
 * true: it is BUSY, and the caller runs it once the chunk is unlocked.
 */
static bool rsrv_req_take_turn(struct rsrv_req *req)
{
	struct rsrv_chunk *chunk = req->chunk;

	if (unlikely(chunk->busy)) {
		rail_stats_inc(&req->path->stats, RSRV_STAT_PARKED);
		list_add_tail(&req->waiting, &chunk->waiting);
		return false;
	}
	chunk->busy = req;
	req->state = RSRV_REQ_BUSY;
	return true;
}

/* ---------------------------------------------------------------- answers */

/*
 * Not by the region's key where that can be helped: should an acknowledgment get lost, the device
 * sends again, and by then the client may have sent its next request, for which the key had to die.
 */
static u32 rsrv_data_sges(struct rsrv_req *req)
{
	u32 n, left = req->hdr.data_len, max = min_t(u32, RSRV_MAX_SGE, req->path->dev->max_sge);
	struct rail_mr *mr = req->mr;
	struct scatterlist *sg = mr->sg;

	for (n = 0; left && sg && sg_dma_len(sg) && n < max; n++, sg = sg_next(sg)) {
		struct ib_sge *sge = &req->data_sges[n];

		sge->addr = sg_dma_address(sg);
		sge->length = min(left, sg_dma_len(sg));
		sge->lkey = req->path->pd->ib->local_dma_lkey;
		left -= sge->length;
	}
	if (!left)
		return n;
	req->data_sges[0].addr = mr->ib->iova;
	req->data_sges[0].length = req->hdr.data_len;
	req->data_sges[0].lkey = mr->ib->lkey;
	return 1;
}

static void rsrv_build_data(struct rsrv_req *req)
{
	struct ib_rdma_wr *wr = &req->data_wr;

	rail_mr_for_device(req->mr);
	wr->wr.opcode = IB_WR_RDMA_WRITE;
	wr->wr.sg_list = req->data_sges;
	wr->wr.num_sge = rsrv_data_sges(req);
	wr->wr.send_flags = 0;
	wr->remote_addr = req->hdr.mem.addr;
	wr->rkey = req->hdr.mem.key;
	rail_chain_add(&req->chain, &wr->wr);
}

/* A read's answer, that brings data. */
static bool rsrv_brings_data(const struct rsrv_req *req)
{
	return req->hdr.type == RAIL_RTRS_READ && req->hdr.data_len && !req->error;
}

/* An answer that is an immediate value, as yet with no data. */
static struct ib_rdma_wr *rsrv_imm_wr(struct rsrv_req *req, __be32 imm)
{
	struct ib_rdma_wr *wr = &req->imm_wr;

	wr->wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr->wr.num_sge = 0;
	wr->wr.send_flags = 0;
	wr->wr.ex.imm_data = imm;
	wr->remote_addr = 0;
	wr->rkey = 0;
	return wr;
}

/* Order on the QP is what makes it safe: register, data, invalidate, answer. */
static void rsrv_build_answer(struct rsrv_req *req)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	bool new_rkey = rsrv_req_params(req)->new_rkey;
	__be32 imm = cpu_to_be32(rail_rtrs_imm_rsp(req->user.id, req->error, req->hdr.inval));

	rail_chain_init(&req->chain);
	if (new_rkey)
		rail_chain_add(&req->chain, rail_mr_reg_wr(req->mr, access));
	if (rsrv_brings_data(req))
		rsrv_build_data(req);
	if (req->hdr.inval) {
		req->inval_wr.opcode = IB_WR_SEND_WITH_INV;
		req->inval_wr.num_sge = 0;
		req->inval_wr.send_flags = 0;
		req->inval_wr.ex.invalidate_rkey = req->hdr.mem.key;
		rail_chain_add(&req->chain, &req->inval_wr);
	}
	if (new_rkey) {
		rail_rtrs_rkey_rsp_encode(req->rkey_msg->addr, req->user.id,
					  rail_mr_rkey(req->mr));
		rail_buf_for_device(req->rkey_msg, sizeof(struct rail_rtrs_rkey_rsp));
		req->rkey_wr.opcode = IB_WR_SEND_WITH_IMM;
		req->rkey_wr.sg_list = &req->rkey_msg->sge;
		req->rkey_wr.num_sge = 1;
		req->rkey_wr.send_flags = 0;
		req->rkey_wr.ex.imm_data = imm;
		rail_chain_add(&req->chain, &req->rkey_wr);
	} else {
		rail_chain_add(&req->chain, &rsrv_imm_wr(req, imm)->wr);
	}
	req->built = true;
}

/* To a small request: one message. The chunk's key stays as it is: the client made no use of it. */
static void rsrv_build_small(struct rsrv_req *req)
{
	__be32 imm = cpu_to_be32(rail_rtrs_imm_rsp(req->user.id, req->error, false));
	struct ib_rdma_wr *wr = rsrv_imm_wr(req, imm);

	if (rsrv_brings_data(req)) {
		struct rail_pd *pd = req->path->pd;

		ib_dma_sync_single_for_device(pd->dev->ib, req->small_dma, req->hdr.data_len,
					      DMA_TO_DEVICE);
		req->data_sges[0].addr = req->small_dma;
		req->data_sges[0].length = req->hdr.data_len;
		req->data_sges[0].lkey = pd->ib->local_dma_lkey;
		wr->wr.sg_list = req->data_sges;
		wr->wr.num_sge = 1;
		wr->remote_addr = req->hdr.mem.addr;
		wr->rkey = req->hdr.mem.key;
	}
	rail_chain_init(&req->chain);
	rail_chain_add(&req->chain, &wr->wr);
	req->built = true;
}

static int rsrv_post(struct rsrv_conn *conn, struct rsrv_req *req)
{
	unsigned long flags;
	int err;

	err = rail_post(conn->rail, &req->chain);
	if (likely(err != -EAGAIN))
		return err;
	/* Again, so that ops->space() comes after we are on the list. */
	spin_lock_irqsave(&conn->room_lock, flags);
	err = rail_post(conn->rail, &req->chain);
	if (err == -EAGAIN) {
		list_add_tail(&req->room, &conn->no_room);
		rail_stats_inc(&req->path->stats, RSRV_STAT_NO_ROOM);
	}
	spin_unlock_irqrestore(&conn->room_lock, flags);
	return err;
}

static void rsrv_count(struct rsrv_req *req)
{
	struct rail_stats *stats = &req->path->stats;
	u64 ns = ktime_get_ns() - req->started;
	/* With the user header, as mainline counts. */
	u32 bytes = req->hdr.data_len + req->hdr.usr_len;

	if (req->hdr.type == RAIL_RTRS_READ) {
		rail_stats_inc(stats, RSRV_STAT_READS);
		rail_stats_add(stats, RSRV_STAT_READ_BYTES, bytes);
		rail_hist_record(stats, RSRV_HIST_READ_NS, ns);
	} else {
		rail_stats_inc(stats, RSRV_STAT_WRITES);
		rail_stats_add(stats, RSRV_STAT_WRITE_BYTES, bytes);
		rail_hist_record(stats, RSRV_HIST_WRITE_NS, ns);
	}
	if (req->error)
		rail_stats_inc(stats, RSRV_STAT_ERRORS);
}

/*
 * An answer without data, from within ops->request(): others may follow in a moment, and go in one
 * message. Nobody but a client that breaks the protocol uses the buffer id before that is sent.
 */
static bool rsrv_gather(struct rsrv_req *req)
{
	if (!req->small || req->hdr.alone || READ_ONCE(req->conn->runner) != current ||
	    rsrv_brings_data(req))
		return false;
	return rsrv_rsps_add(req->conn, rail_rtrs_imm_rsp(req->user.id, req->error, false));
}

/*
 * Chunk locked, request ANSWERED and not on any list. true: it is over, see rsrv_req_end(). false:
 * it waits for its key to be dead, or for room.
 */
static bool rsrv_answer(struct rsrv_req *req)
{
	int err;

	/* The path is gone, and the request's region with it; or the path is going. */
	if (unlikely(!req->mr || req->mr->state == RAIL_MR_BAD)) {
		err = -ENOTCONN;
		goto end;
	}
	if (req->inv_pending)
		return false;
	err = 0;
	if (!req->built && rsrv_gather(req)) {
		rail_stats_inc(&req->path->stats, RSRV_STAT_GATHERED);
		goto end;
	}
	if (!req->built && req->small)
		rsrv_build_small(req);
	else if (!req->built)
		rsrv_build_answer(req);
	err = rsrv_post(req->conn, req);
	if (unlikely(err == -EAGAIN))
		return false;
end:
	if (likely(!err))
		rsrv_count(req);
	else
		rail_stats_inc(&req->path->stats, RSRV_STAT_UNANSWERED);
	if (trace_rail_srv_req_done_enabled())
		trace_rail_srv_req_done(rsrv_sess_label(req->path->sess), req->user.id,
					err ?: req->error, ktime_get_ns() - req->started);
	rsrv_req_end(req);
	return true;
}

/**
 * rail_srv_reply - answer a request
 * @user: the request; not the user's any more
 * @error: 0, or a negative errno; then no data goes back
 *
 * Context: any.
 */
void rail_srv_reply(struct rail_srv_req *user, int error)
{
	struct rsrv_req *req = container_of(user, struct rsrv_req, user);
	struct percpu_ref *inflight = &req->path->inflight;
	unsigned long flags;
	/* With nothing else to gather, a software device's softirq runs here. */
	bool over = false, bh = req->hdr.alone && !irqs_disabled();

	if (bh)
		local_bh_disable();
	spin_lock_irqsave(&req->chunk->lock, flags);
	if (!WARN_ON_ONCE(req->state != RSRV_REQ_BUSY)) {
		req->error = error;
		req->state = RSRV_REQ_ANSWERED;
		rsrv_req_drop_data(req);
		over = rsrv_answer(req);
	}
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	if (bh)
		local_bh_enable();
	if (over)
		percpu_ref_put(inflight);
}
EXPORT_SYMBOL_GPL(rail_srv_reply);

/**
 * rail_srv_req_put_data - fill in a read's data
 * @user: the request
 * @from: what the client is to get
 * @len: bytes of it; zeroes follow up to what the client asked for
 *
 * Return: 0, or -EMSGSIZE: the client asked for less.
 */
int rail_srv_req_put_data(struct rail_srv_req *user, const void *from, u32 len)
{
	struct rsrv_req *req = container_of(user, struct rsrv_req, user);
	void *to;

	if (user->dir != DMA_TO_DEVICE || len > user->data_len)
		return -EMSGSIZE;
	to = req->small ? page_address(req->chunk->small) : req->chunk->addr;
	memcpy(to, from, len);
	memset(to + len, 0, user->data_len - len);
	return 0;
}
EXPORT_SYMBOL_GPL(rail_srv_req_put_data);

/* ---------------------------------------------------------------- to the user */

static void rsrv_end_unlocked(struct rsrv_req *req)
{
	struct rsrv_chunk *chunk = req->chunk;
	struct percpu_ref *inflight = &req->path->inflight;
	unsigned long flags;

	spin_lock_irqsave(&chunk->lock, flags);
	rsrv_req_end(req);
	spin_unlock_irqrestore(&chunk->lock, flags);
	percpu_ref_put(inflight);
}

static u32 rsrv_nr_pieces(const struct rsrv_chunk *chunk, u32 len)
{
	u32 n = 0, have = 0;

	while (have < len)
		have += chunk->pieces[n++].bv_len;
	return n;
}

/* What is wrong with a request; NULL: nothing. Fills in @hdr. */
static const char *rsrv_req_check(struct rsrv_req *req)
{
	static const char spoiled[] =
		"came again as another request, into a buffer that was still being read into";
	struct rail_srv_sess *sess = req->path->sess;
	enum rail_rtrs_reason reason;

	/* Of a small one there is nothing in the chunk. */
	if (!req->decoded) {
		if (unlikely(req->off < req->spoiled))
			return spoiled;
		reason = rail_rtrs_req_decode(req->chunk->addr, &sess->params, req->off,
					      req->written, &req->hdr);
		if (unlikely(reason))
			return rail_rtrs_reason_text(reason);
	}
	if (unlikely(req->spoiled && !req->small) &&
	    (req->hdr.type == RAIL_RTRS_WRITE || req->hdr.usr_at < req->spoiled))
		return spoiled;
	if (unlikely(req->hdr.usr_len > sess->srv->attr.usr_max))
		return rail_rtrs_reason_text(RAIL_RTRS_USR_LONG);
	return NULL;
}

/* A request that became BUSY: check what it says, and hand it to the user. Sleepable. */
static void rsrv_req_run(struct rsrv_req *req)
{
	struct rail_srv_sess *sess = req->path->sess;
	struct rsrv_chunk *chunk = req->chunk;
	struct rail_srv_req *user = &req->user;
	const char *wrong = rsrv_req_check(req);

	if (unlikely(wrong)) {
		rsrv_req_broken(req, wrong);
		rsrv_end_unlocked(req);
		return;
	}
	user->dir = req->hdr.type == RAIL_RTRS_READ ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	user->usr = req->usr;
	if (!req->small) {
		/* The client may still be able to write to the chunk; not to the copy. */
		rail_wire_fetch(chunk->usr, chunk->addr + req->hdr.usr_at, req->hdr.usr_len);
		user->usr = chunk->usr;
	}
	user->usr_len = req->hdr.usr_len;
	user->data = chunk->pieces;
	user->data_len = req->hdr.data_len;
	user->nr_data = rsrv_nr_pieces(chunk, user->data_len);
	if (req->small && user->data_len) {
		if (!req->recv)
			bvec_set_page(&req->data, chunk->small, user->data_len, 0);
		user->data = &req->data;
		user->nr_data = 1;
	}
	user->priv = NULL;
	trace_rail_srv_req_start(rsrv_sess_label(sess), req->path->name, user->id,
				 req->cid, req->hdr.type == RAIL_RTRS_WRITE,
				 user->data_len);
	sess->srv->attr.ops->request(sess, user);
}

static void rsrv_run_work(struct work_struct *work)
{
	rsrv_req_run(container_of(work, struct rsrv_req, work));
}

/* ---------------------------------------------------------------- requests come in */

/*
 * Chunk locked: the key is dead, or never will be. What to do next is told by @run (rsrv_req_run())
 * and the return value: true: the request is over, see rsrv_req_end().
 */
static bool rsrv_key_dead(struct rsrv_req *req, bool failed, bool *run)
{
	*run = false;
	req->inv_pending = false;
	req->inv_unposted = false;
	if (failed)
		rail_mr_failed(req->mr);
	else
		rail_mr_invalidated(req->mr);

	switch (req->state) {
	case RSRV_REQ_WAITING:
		/* A read that waits for its turn; the path's end takes it off the list. */
		if (!list_empty(&req->waiting))
			return false;
		if (failed) {
			rail_stats_inc(&req->path->stats, RSRV_STAT_UNANSWERED);
			rsrv_req_end(req);
			return true;
		}
		rail_mr_for_cpu(req->mr);
		*run = rsrv_req_take_turn(req);
		return false;
	case RSRV_REQ_ANSWERED:
		if (!failed)
			return rsrv_answer(req);
		rail_stats_inc(&req->path->stats, RSRV_STAT_UNANSWERED);
		rsrv_req_end(req);
		return true;
	default:
		return false;
	}
}

static void rsrv_inv_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rsrv_req *req = container_of(cqe, struct rsrv_req, inv_cqe);
	struct percpu_ref *inflight = &req->path->inflight;
	unsigned long flags;
	bool over, run;

	spin_lock_irqsave(&req->chunk->lock, flags);
	over = rsrv_key_dead(req, wc->status != IB_WC_SUCCESS, &run);
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	if (run)
		rsrv_req_run(req);
	else if (over)
		percpu_ref_put(inflight);
}

/* Chunk locked. Return as rsrv_key_dead(). */
static bool rsrv_post_inv(struct rsrv_req *req, bool *run)
{
	int err;

	*run = false;
	err = rsrv_post(req->conn, req);
	req->inv_unposted = err == -EAGAIN;
	if (likely(!err || err == -EAGAIN))
		return false;
	return rsrv_key_dead(req, true, run);
}

/*
 * Chunk locked. The key has to die before a write is looked at. A read need not wait: all there is
 * of it is its header, which is copied.
 */
static bool rsrv_start_rotating(struct rsrv_req *req, bool *run)
{
	bool read;

	rail_mr_for_cpu(req->mr);
	read = !rail_rtrs_req_decode(req->chunk->addr, rsrv_req_params(req), req->off,
				     req->written, &req->hdr) &&
	       req->hdr.type == RAIL_RTRS_READ;
	req->decoded = read;
	req->inv_pending = true;
	rail_chain_init(&req->chain);
	rail_chain_add_signalled(&req->chain, rail_mr_inv_wr(req->mr), &req->inv_cqe);
	if (read && rsrv_req_take_turn(req)) {
		bool unused;

		/* BUSY, so it is not over even if this fails. */
		rsrv_post_inv(req, &unused);
		*run = true;
		return false;
	}
	return rsrv_post_inv(req, run);
}

/* The request of a buffer id, with a reference on path->inflight; NULL: there are none. */
static struct rsrv_req *rsrv_req_get(struct rsrv_conn *conn, u32 id)
{
	struct rsrv_path *path = conn->path;

	if (unlikely(READ_ONCE(path->state) != RSRV_PATH_UP)) {
		if (rsrv_path_fail(path, -EPROTO))
			rsrv_warn(path, "a request before the path is up: closing\n");
		return NULL;
	}
	if (unlikely(!percpu_ref_tryget_live(&path->inflight)))
		return NULL;
	return &path->reqs[id];
}

/* Chunk locked. true: it was IDLE and is WAITING; the rest of what came is the caller's to set. */
static bool rsrv_req_begin(struct rsrv_req *req, struct rsrv_conn *conn)
{
	/* Without a living key it is the end of a path on which another connection is faster. */
	if (unlikely(req->state != RSRV_REQ_IDLE || req->mr->state != RAIL_MR_VALID))
		return false;
	req->state = RSRV_REQ_WAITING;
	req->conn = conn;
	req->cid = conn->ask.cid;
	req->spoiled = 0;
	req->decoded = false;
	req->small = false;
	req->built = false;
	req->user.admin = !conn->ask.cid;
	req->started = ktime_get_ns();
	return true;
}

/* It was not; the chunk is unlocked. */
static void rsrv_req_busy(struct rsrv_req *req)
{
	struct percpu_ref *inflight = &req->path->inflight;

	rsrv_req_broken(req, "request with an id that is in flight");
	percpu_ref_put(inflight);
}

static void rsrv_io_req(struct rsrv_conn *conn, u32 id, u32 off, u32 written)
{
	struct rsrv_path *path = conn->path;
	struct rsrv_req *req = rsrv_req_get(conn, id);
	bool began, over = false, run = false;
	unsigned long flags;

	if (unlikely(!req))
		return;
	spin_lock_irqsave(&req->chunk->lock, flags);
	began = rsrv_req_begin(req, conn);
	if (likely(began)) {
		req->off = off;
		req->written = written;
		if (path->sess->params.new_rkey) {
			over = rsrv_start_rotating(req, &run);
		} else {
			rail_mr_for_cpu(req->mr);
			run = rsrv_req_take_turn(req);
		}
	}
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	if (run)
		rsrv_req_run(req);
	else if (unlikely(!began))
		rsrv_req_busy(req);
	else if (unlikely(over))
		percpu_ref_put(&path->inflight);
}

/*
 * Chunk locked. A small request that began. A write's receive is its own until the reply; else it
 * is free again.
 */
static void rsrv_small_take(struct rsrv_req *req, const struct rail_rtrs_req *hdr,
			    struct rsrv_recv *recv)
{
	void *data;

	req->small = true;
	req->decoded = true;
	req->hdr = *hdr;
	memcpy(req->usr, recv->buf->addr + hdr->usr_at, hdr->usr_len);
	if (hdr->type == RAIL_RTRS_READ || !hdr->data_len) {
		rsrv_recv_again(recv->conn, recv);
		return;
	}
	data = recv->data->addr;
	rail_buf_for_cpu(recv->data, hdr->data_len);
	/* The device may go before the user's reply, and its pool with it; not the page. */
	bvec_set_page(&req->data, virt_to_page(data), hdr->data_len, offset_in_page(data));
	get_page(req->data.bv_page);
	req->recv = recv;
}

/* A message on an I/O connection. What is in it is ours alone; a write's data until the reply. */
static void rsrv_small(struct rsrv_recv *recv, u32 len)
{
	struct rsrv_conn *conn = recv->conn;
	struct rsrv_path *path = conn->path;
	enum rail_rtrs_reason reason;
	bool began, run = false;
	struct rail_rtrs_req hdr;
	struct rsrv_req *req;
	unsigned long flags;
	u32 id;

	rail_buf_for_cpu(recv->buf, min_t(u32, len, RAIL_RTRS_SMALL_HDR));
	reason = rail_rtrs_small_decode(recv->buf->addr, len, &path->sess->params, &id, &hdr);
	if (unlikely(reason)) {
		if (rsrv_path_fail(path, -EPROTO))
			rsrv_warn(path, "connection %u: %s: closing\n", conn->ask.cid,
				  rail_rtrs_reason_text(reason));
		return;
	}
	req = rsrv_req_get(conn, id);
	if (unlikely(!req))
		return;
	spin_lock_irqsave(&req->chunk->lock, flags);
	began = rsrv_req_begin(req, conn);
	if (likely(began)) {
		rsrv_small_take(req, &hdr, recv);
		run = rsrv_req_take_turn(req);
	}
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	rail_stats_inc(&path->stats, RSRV_STAT_SMALL);
	if (likely(run)) {
		WRITE_ONCE(conn->runner, current);
		rsrv_req_run(req);
		WRITE_ONCE(conn->runner, NULL);
	} else if (unlikely(!began)) {
		rsrv_req_busy(req);
	}
}

static void rsrv_imm(struct rsrv_conn *conn, u32 value, u32 written)
{
	struct rsrv_path *path = conn->path;
	enum rail_rtrs_reason reason;
	struct rail_rtrs_imm imm;

	reason = rail_rtrs_imm_server(value, &path->sess->params, &imm);
	if (likely(!reason && imm.type == RAIL_RTRS_IMM_IO_REQ)) {
		rsrv_io_req(conn, imm.buf_id, imm.off, written);
		return;
	}
	if (!reason && !conn->ask.cid) {
		rail_hb_received(&path->hb, imm.type == RAIL_RTRS_IMM_HB_ACK);
		return;
	}
	if (rsrv_path_fail(path, -EPROTO))
		rsrv_warn(path, "connection %u: %s (0x%08x): closing\n", conn->ask.cid,
			  reason ? rail_rtrs_reason_text(reason) : "heartbeat not on connection 0",
			  value);
}

static void rsrv_message(struct rsrv_recv *recv, u32 len)
{
	struct rsrv_path *path = recv->conn->path;

	if (recv->buf && !recv->conn->small) {
		rail_buf_for_cpu(recv->buf, len);
		rsrv_path_info_req(path, recv->buf->addr, len);
		rail_buf_for_device(recv->buf, recv->buf->sge.length);
	} else if (rsrv_path_fail(path, -EPROTO)) {
		rsrv_warn(path, "connection %u: a message where only requests are due: closing\n",
			  recv->conn->ask.cid);
	}
	rsrv_recv_again(recv->conn, recv);
}

/**
 * rsrv_received - something came
 * @cqe: receive
 * @wc: what
 *
 * Context: completion, sleepable.
 */
void rsrv_received(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rsrv_recv *recv = container_of(cqe, struct rsrv_recv, cqe);
	struct rsrv_conn *conn = recv->conn;
	u32 value, len = wc->byte_len;

	if (unlikely(wc->status != IB_WC_SUCCESS))
		return;
	rail_hb_seen(&conn->path->hb);
	if (unlikely(!READ_ONCE(conn->path->heard)))
		WRITE_ONCE(conn->path->heard, true);
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM) {
		value = be32_to_cpu(wc->ex.imm_data);
		/* It leaves the receive's memory alone, so that it may go back at once. */
		rsrv_recv_again(conn, recv);
		rsrv_imm(conn, value, len);
	} else if (likely(conn->small &&
			  !(wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE)))) {
		rsrv_small(recv, len);
	} else {
		rsrv_message(recv, len);
	}
}

/* ---------------------------------------------------------------- room */

/* There is room, or never will be: go on with a request that waited for it. */
static void rsrv_req_go_on(struct rsrv_req *req)
{
	struct percpu_ref *inflight = &req->path->inflight;
	bool over, run = false;
	unsigned long flags;

	spin_lock_irqsave(&req->chunk->lock, flags);
	if (req->inv_unposted)
		over = rsrv_post_inv(req, &run);
	else
		over = rsrv_answer(req);
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	/* Not from here: the context of ops->space() may not sleep. */
	if (run)
		queue_work(rsrv_wq, &req->work);
	else if (over)
		percpu_ref_put(inflight);
}

/**
 * rsrv_space - there is room in a connection's send queue
 * @rail: the connection, maybe dying
 *
 * Context: completion, or the connection's close work.
 */
void rsrv_space(struct rail_conn *rail)
{
	struct rsrv_conn *conn = rail_conn_context(rail);
	struct rsrv_req *req, *next;
	unsigned long flags;
	LIST_HEAD(list);

	spin_lock_irqsave(&conn->room_lock, flags);
	list_splice_init(&conn->no_room, &list);
	spin_unlock_irqrestore(&conn->room_lock, flags);
	/* Those for which there is still none join the list anew, in their order. */
	list_for_each_entry_safe(req, next, &list, room) {
		list_del_init(&req->room);
		rsrv_req_go_on(req);
	}
}

/* ---------------------------------------------------------------- making and unmaking */

/**
 * rsrv_req_init - prepare a request
 * @req: zeroed memory
 * @path: its path
 * @id: its buffer id
 */
void rsrv_req_init(struct rsrv_req *req, struct rsrv_path *path, u32 id)
{
	req->path = path;
	req->chunk = &path->sess->chunks[id];
	req->user.sess = path->sess;
	req->user.id = id;
	INIT_LIST_HEAD(&req->waiting);
	INIT_LIST_HEAD(&req->room);
	INIT_WORK(&req->work, rsrv_run_work);
	rail_cqe_init_send(&req->inv_cqe, rsrv_inv_done);
}

/**
 * rsrv_req_sweep - the path is going, its connections are gone
 * @req: one of its requests
 *
 * What is with the user stays there; anything else ends here.
 *
 * Return: the request's region, which the caller puts; NULL where there is none.
 */
struct rail_mr *rsrv_req_sweep(struct rsrv_req *req)
{
	struct percpu_ref *inflight = &req->path->inflight;
	struct rail_mr *mr;
	unsigned long flags;
	bool over = false;

	spin_lock_irqsave(&req->chunk->lock, flags);
	mr = req->mr;
	req->mr = NULL;
	if (req->state == RSRV_REQ_WAITING || req->state == RSRV_REQ_ANSWERED) {
		list_del_init(&req->waiting);
		rail_stats_inc(&req->path->stats, RSRV_STAT_UNANSWERED);
		rsrv_req_end(req);
		over = true;
	}
	spin_unlock_irqrestore(&req->chunk->lock, flags);
	if (over)
		percpu_ref_put(inflight);
	return mr;
}
