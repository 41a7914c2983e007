// SPDX-License-Identifier: GPL-2.0-only
/*
 * RTRS server: answers that bring no data gather while one after the other is given, and go in one
 * message (struct rail_rtrs_small_rsps) when it is full or the completions at hand are worked on.
 */
#include <linux/slab.h>

#include "server.h"

/* Posted, or never will be. */
static void rsrv_rsps_put(struct rsrv_rsps *rsps)
{
	struct rsrv_conn *conn = rsps->conn;
	unsigned long flags;

	spin_lock_irqsave(&conn->again_lock, flags);
	rsps->n = 0;
	list_add(&rsps->entry, &conn->rsps_free);
	spin_unlock_irqrestore(&conn->again_lock, flags);
}

static void rsrv_rsps_sent(struct rail_cqe *cqe, struct ib_wc *wc)
{
	rsrv_rsps_put(container_of(cqe, struct rsrv_rsps, cqe));
}

static void rsrv_rsps_failed(struct rail_chain *chain)
{
	rsrv_rsps_put(container_of(chain, struct rsrv_rsps, chain));
}

/* Nobody adds to it any more. */
static void rsrv_rsps_post(struct rsrv_rsps *rsps)
{
	rail_buf_for_device(rsps->buf, rsps->buf->sge.length);
	rsps->wr.send_flags = 0;
	rail_chain_init(&rsps->chain);
	rail_chain_add_signalled(&rsps->chain, &rsps->wr, &rsps->cqe);
	/* Where it is refused the connection is closing, and the client asks again elsewhere. */
	if (rail_post_queued(rsps->conn->rail, &rsps->chain))
		rsrv_rsps_put(rsps);
}

static void rsrv_flush_work(struct work_struct *work)
{
	struct rsrv_conn *conn = container_of(work, struct rsrv_conn, flush);
	struct rsrv_rsps *rsps;

	spin_lock_irq(&conn->again_lock);
	rsps = conn->gather;
	conn->gather = NULL;
	spin_unlock_irq(&conn->again_lock);
	if (!rsps)
		return;
	/* A software device's softirq has all there is: it need not wait for ksoftirqd. */
	local_bh_disable();
	rsrv_rsps_post(rsps);
	local_bh_enable();
}

/**
 * rsrv_rsps_add - put an answer to those that gather
 * @conn: connection
 * @rsp: the answer
 *
 * Context: any; the path is not torn down.
 * Return: true: it will be sent. false: every message is under way.
 */
bool rsrv_rsps_add(struct rsrv_conn *conn, u32 rsp)
{
	struct rsrv_rsps *rsps, *full = NULL;
	unsigned long flags;
	bool first = false;

	spin_lock_irqsave(&conn->again_lock, flags);
	rsps = conn->gather;
	if (!rsps) {
		rsps = list_first_entry_or_null(&conn->rsps_free, struct rsrv_rsps, entry);
		if (!rsps) {
			spin_unlock_irqrestore(&conn->again_lock, flags);
			return false;
		}
		list_del(&rsps->entry);
		conn->gather = rsps;
		first = true;
	}
	rsps->buf->sge.length = rail_rtrs_small_rsps_put(rsps->buf->addr, rsps->n, rsp);
	if (++rsps->n == RAIL_RTRS_SMALL_RSPS_MAX) {
		conn->gather = NULL;
		full = rsps;
	}
	spin_unlock_irqrestore(&conn->again_lock, flags);
	if (full)
		rsrv_rsps_post(full);
	else if (first)
		queue_work(rsrv_flush_wq, &conn->flush);
	return true;
}

/**
 * rsrv_rsps_make - make what answers gather in
 * @conn: connection before there is a QP
 *
 * Return: 0 or an error; then rsrv_rsps_free() sees to what there is.
 */
int rsrv_rsps_make(struct rsrv_conn *conn)
{
	struct rail_buf_pool *bufs;
	u32 i;

	bufs = rail_buf_pool_create(conn->path->pd, sizeof(struct rail_rtrs_small_rsps),
				    RSRV_NR_RSPS, DMA_TO_DEVICE, NUMA_NO_NODE);
	if (IS_ERR(bufs))
		return PTR_ERR(bufs);
	conn->rsps_bufs = bufs;
	conn->rsps = kcalloc(RSRV_NR_RSPS, sizeof(*conn->rsps), GFP_KERNEL);
	if (!conn->rsps)
		return -ENOMEM;
	for (i = 0; i < RSRV_NR_RSPS; i++) {
		struct rsrv_rsps *rsps = &conn->rsps[i];

		rsps->conn = conn;
		rsps->buf = rail_buf_get(bufs);
		rsps->wr.opcode = IB_WR_SEND;
		rsps->wr.sg_list = &rsps->buf->sge;
		rsps->wr.num_sge = 1;
		rsps->chain.failed = rsrv_rsps_failed;
		rail_cqe_init_send(&rsps->cqe, rsrv_rsps_sent);
		list_add_tail(&rsps->entry, &conn->rsps_free);
	}
	return 0;
}

/**
 * rsrv_rsps_free - give it back
 * @conn: connection that is closed, or has no QP yet
 *
 * Context: sleeps; nobody adds answers any more.
 */
void rsrv_rsps_free(struct rsrv_conn *conn)
{
	u32 i;

	if (conn->rsps) {
		cancel_work_sync(&conn->flush);
		for (i = 0; i < RSRV_NR_RSPS; i++)
			rail_buf_put(conn->rsps[i].buf);
	}
	kfree(conn->rsps);
	if (conn->rsps_bufs)
		rail_buf_pool_destroy(conn->rsps_bufs);
	conn->rsps = NULL;
	conn->rsps_bufs = NULL;
}

/**
 * rsrv_rsps_init - nothing gathers yet
 * @conn: new connection
 */
void rsrv_rsps_init(struct rsrv_conn *conn)
{
	INIT_LIST_HEAD(&conn->rsps_free);
	INIT_WORK(&conn->flush, rsrv_flush_work);
}
