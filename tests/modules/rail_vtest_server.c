// SPDX-License-Identifier: GPL-2.0-only
/*
 * The serving end of the test pair: listens, reads and writes the memory that clients offer, and
 * offers chunks of its own to be written with immediate data, each under a fresh key every time.
 *
 * Commands besides the common ones (see vtest_side.c):
 *	answer [reject=ERRNO]	answer the requests that "set defer=1" left unanswered
 *	listen ADDRESS		listen there too, in the caller's network namespace
 *	unlisten		listen nowhere
 */
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rail_vtest.h"

static ushort port = RVT_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "port to listen on");

static char *listen = "ip:0.0.0.0 ip:::";
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "addresses to listen on, blanks between");

static uint timeout = 60000;
module_param(timeout, uint, 0644);
MODULE_PARM_DESC(timeout, "ms that a request may take until it is up, for listeners to come");

struct rvt_listener {
	struct rail_listener *rail;
	struct list_head entry;
	struct work_struct unlisten;
	bool gone;
};

static struct rvt_side rvt_server;
static DEFINE_MUTEX(rvt_listeners_mutex);
static LIST_HEAD(rvt_listeners);

/**
 * struct rvt_job - a request under way
 * @sep: endpoint
 * @unit: the answer
 * @hdr: the request
 * @next: the request that came before our answer's end was told
 * @state: see enum; ep->lock
 * @has_next: @next is one; ep->lock
 * @work: does it
 * @mem: what is read into or written from
 * @rw: for rail_rw
 * @rw_live: @rw is to be destroyed
 * @waiting: for a context; in sep->waiting
 * @plain: for plain work requests
 * @wr: for plain work requests
 * @sge: for plain work requests
 * @cqe: told of a read
 * @chain: of a read
 */
struct rvt_job {
	struct rvt_sep *sep;
	struct rvt_unit unit;
	struct rvt_hdr hdr;
	struct rvt_hdr next;
	enum { RVT_JOB_FREE, RVT_JOB_BUSY, RVT_JOB_ANSWERED } state;
	bool has_next;
	struct work_struct work;
	struct rvt_mem mem;
	struct rail_rw rw;
	bool rw_live;
	struct list_head waiting;
	struct rail_buf *plain;
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	struct rail_cqe cqe;
	struct rail_chain chain;
};

/**
 * struct rvt_chunk - memory that the client may write to
 * @sep: endpoint
 * @unit: tells the client
 * @mem: the memory
 * @mr: its region
 * @key: last key
 * @offered: the client knows the key; ep->lock
 * @writes: how often it was written
 * @cqe: told of the invalidation
 * @chain: of the invalidation
 */
struct rvt_chunk {
	struct rvt_sep *sep;
	struct rvt_unit unit;
	struct rvt_mem mem;
	struct rail_mr *mr;
	u32 key;
	bool offered;
	u64 writes;
	struct rail_cqe cqe;
	struct rail_chain chain;
};

/* Answers writes of nothing. @busy, @again: ep->lock */
struct rvt_echo {
	struct rvt_unit unit;
	bool busy;
	bool again;
};

/* @rw_free, @waiting: ep->lock */
struct rvt_sep {
	struct rvt_ep ep;
	u32 rw_free;
	struct list_head waiting;
	struct rvt_job *jobs;
	struct rvt_chunk *chunks;
	struct rvt_echo *echoes;
	struct rail_buf_pool *plain_pool;
};

static struct rvt_sep *to_sep(struct rvt_ep *ep)
{
	return container_of(ep, struct rvt_sep, ep);
}

/* ---------------------------------------------------------------- requests */

static void rvt_job_start(struct rvt_job *job)
{
	queue_work(rvt_server.wq, &job->work);
}

/* Contexts are few: who finds none is started again when there is one. */
static bool rvt_job_may_rw(struct rvt_job *job)
{
	struct rvt_sep *sep = job->sep;
	bool may;

	spin_lock_bh(&sep->ep.lock);
	may = sep->rw_free;
	if (may)
		sep->rw_free--;
	else
		list_add_tail(&job->waiting, &sep->waiting);
	spin_unlock_bh(&sep->ep.lock);
	return may;
}

static void rvt_job_end_rw(struct rvt_job *job)
{
	struct rvt_sep *sep = job->sep;
	struct rvt_job *next;

	if (!job->rw_live)
		return;
	rail_rw_destroy(&job->rw, sep->ep.conn);
	job->rw_live = false;
	spin_lock_bh(&sep->ep.lock);
	sep->rw_free++;
	next = list_first_entry_or_null(&sep->waiting, struct rvt_job, waiting);
	if (next)
		list_del_init(&next->waiting);
	spin_unlock_bh(&sep->ep.lock);
	if (next)
		rvt_job_start(next);
}

static void rvt_job_answered(struct rvt_unit *unit, int err)
{
	struct rvt_job *job = container_of(unit, struct rvt_job, unit);
	struct rvt_ep *ep = unit->ep;
	bool next;

	/* What failed is left to drained(), to have a context there too. */
	if (err)
		return;
	rvt_job_end_rw(job);
	spin_lock_bh(&ep->lock);
	next = job->has_next;
	if (next)
		job->hdr = job->next;
	job->has_next = false;
	job->state = next ? RVT_JOB_BUSY : RVT_JOB_FREE;
	spin_unlock_bh(&ep->lock);
	if (next)
		rvt_job_start(job);
}

/* Work requests to be posted before the answer, in the same chain, are in @before. */
static void rvt_job_answer(struct rvt_job *job, struct rail_chain *before, int status)
{
	struct rvt_ep *ep = &job->sep->ep;
	struct rvt_hdr *hdr;
	bool keep;

	hdr = rvt_unit_begin(&job->unit, RVT_REPLY);
	if (before)
		rvt_unit_prepend(&job->unit, before);
	hdr->tag = job->hdr.tag;
	hdr->seq = job->hdr.seq;
	hdr->op = cpu_to_le32(-status);
	hdr->rkey = job->hdr.rkey;
	rvt_unit_end(&job->unit, 0, true);
	keep = le32_to_cpu(job->hdr.flags) & RVT_F_KEEP;
	if (!keep)
		rvt_unit_invalidate(&job->unit, le32_to_cpu(job->hdr.rkey));
	spin_lock_bh(&ep->lock);
	job->state = RVT_JOB_ANSWERED;
	spin_unlock_bh(&ep->lock);
	rvt_unit_queue(&job->unit);
}

static void rvt_job_count(struct rvt_job *job)
{
	static const enum rvt_stat stats[] = {
		[RVT_READ] = RVT_STAT_READ,
		[RVT_WRITE] = RVT_STAT_WRITE,
		[RVT_INV] = RVT_STAT_INV,
	};

	rvt_count(&job->sep->ep, stats[le32_to_cpu(job->hdr.op)]);
}

static void rvt_read_finish(struct rvt_job *job)
{
	u32 size = le32_to_cpu(job->hdr.size);
	bool good;

	if (job->rw_live) {
		rvt_job_end_rw(job);
		good = rvt_mem_matches(&job->mem, le64_to_cpu(job->hdr.seed));
	} else {
		rail_buf_for_cpu(job->plain, size);
		good = rvt_matches(job->plain->addr, size, le64_to_cpu(job->hdr.seed), 0);
	}
	if (!good)
		rvt_count(&job->sep->ep, RVT_STAT_BAD_CONTENT);
	rvt_job_count(job);
	rvt_job_answer(job, NULL, good ? 0 : -EBADMSG);
}

static void rvt_read_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rvt_job *job = container_of(cqe, struct rvt_job, cqe);

	rvt_told(&job->sep->ep, wc);
	if (wc->status == IB_WC_SUCCESS)
		rvt_read_finish(job);
}

static void rvt_read_failed(struct rail_chain *chain)
{
	struct rvt_job *job = container_of(chain, struct rvt_job, chain);

	rvt_told(&job->sep->ep, NULL);
}

/* Fill in @chain with what moves the data. @cqe: told of its end, or NULL. */
static int rvt_job_move(struct rvt_job *job, struct rail_chain *chain, bool write,
			struct rail_cqe *cqe)
{
	enum dma_data_direction dir = write ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	u32 size = le32_to_cpu(job->hdr.size);
	u64 seed = le64_to_cpu(job->hdr.seed);
	struct rvt_ep *ep = &job->sep->ep;
	int err;

	rail_chain_init(chain);
	if (le32_to_cpu(job->hdr.flags) & RVT_F_PLAIN) {
		if (write)
			rvt_fill(job->plain->addr, size, seed, 0);
		rail_buf_for_device(job->plain, size);
		job->sge = job->plain->sge;
		job->sge.length = size;
		job->wr = (struct ib_rdma_wr) {
			.wr.opcode = write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ,
			.wr.sg_list = &job->sge,
			.wr.num_sge = 1,
			.remote_addr = le64_to_cpu(job->hdr.addr),
			.rkey = le32_to_cpu(job->hdr.rkey),
		};
		if (cqe)
			rail_chain_add_signalled(chain, &job->wr.wr, cqe);
		else
			rail_chain_add(chain, &job->wr.wr);
		return 0;
	}
	if (!rvt_job_may_rw(job))
		return -EAGAIN;
	rvt_mem_resize(&job->mem, size);
	if (write)
		rvt_mem_fill(&job->mem, seed);
	err = rail_rw_init(&job->rw, ep->conn, job->mem.sg, job->mem.nents, 0,
			   le64_to_cpu(job->hdr.addr), le32_to_cpu(job->hdr.rkey), dir);
	if (err < 0) {
		spin_lock_bh(&ep->lock);
		job->sep->rw_free++;
		spin_unlock_bh(&ep->lock);
		return err;
	}
	job->rw_live = true;
	rail_rw_chain(&job->rw, ep->conn, chain, cqe);
	return 0;
}

static void rvt_job_work(struct work_struct *work)
{
	struct rvt_job *job = container_of(work, struct rvt_job, work);
	struct rvt_ep *ep = &job->sep->ep;
	struct rail_chain chain;
	int err;

	/* A context that is made now would outlive the QP. */
	if (rail_conn_state(ep->conn) >= RAIL_CLOSING)
		return;
	switch (le32_to_cpu(job->hdr.op)) {
	case RVT_READ:
		err = rvt_job_move(job, &job->chain, false, &job->cqe);
		if (err)
			break;
		atomic_inc(&ep->told);
		if (rail_post_queued(ep->conn, &job->chain))
			rvt_refused(ep);
		return;
	case RVT_WRITE:
		err = rvt_job_move(job, &chain, true, NULL);
		if (err)
			break;
		rvt_job_count(job);
		rvt_job_answer(job, &chain, 0);
		return;
	default:
		rvt_job_count(job);
		rvt_job_answer(job, NULL, 0);
		return;
	}
	/* No memory for a context: that happens, and the connection goes on. */
	if (err != -EAGAIN)
		rvt_job_answer(job, NULL, err);
}

static int rvt_request(struct rvt_ep *ep, const struct rvt_hdr *hdr)
{
	u16 tag = le16_to_cpu(hdr->tag);
	bool start = false, bad = false;
	struct rvt_job *job;

	if (tag >= ep->p.tags || le32_to_cpu(hdr->op) > RVT_INV || !hdr->size ||
	    le32_to_cpu(hdr->size) > ep->p.mem)
		return -EPROTO;
	job = &to_sep(ep)->jobs[tag];
	spin_lock_bh(&ep->lock);
	if (job->state == RVT_JOB_FREE) {
		job->state = RVT_JOB_BUSY;
		job->hdr = *hdr;
		start = true;
	} else if (job->state == RVT_JOB_ANSWERED && !job->has_next) {
		job->next = *hdr;
		job->has_next = true;
	} else {
		bad = true;
	}
	spin_unlock_bh(&ep->lock);
	if (start)
		rvt_job_start(job);
	return bad ? -EPROTO : 0;
}

/* ---------------------------------------------------------------- chunks */

static void rvt_chunk_told(struct rvt_unit *unit, int err)
{
}

static int rvt_chunk_offer(struct rvt_chunk *chunk)
{
	struct rvt_ep *ep = &chunk->sep->ep;
	struct rvt_unit *unit = &chunk->unit;
	struct rvt_hdr *hdr;
	u32 key;
	int err;

	err = rail_mr_map(chunk->mr, chunk->mem.sg, chunk->mem.nents, chunk->mem.len,
			  DMA_FROM_DEVICE);
	if (err)
		return err;
	hdr = rvt_unit_begin(unit, RVT_CHUNK);
	rail_chain_add(&unit->chain, rail_mr_reg_wr(chunk->mr, IB_ACCESS_LOCAL_WRITE |
						    IB_ACCESS_REMOTE_WRITE));
	key = rail_mr_rkey(chunk->mr);
	if (key == chunk->key)
		rvt_count(ep, RVT_STAT_SAME_KEY);
	chunk->key = key;
	hdr->tag = cpu_to_le16(chunk - chunk->sep->chunks);
	hdr->seq = cpu_to_le64(chunk->writes);
	hdr->addr = cpu_to_le64(chunk->mr->ib->iova);
	hdr->rkey = cpu_to_le32(key);
	hdr->size = cpu_to_le32(chunk->mem.len);
	/* Nobody needs to be told: the invalidation comes later on the same queue. */
	rvt_unit_end(unit, 0, false);
	spin_lock_bh(&ep->lock);
	chunk->offered = true;
	spin_unlock_bh(&ep->lock);
	rvt_unit_queue(unit);
	return 0;
}

/* The client cannot write any more: look at what it wrote, and offer the chunk again. */
static void rvt_chunk_invalidated(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rvt_chunk *chunk = container_of(cqe, struct rvt_chunk, cqe);
	struct rvt_ep *ep = &chunk->sep->ep;
	struct rvt_hdr hdr;
	int err;

	rvt_told(ep, wc);
	if (wc->status != IB_WC_SUCCESS) {
		rail_mr_failed(chunk->mr);
		return;
	}
	rail_mr_invalidated(chunk->mr);
	rail_mr_unmap(chunk->mr);
	rvt_mem_copy_out(&chunk->mem, &hdr, sizeof(hdr));
	rvt_count(ep, RVT_STAT_IMM);
	if (!rvt_hdr_good(&hdr))
		rvt_count(ep, RVT_STAT_BAD_HEADER);
	else if (le64_to_cpu(hdr.seq) != chunk->writes)
		rvt_count(ep, RVT_STAT_BAD_ORDER);
	else if (!rvt_mem_matches_at(&chunk->mem, sizeof(hdr), le32_to_cpu(hdr.len),
				     le64_to_cpu(hdr.seed)))
		rvt_count(ep, RVT_STAT_BAD_CONTENT);
	chunk->writes++;
	err = rvt_chunk_offer(chunk);
	if (err)
		rail_conn_close(ep->conn, err);
}

static void rvt_chunk_failed(struct rail_chain *chain)
{
	rvt_told(&container_of(chain, struct rvt_chunk, chain)->sep->ep, NULL);
}

static int rvt_chunk_written(struct rvt_ep *ep, u32 index)
{
	struct rvt_chunk *chunk;
	bool offered;

	if (index >= ep->p.chunks)
		return -EPROTO;
	chunk = &to_sep(ep)->chunks[index];
	spin_lock_bh(&ep->lock);
	offered = chunk->offered;
	chunk->offered = false;
	spin_unlock_bh(&ep->lock);
	if (!offered)
		return -EPROTO;
	rail_chain_init(&chunk->chain);
	rail_chain_add_signalled(&chunk->chain, rail_mr_inv_wr(chunk->mr), &chunk->cqe);
	atomic_inc(&ep->told);
	if (rail_post_queued(ep->conn, &chunk->chain))
		rvt_refused(ep);
	return 0;
}

static void rvt_echo_send(struct rvt_echo *echo)
{
	struct rvt_sep *sep = to_sep(echo->unit.ep);

	rvt_unit_begin(&echo->unit, 0);
	rvt_unit_end(&echo->unit, 0, true);
	rvt_unit_zero_imm(&echo->unit, RVT_IMM_ZERO | (u32)(echo - sep->echoes));
	rvt_unit_queue(&echo->unit);
}

static void rvt_echo_done(struct rvt_unit *unit, int err)
{
	struct rvt_echo *echo = container_of(unit, struct rvt_echo, unit);
	bool again;

	if (err)
		return;
	spin_lock_bh(&unit->ep->lock);
	again = echo->again;
	echo->again = false;
	echo->busy = again;
	spin_unlock_bh(&unit->ep->lock);
	if (again)
		rvt_echo_send(echo);
}

static int rvt_zero_written(struct rvt_ep *ep, u32 index)
{
	struct rvt_echo *echo;
	bool busy, bad;

	if (index >= ep->p.tags)
		return -EPROTO;
	echo = &to_sep(ep)->echoes[index];
	spin_lock_bh(&ep->lock);
	busy = echo->busy;
	bad = echo->again;
	echo->busy = true;
	echo->again = busy;
	spin_unlock_bh(&ep->lock);
	if (bad)
		return -EPROTO;
	rvt_count(ep, RVT_STAT_IMM0);
	if (!busy)
		rvt_echo_send(echo);
	return 0;
}

static int rvt_server_imm(struct rvt_ep *ep, u32 imm)
{
	switch (imm & RVT_IMM_KIND) {
	case RVT_IMM_CHUNK:
		return rvt_chunk_written(ep, imm & RVT_IMM_INDEX);
	case RVT_IMM_ZERO:
		return rvt_zero_written(ep, imm & RVT_IMM_INDEX);
	default:
		return -EPROTO;
	}
}

static int rvt_server_message(struct rvt_ep *ep, const struct rvt_hdr *hdr, u32 key)
{
	if (key)
		rvt_count(ep, RVT_STAT_BAD_KEY);
	return hdr->type == RVT_REQUEST ? rvt_request(ep, hdr) : -EPROTO;
}

/* ---------------------------------------------------------------- set-up and tear-down */

static int rvt_jobs_alloc(struct rvt_sep *sep)
{
	struct rvt_ep *ep = &sep->ep;
	u32 i;
	int err;

	sep->plain_pool = rail_buf_pool_create(ep->dom->pd, ep->p.mem, ep->p.tags,
					       DMA_BIDIRECTIONAL, ep->dom->dev->node);
	if (IS_ERR(sep->plain_pool)) {
		err = PTR_ERR(sep->plain_pool);
		sep->plain_pool = NULL;
		return err;
	}
	sep->jobs = kcalloc(ep->p.tags, sizeof(*sep->jobs), GFP_KERNEL);
	sep->echoes = kcalloc(ep->p.tags, sizeof(*sep->echoes), GFP_KERNEL);
	if (!sep->jobs || !sep->echoes)
		return -ENOMEM;
	for (i = 0; i < ep->p.tags; i++) {
		struct rvt_job *job = &sep->jobs[i];

		job->sep = sep;
		INIT_WORK(&job->work, rvt_job_work);
		rail_cqe_init_send(&job->cqe, rvt_read_done);
		job->chain.failed = rvt_read_failed;
	}
	for (i = 0; i < ep->p.tags; i++) {
		struct rvt_job *job = &sep->jobs[i];

		job->plain = rail_buf_get(sep->plain_pool);
		if (!job->plain)
			return -ENOMEM;
		err = rvt_mem_alloc(&job->mem, ep->p.mem);
		if (!err)
			err = rvt_unit_init(&job->unit, ep, 0, rvt_job_answered);
		if (!err)
			err = rvt_unit_init(&sep->echoes[i].unit, ep, 0, rvt_echo_done);
		if (err)
			return err;
	}
	return 0;
}

static int rvt_chunks_alloc(struct rvt_sep *sep)
{
	struct rvt_ep *ep = &sep->ep;
	u32 i;
	int err;

	sep->chunks = kcalloc(ep->p.chunks, sizeof(*sep->chunks), GFP_KERNEL);
	if (!sep->chunks)
		return -ENOMEM;
	for (i = 0; i < ep->p.chunks; i++) {
		struct rvt_chunk *chunk = &sep->chunks[i];

		chunk->sep = sep;
		rail_cqe_init_send(&chunk->cqe, rvt_chunk_invalidated);
		chunk->chain.failed = rvt_chunk_failed;
		err = rvt_mem_alloc(&chunk->mem, sizeof(struct rvt_hdr) + ep->p.msg);
		if (!err)
			err = rvt_unit_init(&chunk->unit, ep, 0, rvt_chunk_told);
		if (err)
			return err;
		/* For as long as the connection lives: so the pool has to be big enough. */
		chunk->mr = rail_mr_get(ep->dom->mrs);
		if (!chunk->mr) {
			rvt_count(ep, RVT_STAT_MR_EMPTY);
			return -ENOBUFS;
		}
	}
	return 0;
}

static int rvt_server_setup(struct rvt_ep *ep)
{
	struct rvt_sep *sep = to_sep(ep);
	int err;

	sep->rw_free = ep->p.rw;
	INIT_LIST_HEAD(&sep->waiting);
	err = rvt_jobs_alloc(sep);
	return err ?: rvt_chunks_alloc(sep);
}

static void rvt_server_up(struct rvt_ep *ep)
{
	u32 i;
	int err;

	for (i = 0; i < ep->p.chunks; i++) {
		err = rvt_chunk_offer(&to_sep(ep)->chunks[i]);
		if (err) {
			rail_conn_close(ep->conn, err);
			return;
		}
	}
}

static void rvt_server_drained(struct rvt_ep *ep)
{
	struct rvt_sep *sep = to_sep(ep);
	u32 i;

	for (i = 0; sep->jobs && i < ep->p.tags; i++) {
		if (!sep->jobs[i].sep)
			continue;
		cancel_work_sync(&sep->jobs[i].work);
		rvt_job_end_rw(&sep->jobs[i]);
	}
}

static void rvt_server_teardown(struct rvt_ep *ep)
{
	struct rvt_sep *sep = to_sep(ep);
	u32 i;

	for (i = 0; sep->jobs && i < ep->p.tags; i++) {
		struct rvt_job *job = &sep->jobs[i];

		rvt_mem_free(&job->mem);
		rvt_unit_free(&job->unit);
		if (job->plain)
			rail_buf_put(job->plain);
	}
	for (i = 0; sep->echoes && i < ep->p.tags; i++)
		rvt_unit_free(&sep->echoes[i].unit);
	for (i = 0; sep->chunks && i < ep->p.chunks; i++) {
		struct rvt_chunk *chunk = &sep->chunks[i];

		/* Still valid, as likely as not: the pool replaces it, then the memory may go. */
		if (chunk->mr)
			rail_mr_put(chunk->mr);
		rvt_mem_free(&chunk->mem);
		rvt_unit_free(&chunk->unit);
	}
	kfree(sep->jobs);
	kfree(sep->echoes);
	kfree(sep->chunks);
	if (sep->plain_pool)
		rail_buf_pool_destroy(sep->plain_pool);
}

/* ---------------------------------------------------------------- listening */

static void rvt_refusal(struct rvt_refusal *refusal, int err, u8 len)
{
	*refusal = (struct rvt_refusal) {
		.magic = cpu_to_le32(RVT_MAGIC),
		.err = cpu_to_le32(-err),
		.len = cpu_to_le32(len),
	};
}

static int rvt_answer(struct rail_conn *conn, const struct rvt_priv *priv, u8 rnr)
{
	return rail_conn_accept(conn, &(struct rail_accept) {
		.priv = priv,
		.priv_len = sizeof(*priv),
		.rnr_retries = rnr,
	});
}

static int rvt_request_refused(struct rail_request *req, int err)
{
	struct rvt_refusal refusal;

	rvt_refusal(&refusal, err, req->priv_len);
	memcpy(req->reject_priv, &refusal, sizeof(refusal));
	req->reject_len = sizeof(refusal);
	rail_stats_inc(&rvt_server.stats, RVT_STAT_REFUSED);
	return err;
}

static int rvt_listener_request(struct rail_listener *rail, struct rail_conn *conn,
				struct rail_request *req)
{
	struct rvt_params params;
	struct rvt_priv priv;
	struct rvt_ep *ep;
	u32 group;
	int err;

	mutex_lock(&rvt_server.mutex);
	params = rvt_server.params;
	mutex_unlock(&rvt_server.mutex);
	if (params.reject)
		return rvt_request_refused(req, -(int)params.reject);
	err = rvt_unpack_priv(&params, &group, req->priv, req->priv_len);
	if (err)
		return rvt_request_refused(req, err);
	ep = rvt_ep_create(&rvt_server, &params, group, true);
	if (IS_ERR(ep))
		return rvt_request_refused(req, PTR_ERR(ep));
	rvt_pack_priv(&priv, ep);
	rail_conn_adopt(conn, &rvt_conn_ops, ep);
	mutex_lock(&rvt_server.mutex);
	rvt_ep_link(ep, conn);
	mutex_unlock(&rvt_server.mutex);
	rvt_count(ep, RVT_STAT_REQUESTS);
	rvt_event(&rvt_server);
	/* From here on the endpoint ends by closed(), whatever becomes of the answer. */
	if (!params.defer)
		rvt_answer(conn, &priv, params.rnr);
	return 0;
}

static void rvt_listener_free(struct rvt_listener *listener)
{
	rail_listener_destroy(listener->rail);
	kfree(listener);
}

static void rvt_unlisten_work(struct work_struct *work)
{
	struct rvt_listener *listener = container_of(work, struct rvt_listener, unlisten);
	bool ours;

	mutex_lock(&rvt_listeners_mutex);
	ours = !list_empty(&listener->entry);
	list_del_init(&listener->entry);
	mutex_unlock(&rvt_listeners_mutex);
	if (ours)
		rvt_listener_free(listener);
}

static void rvt_listener_gone(struct rail_listener *rail)
{
	struct rvt_listener *listener = rail_listener_context(rail);

	rail_stats_inc(&rvt_server.stats, RVT_STAT_GONE);
	rvt_event(&rvt_server);
	queue_work(rvt_server.wq, &listener->unlisten);
}

static const struct rail_listener_ops rvt_listener_ops = {
	.request = rvt_listener_request,
	.gone = rvt_listener_gone,
};

static int rvt_listen(struct net *net, const char *text)
{
	struct rvt_listener *listener;
	struct sockaddr_storage addr;
	int err;

	err = rail_addr_parse(net, text, strlen(text), port, &addr);
	if (err)
		return err;
	if (!rail_addr_port((struct sockaddr *)&addr))
		rail_addr_set_port((struct sockaddr *)&addr, port);
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return -ENOMEM;
	INIT_WORK(&listener->unlisten, rvt_unlisten_work);
	/* Held until it is listed, so that gone() finds it there. */
	mutex_lock(&rvt_listeners_mutex);
	listener->rail = rail_listen(net, &(struct rail_listen) {
		.addr = (struct sockaddr *)&addr,
		.backlog = 128,
		.timeout_ms = timeout,
	}, &rvt_listener_ops, listener);
	err = PTR_ERR_OR_ZERO(listener->rail);
	if (err)
		kfree(listener);
	else
		list_add_tail(&listener->entry, &rvt_listeners);
	mutex_unlock(&rvt_listeners_mutex);
	return err;
}

static void rvt_unlisten_all(void)
{
	struct rvt_listener *listener;

	mutex_lock(&rvt_listeners_mutex);
	while ((listener = list_first_entry_or_null(&rvt_listeners, struct rvt_listener, entry))) {
		list_del_init(&listener->entry);
		mutex_unlock(&rvt_listeners_mutex);
		rail_listener_destroy(listener->rail);
		/* gone() may have queued it; it finds itself off the list. */
		cancel_work_sync(&listener->unlisten);
		kfree(listener);
		mutex_lock(&rvt_listeners_mutex);
	}
	mutex_unlock(&rvt_listeners_mutex);
}

/* ---------------------------------------------------------------- commands, module */

static const struct rvt_option rvt_answer_options[] = {
	{ .name = "reject", .max = 133 },
	{ }
};

/* The next one not answered yet, with a reference, and what to answer. The endpoint may go. */
static struct rail_conn *rvt_unanswered(struct rvt_priv *priv, u8 *rnr)
{
	struct rail_conn *found = NULL;
	struct rvt_ep *ep;

	mutex_lock(&rvt_server.mutex);
	list_for_each_entry(ep, &rvt_server.eps, entry) {
		if (ep->p.defer && rail_conn_state(ep->conn) == RAIL_CONNECTING) {
			ep->p.defer = 0;
			rvt_pack_priv(priv, ep);
			*rnr = ep->p.rnr;
			found = ep->conn;
			rail_conn_get(found);
			break;
		}
	}
	mutex_unlock(&rvt_server.mutex);
	return found;
}

static int rvt_command_answer(char *args)
{
	struct rvt_refusal refusal;
	struct rail_conn *conn;
	struct rvt_priv priv;
	u32 reject = 0;
	u8 rnr;
	int err;

	err = rvt_parse(rvt_answer_options, &reject, args);
	if (err)
		return err;
	rvt_refusal(&refusal, -(int)reject, 0);
	while ((conn = rvt_unanswered(&priv, &rnr))) {
		if (reject)
			rail_conn_reject(conn, &refusal, sizeof(refusal));
		else
			rvt_answer(conn, &priv, rnr);
		rail_conn_put(conn);
	}
	return 0;
}

static int rvt_server_command(struct rvt_side *side, const char *name, char *args)
{
	if (!strcmp(name, "answer"))
		return rvt_command_answer(args);
	if (!strcmp(name, "listen"))
		return rvt_listen(current->nsproxy->net_ns, strim(args));
	if (!strcmp(name, "unlisten")) {
		rvt_unlisten_all();
		return 0;
	}
	return -EINVAL;
}

static const struct rvt_role rvt_server_role = {
	.size = sizeof(struct rvt_sep),
	.passive = true,
	.setup = rvt_server_setup,
	.up = rvt_server_up,
	.message = rvt_server_message,
	.imm = rvt_server_imm,
	.drained = rvt_server_drained,
	.teardown = rvt_server_teardown,
	.command = rvt_server_command,
};

static int rvt_listen_params(void)
{
	char *copy = kstrdup(listen, GFP_KERNEL), *rest = copy, *text;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	while (!err && (text = strsep(&rest, " "))) {
		if (*text)
			err = rvt_listen(&init_net, text);
		if (err)
			pr_err("rail_vtest_server: cannot listen on %s: %pe\n", text, ERR_PTR(err));
	}
	kfree(copy);
	return err;
}

static void rvt_server_stop(void)
{
	rvt_side_stop_commands(&rvt_server);
	rvt_unlisten_all();
	/* A listener that had to go by itself may be at it yet. */
	flush_workqueue(rvt_server.wq);
	rvt_side_exit(&rvt_server);
}

static int __init rvt_server_init(void)
{
	int err;

	err = rvt_side_init(&rvt_server, "server", &rvt_server_role);
	if (err)
		return err;
	err = rvt_listen_params();
	if (err)
		rvt_server_stop();
	return err;
}

static void __exit rvt_server_exit(void)
{
	rvt_server_stop();
}

module_init(rvt_server_init);
module_exit(rvt_server_exit);

MODULE_DESCRIPTION("Serving end of the rail_verbs test pair");
MODULE_LICENSE("GPL");
