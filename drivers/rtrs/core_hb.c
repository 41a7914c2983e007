// SPDX-License-Identifier: GPL-2.0-only
/* Heartbeats. The rules stand in rtrs.h. */
#include <linux/export.h>
#include "rtrs.h"

static int hb_send(struct rail_conn *conn, bool ack)
{
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data = cpu_to_be32(rail_rtrs_imm_hb(ack)),
	};
	struct rail_chain chain;

	rail_chain_init(&chain);
	rail_chain_add(&chain, &wr.wr);
	return rail_post(conn, &chain);
}

static void hb_work(struct work_struct *work)
{
	struct rail_hb *hb = container_of(to_delayed_work(work), struct rail_hb, work);

	if (READ_ONCE(hb->seen)) {
		WRITE_ONCE(hb->seen, false);
		hb->missed = 0;
	} else if (++hb->missed >= READ_ONCE(hb->missed_max)) {
		hb->dead(hb);
		return;
	}
	/* Set first: the acknowledgment may be faster than we return. Where no room was, nothing is
	 * lost: there is plenty of other traffic then, or the path is closing.
	 */
	WRITE_ONCE(hb->sent_ns, ktime_get_ns());
	if (hb_send(hb->conn, false))
		WRITE_ONCE(hb->sent_ns, 0);
	queue_delayed_work(hb->wq, &hb->work, msecs_to_jiffies(READ_ONCE(hb->interval_ms)));
}

/**
 * rail_hb_init - prepare a heartbeat, with the protocol's interval and limit
 * @hb: the heartbeat
 * @wq: where it runs
 * @dead: see struct rail_hb
 */
void rail_hb_init(struct rail_hb *hb, struct workqueue_struct *wq,
		  void (*dead)(struct rail_hb *hb))
{
	INIT_DELAYED_WORK(&hb->work, hb_work);
	hb->wq = wq;
	hb->conn = NULL;
	hb->dead = dead;
	hb->interval_ms = RAIL_RTRS_HB_INTERVAL_MS;
	hb->missed_max = RAIL_RTRS_HB_MISSED_MAX;
	hb->latency_ns = 0;
	hb->acked = 0;
}
EXPORT_SYMBOL_GPL(rail_hb_init);

/**
 * rail_hb_start - begin to beat, the first time at once
 * @hb: a stopped heartbeat
 * @conn: connection 0, up; the caller keeps it until rail_hb_stop() returned
 *
 * Context: any.
 */
void rail_hb_start(struct rail_hb *hb, struct rail_conn *conn)
{
	hb->missed = 0;
	hb->sent_ns = 0;
	hb->latency_ns = 0;
	WRITE_ONCE(hb->acked, 0);
	WRITE_ONCE(hb->seen, true);
	WRITE_ONCE(hb->conn, conn);
	queue_delayed_work(hb->wq, &hb->work, 0);
}
EXPORT_SYMBOL_GPL(rail_hb_start);

/**
 * rail_hb_stop - beat no more
 * @hb: the heartbeat, started or not
 *
 * Context: sleeps; not from hb->dead().
 */
void rail_hb_stop(struct rail_hb *hb)
{
	cancel_delayed_work_sync(&hb->work);
	WRITE_ONCE(hb->conn, NULL);
}
EXPORT_SYMBOL_GPL(rail_hb_stop);

/**
 * rail_hb_received - a heartbeat or its acknowledgment came
 * @hb: the heartbeat
 * @ack: it is the acknowledgment
 *
 * Before rail_hb_start() nothing is answered.
 *
 * Context: connection 0's completions; the caller keeps the connection until they are over.
 */
void rail_hb_received(struct rail_hb *hb, bool ack)
{
	struct rail_conn *conn = READ_ONCE(hb->conn);
	u64 sent;

	rail_hb_seen(hb);
	if (!ack) {
		if (conn)
			hb_send(conn, true);
		return;
	}
	sent = READ_ONCE(hb->sent_ns);
	/* One that nobody asked for says nothing. */
	if (!sent)
		return;
	WRITE_ONCE(hb->sent_ns, 0);
	WRITE_ONCE(hb->latency_ns, ktime_get_ns() - sent);
	WRITE_ONCE(hb->acked, hb->acked + 1);
}
EXPORT_SYMBOL_GPL(rail_hb_received);

/**
 * rail_hb_ask - ask the peer for a sign of life, out of turn
 * @conn: connection 0, up
 *
 * Context: any.
 * Return: 0 or an error; -EAGAIN: there is no room, so that other traffic is on its way.
 */
int rail_hb_ask(struct rail_conn *conn)
{
	return hb_send(conn, false);
}
EXPORT_SYMBOL_GPL(rail_hb_ask);
