// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: a connection with its buffers, the data messages it sends and checks, and the window
 * that keeps the peer's receives from running out. The roles add requests and chunks.
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "rail_vtest.h"

/* Receives are posted again in batches of so many. */
#define RVT_RECV_BATCH	8
/* Messages that are under no window: credits and those about the run. */
#define RVT_RECV_CTL	12
/* Units of a stream. */
#define RVT_STREAM_UNITS 16

/**
 * rvt_ep_fail - close a connection because something is wrong
 * @ep: the endpoint
 * @stat: what is counted for it
 * @err: reason
 */
void rvt_ep_fail(struct rvt_ep *ep, enum rvt_stat stat, int err)
{
	rvt_count(ep, stat);
	rail_conn_close(ep->conn, err);
}
EXPORT_SYMBOL_GPL(rvt_ep_fail);

/* ---------------------------------------------------------------- messages about the run */

static void rvt_ctl_send(struct rvt_ep *ep, enum rvt_ctl_kind kind)
{
	static const enum rvt_type types[RVT_NR_CTLS] = {
		[RVT_CTL_CREDIT] = RVT_CREDIT,
		[RVT_CTL_START] = RVT_START,
		[RVT_CTL_FIN] = RVT_FIN,
		[RVT_CTL_FIN_ACK] = RVT_FIN_ACK,
	};
	struct rvt_unit *unit = &ep->ctl[kind].unit;
	struct rvt_hdr *hdr = rvt_unit_begin(unit, types[kind]);

	switch (kind) {
	case RVT_CTL_START:
		hdr->seq = cpu_to_le64(ep->back);
		hdr->size = cpu_to_le32(ep->back_size);
		hdr->seed = cpu_to_le64(rvt_mix(ep->tx_seed));
		break;
	case RVT_CTL_FIN:
		hdr->seq = cpu_to_le64(ep->tx_count);
		break;
	case RVT_CTL_FIN_ACK:
		hdr->seq = cpu_to_le64(ep->ack_count);
		hdr->op = cpu_to_le32(ep->ack_wrong);
		break;
	default:
		break;
	}
	rvt_unit_end(unit, 0, true);
	rvt_unit_queue(unit);
}

/**
 * rvt_ep_ctl - send a message about the run
 * @ep: an endpoint that is up
 * @kind: which one; its content stands in @ep
 *
 * Context: any but irq.
 */
void rvt_ep_ctl(struct rvt_ep *ep, enum rvt_ctl_kind kind)
{
	struct rvt_ctl *ctl = &ep->ctl[kind];
	bool busy;

	spin_lock_bh(&ep->lock);
	busy = ctl->busy;
	ctl->again = busy;
	ctl->busy = true;
	spin_unlock_bh(&ep->lock);
	if (!busy)
		rvt_ctl_send(ep, kind);
}
EXPORT_SYMBOL_GPL(rvt_ep_ctl);

static void rvt_ctl_done(struct rvt_unit *unit, int err)
{
	struct rvt_ctl *ctl = container_of(unit, struct rvt_ctl, unit);
	struct rvt_ep *ep = unit->ep;
	bool again;

	if (err)
		return;
	spin_lock_bh(&ep->lock);
	again = ctl->again;
	ctl->again = false;
	ctl->busy = again;
	spin_unlock_bh(&ep->lock);
	if (again)
		rvt_ctl_send(ep, ctl - ep->ctl);
}

/* ---------------------------------------------------------------- sending data */

static void rvt_stream_kick(struct rvt_stream *stream)
{
	if (READ_ONCE(stream->active))
		queue_work(stream->ep->side->wq, &stream->work);
}

static void rvt_kick(struct rvt_ep *ep)
{
	u32 i;

	for (i = 0; i < ep->nr_streams; i++)
		rvt_stream_kick(&ep->streams[i]);
	if (ep->side->role->kick)
		ep->side->role->kick(ep);
}

/*
 * What was posted up to this unit is complete: those that nobody is told of can be used again. Of
 * the others we hear yet, even if it is late, as a test fault can have it.
 */
static void rvt_stream_done(struct rvt_unit *unit, int err)
{
	struct rvt_stream *stream = unit->stream;
	struct rvt_unit *earlier, *next;
	struct rvt_ep *ep = unit->ep;
	bool starved;

	if (err)
		return;
	spin_lock_bh(&ep->lock);
	list_for_each_entry_safe(earlier, next, &stream->inflight, entry) {
		if (earlier == unit)
			break;
		if (!earlier->signalled)
			list_move_tail(&earlier->entry, &stream->free);
	}
	list_move_tail(&unit->entry, &stream->free);
	starved = stream->starved;
	stream->starved = false;
	spin_unlock_bh(&ep->lock);
	if (starved)
		rvt_stream_kick(stream);
}

static struct rvt_unit *rvt_stream_unit(struct rvt_stream *stream, bool *last)
{
	struct rvt_ep *ep = stream->ep;
	struct rvt_unit *unit = NULL;

	spin_lock_bh(&ep->lock);
	if (ep->tx_sent - ep->tx_acked >= ep->p.window) {
		ep->tx_blocked = true;
	} else if (list_empty(&stream->free)) {
		stream->starved = true;
	} else {
		unit = list_first_entry(&stream->free, struct rvt_unit, entry);
		list_move_tail(&unit->entry, &stream->inflight);
		*last = list_empty(&stream->free);
		ep->tx_sent++;
	}
	spin_unlock_bh(&ep->lock);
	return unit;
}

static struct rvt_unit *rvt_stream_build(struct rvt_stream *stream)
{
	struct rvt_ep *ep = stream->ep;
	u64 seed = rvt_mix(ep->tx_seed + ((u64)stream->index << 56) + stream->next);
	struct rvt_unit *unit;
	struct rvt_hdr *hdr;
	bool last;

	unit = rvt_stream_unit(stream, &last);
	if (!unit)
		return NULL;
	/* The last one left has to bring the others back, and the very last one to end the run. */
	if (++stream->since >= ep->p.signal || stream->next + 1 == stream->count)
		last = true;
	if (last)
		stream->since = 0;
	hdr = rvt_unit_begin(unit, RVT_DATA);
	hdr->stream = stream->index;
	hdr->seq = cpu_to_le64(stream->next);
	hdr->seed = cpu_to_le64(seed);
	rvt_unit_end(unit, (seed >> 20) % (ep->tx_size + 1), last);
	return unit;
}

static void rvt_stream_work(struct work_struct *work)
{
	struct rvt_stream *stream = container_of(work, struct rvt_stream, work);
	struct rvt_ep *ep = stream->ep;
	int err = 0;

	while (READ_ONCE(stream->active)) {
		if (stream->next == stream->count) {
			WRITE_ONCE(stream->active, false);
			if (!atomic_dec_and_test(&ep->tx_left))
				return;
			rvt_ep_ctl(ep, RVT_CTL_FIN);
			return;
		}
		if (!stream->ready)
			stream->ready = rvt_stream_build(stream);
		if (!stream->ready)
			return;
		switch (stream->post) {
		case RVT_POST_TRY:
			err = rvt_unit_try(stream->ready);
			break;
		case RVT_POST_QUEUED:
			rvt_unit_queue(stream->ready);
			break;
		default:
			err = rvt_unit_wait(stream->ready);
			break;
		}
		if (err)
			return;
		stream->ready = NULL;
		stream->next++;
		rvt_count(ep, RVT_STAT_SENT);
		cond_resched();
	}
}

/**
 * rvt_ep_send_run - send a run of data messages
 * @ep: an endpoint that is up and has no such run under way
 * @count: how many messages
 * @size: bytes of pattern in each at the most
 * @seed: makes their content
 *
 * Context: any but irq.
 */
void rvt_ep_send_run(struct rvt_ep *ep, u64 count, u32 size, u64 seed)
{
	u32 i;

	ep->tx_count = count;
	ep->tx_size = size;
	ep->tx_seed = seed;
	atomic_set(&ep->tx_left, ep->nr_streams);
	for (i = 0; i < ep->nr_streams; i++) {
		struct rvt_stream *stream = &ep->streams[i];

		stream->next = 0;
		stream->count = count / ep->nr_streams + (i < count % ep->nr_streams);
		stream->since = 0;
		WRITE_ONCE(stream->active, true);
		rvt_stream_kick(stream);
	}
}
EXPORT_SYMBOL_GPL(rvt_ep_send_run);

/**
 * rvt_ep_part_done - something our run waited for is done
 * @ep: the endpoint
 */
void rvt_ep_part_done(struct rvt_ep *ep)
{
	if (!atomic_dec_and_test(&ep->parts))
		return;
	rvt_count(ep, RVT_STAT_RUNS);
	rvt_event(ep->side);
}
EXPORT_SYMBOL_GPL(rvt_ep_part_done);

/* ---------------------------------------------------------------- receiving */

static void rvt_credit(struct rvt_ep *ep)
{
	bool send;

	spin_lock_bh(&ep->lock);
	send = ep->rx_consumed - ep->rx_told >= max(ep->p.window / 2, 1U);
	if (send)
		ep->rx_told = ep->rx_consumed;
	spin_unlock_bh(&ep->lock);
	if (!send)
		return;
	rvt_count(ep, RVT_STAT_CREDITS);
	rvt_ep_ctl(ep, RVT_CTL_CREDIT);
}

static bool rvt_post_recvs(struct rvt_ep *ep, struct rail_recv_batch *batch)
{
	u32 n = batch->n;

	if (!n)
		return true;
	atomic_add(n, &ep->recvs_out);
	if (!rail_post_recvs(ep->conn, batch))
		return true;
	atomic_sub(n, &ep->recvs_out);
	return false;
}

static void rvt_recv_again(struct rvt_recv *recv, bool data)
{
	struct rail_recv_batch batch;
	struct rvt_ep *ep = recv->ep;
	struct rvt_recv *next;

	rail_buf_for_device(recv->buf, rail_buf_pool_size(ep->rx_pool));
	rail_recv_batch_init(&batch);
	spin_lock_bh(&ep->lock);
	list_add_tail(&recv->entry, &ep->spent);
	if (++ep->nr_spent >= RVT_RECV_BATCH) {
		while ((next = list_first_entry_or_null(&ep->spent, struct rvt_recv, entry))) {
			list_del_init(&next->entry);
			rail_recv_batch_add(&batch, &next->wr, &next->cqe);
		}
		ep->nr_spent = 0;
	}
	if (data)
		ep->rx_consumed++;
	spin_unlock_bh(&ep->lock);
	if (rvt_post_recvs(ep, &batch) && data)
		rvt_credit(ep);
}

/* Return: false if the peer claims to have taken more than was sent. */
static bool rvt_acked(struct rvt_ep *ep, u32 consumed)
{
	bool good = true, blocked = false;
	u32 news, i;

	spin_lock_bh(&ep->lock);
	news = consumed - ep->tx_acked;
	if ((s32)news > 0) {
		good = news <= ep->tx_sent - ep->tx_acked;
		if (good) {
			ep->tx_acked = consumed;
			blocked = ep->tx_blocked;
			ep->tx_blocked = false;
		}
	}
	spin_unlock_bh(&ep->lock);
	if (blocked)
		for (i = 0; i < ep->nr_streams; i++)
			rvt_stream_kick(&ep->streams[i]);
	return good;
}

static void rvt_data(struct rvt_ep *ep, const struct rvt_hdr *hdr, u32 len)
{
	bool order, content;

	content = rvt_matches(hdr + 1, len, le64_to_cpu(hdr->seed), 0);
	spin_lock_bh(&ep->lock);
	order = le64_to_cpu(hdr->seq) == ep->rx_next[hdr->stream];
	ep->rx_next[hdr->stream] = le64_to_cpu(hdr->seq) + 1;
	ep->rx_run++;
	if (!order || !content)
		ep->rx_wrong++;
	spin_unlock_bh(&ep->lock);
	rvt_count(ep, RVT_STAT_RECEIVED);
	rail_stats_add(&ep->side->stats, RVT_STAT_BYTES, len);
	if (!order)
		rvt_count(ep, RVT_STAT_BAD_ORDER);
	if (!content)
		rvt_count(ep, RVT_STAT_BAD_CONTENT);
}

/* The peer's run is over: tell it what came. */
static void rvt_fin(struct rvt_ep *ep, const struct rvt_hdr *hdr)
{
	u64 count;

	spin_lock_bh(&ep->lock);
	count = ep->rx_run;
	ep->ack_count = count;
	ep->ack_wrong = ep->rx_wrong;
	ep->rx_run = 0;
	ep->rx_wrong = 0;
	memset(ep->rx_next, 0, sizeof(ep->rx_next));
	spin_unlock_bh(&ep->lock);
	rvt_ep_ctl(ep, RVT_CTL_FIN_ACK);
	if (count != le64_to_cpu(hdr->seq))
		rvt_count(ep, RVT_STAT_BAD_COUNT);
	if (!ep->back)
		return;
	if (count != ep->back)
		rvt_count(ep, RVT_STAT_BAD_COUNT);
	ep->back = 0;
	rvt_ep_part_done(ep);
}

static void rvt_fin_ack(struct rvt_ep *ep, const struct rvt_hdr *hdr)
{
	if (le64_to_cpu(hdr->seq) != ep->tx_count || hdr->op)
		rvt_count(ep, RVT_STAT_BAD_COUNT);
	if (!ep->passive)
		rvt_ep_part_done(ep);
}

static int rvt_start(struct rvt_ep *ep, const struct rvt_hdr *hdr)
{
	if (!ep->passive || atomic_read(&ep->tx_left) || le32_to_cpu(hdr->size) > ep->p.msg)
		return -EPROTO;
	rvt_ep_send_run(ep, le64_to_cpu(hdr->seq), le32_to_cpu(hdr->size),
			le64_to_cpu(hdr->seed));
	return 0;
}

static int rvt_message(struct rvt_ep *ep, struct rvt_recv *recv, bool *data)
{
	const struct rvt_hdr *hdr = recv->buf->addr;
	u32 key = 0;

	if (recv->wc.byte_len < sizeof(*hdr)) {
		rvt_count(ep, RVT_STAT_BAD_HEADER);
		return -EMSGSIZE;
	}
	rail_buf_for_cpu(recv->buf, recv->wc.byte_len);
	if (!rvt_hdr_good(hdr)) {
		rvt_count(ep, RVT_STAT_BAD_HEADER);
		return -EBADMSG;
	}
	if (recv->wc.byte_len - sizeof(*hdr) != le32_to_cpu(hdr->len)) {
		rvt_count(ep, RVT_STAT_BAD_HEADER);
		return -EMSGSIZE;
	}
	if (hdr->stream >= RVT_MAX_STREAMS || !rvt_acked(ep, le32_to_cpu(hdr->consumed)))
		return -EPROTO;
	if (recv->wc.wc_flags & IB_WC_WITH_INVALIDATE)
		key = recv->wc.ex.invalidate_rkey;
	switch (hdr->type) {
	case RVT_DATA:
		*data = true;
		rvt_data(ep, hdr, le32_to_cpu(hdr->len));
		return 0;
	case RVT_CREDIT:
		return 0;
	case RVT_START:
		return rvt_start(ep, hdr);
	case RVT_FIN:
		rvt_fin(ep, hdr);
		return 0;
	case RVT_FIN_ACK:
		rvt_fin_ack(ep, hdr);
		return 0;
	default:
		return ep->side->role->message(ep, hdr, key);
	}
}

static void rvt_recv_handle(struct rvt_recv *recv)
{
	struct rvt_ep *ep = recv->ep;
	bool data = false;
	int err;

	if (recv->wc.opcode == IB_WC_RECV_RDMA_WITH_IMM)
		err = ep->side->role->imm(ep, be32_to_cpu(recv->wc.ex.imm_data));
	else
		err = rvt_message(ep, recv, &data);
	if (err)
		rvt_ep_fail(ep, RVT_STAT_PROTOCOL, err);
	rvt_recv_again(recv, data);
}

static void rvt_recv_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rvt_recv *recv = container_of(cqe, struct rvt_recv, cqe);
	struct rvt_ep *ep = recv->ep;
	bool early;

	if (READ_ONCE(ep->dead))
		rvt_count(ep, RVT_STAT_LATE_CALL);
	if (atomic_dec_return(&ep->recvs_out) < 0)
		rvt_count(ep, RVT_STAT_TOLD_TWICE);
	if (wc->status != IB_WC_SUCCESS)
		return;
	recv->wc = *wc;
	spin_lock_bh(&ep->lock);
	early = !ep->up;
	if (early)
		list_add_tail(&recv->entry, &ep->early);
	spin_unlock_bh(&ep->lock);
	if (!early)
		rvt_recv_handle(recv);
}

/* Handle what came before the connection was up, in order, and let the rest come. */
static void rvt_recv_open(struct rvt_ep *ep)
{
	struct rvt_recv *recv;

	for (;;) {
		spin_lock_bh(&ep->lock);
		recv = list_first_entry_or_null(&ep->early, struct rvt_recv, entry);
		if (recv)
			list_del_init(&recv->entry);
		else
			ep->up = true;
		spin_unlock_bh(&ep->lock);
		if (!recv)
			return;
		rvt_recv_handle(recv);
	}
}

static int rvt_poller(void *arg)
{
	struct rvt_ep *ep = arg;

	while (!kthread_should_stop()) {
		if (rail_conn_poll(ep->conn, 16) > 0)
			cond_resched();
		else
			usleep_range(50, 100);
	}
	return 0;
}

/* ---------------------------------------------------------------- set-up and tear-down */

static int rvt_recvs_alloc(struct rvt_ep *ep)
{
	const struct rvt_params *p = &ep->p;
	struct rail_recv_batch batch;
	u32 i;

	ep->rx_pool = rail_buf_pool_create(ep->dom->pd, sizeof(struct rvt_hdr) + p->msg,
					   ep->nr_recvs, DMA_FROM_DEVICE, ep->dom->dev->node);
	if (IS_ERR(ep->rx_pool))
		return PTR_ERR(ep->rx_pool);
	ep->recvs = kcalloc(ep->nr_recvs, sizeof(*ep->recvs), GFP_KERNEL);
	if (!ep->recvs)
		return -ENOMEM;
	rail_recv_batch_init(&batch);
	for (i = 0; i < ep->nr_recvs; i++) {
		struct rvt_recv *recv = &ep->recvs[i];

		recv->ep = ep;
		recv->buf = rail_buf_get(ep->rx_pool);
		if (!recv->buf)
			return -ENOMEM;
		rail_cqe_init_recv(&recv->cqe, rvt_recv_done);
		recv->wr.sg_list = &recv->buf->sge;
		recv->wr.num_sge = 1;
		rail_buf_for_device(recv->buf, rail_buf_pool_size(ep->rx_pool));
		rail_recv_batch_add(&batch, &recv->wr, &recv->cqe);
	}
	/* A connection that was closed meanwhile is no failure of ours. */
	return rvt_post_recvs(ep, &batch) ? 0 : -ENOTCONN;
}

static int rvt_streams_alloc(struct rvt_ep *ep)
{
	u32 i, k;
	int err;

	ep->streams = kcalloc(ep->p.streams, sizeof(*ep->streams), GFP_KERNEL);
	if (!ep->streams)
		return -ENOMEM;
	for (i = 0; i < ep->p.streams; i++) {
		struct rvt_stream *stream = &ep->streams[i];

		stream->ep = ep;
		stream->index = i;
		INIT_WORK(&stream->work, rvt_stream_work);
		INIT_LIST_HEAD(&stream->free);
		INIT_LIST_HEAD(&stream->inflight);
		stream->post = ep->p.post == RVT_POST_MIX ? i % RVT_POST_MIX : ep->p.post;
		ep->nr_streams++;
		stream->units = kvcalloc(RVT_STREAM_UNITS, sizeof(*stream->units), GFP_KERNEL);
		if (!stream->units)
			return -ENOMEM;
		stream->nr_units = RVT_STREAM_UNITS;
		for (k = 0; k < stream->nr_units; k++) {
			err = rvt_unit_init(&stream->units[k], ep, ep->p.sges - 1, rvt_stream_done);
			if (err)
				return err;
			stream->units[k].stream = stream;
			list_add_tail(&stream->units[k].entry, &stream->free);
		}
	}
	return 0;
}

static int rvt_units_alloc(struct rvt_ep *ep)
{
	const struct rvt_params *p = &ep->p;
	int node = ep->dom->dev->node;
	u32 heads = p->streams * RVT_STREAM_UNITS + 3 * p->tags + p->chunks + 8;
	u32 pieces = (p->streams * RVT_STREAM_UNITS + p->chunks + 1) * (p->sges - 1);
	int i, err;

	/* Twice a header, for messages that are longer than they may be. */
	ep->head_pool = rail_buf_pool_create(ep->dom->pd, 2 * sizeof(struct rvt_hdr), heads,
					     DMA_TO_DEVICE, node);
	if (IS_ERR(ep->head_pool))
		return PTR_ERR(ep->head_pool);
	ep->piece_pool = rail_buf_pool_create(ep->dom->pd, DIV_ROUND_UP(p->msg, p->sges - 1),
					      pieces, DMA_TO_DEVICE, node);
	if (IS_ERR(ep->piece_pool))
		return PTR_ERR(ep->piece_pool);
	for (i = 0; i < RVT_NR_CTLS; i++) {
		err = rvt_unit_init(&ep->ctl[i].unit, ep, 0, rvt_ctl_done);
		if (err)
			return err;
	}
	return rvt_streams_alloc(ep);
}

static void rvt_streams_free(struct rvt_ep *ep)
{
	u32 i, k;

	for (i = 0; i < ep->nr_streams; i++) {
		for (k = 0; k < ep->streams[i].nr_units; k++)
			rvt_unit_free(&ep->streams[i].units[k]);
		kvfree(ep->streams[i].units);
	}
	kfree(ep->streams);
}

static void rvt_pool_free(struct rail_buf_pool *pool)
{
	if (!IS_ERR_OR_NULL(pool))
		rail_buf_pool_destroy(pool);
}

static void rvt_ep_teardown(struct rvt_ep *ep)
{
	u32 i;

	if (ep->poller)
		kthread_stop(ep->poller);
	for (i = 0; i < ep->nr_streams; i++) {
		WRITE_ONCE(ep->streams[i].active, false);
		cancel_work_sync(&ep->streams[i].work);
	}
	if (ep->side->role->work)
		cancel_work_sync(&ep->work);
	ep->side->role->teardown(ep);
	rvt_streams_free(ep);
	for (i = 0; i < RVT_NR_CTLS; i++)
		rvt_unit_free(&ep->ctl[i].unit);
	for (i = 0; ep->recvs && i < ep->nr_recvs; i++)
		if (ep->recvs[i].buf)
			rail_buf_put(ep->recvs[i].buf);
	kfree(ep->recvs);
	/* Not before: a stream that is refused counts up and down again. */
	if (atomic_read(&ep->told) || atomic_read(&ep->recvs_out))
		rvt_count(ep, RVT_STAT_NOT_TOLD);
	rvt_pool_free(ep->rx_pool);
	rvt_pool_free(ep->head_pool);
	rvt_pool_free(ep->piece_pool);
	if (ep->dom)
		rvt_dom_put(ep->dom);
}

static void rvt_hold(struct rvt_ep *ep, u32 ms)
{
	struct rvt_side *side = ep->side;
	int before = atomic_read(&side->released);

	if (ms)
		wait_event_idle_timeout(side->waitq, READ_ONCE(side->leaving) ||
					atomic_read(&side->released) != before,
					msecs_to_jiffies(ms));
}

/**
 * rvt_pack_priv - what is told to the peer
 * @priv: where to
 * @ep: the endpoint
 */
void rvt_pack_priv(struct rvt_priv *priv, const struct rvt_ep *ep)
{
	const struct rvt_params *p = &ep->p;

	*priv = (struct rvt_priv) {
		.magic = cpu_to_le32(RVT_MAGIC),
		.group = cpu_to_le32(ep->group),
		.window = cpu_to_le16(p->window),
		.tags = cpu_to_le16(p->tags),
		.chunks = cpu_to_le16(p->chunks),
		.sges = p->sges,
		.streams = p->streams,
		.msg = cpu_to_le32(p->msg),
		.mem = cpu_to_le32(p->mem),
		.tail = cpu_to_le32(RVT_MAGIC),
	};
}
EXPORT_SYMBOL_GPL(rvt_pack_priv);

/**
 * rvt_unpack_priv - what the peer told
 * @params: set accordingly
 * @group: set accordingly
 * @buf: its private data
 * @len: how much of it; may be padded
 *
 * Return: 0, -EMSGSIZE or -EPROTO.
 */
int rvt_unpack_priv(struct rvt_params *params, u32 *group, const void *buf, u8 len)
{
	struct rvt_priv priv;

	if (!buf || len < sizeof(priv))
		return -EMSGSIZE;
	memcpy(&priv, buf, sizeof(priv));
	if (priv.magic != cpu_to_le32(RVT_MAGIC) || priv.tail != priv.magic)
		return -EPROTO;
	*group = le32_to_cpu(priv.group);
	params->window = le16_to_cpu(priv.window);
	params->tags = le16_to_cpu(priv.tags);
	params->chunks = le16_to_cpu(priv.chunks);
	params->sges = priv.sges;
	params->streams = priv.streams;
	params->msg = le32_to_cpu(priv.msg);
	params->mem = le32_to_cpu(priv.mem);
	if (!params->window || params->window > RVT_MAX_WINDOW || !params->tags ||
	    params->tags > RVT_MAX_TAGS || params->chunks > RVT_MAX_TAGS || params->sges < 2 ||
	    params->sges > RVT_MAX_SGE || !params->streams || params->streams > RVT_MAX_STREAMS ||
	    params->msg < RVT_MAX_SGE || params->msg > RVT_MAX_MSG || !params->mem ||
	    params->mem > RVT_MAX_MEM)
		return -EPROTO;
	return 0;
}
EXPORT_SYMBOL_GPL(rvt_unpack_priv);

static int rvt_configure(struct rail_conn *conn, struct rail_qp_attr *attr)
{
	struct rvt_ep *ep = rail_conn_context(conn);
	const struct rvt_params *p = &ep->p;

	if (p->fail_in == RVT_FAIL_CONFIGURE)
		return -EPERM;
	ep->dom = rvt_dom_get(ep->side, rail_conn_dev(conn), ep->group, p);
	if (IS_ERR(ep->dom)) {
		int err = PTR_ERR(ep->dom);

		ep->dom = NULL;
		return err;
	}
	ep->phase = RVT_PHASE_CONFIGURED;
	ep->nr_recvs = p->window + 2 * p->tags + p->chunks + RVT_RECV_BATCH + RVT_RECV_CTL;
	attr->pd = ep->dom->pd;
	attr->send_depth = p->depth;
	attr->max_chain = p->chain;
	attr->signal_interval = p->interval;
	attr->recv_depth = ep->nr_recvs;
	attr->max_send_sge = p->sges;
	attr->max_recv_sge = 1;
	attr->rw_ctxs = ep->passive ? p->rw : 0;
	attr->poll = p->poll;
	attr->comp_vector = -1;
	return 0;
}

static int rvt_created(struct rail_conn *conn)
{
	struct rvt_ep *ep = rail_conn_context(conn);
	int err;

	if (ep->p.fail_in == RVT_FAIL_CREATED)
		return -EPERM;
	err = rvt_units_alloc(ep);
	if (!err)
		err = ep->side->role->setup(ep);
	if (!err)
		err = rvt_recvs_alloc(ep);
	if (err)
		return err;
	if (ep->p.poll == RAIL_POLL_DIRECT) {
		struct task_struct *poller = kthread_run(rvt_poller, ep, "rvt_poll/%u",
							 rail_conn_id(conn));

		if (IS_ERR(poller))
			return PTR_ERR(poller);
		ep->poller = poller;
	}
	ep->phase = RVT_PHASE_CREATED;
	rvt_event(ep->side);
	return 0;
}

static void rvt_established(struct rail_conn *conn, const void *priv, u8 len)
{
	struct rvt_ep *ep = rail_conn_context(conn);
	struct rvt_params theirs = ep->p;
	u32 group;

	if (ep->p.fail_in == RVT_FAIL_ESTABLISHED) {
		rail_conn_close(conn, -EPERM);
		return;
	}
	if (!ep->passive &&
	    (rvt_unpack_priv(&theirs, &group, priv, len) || group != ep->group)) {
		rvt_ep_fail(ep, RVT_STAT_PROTOCOL, -EPROTO);
		return;
	}
	if (ep->p.watch)
		rail_conn_watch_peer(conn, ep->p.watch);
	ep->phase = RVT_PHASE_UP;
	rvt_count(ep, RVT_STAT_UP);
	rvt_recv_open(ep);
	ep->side->role->up(ep);
	rvt_event(ep->side);
}

static void rvt_closing(struct rail_conn *conn, const void *priv, u8 len)
{
	struct rvt_ep *ep = rail_conn_context(conn);
	struct rvt_refusal refusal;

	if (priv && len >= sizeof(refusal)) {
		memcpy(&refusal, priv, sizeof(refusal));
		if (refusal.magic == cpu_to_le32(RVT_MAGIC))
			ep->refusal = -(int)le32_to_cpu(refusal.err);
	}
	rvt_event(ep->side);
	rvt_hold(ep, ep->p.hold_closing);
}

static void rvt_drained(struct rail_conn *conn)
{
	struct rvt_ep *ep = rail_conn_context(conn);

	if (atomic_read(&ep->recvs_out))
		rvt_count(ep, RVT_STAT_NOT_TOLD);
	if (ep->side->role->drained)
		ep->side->role->drained(ep);
	rvt_hold(ep, ep->p.hold_drained);
}

static void rvt_closed(struct rail_conn *conn)
{
	struct rvt_ep *ep = rail_conn_context(conn);

	if (ep->dead)
		rvt_count(ep, RVT_STAT_TOLD_TWICE);
	WRITE_ONCE(ep->dead, true);
	rvt_ep_teardown(ep);
	rvt_count(ep, RVT_STAT_CLOSED);
	queue_work(ep->side->wq, &ep->reap);
}

static void rvt_space(struct rail_conn *conn)
{
	rvt_kick(rail_conn_context(conn));
}

const struct rail_conn_ops rvt_conn_ops = {
	.configure = rvt_configure,
	.created = rvt_created,
	.established = rvt_established,
	.closing = rvt_closing,
	.drained = rvt_drained,
	.closed = rvt_closed,
	.space = rvt_space,
};
EXPORT_SYMBOL_GPL(rvt_conn_ops);

/* Only when closed() has returned may the module go: so the last reference is put here. */
static void rvt_reap(struct work_struct *work)
{
	struct rvt_ep *ep = container_of(work, struct rvt_ep, reap);
	struct rvt_side *side = ep->side;
	struct rvt_past *past;

	rail_conn_wait_closed(ep->conn);
	mutex_lock(&side->mutex);
	list_del(&ep->entry);
	past = &side->past[side->nr_past++ % RVT_HISTORY];
	past->id = rail_conn_id(ep->conn);
	past->reason = rail_conn_reason(ep->conn);
	past->refusal = ep->refusal;
	past->phase = ep->phase;
	mutex_unlock(&side->mutex);
	/* Off the list, nobody can queue it any more; what was queued late does nothing. */
	if (side->role->work)
		cancel_work_sync(&ep->work);
	rail_conn_put(ep->conn);
	kfree(ep);
	rvt_event(side);
}

/**
 * rvt_ep_create - make an endpoint that has no connection yet
 * @side: whose
 * @params: its options
 * @group: the client's session
 * @passive: made for a peer's request
 *
 * Return: the endpoint or an ERR_PTR.
 */
struct rvt_ep *rvt_ep_create(struct rvt_side *side, const struct rvt_params *params, u32 group,
			     bool passive)
{
	struct rvt_ep *ep = kzalloc(side->role->size, GFP_KERNEL);

	if (!ep)
		return ERR_PTR(-ENOMEM);
	ep->side = side;
	ep->p = *params;
	ep->group = group;
	ep->passive = passive;
	INIT_LIST_HEAD(&ep->entry);
	INIT_LIST_HEAD(&ep->early);
	INIT_LIST_HEAD(&ep->spent);
	if (side->role->work)
		INIT_WORK(&ep->work, side->role->work);
	INIT_WORK(&ep->reap, rvt_reap);
	spin_lock_init(&ep->lock);
	return ep;
}
EXPORT_SYMBOL_GPL(rvt_ep_create);

/**
 * rvt_ep_discard - free an endpoint that got no connection
 * @ep: the endpoint
 */
void rvt_ep_discard(struct rvt_ep *ep)
{
	kfree(ep);
}
EXPORT_SYMBOL_GPL(rvt_ep_discard);

/**
 * rvt_ep_link - give an endpoint its connection; it ends by the connection's end from now on
 * @ep: the endpoint
 * @conn: connection whose owner it is; a reference on it goes with it
 *
 * Context: side->mutex held.
 */
void rvt_ep_link(struct rvt_ep *ep, struct rail_conn *conn)
{
	ep->conn = conn;
	ep->phase = RVT_PHASE_ASKED;
	list_add_tail(&ep->entry, &ep->side->eps);
}
EXPORT_SYMBOL_GPL(rvt_ep_link);
