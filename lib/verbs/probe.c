// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is the peer still there? A peer that dies in silence leaves an idle connection, or one that waits
 * for an answer, looking up for ever. A zero-length RDMA Write takes no receive at the peer and is
 * acknowledged by its NIC, however busy its CPU is.
 */
#include "verbs_priv.h"

static void rail_probe_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rail_conn *conn = container_of(cqe, struct rail_conn, probe_cqe);

	WRITE_ONCE(conn->probing, false);
}

static void rail_probe_failed(struct rail_chain *chain)
{
	struct rail_conn *conn = container_of(chain, struct rail_conn, probe_chain);

	WRITE_ONCE(conn->probing, false);
}

static void rail_probe_work(struct work_struct *work)
{
	struct rail_conn *conn = container_of(to_delayed_work(work), struct rail_conn, probe);
	u32 tail = READ_ONCE(conn->sq.tail);

	if (!READ_ONCE(conn->probing)) {
		conn->probing = true;
		rail_chain_init(&conn->probe_chain);
		rail_chain_add_signalled(&conn->probe_chain, &conn->probe_wr.wr, &conn->probe_cqe);
		if (rail_post_queued(conn, &conn->probe_chain))
			return;
	} else if (tail == conn->probe_tail) {
		/* Not even what was posted before it was acknowledged meanwhile. */
		if (rail_conn_fail(conn, -ETIMEDOUT)) {
			rail_conn_warn(conn, "no sign of life for %u ms: closing\n",
				       conn->probe_ms);
			rail_stats_inc(&conn->dev->stats, RAIL_STAT_SILENT_PEERS);
		}
		return;
	}
	conn->probe_tail = tail;
	queue_delayed_work(rail_wq, &conn->probe, msecs_to_jiffies(conn->probe_ms / 2));
}

/**
 * rail_conn_init_probe - what the probe needs before it is asked for
 * @conn: new connection
 */
void rail_conn_init_probe(struct rail_conn *conn)
{
	INIT_DELAYED_WORK(&conn->probe, rail_probe_work);
	rail_cqe_init_send(&conn->probe_cqe, rail_probe_done);
	conn->probe_wr.wr.opcode = IB_WR_RDMA_WRITE;
	conn->probe_chain.failed = rail_probe_failed;
}

/**
 * rail_conn_watch_peer - close the connection when the peer is silent
 * @conn: connection, once, within ops->established()
 * @timeout_ms: how long the peer's NIC may acknowledge nothing; then the connection closes
 *		with -ETIMEDOUT
 *
 * A peer that is slow, or owes an answer, is not silent.
 */
void rail_conn_watch_peer(struct rail_conn *conn, unsigned int timeout_ms)
{
	conn->probe_ms = timeout_ms;
	queue_delayed_work(rail_wq, &conn->probe, msecs_to_jiffies(timeout_ms / 2));
}
EXPORT_SYMBOL_GPL(rail_conn_watch_peer);
