// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way of an I/O: a request's data straight to or from the block device.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>

#include "server.h"

static const blk_opf_t srv_opf[] = {
	[RAIL_RNBD_OP_READ] = REQ_OP_READ,
	[RAIL_RNBD_OP_WRITE] = REQ_OP_WRITE,
	/* As a bio, a flush is a write of nothing. */
	[RAIL_RNBD_OP_FLUSH] = REQ_OP_WRITE | REQ_PREFLUSH,
	[RAIL_RNBD_OP_DISCARD] = REQ_OP_DISCARD,
	[RAIL_RNBD_OP_SECURE_ERASE] = REQ_OP_SECURE_ERASE,
	[RAIL_RNBD_OP_WRITE_ZEROES] = REQ_OP_WRITE_ZEROES,
};

static blk_opf_t srv_bio_opf(const struct rail_rnbd_req *msg)
{
	blk_opf_t opf = srv_opf[msg->op];

	if (msg->flags & RAIL_RNBD_F_SYNC)
		opf |= REQ_SYNC;
	/* These say something of writes alone. */
	if (rail_rnbd_op_modifies(msg->op)) {
		if (msg->flags & RAIL_RNBD_F_FUA)
			opf |= REQ_FUA;
		if (msg->flags & RAIL_RNBD_F_PREFLUSH)
			opf |= REQ_PREFLUSH;
	}
	if (msg->op == RAIL_RNBD_OP_WRITE_ZEROES && msg->flags & RAIL_RNBD_F_NOUNMAP)
		opf |= REQ_NOUNMAP;
	return opf;
}

/* Any context. The request is RTRS's again with the reply, and the io with it. */
static void srv_end_io(struct bio *bio)
{
	struct srv_io *io = container_of(bio, struct srv_io, bio);
	struct rail_srv_req *req = io->req;
	struct srv_map *map = io->map;
	int error = blk_status_to_errno(bio->bi_status);

	rnbd_count_end(&map->stats, io->op, io->begun);
	if (unlikely(error))
		rail_stats_inc(&map->stats, SRV_N_ERR_DEVICE);
	bio_uninit(bio);
	percpu_ref_put(&map->io);
	rail_srv_reply(req, error);
}

/* The mapping of this id with a reference in map->io, or NULL. */
static struct srv_map *srv_map_get(struct srv_sess *sess, u32 id)
{
	struct srv_map *map;

	rcu_read_lock();
	map = xa_load(&sess->maps, id);
	if (map && !percpu_ref_tryget_live(&map->io))
		map = NULL;
	rcu_read_unlock();
	return map;
}

static u16 srv_prio(u16 prio)
{
	/* What is no class is none of the block layer's business. */
	return IOPRIO_PRIO_CLASS(prio) <= IOPRIO_CLASS_IDLE ? prio : 0;
}

static int srv_check(struct srv_map *map, const struct rail_rnbd_req *msg)
{
	struct block_device *bdev = map->bdev.bdev;
	enum rail_rnbd_reason reason;
	unsigned int block;

	if (srv_may_io(msg->op, map->ro)) {
		rail_stats_inc(&map->stats, SRV_N_ERR_ACCESS);
		pr_warn_ratelimited("session %s: %s is mapped read-only; what would change it is refused\n",
				    map->sess->name, map->path);
		return -EPERM;
	}
	reason = rail_rnbd_io_in_range(msg, bdev_nr_sectors(bdev));
	if (reason) {
		rail_stats_inc(&map->stats, SRV_N_ERR_RANGE);
		pr_warn_ratelimited("session %s: I/O of %u bytes at sector %llu of %s: %s\n",
				    map->sess->name, msg->size, msg->sector, map->path,
				    rail_rnbd_reason_text(reason));
		return -EIO;
	}
	block = bdev_logical_block_size(bdev);
	if (msg->op != RAIL_RNBD_OP_FLUSH &&
	    (((msg->sector << SECTOR_SHIFT) | msg->size) & (block - 1))) {
		rail_stats_inc(&map->stats, SRV_N_ERR_RANGE);
		pr_warn_ratelimited("session %s: I/O of %u bytes at sector %llu of %s, which has blocks of %u bytes\n",
				    map->sess->name, msg->size, msg->sector, map->path, block);
		return -EINVAL;
	}
	return 0;
}

/**
 * srv_io_start - do an I/O
 * @io: with its request; answered now or later
 *
 * Context: process.
 */
void srv_io_start(struct srv_io *io)
{
	struct rail_srv_req *req = io->req;
	struct srv_sess *sess = rail_srv_sess_priv(req->sess);
	bool is_read = req->dir == DMA_TO_DEVICE;
	enum rail_rnbd_reason reason;
	struct rail_rnbd_req msg;
	struct srv_map *map;
	struct bio *bio = &io->bio;
	int error;

	reason = rail_rnbd_io_decode(req->usr, req->usr_len, is_read, req->data_len, &msg);
	if (unlikely(reason)) {
		pr_warn_ratelimited("session %s: I/O refused: %s\n", sess->name,
				    rail_rnbd_reason_text(reason));
		rail_srv_reply(req, -EINVAL);
		return;
	}
	map = srv_map_get(sess, msg.device_id);
	if (unlikely(!map)) {
		rail_srv_reply(req, -ENOTCONN);
		return;
	}
	error = srv_check(map, &msg);
	if (unlikely(error)) {
		percpu_ref_put(&map->io);
		rail_srv_reply(req, error);
		return;
	}
	rnbd_count_begin(&map->stats, &msg);
	io->map = map;
	io->op = msg.op;
	io->begun = ktime_get_ns();
	if (rail_rnbd_op_has_data(msg.op)) {
		/* Only read, as the vector of any bio is once it is submitted. */
		bio_init(bio, map->bdev.bdev, (struct bio_vec *)req->data, req->nr_data,
			 srv_bio_opf(&msg));
		bio->bi_vcnt = req->nr_data;
	} else {
		bio_init(bio, map->bdev.bdev, NULL, 0, srv_bio_opf(&msg));
	}
	bio->bi_iter.bi_size = msg.size;
	bio->bi_iter.bi_sector = msg.op == RAIL_RNBD_OP_FLUSH ? 0 : msg.sector;
	bio->bi_end_io = srv_end_io;
	bio->bi_ioprio = srv_prio(msg.prio);
	submit_bio(bio);
}
