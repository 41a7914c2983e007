// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions of the server, and the messages that are no I/O.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib.h>

#include <rail/addr.h>

#include "server.h"

/* ---- messages ---- */

/* Appends to an answer the sizes that are news to the client; as many as there is room for. */
static u16 srv_sizes(struct srv_sess *sess, struct rail_rnbd_size *sizes, u16 max)
{
	struct srv_map *map;
	unsigned long id;
	u16 n = 0;

	mutex_lock(&srv_lock);
	xa_for_each(&sess->maps, id, map) {
		u64 sectors = bdev_nr_sectors(map->bdev.bdev);

		/* From the first change on always, for the answer may get lost. */
		map->resized |= sectors != map->told_sectors;
		if (!map->resized)
			continue;
		if (n == max)
			break;
		rail_rnbd_size_encode(&sizes[n++], map->id, sectors);
	}
	mutex_unlock(&srv_lock);
	return n;
}

static int srv_info(struct srv_sess *sess, struct rail_srv_req *req)
{
	size_t len = sizeof(struct rail_rnbd_sess_info);
	enum rail_rnbd_reason reason;
	u16 flags, count, max = 0;
	void *rsp;
	int error;
	u8 ver;

	reason = rail_rnbd_sess_info_decode(req->usr, req->usr_len, req->data_len, &ver);
	if (reason) {
		pr_warn_ratelimited("session %s: SESS_INFO refused: %s\n", sess->name,
				    rail_rnbd_reason_text(reason));
		return -EINVAL;
	}
	if (rail_rnbd_ext_decode(req->usr, req->usr_len, &flags, &count) &&
	    flags & RAIL_RNBD_EXT_SIZES)
		max = min_t(u32, (req->data_len - len) / sizeof(struct rail_rnbd_size), U16_MAX);
	rsp = kzalloc(len + max * sizeof(struct rail_rnbd_size), GFP_KERNEL);
	if (!rsp)
		return -ENOMEM;
	rail_rnbd_sess_info_encode(rsp, true, ver);
	/* To others these are zeros, as to them. */
	if (rail_rnbd_ext_decode(req->usr, req->usr_len, &flags, &count)) {
		count = srv_sizes(sess, rsp + len, max);
		rail_rnbd_ext_encode(rsp, RAIL_RNBD_EXT_SIZES, count);
		len += count * sizeof(struct rail_rnbd_size);
	}
	error = rail_srv_req_put_data(req, rsp, len);
	kfree(rsp);
	return error;
}

static int srv_open(struct srv_sess *sess, struct rail_srv_req *req)
{
	struct rail_rnbd_opening opening;
	struct rail_rnbd_open_rsp rsp;
	struct rail_rnbd_device info;
	enum rail_rnbd_reason reason;
	int error;

	reason = rail_rnbd_open_decode(req->usr, req->usr_len, req->data_len, &opening);
	if (reason) {
		pr_warn_ratelimited("session %s: OPEN refused: %s\n", sess->name,
				    rail_rnbd_reason_text(reason));
		return -EINVAL;
	}
	error = srv_map_open(sess, &opening, &info);
	if (error)
		return error;
	rail_rnbd_open_rsp_encode(&rsp, &info);
	return rail_srv_req_put_data(req, &rsp, sizeof(rsp));
}

static int srv_close(struct srv_sess *sess, struct rail_srv_req *req)
{
	enum rail_rnbd_reason reason;
	struct srv_map *map;
	bool mine;
	u32 id;

	reason = rail_rnbd_close_decode(req->usr, req->usr_len, &id);
	if (reason) {
		pr_warn_ratelimited("session %s: CLOSE refused: %s\n", sess->name,
				    rail_rnbd_reason_text(reason));
		return -EINVAL;
	}
	mutex_lock(&srv_lock);
	map = xa_load(&sess->maps, id);
	mine = map && srv_map_doom(map);
	mutex_unlock(&srv_lock);
	if (!mine)
		return -ENOTCONN;
	srv_map_end(map);
	return 0;
}

static void srv_message(struct work_struct *work)
{
	struct srv_io *io = container_of(work, struct srv_io, work);
	struct rail_srv_req *req = io->req;
	struct srv_sess *sess = rail_srv_sess_priv(req->sess);
	enum rail_rnbd_type type;
	int error = -EINVAL;

	if (!rail_rnbd_type_decode(req->usr, req->usr_len, req->dir == DMA_TO_DEVICE, &type)) {
		if (type == RAIL_RNBD_SESS_INFO)
			error = srv_info(sess, req);
		else if (type == RAIL_RNBD_OPEN)
			error = srv_open(sess, req);
		else if (type == RAIL_RNBD_CLOSE)
			error = srv_close(sess, req);
	}
	rail_srv_reply(req, error);
}

static void srv_request(struct rail_srv_sess *rtrs, struct rail_srv_req *req)
{
	struct srv_sess *sess = rail_srv_sess_priv(rtrs);
	enum rail_rnbd_reason reason;
	enum rail_rnbd_type type;
	struct srv_io *io;

	if (WARN_ON_ONCE(req->id >= sess->queue_depth)) {
		rail_srv_reply(req, -EINVAL);
		return;
	}
	io = &sess->ios[req->id];
	io->req = req;
	reason = rail_rnbd_type_decode(req->usr, req->usr_len, req->dir == DMA_TO_DEVICE, &type);
	if (unlikely(reason)) {
		pr_warn_ratelimited("session %s: message refused: %s\n", sess->name,
				    rail_rnbd_reason_text(reason));
		rail_srv_reply(req, -EINVAL);
		return;
	}
	if (likely(type == RAIL_RNBD_IO)) {
		srv_io_start(io);
		return;
	}
	/* A device may take its time to open, and the connection has other work meanwhile. */
	INIT_WORK(&io->work, srv_message);
	queue_work(srv_wq, &io->work);
}

/* ---- sessions ---- */

/* srv_lock held, or the session not yet known. */
static int srv_add_addr(struct srv_sess *sess, const struct sockaddr *addr)
{
	struct sockaddr_storage *addrs, new = {};
	unsigned int i;

	switch (addr->sa_family) {
	case AF_INET:
		memcpy(&new, addr, sizeof(struct sockaddr_in));
		break;
	case AF_INET6:
		memcpy(&new, addr, sizeof(struct sockaddr_in6));
		break;
	default:
		memcpy(&new, addr, sizeof(struct sockaddr_ib));
	}
	/* It is of one connection. */
	rail_addr_set_port((struct sockaddr *)&new, 0);
	for (i = 0; i < sess->nr_addrs; i++)
		if (rail_addr_equal((struct sockaddr *)&sess->addrs[i], (struct sockaddr *)&new))
			return 0;
	if (sess->nr_addrs == RAIL_SRV_MAX_ADDRS)
		return -ENOSPC;
	addrs = krealloc(sess->addrs, (sess->nr_addrs + 1) * sizeof(*addrs), GFP_KERNEL);
	if (!addrs)
		return -ENOMEM;
	addrs[sess->nr_addrs++] = new;
	sess->addrs = addrs;
	return 0;
}

static void srv_sess_release(struct kref *ref)
{
	struct srv_sess *sess = container_of(ref, struct srv_sess, refs);

	xa_destroy(&sess->maps);
	kfree(sess->addrs);
	kfree(sess->name);
	kvfree(sess);
}

/**
 * srv_sess_put - drop a reference
 * @sess: the session
 *
 * Context: process.
 */
void srv_sess_put(struct srv_sess *sess)
{
	kref_put(&sess->refs, srv_sess_release);
}

static int srv_sess_up(void *context, struct rail_srv_sess *rtrs)
{
	unsigned int depth = rail_srv_sess_queue_depth(rtrs);
	struct srv_sess *sess;
	int error = -ENOMEM;

	sess = kvzalloc(struct_size(sess, ios, depth), GFP_KERNEL);
	if (!sess)
		return -ENOMEM;
	kref_init(&sess->refs);
	sess->rtrs = rtrs;
	sess->queue_depth = depth;
	xa_init_flags(&sess->maps, XA_FLAGS_ALLOC);
	/* See "Ids" in the header. */
	sess->next = get_random_u32() & INT_MAX;
	sess->name = kstrdup(rail_srv_sess_name(rtrs), GFP_KERNEL);
	if (sess->name)
		error = srv_add_addr(sess, rail_srv_sess_addr(rtrs));
	if (error) {
		srv_sess_put(sess);
		return error;
	}
	rail_srv_sess_set_priv(rtrs, sess);
	return 0;
}

static void srv_sess_down(void *context, struct rail_srv_sess *rtrs)
{
	struct srv_sess *sess = rail_srv_sess_priv(rtrs);
	struct srv_map *map;
	unsigned long id;

	mutex_lock(&srv_lock);
	sess->closed = true;
	for (;;) {
		id = 0;
		map = xa_find(&sess->maps, &id, ULONG_MAX, XA_PRESENT);
		if (!map)
			break;
		/* What is in there is not closing, and no new ones come. */
		srv_map_doom(map);
		mutex_unlock(&srv_lock);
		srv_map_end(map);
		mutex_lock(&srv_lock);
	}
	mutex_unlock(&srv_lock);
	srv_sess_put(sess);
}

static int srv_path_up(struct rail_srv_sess *rtrs, const struct sockaddr *src)
{
	struct srv_sess *sess = rail_srv_sess_priv(rtrs);
	char text[RAIL_ADDR_STRLEN];
	struct srv_map *map;
	unsigned long id;
	int error = 0;

	mutex_lock(&srv_lock);
	xa_for_each(&sess->maps, id, map) {
		if (!map->export || srv_export_admits(map->export, sess->name, src))
			continue;
		rail_addr_print(text, sizeof(text), src);
		pr_warn_ratelimited("session %s: a path from %s is refused, for %s is mapped and not for that address; mkdir its allowed_clients/%s to allow it\n",
				    sess->name, text, map->path, text);
		error = -EACCES;
		break;
	}
	if (!error)
		error = srv_add_addr(sess, src);
	mutex_unlock(&srv_lock);
	return error;
}

const struct rail_srv_ops srv_ops = {
	.sess_up	= srv_sess_up,
	.sess_down	= srv_sess_down,
	.request	= srv_request,
	.path_up	= srv_path_up,
};
