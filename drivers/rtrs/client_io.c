// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: permits, submission, answers, completion. All of it may run in softirq; nothing is
 * allocated, and no memory is written that another CPU's requests write too.
 */
#include <linux/export.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <trace/events/rail_rtrs.h>
#include "client.h"

static void clt_req_put(struct clt_req *req);

/* ---------------------------------------------------------------- submission */

/* The connection a request takes: its answer will come on the same. */
static struct clt_conn *clt_path_conn(struct clt_path *path, const struct clt_req *req)
{
	const struct rail_clt_limits *limits = &path->clt->limits;

	switch (req->permit.kind) {
	case RAIL_CLT_ADMIN:
		return &path->conns[0];
	case RAIL_CLT_POLL:
		return &path->conns[1 + limits->nr_queues + req->io->queue];
	default:
		return &path->conns[1 + req->permit.cpu % limits->nr_queues];
	}
}

/* The data of @req behind a region's key; the registration becomes part of the chain. */
static int clt_map_region(struct clt_path *path, struct clt_req *req, int access)
{
	struct rail_clt_io *io = req->io;
	struct rail_mr *mr = req->slot->mr;
	int err;

	err = rail_mr_map(mr, io->sg, io->nents, io->len, io->dir);
	if (err)
		return err;
	rail_chain_add(&req->chain, rail_mr_reg_wr(mr, access));
	req->mr = true;
	return 0;
}

/*
 * The data of a write as pieces of the send, or where there are too many as a region. Sets the
 * number of pieces.
 */
static int clt_map_write(struct clt_path *path, struct clt_req *req, u32 *pieces)
{
	struct ib_device *ib = path->pd->dev->ib;
	struct rail_clt_io *io = req->io;
	struct scatterlist *sg;
	int i, mapped, err;

	if (io->nents >= path->max_sge) {
		err = clt_map_region(path, req, 0);
		if (err)
			return err;
		rail_stats_inc(&path->stats, CLT_STAT_REGISTERED_WRITES);
		req->sge[0].addr = req->slot->mr->ib->iova;
		req->sge[0].length = io->len;
		req->sge[0].lkey = req->slot->mr->ib->lkey;
		*pieces = 1;
		return 0;
	}
	mapped = ib_dma_map_sg(ib, io->sg, io->nents, DMA_TO_DEVICE);
	if (mapped <= 0)
		return -EIO;
	req->mapped = io->nents;
	for_each_sg(io->sg, sg, mapped, i) {
		req->sge[i].addr = sg_dma_address(sg);
		req->sge[i].length = sg_dma_len(sg);
		req->sge[i].lkey = path->pd->ib->local_dma_lkey;
	}
	*pieces = mapped;
	return 0;
}

/*
 * Fill in the work requests. A write brings data, user header and header, from the chunk's start; a
 * read the headers alone, behind the place its data would have.
 */
static int clt_build(struct clt_path *path, struct clt_req *req)
{
	struct rail_clt_io *io = req->io;
	struct clt_slot *slot = req->slot;
	u8 *hdr = slot->hdr->addr;
	struct rail_rtrs_mem mem;
	u32 hdr_len = io->usr_len, pieces = 0;
	int err;

	rail_chain_init(&req->chain);
	req->wr.remote_addr = slot->addr;
	if (io->dir == DMA_TO_DEVICE) {
		if (io->len) {
			err = clt_map_write(path, req, &pieces);
			if (err)
				return err;
		}
		rail_rtrs_write_encode((void *)(hdr + io->usr_len), io->usr_len);
		hdr_len += sizeof(struct rail_rtrs_write);
	} else {
		if (io->len) {
			err = clt_map_region(path, req,
					     IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
			if (err)
				return err;
			mem.addr = slot->mr->ib->iova;
			mem.key = rail_mr_rkey(slot->mr);
			mem.len = io->len;
		}
		hdr_len += rail_rtrs_read_encode(hdr + io->usr_len, io->usr_len,
						 io->len ? &mem : NULL, true);
		req->wr.remote_addr += io->len;
	}
	io->fill(io, hdr);
	rail_buf_for_device(slot->hdr, hdr_len);

	req->sge[pieces] = slot->hdr->sge;
	req->sge[pieces].length = hdr_len;
	req->wr.rkey = slot->rkey;
	req->wr.wr.sg_list = req->sge;
	req->wr.wr.num_sge = pieces + 1;
	req->wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	req->wr.wr.send_flags = 0;
	req->wr.wr.ex.imm_data = cpu_to_be32(rail_rtrs_imm_req(&path->params, req->permit.id,
							       io->len + io->usr_len));
	rail_chain_add_signalled(&req->chain, &req->wr.wr, &req->sent);
	return 0;
}

static bool clt_is_small(const struct clt_conn *conn, const struct clt_req *req)
{
	return conn->small && req->slot->small && req->io->len <= RAIL_RTRS_SMALL_DATA &&
	       req->io->usr_len <= RAIL_RTRS_SMALL_USR;
}

/* A page at once where it is one: cheaper on some machines. */
static bool clt_is_page(const struct rail_clt_io *io)
{
	return io->nents == 1 && io->len == PAGE_SIZE && !io->sg->offset;
}

static void clt_copy_to_small(const struct rail_clt_io *io, void *small)
{
	if (clt_is_page(io)) {
		void *page = kmap_local_page(sg_page(io->sg));

		copy_page(small, page);
		kunmap_local(page);
	} else if (io->len) {
		sg_copy_to_buffer(io->sg, io->nents, small, io->len);
	}
}

static void clt_copy_from_small(const struct rail_clt_io *io, void *small)
{
	if (clt_is_page(io)) {
		void *page = kmap_local_page(sg_page(io->sg));

		copy_page(page, small);
		kunmap_local(page);
		flush_dcache_page(sg_page(io->sg));
	} else if (io->len) {
		sg_copy_from_buffer(io->sg, io->nents, small, io->len);
	}
}

/* The same as a message: all of it is the path's own memory, mapped once and for all. */
static void clt_build_small(struct clt_path *path, struct clt_req *req)
{
	struct rail_clt_io *io = req->io;
	struct clt_slot *slot = req->slot;
	bool write = io->dir == DMA_TO_DEVICE;
	const struct rail_rtrs_small_req msg = {
		.type = write ? RAIL_RTRS_SMALL_WRITE : RAIL_RTRS_SMALL_READ,
		.usr_len = io->usr_len,
		.buf_id = req->permit.id,
		.data_len = io->len,
		.addr = slot->small_addr,
		.key = slot->small_key,
	};

	io->fill(io, rail_rtrs_small_encode(slot->hdr->addr, &msg));
	rail_buf_for_device(slot->hdr, RAIL_RTRS_SMALL_HDR);
	req->sge[0] = slot->hdr->sge;
	req->sge[0].length = RAIL_RTRS_SMALL_HDR;
	req->wr.wr.num_sge = 1;
	if (write && io->len) {
		clt_copy_to_small(io, slot->small);
		ib_dma_sync_single_for_device(path->pd->dev->ib, slot->small_dma, io->len,
					      DMA_BIDIRECTIONAL);
		req->sge[1].addr = slot->small_dma;
		req->sge[1].length = io->len;
		req->sge[1].lkey = path->pd->ib->local_dma_lkey;
		req->wr.wr.num_sge = 2;
	}
	req->wr.wr.sg_list = req->sge;
	req->wr.wr.opcode = IB_WR_SEND;
	req->wr.wr.send_flags = 0;
	rail_chain_init(&req->chain);
	rail_chain_add(&req->chain, &req->wr.wr);
	req->small = true;
	rail_stats_inc(&path->stats, CLT_STAT_SMALL);
}

/*
 * Post a small request. It is over when it is answered and nobody reads its chain any more: a
 * server that answers what it was not yet sent must not free that.
 */
static int clt_post_small(struct clt_conn *conn, struct clt_req *req)
{
	int err = rail_post(conn->rail, &req->chain);

	if (likely(!err)) {
		clt_req_put(req);
		return 0;
	}
	if (err != -EAGAIN)
		return err;
	/* It has to wait for room. Its completion says that it had that. */
	rail_chain_init(&req->chain);
	rail_chain_add_signalled(&req->chain, &req->wr.wr, &req->sent);
	return rail_post_queued(conn->rail, &req->chain);
}

/*
 * Put a request on a path. RCU read lock held, so that the path stays until we are done with it.
 * An error: nothing was sent and the request is the caller's. A connection that refuses is closing,
 * and the path with it: then the teardown finds the request, and sends it elsewhere.
 */
static int clt_path_send(struct clt_path *path, struct clt_req *req)
{
	struct clt_conn *conn = clt_path_conn(path, req);
	int err;

	req->slot = &path->slots[req->permit.id];
	req->answered = false;
	req->mr = false;
	req->mapped = 0;
	req->error = 0;
	req->small = false;
	atomic_set(&req->pending, 2);
	if (likely(clt_is_small(conn, req))) {
		clt_build_small(path, req);
	} else {
		err = clt_build(path, req);
		if (err)
			return err;
	}

	req->counted = READ_ONCE(path->clt->policy) == CLT_MIN_INFLIGHT;
	if (req->counted)
		atomic_inc(&path->lane.inflight);
	rail_stats_inc(&path->stats, CLT_STAT_STARTED);
	trace_rail_clt_req_start(path->clt->name, path->name, req->permit.id, conn->cid,
				 req->io->dir == DMA_TO_DEVICE, req->io->len);
	req->state = CLT_REQ_FLYING;
	WRITE_ONCE(req->path, path);
	/* Pairs with the acquire in clt_answer(): who sees it sees the rest. */
	smp_store_release(&req->conn, conn);
	err = req->small ? clt_post_small(conn, req) : rail_post_queued(conn->rail, &req->chain);
	/* From here on, on success, the request may be over and used again. */
	if (unlikely(err))
		clt_path_fail(path, err);
	return 0;
}

/* A path for a request; NULL: there is none, or it has to wait at the gate. */
static struct clt_path *clt_choose(struct rail_clt *clt, const struct clt_req *req)
{
	const struct clt_paths *paths = rcu_dereference(clt->paths);
	struct clt_lane *lane;

	if (unlikely(!READ_ONCE(clt->open)) && req->permit.kind != RAIL_CLT_ADMIN)
		return NULL;
	if (!paths)
		return NULL;
	lane = clt_pick(READ_ONCE(clt->policy), paths->lane, paths->n, get_cpu_ptr(clt->turn),
			numa_node_id());
	put_cpu_ptr(clt->turn);
	return lane ? clt_lane_path(lane) : NULL;
}

/**
 * clt_req_send - send a request, or have it wait for a path
 * @req: IDLE request, the caller's
 *
 * Context: any but hard irq.
 */
void clt_req_send(struct clt_req *req)
{
	struct rail_clt *clt = req->permit.clt;
	struct clt_path *path;
	int err = 0;

	do {
		rcu_read_lock();
		path = clt_choose(clt, req);
		if (likely(path))
			err = clt_path_send(path, req);
		rcu_read_unlock();
		if (likely(path)) {
			if (unlikely(err))
				clt_req_done(req, err);
			return;
		}
	} while (clt_wait_for_path(req));
}

static int clt_io_check(const struct rail_clt *clt, const struct rail_clt_permit *permit,
			const struct rail_clt_io *io)
{
	const struct rail_clt_limits *limits = &clt->limits;

	if (io->len > limits->max_io_size || io->usr_len > limits->max_usr_len ||
	    io->nents > limits->max_segments)
		return -EMSGSIZE;
	if (!io->len != !io->nents || (io->dir != DMA_TO_DEVICE && io->dir != DMA_FROM_DEVICE))
		return -EINVAL;
	if (permit->kind == RAIL_CLT_POLL && io->queue >= limits->nr_poll_queues)
		return -EINVAL;
	return 0;
}

/**
 * rail_clt_submit - send a request
 * @permit: permit; the client's until io->done()
 * @io: the request; likewise
 *
 * Context: any but hard irq.
 */
void rail_clt_submit(struct rail_clt_permit *permit, struct rail_clt_io *io)
{
	struct clt_req *req = clt_permit_req(permit);
	int err = clt_io_check(permit->clt, permit, io);

	req->io = io;
	req->started_ns = ktime_get_ns();
	if (unlikely(err))
		clt_req_done(req, err);
	else
		clt_req_send(req);
}
EXPORT_SYMBOL_GPL(rail_clt_submit);

/* ---------------------------------------------------------------- completion */

/**
 * clt_req_release - take back what a request has of its path
 * @req: FLYING request whose owner the caller is; nothing of it is on the wire any more
 *
 * A region is left to the teardown if it is still valid, which only happens there.
 *
 * Context: any.
 */
void clt_req_release(struct clt_req *req)
{
	struct clt_path *path = req->path;

	if (req->mr && req->slot->mr->state == RAIL_MR_MAPPED)
		rail_mr_unmap(req->slot->mr);
	if (req->mapped)
		ib_dma_unmap_sg(path->pd->dev->ib, req->io->sg, req->mapped, DMA_TO_DEVICE);
	req->mr = false;
	req->mapped = 0;
	if (req->counted)
		atomic_dec(&path->lane.inflight);
	rail_stats_inc(&path->stats, CLT_STAT_ENDED);
	WRITE_ONCE(req->conn, NULL);
	WRITE_ONCE(req->path, NULL);
	req->slot = NULL;
	req->state = CLT_REQ_IDLE;
}

/**
 * clt_req_done - tell the user that a request is over
 * @req: IDLE request, the caller's; the user's afterwards
 * @error: 0 or negative errno
 *
 * Context: any but hard irq.
 */
void clt_req_done(struct clt_req *req, int error)
{
	struct rail_clt_io *io = req->io;

	if (trace_rail_clt_req_done_enabled())
		trace_rail_clt_req_done(req->permit.clt->name, req->permit.id, error,
					ktime_get_ns() - req->started_ns);
	req->io = NULL;
	io->done(io, error);
}

static void clt_account(struct clt_path *path, const struct clt_req *req)
{
	u64 ns = ktime_get_ns() - req->started_ns;
	const struct rail_clt_io *io = req->io;
	unsigned int cpu = raw_smp_processor_id();
	/* With the user header, as mainline counts. */
	u32 bytes = io->len + io->usr_len;

	if (io->dir == DMA_TO_DEVICE) {
		rail_stats_inc(&path->stats, CLT_STAT_WRITES);
		rail_stats_add(&path->stats, CLT_STAT_WRITE_BYTES, bytes);
		rail_hist_record(&path->stats, CLT_HIST_WRITE_NS, ns);
	} else {
		rail_stats_inc(&path->stats, CLT_STAT_READS);
		rail_stats_add(&path->stats, CLT_STAT_READ_BYTES, bytes);
		rail_hist_record(&path->stats, CLT_HIST_READ_NS, ns);
	}
	if (req->error)
		rail_stats_inc(&path->stats, CLT_STAT_ERRORS);
	if (unlikely(cpu != req->permit.cpu)) {
		rail_stats_inc(&path->stats, CLT_STAT_MIGRATED_TO);
		/* The other CPU's counter: two at once may lose one. */
		per_cpu_ptr(path->stats.count, req->permit.cpu)[CLT_STAT_MIGRATED_FROM]++;
	}
	if (READ_ONCE(path->clt->policy) == CLT_WEIGHTED)
		clt_lane_served(&path->lane, ns);
}

/* One less of what has to happen before a request is over. */
static void clt_req_put(struct clt_req *req)
{
	int error;

	if (!atomic_dec_and_test(&req->pending))
		return;
	error = req->error;
	clt_account(req->path, req);
	clt_req_release(req);
	clt_req_done(req, error);
}

/* A flush: the connection is closing, the teardown sees to it. */
static void clt_sent(struct rail_cqe *cqe, struct ib_wc *wc)
{
	if (likely(wc->status == IB_WC_SUCCESS))
		clt_req_put(container_of(cqe, struct clt_req, sent));
}

static void clt_invalidated(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clt_req *req = container_of(cqe, struct clt_req, inved);

	if (unlikely(wc->status != IB_WC_SUCCESS))
		return;
	rail_mr_invalidated(req->slot->mr);
	clt_req_put(req);
}

/* The chain was never posted: the connection is closing, and the teardown finds the request. */
static void clt_chain_failed(struct rail_chain *chain)
{
}

static void clt_bad_peer(struct clt_conn *conn, const char *what)
{
	if (clt_path_fail(conn->path, -EPROTO))
		clt_warn(conn->path, "connection %u: %s: closing the path\n", conn->cid, what);
}

/* The peer has not made the key dead: do so, and be told. */
static void clt_invalidate(struct clt_conn *conn, struct clt_req *req)
{
	int err;

	rail_chain_init(&req->inv_chain);
	rail_chain_add_signalled(&req->inv_chain, rail_mr_inv_wr(req->slot->mr), &req->inved);
	atomic_inc(&req->pending);
	rail_stats_inc(&conn->path->stats, CLT_STAT_LOCAL_INVS);
	err = rail_post_queued(conn->rail, &req->inv_chain);
	/* The count that is too much leaves the request to the teardown. */
	if (unlikely(err))
		clt_path_fail(conn->path, err);
}

/* An answer to a small request, with @len bytes of data. false: it is not as agreed. */
static bool clt_answer_small(struct clt_conn *conn, struct clt_req *req, u32 len)
{
	const struct rail_clt_io *io = req->io;
	const struct clt_slot *slot = req->slot;

	if (unlikely(!clt_small_fits(io->dir == DMA_FROM_DEVICE, req->error, io->len, len)))
		return false;
	if (!len)
		return true;
	ib_dma_sync_single_for_cpu(conn->path->pd->dev->ib, slot->small_dma, len,
				   DMA_BIDIRECTIONAL);
	clt_copy_from_small(io, slot->small);
	return true;
}

/*
 * An answer. @msg: the message it came with, NULL where it was an immediate value, and @len bytes
 * that were written by RDMA.
 */
static void clt_answer(struct clt_conn *conn, u32 value, const void *msg, u32 len)
{
	struct clt_path *path = conn->path;
	enum rail_rtrs_reason reason;
	struct rail_rtrs_imm imm;
	struct clt_req *req;
	struct rail_mr *mr;
	bool inval;
	u32 rkey;

	reason = rail_rtrs_imm_client(value, &path->params, &imm);
	if (unlikely(reason)) {
		clt_bad_peer(conn, rail_rtrs_reason_text(reason));
		return;
	}
	if (imm.type == RAIL_RTRS_IMM_HB || imm.type == RAIL_RTRS_IMM_HB_ACK) {
		rail_hb_received(&path->hb, imm.type == RAIL_RTRS_IMM_HB_ACK);
		WRITE_ONCE(path->lane.latency_ns, READ_ONCE(path->hb.latency_ns));
		return;
	}
	/* The server may have a deeper queue by now than it had when the session was opened. */
	if (unlikely(!path->clt->reqs || imm.buf_id >= path->clt->limits.queue_depth)) {
		clt_bad_peer(conn, "answer to a request that was never sent");
		return;
	}
	req = &path->clt->reqs[imm.buf_id];
	/* Pairs with the release in clt_path_send(). */
	if (unlikely(smp_load_acquire(&req->conn) != conn || req->answered)) {
		clt_bad_peer(conn, "answer to a request that is not outstanding here");
		return;
	}
	if (msg) {
		reason = rail_rtrs_rkey_rsp_decode(msg, len, imm.buf_id, &rkey);
		if (unlikely(reason || !path->params.new_rkey || req->small)) {
			clt_bad_peer(conn, reason ? rail_rtrs_reason_text(reason) :
						    "a new key, though none was agreed on");
			return;
		}
		req->slot->rkey = rkey;
	}
	inval = conn->inval;
	conn->inval = false;
	mr = req->slot->mr;
	if (imm.type == RAIL_RTRS_IMM_IO_RSP_INVAL &&
	    unlikely(!inval || !req->mr || conn->inval_rkey != rail_mr_rkey(mr))) {
		clt_bad_peer(conn, "says it made a key dead, and did not");
		return;
	}
	req->error = imm.error;
	if (req->small && unlikely(!clt_answer_small(conn, req, len))) {
		clt_bad_peer(conn, "answer of another length than was asked for");
		return;
	}
	req->answered = true;
	if (req->mr) {
		if (imm.type == RAIL_RTRS_IMM_IO_RSP_INVAL)
			rail_mr_invalidated(mr);
		else
			clt_invalidate(conn, req);
	}
	clt_req_put(req);
}

static void clt_answers(struct clt_conn *conn, const void *msg, u32 len)
{
	u32 rsp[RAIL_RTRS_SMALL_RSPS_MAX], i, n;
	enum rail_rtrs_reason reason;

	reason = rail_rtrs_small_rsps_decode(msg, len, rsp, &n);
	if (unlikely(reason)) {
		clt_bad_peer(conn, rail_rtrs_reason_text(reason));
		return;
	}
	for (i = 0; i < n; i++)
		clt_answer(conn, rsp[i], NULL, 0);
}

/* ---------------------------------------------------------------- receives */

static void clt_recv_again(struct clt_conn *conn, struct clt_recv *recv)
{
	rail_recv_batch_add(&conn->batch, &recv->wr, &recv->cqe);
	if (conn->batch.n < CLT_RECV_BATCH)
		return;
	if (rail_post_recvs(conn->rail, &conn->batch))
		clt_path_fail(conn->path, -ENOTCONN);
	rail_recv_batch_init(&conn->batch);
}

/**
 * clt_conn_recv_done - something came
 * @cqe: of a struct clt_recv
 * @wc: what
 *
 * Context: connection's completions, one at a time.
 */
void clt_conn_recv_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clt_recv *recv = container_of(cqe, struct clt_recv, cqe);
	struct clt_conn *conn = recv->conn;

	if (unlikely(wc->status != IB_WC_SUCCESS))
		return;
	rail_hb_seen(&conn->path->hb);
	if (likely(wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)) {
		clt_answer(conn, be32_to_cpu(wc->ex.imm_data), NULL, wc->byte_len);
	} else if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		conn->inval = true;
		conn->inval_rkey = wc->ex.invalidate_rkey;
	} else if (wc->wc_flags & IB_WC_WITH_IMM) {
		rail_buf_for_cpu(recv->buf, wc->byte_len);
		clt_answer(conn, be32_to_cpu(wc->ex.imm_data), recv->buf->addr, wc->byte_len);
		rail_buf_for_device(recv->buf, wc->byte_len);
	} else if (conn->small) {
		rail_buf_for_cpu(recv->buf, wc->byte_len);
		clt_answers(conn, recv->buf->addr, wc->byte_len);
		rail_buf_for_device(recv->buf, wc->byte_len);
	} else {
		clt_bad_peer(conn, "a message that is no answer");
	}
	clt_recv_again(conn, recv);
}

/**
 * clt_conn_post_recvs - post all the receives a connection has
 * @conn: connection whose QP exists
 *
 * Context: sleeps not.
 * Return: 0, or an error: the connection is closing.
 */
int clt_conn_post_recvs(struct clt_conn *conn)
{
	struct rail_recv_batch batch;
	u32 i;

	rail_recv_batch_init(&conn->batch);
	rail_recv_batch_init(&batch);
	for (i = 0; i < conn->nr_recvs; i++)
		rail_recv_batch_add(&batch, &conn->recvs[i].wr, &conn->recvs[i].cqe);
	return rail_post_recvs(conn->rail, &batch);
}

/* ---------------------------------------------------------------- what else a user may do */

/**
 * clt_req_init - prepare a request
 * @clt: session
 * @req: zeroed
 * @id: its buffer id
 */
void clt_req_init(struct rail_clt *clt, struct clt_req *req, u32 id)
{
	req->permit.clt = clt;
	req->permit.id = id;
	INIT_LIST_HEAD(&req->entry);
	rail_cqe_init_send(&req->sent, clt_sent);
	rail_cqe_init_send(&req->inved, clt_invalidated);
	req->chain.failed = clt_chain_failed;
	req->inv_chain.failed = clt_chain_failed;
}

static struct clt_req *clt_permit_try(struct rail_clt *clt)
{
	int id = sbitmap_get(&clt->permits);

	return id < 0 ? NULL : &clt->reqs[id];
}

/* Full barrier: either we find one now, or who puts one sees that we want it. */
static struct clt_req *clt_permit_want(struct rail_clt *clt)
{
	set_bit(0, &clt->hungry);
	/* Pairs with the one in rail_clt_permit_put(). */
	smp_mb__after_atomic();
	return clt_permit_try(clt);
}

/**
 * rail_clt_permit_get - get the right to have a request outstanding
 * @clt: session
 * @flags: RAIL_CLT_POLL or RAIL_CLT_ADMIN or neither; RAIL_CLT_WAIT: sleep until there is one
 *
 * Context: any but hard irq; sleeps with RAIL_CLT_WAIT.
 * Return: the permit; NULL: none is free now, and ops->permits() will be called.
 */
struct rail_clt_permit *rail_clt_permit_get(struct rail_clt *clt, unsigned int flags)
{
	struct clt_req *req = clt_permit_try(clt);

	if (unlikely(!req)) {
		req = clt_permit_want(clt);
		if (!req && flags & RAIL_CLT_WAIT)
			wait_event(clt->wait, (req = clt_permit_want(clt)));
		if (!req)
			return NULL;
	}
	req->permit.cpu = raw_smp_processor_id();
	req->permit.kind = flags & (RAIL_CLT_POLL | RAIL_CLT_ADMIN);
	return &req->permit;
}
EXPORT_SYMBOL_GPL(rail_clt_permit_get);

/**
 * rail_clt_permit_put - give a permit back
 * @permit: permit without a request
 *
 * Context: any but hard irq.
 */
void rail_clt_permit_put(struct rail_clt_permit *permit)
{
	struct rail_clt *clt = permit->clt;

	sbitmap_put(&clt->permits, permit->id);
	/* Pairs with the one in clt_permit_want(). */
	smp_mb();
	if (likely(!READ_ONCE(clt->hungry)))
		return;
	if (!test_and_clear_bit(0, &clt->hungry))
		return;
	wake_up_all(&clt->wait);
	if (clt->ops->permits)
		clt->ops->permits(clt->priv);
}
EXPORT_SYMBOL_GPL(rail_clt_permit_put);

/**
 * rail_clt_poll - work on the completions of a poll queue, on all paths
 * @clt: session
 * @queue: poll queue
 *
 * Context: any but irq. Calls io->done().
 * Return: how many completions.
 */
int rail_clt_poll(struct rail_clt *clt, unsigned int queue)
{
	unsigned int cid = 1 + clt->limits.nr_queues + queue;
	const struct clt_paths *paths;
	struct clt_path *path;
	int found = 0;
	u32 i;

	rcu_read_lock();
	paths = rcu_dereference(clt->paths);
	for (i = 0; paths && i < paths->n; i++) {
		path = clt_lane_path(paths->lane[i]);
		/* Pairs with the release in clt_link_found(). */
		if (smp_load_acquire(&path->lane.usable))
			found += rail_conn_poll(path->conns[cid].rail, CLT_POLL_BUDGET);
	}
	rcu_read_unlock();
	return found;
}
EXPORT_SYMBOL_GPL(rail_clt_poll);
