// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of an I/O: blk-mq request to RTRS and back.
 */
#include <linux/blk-mq.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/scatterlist.h>

#include "client.h"

/* In cli_req.permit: the request is over; whoever holds its permit at the moment puts it. */
#define PERMIT_TO_PUT	((struct rail_clt_permit *)1)

#define CANCEL_INTERVAL_MS	20

static void cli_fill(struct rail_clt_io *io, void *usr)
{
	struct cli_req *req = container_of(io, struct cli_req, io);
	struct cli_dev *dev = req->dev;
	u32 id = RAIL_CLI_NO_ID;

	/* Pairs with the release in cli_sess_open_dev(): OPEN is seen with its id. */
	if (likely(smp_load_acquire(&dev->state) == CLI_OPEN))
		id = READ_ONCE(dev->id);
	req->msg.device_id = id;
	rail_rnbd_io_encode(usr, &req->msg);
}

static void cli_count_done(struct cli_req *req, int error)
{
	struct rail_stats *stats = &req->dev->stats;

	rnbd_count_end(stats, req->msg.op, req->begun);
	if (likely(!error))
		return;
	switch (error) {
	case -ENOLINK:
		rail_stats_inc(stats, CLI_N_ERR_PATH);
		break;
	case -ENOTCONN:
		rail_stats_inc(stats, CLI_N_ERR_CLOSED);
		break;
	case -ECANCELED:
	case -ESHUTDOWN:
		rail_stats_inc(stats, CLI_N_ERR_CANCELLED);
		break;
	default:
		rail_stats_inc(stats, CLI_N_ERR_SERVER);
	}
}

/* RTRS is through with the request. Any context. */
static void cli_done(struct rail_clt_io *io, int error)
{
	struct cli_req *req = container_of(io, struct cli_req, io);
	struct rail_clt_permit *permit;

	if (unlikely(error == -ENOTCONN))
		cli_sess_lost_id(req->dev, req->msg.device_id);
	cli_count_done(req, error);
	req->status = errno_to_blk_status(error);
	/* NULL: cli_cancel_rq() has it and puts it. */
	permit = xchg(&req->permit, PERMIT_TO_PUT);
	if (likely(permit))
		rail_clt_permit_put(permit);
	blk_mq_complete_request(blk_mq_rq_from_pdu(req));
}

static void cli_complete_rq(struct request *rq)
{
	struct cli_req *req = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, req->status);
}

/* false: an operation that RNBD does not have. */
static bool cli_encode(struct request *rq, struct rail_rnbd_req *msg)
{
	enum req_op op = req_op(rq);

	switch (op) {
	case REQ_OP_READ:
		msg->op = RAIL_RNBD_OP_READ;
		break;
	case REQ_OP_WRITE:
		msg->op = RAIL_RNBD_OP_WRITE;
		break;
	case REQ_OP_FLUSH:
		msg->op = RAIL_RNBD_OP_FLUSH;
		break;
	case REQ_OP_DISCARD:
		msg->op = RAIL_RNBD_OP_DISCARD;
		break;
	case REQ_OP_SECURE_ERASE:
		msg->op = RAIL_RNBD_OP_SECURE_ERASE;
		break;
	case REQ_OP_WRITE_ZEROES:
		msg->op = RAIL_RNBD_OP_WRITE_ZEROES;
		break;
	default:
		return false;
	}
	msg->sector = op == REQ_OP_FLUSH ? 0 : blk_rq_pos(rq);
	msg->size = op == REQ_OP_FLUSH ? 0 : blk_rq_bytes(rq);
	msg->prio = req_get_ioprio(rq);
	msg->flags = 0;
	if (op_is_sync(rq->cmd_flags))
		msg->flags |= RAIL_RNBD_F_SYNC;
	if (rq->cmd_flags & REQ_FUA)
		msg->flags |= RAIL_RNBD_F_FUA;
	if (rq->cmd_flags & REQ_PREFLUSH)
		msg->flags |= RAIL_RNBD_F_PREFLUSH;
	if (op == REQ_OP_WRITE_ZEROES && rq->cmd_flags & REQ_NOUNMAP)
		msg->flags |= RAIL_RNBD_F_NOUNMAP;
	return true;
}

static blk_status_t cli_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	struct cli_dev *dev = rq->q->queuedata;
	struct cli_req *req = blk_mq_rq_to_pdu(rq);
	struct cli_sess *sess = dev->sess;
	bool poll = hctx->type == HCTX_TYPE_POLL;
	struct rail_clt_permit *permit;

	if (unlikely(READ_ONCE(dev->state) >= CLI_CLOSED))
		return BLK_STS_IOERR;
	if (unlikely(!cli_encode(rq, &req->msg)))
		return BLK_STS_NOTSUPP;
	permit = rail_clt_permit_get(sess->clt, poll ? RAIL_CLT_POLL : 0);
	if (unlikely(!permit)) {
		/* Messages have them all. The block layer asks again in a moment. */
		rail_stats_inc(&dev->stats, CLI_N_NO_PERMIT);
		return BLK_STS_RESOURCE;
	}
	blk_mq_start_request(rq);
	req->dev = dev;
	req->begun = ktime_get_ns();
	req->io.dir = rail_rnbd_op_is_read(req->msg.op) ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	req->io.nents = 0;
	req->io.len = 0;
	if (rail_rnbd_op_has_data(req->msg.op)) {
		req->io.nents = rail_blk_rq_map_sg(rq, req->sg);
		req->io.len = req->msg.size;
	}
	if (poll) {
		req->io.queue = hctx->queue_num - sess->limits->nr_queues;
		rail_stats_inc(&dev->stats, CLI_N_POLLED);
	}
	rnbd_count_begin(&dev->stats, &req->msg);
	WRITE_ONCE(req->permit, permit);
	rail_clt_submit(permit, &req->io);
	return BLK_STS_OK;
}

static int cli_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	struct cli_dev *dev = hctx->queue->queuedata;
	struct cli_sess *sess = dev->sess;

	return rail_clt_poll(sess->clt, hctx->queue_num - sess->limits->nr_queues);
}

/* RTRS ends every request by itself, and a disk at the server may be slow. */
static enum blk_eh_timer_return cli_timeout(struct request *rq)
{
	struct cli_req *req = blk_mq_rq_to_pdu(rq);

	rail_stats_inc(&req->dev->stats, CLI_N_OVERDUE);
	return BLK_EH_RESET_TIMER;
}

/*
 * Takes the request's permit for the time being, so that nobody puts it, which would let it become
 * another request's. The iteration has a reference on @rq.
 */
static bool cli_cancel_rq(struct request *rq, void *data)
{
	struct cli_req *req = blk_mq_rq_to_pdu(rq);
	struct cli_dev *dev = data;
	struct rail_clt_permit *permit;

	if (rq->q != dev->disk->queue || !blk_mq_request_started(rq))
		return true;
	dev->outstanding = true;
	permit = READ_ONCE(req->permit);
	if (!permit || permit == PERMIT_TO_PUT || cmpxchg(&req->permit, permit, NULL) != permit)
		return true;
	rail_clt_cancel(permit);
	if (cmpxchg(&req->permit, NULL, permit) == PERMIT_TO_PUT)
		rail_clt_permit_put(permit);
	return true;
}

/**
 * cli_cancel_all - see to it that nothing of a device is outstanding
 * @dev: in state GONE, so that nothing is added
 *
 * Context: process; waits for the server where it has got a request.
 */
void cli_cancel_all(struct cli_dev *dev)
{
	struct request_queue *q = dev->disk->queue;

	/* Whoever saw the old state has submitted by then. */
	blk_mq_quiesce_queue(q);
	blk_mq_unquiesce_queue(q);
	for (;;) {
		dev->outstanding = false;
		blk_mq_tagset_busy_iter(&dev->sess->tags, cli_cancel_rq, dev);
		if (!dev->outstanding)
			break;
		/*
		 * Only what waits for a path can be cancelled. What is on one comes back by itself,
		 * or, when that dies, waits for another: neither is told of.
		 */
		msleep(CANCEL_INTERVAL_MS);
	}
}

static int cli_init_request(struct blk_mq_tag_set *set, struct request *rq, unsigned int hctx,
			    rail_blk_node_t node)
{
	struct cli_sess *sess = container_of(set, struct cli_sess, tags);
	struct cli_req *req = blk_mq_rq_to_pdu(rq);

	req->io.usr_len = sizeof(struct rail_rnbd_io);
	req->io.sg = req->sg;
	req->io.fill = cli_fill;
	req->io.done = cli_done;
	sg_init_table(req->sg, sess->max_segments);
	return 0;
}

/* Which of the session's connections a CPU takes. */
static void cli_map_queues(struct blk_mq_tag_set *set)
{
	struct cli_sess *sess = container_of(set, struct cli_sess, tags);
	struct blk_mq_queue_map *map = set->map;

	map[HCTX_TYPE_DEFAULT].nr_queues = sess->limits->nr_queues;
	map[HCTX_TYPE_DEFAULT].queue_offset = 0;
	blk_mq_map_queues(&map[HCTX_TYPE_DEFAULT]);
	if (set->nr_maps == 1)
		return;
	/* Reads have no queues of their own. */
	map[HCTX_TYPE_READ].nr_queues = 0;
	map[HCTX_TYPE_POLL].nr_queues = sess->limits->nr_poll_queues;
	map[HCTX_TYPE_POLL].queue_offset = sess->limits->nr_queues;
	blk_mq_map_queues(&map[HCTX_TYPE_POLL]);
}

const struct blk_mq_ops cli_mq_ops = {
	.queue_rq	= cli_queue_rq,
	.complete	= cli_complete_rq,
	.timeout	= cli_timeout,
	.poll		= cli_poll,
	.init_request	= cli_init_request,
	.map_queues	= cli_map_queues,
};
