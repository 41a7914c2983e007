// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection's queues: posting, completions, space. The fast path comes first, making and
 * unmaking of the queues after it. What the CM does with a connection stands in cm.c.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "verbs_priv.h"

static_assert(RAIL_STAT_WR_WRITE + IB_WR_RDMA_WRITE_WITH_IMM == RAIL_STAT_WR_WRITE_IMM);
static_assert(RAIL_STAT_WR_WRITE + IB_WR_SEND == RAIL_STAT_WR_SEND);
static_assert(RAIL_STAT_WR_WRITE + IB_WR_SEND_WITH_IMM == RAIL_STAT_WR_SEND_IMM);
static_assert(RAIL_STAT_WR_WRITE + IB_WR_RDMA_READ == RAIL_STAT_WR_READ);

static unsigned int rail_wr_stat(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_READ:
		return RAIL_STAT_WR_WRITE + wr->opcode;
	case IB_WR_SEND_WITH_INV:
		return RAIL_STAT_WR_SEND_INV;
	case IB_WR_LOCAL_INV:
		return RAIL_STAT_WR_LOCAL_INV;
	case IB_WR_REG_MR:
		return RAIL_STAT_WR_REG_MR;
	default:
		return RAIL_STAT_WR_OTHER;
	}
}

/*
 * The driver refused the work requests from @bad on. If that is the whole chain it is the
 * caller's again. If a part is posted, the chain counts as posted; the close work tells the
 * owners of the rest with a flush, as the device would have.
 */
static int rail_post_refused(struct rail_conn *conn, struct rail_chain *chain,
			     const struct ib_send_wr *bad, int err)
{
	const struct ib_send_wr *wr;
	u32 left = 0;

	for (wr = bad; wr; wr = wr->next)
		left++;
	conn->sq.head -= left;
	if (left == chain->n)
		return err;
	for (wr = bad; wr; wr = wr->next) {
		struct rail_cqe *cqe;

		if (wr->wr_cqe == &conn->unsignalled)
			continue;
		cqe = container_of(wr->wr_cqe, struct rail_cqe, cqe);
		cqe->next = conn->orphans;
		conn->orphans = cqe;
	}
	return 0;
}

/* Post lock held. -EAGAIN: no room, or not up yet. */
static int rail_post_locked(struct rail_conn *conn, struct rail_chain *chain)
{
	const struct ib_send_wr *bad = NULL;
	struct rail_stats *stats = &conn->dev->stats;
	struct ib_send_wr *wr;
	bool force;
	u32 pos;
	int err;

	if (unlikely(READ_ONCE(conn->sq.dead)))
		return -ENOTCONN;
	if (WARN_ON_ONCE(!chain->n || chain->n > conn->sq.max_chain))
		return -EINVAL;
	if (unlikely(!conn->open || !rail_sq_take(&conn->sq, chain->n, chain->signalled,
						  &force)))
		return -EAGAIN;

	pos = conn->sq.head - chain->n;
	for (wr = chain->first; wr; wr = wr->next) {
		pos++;
		rail_stats_inc(stats, rail_wr_stat(wr));
		if (wr->send_flags & IB_SEND_SIGNALED) {
			struct rail_cqe *cqe = container_of(wr->wr_cqe, struct rail_cqe, cqe);

			cqe->pos = pos;
			cqe->conn = conn;
		} else {
			wr->wr_cqe = &conn->unsignalled;
		}
	}
	if (force) {
		struct rail_cqe *marker = &conn->markers[conn->next_marker];

		if (++conn->next_marker == conn->nr_markers)
			conn->next_marker = 0;
		marker->pos = pos;
		chain->last->wr_cqe = &marker->cqe;
		chain->last->send_flags |= IB_SEND_SIGNALED;
		rail_stats_inc(stats, RAIL_STAT_FORCED_SIGNALS);
	}
	rail_stats_inc(stats, RAIL_STAT_DOORBELLS);
	rail_hist_record(stats, RAIL_HIST_CHAIN_WRS, chain->n);

	if (unlikely(rail_fault(RAIL_FAULT_POST))) {
		bad = chain->first;
		err = -ENOMEM;
	} else {
		err = ib_post_send(conn->qp, chain->first, &bad);
	}
	if (likely(!err))
		return 0;
	rail_conn_warn(conn, "the device refuses to send (%pe): closing\n", ERR_PTR(err));
	rail_conn_fail(conn, err);
	return rail_post_refused(conn, chain, bad, err);
}

/* Post lock held. Whether rail_serve_waiting() is going to be called; else there is room by now. */
static bool rail_will_be_served(struct rail_conn *conn, u32 n)
{
	return !conn->open || rail_sq_want(&conn->sq, n);
}

/**
 * rail_post - post a chain, or say that there is no room
 * @conn: connection
 * @chain: 1 to max_chain work requests
 *
 * Never overtakes a chain that waits for room.
 *
 * Context: any.
 * Return: 0: posted. -EAGAIN: no room now, or not up yet; ops->space() will be called. -ENOTCONN:
 *	   the connection has no QP yet or is closing. Else the device refused, and it is closing.
 *	   On error nothing was posted and nobody is told of the chain.
 */
int rail_post(struct rail_conn *conn, struct rail_chain *chain)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&conn->post_lock, flags);
	do {
		err = list_empty(&conn->waiting) ? rail_post_locked(conn, chain) : -EAGAIN;
		if (likely(err != -EAGAIN))
			goto out;
		rail_stats_inc(&conn->dev->stats, RAIL_STAT_SQ_FULL);
		conn->space_need = max(conn->space_need, chain->n);
		/* Behind a waiting chain, whoever serves that one sees to space_need too. */
	} while (list_empty(&conn->waiting) && !rail_will_be_served(conn, chain->n));
out:
	spin_unlock_irqrestore(&conn->post_lock, flags);
	return err;
}
EXPORT_SYMBOL_GPL(rail_post);

/* Post lock held. Post, or join those who wait. */
static int rail_post_or_queue(struct rail_conn *conn, struct rail_chain *chain)
{
	int err;

	if (list_empty(&conn->waiting)) {
		do {
			err = rail_post_locked(conn, chain);
			if (likely(err != -EAGAIN))
				return err;
			rail_stats_inc(&conn->dev->stats, RAIL_STAT_SQ_FULL);
		} while (!rail_will_be_served(conn, chain->n));
	} else if (READ_ONCE(conn->sq.dead)) {
		return -ENOTCONN;
	}
	list_add_tail(&chain->entry, &conn->waiting);
	return -EAGAIN;
}

/**
 * rail_post_queued - post a chain as soon as there is room
 * @conn: connection
 * @chain: 1 to max_chain work requests, @chain->failed set; valid until posted
 *
 * Context: any.
 * Return: 0: posted, or waiting for room behind those who came before; chain->failed() is called
 *	   should it never be posted. Errors as for rail_post(), but -EAGAIN.
 */
int rail_post_queued(struct rail_conn *conn, struct rail_chain *chain)
{
	unsigned long flags;
	int err;

	chain->wait = NULL;
	spin_lock_irqsave(&conn->post_lock, flags);
	err = rail_post_or_queue(conn, chain);
	spin_unlock_irqrestore(&conn->post_lock, flags);
	return err == -EAGAIN ? 0 : err;
}
EXPORT_SYMBOL_GPL(rail_post_queued);

/**
 * rail_post_wait - post a chain, sleeping until there is room
 * @conn: connection
 * @chain: 1 to max_chain work requests
 *
 * Context: sleeps; not from a completion on the same connection.
 * Return: 0: posted. Errors as for rail_post(), but -EAGAIN.
 */
int rail_post_wait(struct rail_conn *conn, struct rail_chain *chain)
{
	DECLARE_COMPLETION_ONSTACK(done);
	unsigned long flags;
	int err;

	might_sleep();
	chain->wait = &done;
	spin_lock_irqsave(&conn->post_lock, flags);
	err = rail_post_or_queue(conn, chain);
	spin_unlock_irqrestore(&conn->post_lock, flags);
	if (err != -EAGAIN)
		return err;
	wait_for_completion(&done);
	return chain->err;
}
EXPORT_SYMBOL_GPL(rail_post_wait);

/* A queued chain will never be posted. */
static void rail_chain_fail(struct rail_chain *chain, int err)
{
	if (chain->wait) {
		chain->err = err;
		complete(chain->wait);
	} else {
		chain->failed(chain);
	}
}

/* There may be room again: serve those who wait, in their order. */
static void rail_serve_waiting(struct rail_conn *conn)
{
	struct rail_chain *chain;
	struct completion *wait;
	unsigned long flags;
	bool tell = false;
	int err;

	spin_lock_irqsave(&conn->post_lock, flags);
	WRITE_ONCE(conn->sq.wanted, 0);
	while ((chain = list_first_entry_or_null(&conn->waiting, struct rail_chain, entry))) {
		/* Once posted, only one who sleeps still owns the chain. */
		wait = chain->wait;
		list_del(&chain->entry);
		err = rail_post_locked(conn, chain);
		if (err) {
			list_add(&chain->entry, &conn->waiting);
			/* Dead: the close work tells all who wait. */
			if (err != -EAGAIN || rail_will_be_served(conn, chain->n))
				break;
		} else if (wait) {
			chain->err = 0;
			complete(wait);
		}
	}
	if (!chain && conn->space_need && conn->open &&
	    (rail_sq_space(&conn->sq) >= conn->space_need ||
	     !rail_sq_want(&conn->sq, conn->space_need))) {
		conn->space_need = 0;
		tell = true;
	}
	spin_unlock_irqrestore(&conn->post_lock, flags);
	if (tell && conn->ops->space)
		conn->ops->space(conn);
}

static int rail_wc_reason(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_LOC_PROT_ERR:
	case IB_WC_LOC_ACCESS_ERR:
		return -EACCES;
	case IB_WC_LOC_LEN_ERR:
	case IB_WC_REM_INV_REQ_ERR:
		return -EMSGSIZE;
	default:
		return -EIO;
	}
}

/* The QP is in its error state from here on: nothing more will work. */
static void rail_wc_failed(struct rail_conn *conn, const struct ib_wc *wc, const char *what)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		rail_conn_flushed(conn);
	else if (rail_conn_fail(conn, rail_wc_reason(wc->status)))
		rail_conn_warn(conn, "%s failed: %s (%d, vendor 0x%x): closing\n", what,
			       ib_wc_status_msg(wc->status), wc->status, wc->vendor_err);
}

static void rail_marker_told(struct rail_cqe *cqe, struct ib_wc *wc)
{
}

static void rail_send_told(struct rail_conn *conn, struct ib_wc *wc)
{
	struct rail_cqe *cqe = container_of(wc->wr_cqe, struct rail_cqe, cqe);
	bool wanted;

	rail_stats_inc(&conn->dev->stats, RAIL_STAT_SEND_DONE);
	if (unlikely(wc->status != IB_WC_SUCCESS))
		rail_wc_failed(conn, wc, "a send");
	wanted = rail_sq_complete(&conn->sq, cqe->pos);
	cqe->done(cqe, wc);
	if (unlikely(wanted))
		rail_serve_waiting(conn);
}

static void rail_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rail_cqe *cqe = container_of(wc->wr_cqe, struct rail_cqe, cqe);

	/* A marker cannot be held back: its turn comes again before it was told. */
	if (cqe->done == rail_marker_told || !rail_fault_delay(cqe->conn, wc, rail_send_told))
		rail_send_told(cqe->conn, wc);
}

static void rail_recv_told(struct rail_conn *conn, struct ib_wc *wc)
{
	struct rail_cqe *cqe = container_of(wc->wr_cqe, struct rail_cqe, cqe);

	rail_stats_inc(&conn->dev->stats, RAIL_STAT_RECV_DONE);
	if (unlikely(wc->status != IB_WC_SUCCESS))
		rail_wc_failed(conn, wc, "a receive");
	cqe->done(cqe, wc);
}

static void rail_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rail_conn *conn = container_of(wc->wr_cqe, struct rail_cqe, cqe)->conn;

	if (!rail_fault_delay(conn, wc, rail_recv_told))
		rail_recv_told(conn, wc);
}

/* Only a failure brings us here; a flush is told of by the signalled ones. */
static void rail_unsignalled_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rail_conn *conn = container_of(wc->wr_cqe, struct rail_conn, unsignalled);

	if (wc->status != IB_WC_SUCCESS)
		rail_wc_failed(conn, wc, "an unsignalled work request");
}

/**
 * rail_cqe_init_send - prepare to be told of sends
 * @cqe: who is told
 * @done: see struct rail_cqe
 */
void rail_cqe_init_send(struct rail_cqe *cqe, void (*done)(struct rail_cqe *cqe, struct ib_wc *wc))
{
	cqe->cqe.done = rail_send_done;
	cqe->done = done;
	cqe->conn = NULL;
	cqe->pos = 0;
}
EXPORT_SYMBOL_GPL(rail_cqe_init_send);

/**
 * rail_cqe_init_recv - prepare to be told of receives
 * @cqe: who is told
 * @done: see struct rail_cqe
 */
void rail_cqe_init_recv(struct rail_cqe *cqe, void (*done)(struct rail_cqe *cqe, struct ib_wc *wc))
{
	cqe->cqe.done = rail_recv_done;
	cqe->done = done;
	cqe->conn = NULL;
	cqe->pos = 0;
}
EXPORT_SYMBOL_GPL(rail_cqe_init_recv);

/**
 * rail_chain_splice - append a list of linked work requests
 * @chain: the chain
 * @first: first of the list; linked by @next
 * @cqe: told of the last one's end; NULL: none is signalled
 *
 * For what the kernel's rdma_rw builds.
 */
void rail_chain_splice(struct rail_chain *chain, struct ib_send_wr *first, struct rail_cqe *cqe)
{
	struct ib_send_wr *wr, *next;

	for (wr = first; wr; wr = next) {
		next = wr->next;
		if (!next && cqe)
			rail_chain_add_signalled(chain, wr, cqe);
		else
			rail_chain_add(chain, wr);
	}
}
EXPORT_SYMBOL_GPL(rail_chain_splice);

/**
 * rail_post_recvs - post receives
 * @conn: connection whose QP exists: from ops->created() on
 * @batch: at least one; in all no more than recv_depth may be outstanding
 *
 * Context: any.
 * Return: 0: each will be told of; if the device took a part only, the rest with a flush before
 *	   ops->drained(). -ENOTCONN: the connection is closing. Else the device refused, and the
 *	   connection is closing. On error nothing was posted and nobody is told.
 */
int rail_post_recvs(struct rail_conn *conn, struct rail_recv_batch *batch)
{
	struct rail_stats *stats = &conn->dev->stats;
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr *wr;
	unsigned long flags;
	int err = -ENOTCONN;

	for (wr = batch->first; wr; wr = wr->next)
		container_of(wr->wr_cqe, struct rail_cqe, cqe)->conn = conn;

	spin_lock_irqsave(&conn->recv_lock, flags);
	if (unlikely(conn->recv_dead))
		goto out;
	if (unlikely(rail_fault(RAIL_FAULT_RECV))) {
		bad = batch->first;
		err = -ENOMEM;
	} else {
		err = ib_post_recv(conn->qp, batch->first, &bad);
	}
	rail_stats_inc(stats, RAIL_STAT_RECV_DOORBELLS);
	rail_stats_add(stats, RAIL_STAT_RECV_POSTED, batch->n);
	if (likely(!err))
		goto out;
	rail_conn_warn(conn, "the device refuses receives (%pe): closing\n", ERR_PTR(err));
	rail_conn_fail(conn, err);
	if (bad != batch->first) {
		err = 0;
		for (; bad; bad = bad->next) {
			struct rail_cqe *cqe = container_of(bad->wr_cqe, struct rail_cqe, cqe);

			cqe->next = conn->recv_orphans;
			conn->recv_orphans = cqe;
		}
	}
out:
	spin_unlock_irqrestore(&conn->recv_lock, flags);
	return err;
}
EXPORT_SYMBOL_GPL(rail_post_recvs);

/**
 * rail_conn_poll - work on the completions of a connection with RAIL_POLL_DIRECT
 * @conn: connection that was up
 * @budget: how many at the most
 *
 * Context: any but irq. Only one at a time polls; another one gets 0.
 * Return: how many were worked on.
 */
int rail_conn_poll(struct rail_conn *conn, int budget)
{
	int done = 0;

	if (test_and_set_bit_lock(RAIL_POLLING, &conn->polling))
		return 0;
	if (likely(!READ_ONCE(conn->sq.dead)))
		done = ib_process_cq_direct(conn->cq, budget);
	clear_bit_unlock(RAIL_POLLING, &conn->polling);
	/* Either we see that it is dead, or the one who drains sees the bit clear. */
	smp_mb__after_atomic();
	if (unlikely(READ_ONCE(conn->sq.dead)))
		wake_up_bit(&conn->polling, RAIL_POLLING);
	return done;
}
EXPORT_SYMBOL_GPL(rail_conn_poll);

/* ---------------------------------------------------------------- making and unmaking */

/**
 * rail_conn_init_queues - what posting needs before there is a QP
 * @conn: new connection
 */
void rail_conn_init_queues(struct rail_conn *conn)
{
	spin_lock_init(&conn->post_lock);
	spin_lock_init(&conn->recv_lock);
	INIT_LIST_HEAD(&conn->waiting);
	conn->unsignalled.done = rail_unsignalled_done;
	conn->sq.dead = true;
	conn->recv_dead = true;
}

/**
 * rail_post_open - the QP can send: post what waits
 * @conn: connection
 *
 * Context: handler lock held. Should the connection be closing by now, the close work, which waits
 * for the handler lock, shuts it again.
 */
void rail_post_open(struct rail_conn *conn)
{
	spin_lock_irq(&conn->post_lock);
	conn->open = true;
	spin_unlock_irq(&conn->post_lock);
	rail_serve_waiting(conn);
}

/**
 * rail_post_shut - no more posting, and tell everybody who waits for room
 * @conn: connection that is closing
 *
 * Context: close work.
 */
void rail_post_shut(struct rail_conn *conn)
{
	struct rail_chain *chain, *next;
	LIST_HEAD(waiting);
	bool tell;

	spin_lock_irq(&conn->post_lock);
	WRITE_ONCE(conn->sq.dead, true);
	list_splice_init(&conn->waiting, &waiting);
	tell = conn->space_need;
	conn->space_need = 0;
	spin_unlock_irq(&conn->post_lock);

	spin_lock_irq(&conn->recv_lock);
	conn->recv_dead = true;
	spin_unlock_irq(&conn->recv_lock);

	list_for_each_entry_safe(chain, next, &waiting, entry)
		rail_chain_fail(chain, -ENOTCONN);
	if (tell && conn->ops->space)
		conn->ops->space(conn);
}

static void rail_tell_orphans(struct rail_conn *conn, struct rail_cqe *cqe)
{
	struct rail_cqe *next;

	for (; cqe; cqe = next) {
		struct ib_wc wc = {
			.wr_cqe = &cqe->cqe,
			.status = IB_WC_WR_FLUSH_ERR,
			.qp = conn->qp,
		};

		next = cqe->next;
		cqe->done(cqe, &wc);
	}
}

/**
 * rail_conn_drain - wait until everything that was posted has been told of
 * @conn: connection that is shut and has a QP
 *
 * Context: close work; sleeps.
 */
void rail_conn_drain(struct rail_conn *conn)
{
	ib_drain_qp(conn->qp);
	/* With a direct CQ the owner's poller may still be at it. */
	wait_on_bit_lock(&conn->polling, RAIL_POLLING, TASK_UNINTERRUPTIBLE);
	rail_faults_wait(conn);
	/* Shut, so nobody adds any more. */
	rail_tell_orphans(conn, conn->orphans);
	rail_tell_orphans(conn, conn->recv_orphans);
}

static void rail_qp_event(struct ib_event *event, void *context)
{
	struct rail_conn *conn = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* A message came before the peer's ready-to-use: that will do as one. */
		rdma_notify(conn->cm_id, IB_EVENT_COMM_EST);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		if (rail_conn_fail(conn, -EIO))
			rail_conn_warn(conn, "QP %s: closing\n", ib_event_msg(event->event));
		break;
	default:
		break;
	}
}

/* A shared one's queue is the kernel's choice. */
static bool rail_cq_shared(const struct rail_conn *conn)
{
	return conn->poll != RAIL_POLL_DIRECT && conn->poll != RAIL_POLL_UNBOUND;
}

static struct ib_cq *rail_cq_get(struct rail_conn *conn, u32 nr_cqe, int vector)
{
	static const enum ib_poll_context context[] = {
		[RAIL_POLL_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[RAIL_POLL_WORKQUEUE] = IB_POLL_WORKQUEUE,
		[RAIL_POLL_UNBOUND] = IB_POLL_UNBOUND_WORKQUEUE,
	};
	struct ib_device *ib = conn->dev->ib;
	struct ib_cq *cq;

	if (rail_cq_shared(conn))
		return ib_cq_pool_get(ib, nr_cqe, vector, context[conn->poll]);
	if (conn->poll == RAIL_POLL_DIRECT)
		return ib_alloc_cq(ib, conn, nr_cqe, max(vector, 0) % ib->num_comp_vectors,
				   IB_POLL_DIRECT);
	cq = vector < 0 ? ib_alloc_cq_any(ib, conn, nr_cqe, context[conn->poll]) :
			  ib_alloc_cq(ib, conn, nr_cqe, vector % ib->num_comp_vectors,
				      context[conn->poll]);
	/*
	 * Nothing has completed yet. The kernel's own queue has a higher priority than the threads
	 * that completions wake: its worker would interrupt them for each one, where this lets
	 * them gather.
	 */
	if (!IS_ERR(cq))
		cq->comp_wq = rail_cq_wq;
	return cq;
}

static void rail_cq_put(struct rail_conn *conn)
{
	if (rail_cq_shared(conn))
		ib_cq_pool_put(conn->cq, conn->nr_cqe);
	else
		ib_free_cq(conn->cq);
	conn->cq = NULL;
}

static int rail_make_markers(struct rail_conn *conn)
{
	u32 i, n = conn->sq.depth / conn->sq.interval + 2;

	if (rail_fault(RAIL_FAULT_ALLOC))
		return -ENOMEM;
	conn->markers = kvcalloc(n, sizeof(*conn->markers), GFP_KERNEL);
	if (!conn->markers)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		rail_cqe_init_send(&conn->markers[i], rail_marker_told);
		conn->markers[i].conn = conn;
	}
	conn->nr_markers = n;
	return 0;
}

/**
 * rail_make_queues - make the QP the owner wants
 * @conn: connection with a device
 * @attr: as filled in by the owner
 *
 * Context: handler lock held; sleeps.
 * Return: 0 or an error; then there is nothing to unmake.
 */
int rail_make_queues(struct rail_conn *conn, const struct rail_qp_attr *attr)
{
	const struct ib_device_attr *dev = &conn->dev->ib->attrs;
	u32 max_chain = attr->max_chain ?: 1;
	struct ib_qp_init_attr init = {
		.event_handler = rail_qp_event,
		.qp_context = conn,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.port_num = conn->cm_id->port_num,
	};
	u32 depth;
	int err;

	if (!attr->pd || attr->pd->dev != conn->dev || !attr->send_depth || !attr->recv_depth ||
	    attr->poll > RAIL_POLL_DIRECT)
		return -EINVAL;

	/* One more each way, with which ib_drain_qp() finds the end, and one for the probe. */
	init.cap.max_send_wr = min_t(u32, attr->send_depth + 2, dev->max_qp_wr);
	init.cap.max_recv_wr = attr->recv_depth + 1;
	init.cap.max_send_sge = attr->max_send_sge ?: 1;
	init.cap.max_recv_sge = attr->max_recv_sge ?: 1;
	init.cap.max_rdma_ctxs = attr->rw_ctxs;
	if (init.cap.max_recv_wr > dev->max_qp_wr || init.cap.max_send_sge > conn->dev->max_sge ||
	    init.cap.max_recv_sge > conn->dev->max_recv_sge) {
		rail_conn_warn(conn, "device %s has no room for %u receives of %u pieces, sends of %u pieces\n",
			       dev_name(&conn->dev->ib->dev), attr->recv_depth,
			       init.cap.max_recv_sge, init.cap.max_send_sge);
		return -EINVAL;
	}

	conn->poll = attr->poll;
	/* rdma_rw adds up to three work requests a context: register, transfer, invalidate. */
	depth = init.cap.max_send_wr - 1 + 3 * attr->rw_ctxs;
	conn->nr_cqe = depth + 1 + init.cap.max_recv_wr;
	if (conn->nr_cqe > dev->max_cqe) {
		rail_conn_warn(conn, "device %s has no room for %u completions\n",
			       dev_name(&conn->dev->ib->dev), conn->nr_cqe);
		return -EINVAL;
	}
	conn->cq = rail_fault(RAIL_FAULT_ALLOC) ? ERR_PTR(-ENOMEM) :
		   rail_cq_get(conn, conn->nr_cqe, attr->comp_vector);
	if (IS_ERR(conn->cq)) {
		err = PTR_ERR(conn->cq);
		conn->cq = NULL;
		return err;
	}
	init.send_cq = conn->cq;
	init.recv_cq = conn->cq;

	err = rail_fault(RAIL_FAULT_ALLOC) ? -ENOMEM :
	      rdma_create_qp(conn->cm_id, attr->pd->ib, &init);
	if (err)
		goto put_cq;
	/* It is what rdma_rw and the device made of it; the CQ has room for what we asked for. */
	err = rail_sq_init(&conn->sq, min(init.cap.max_send_wr - 1, depth), max_chain,
			   attr->signal_interval);
	if (err)
		goto destroy_qp;
	err = rail_make_markers(conn);
	if (err)
		goto destroy_qp;
	rail_pd_get(attr->pd);
	conn->pd = attr->pd;
	conn->qp = conn->cm_id->qp;
	spin_lock_irq(&conn->recv_lock);
	conn->recv_dead = false;
	spin_unlock_irq(&conn->recv_lock);
	spin_lock_irq(&conn->post_lock);
	WRITE_ONCE(conn->sq.dead, false);
	spin_unlock_irq(&conn->post_lock);
	return 0;

destroy_qp:
	rdma_destroy_qp(conn->cm_id);
put_cq:
	rail_cq_put(conn);
	return err;
}

/**
 * rail_unmake_queues - destroy the QP and what belongs to it
 * @conn: drained connection
 *
 * Context: close work; sleeps.
 */
void rail_unmake_queues(struct rail_conn *conn)
{
	rdma_destroy_qp(conn->cm_id);
	conn->qp = NULL;
	rail_cq_put(conn);
	kvfree(conn->markers);
	conn->markers = NULL;
	rail_pd_put(conn->pd);
	conn->pd = NULL;
}
