// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions of the client, and the messages that are no I/O.
 */
#include <linux/net.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/net_namespace.h>

#include <rail/addr.h>

#include "client.h"

DEFINE_MUTEX(cli_lock);

/* All sessions, those included that are being opened or closed; cli_lock. */
static LIST_HEAD(cli_sessions);
/* Woken when a session has left the list. */
static DECLARE_WAIT_QUEUE_HEAD(cli_session_gone);

/* ---- messages ---- */

#define MSG_HDR_MAX	sizeof(struct rail_rnbd_open)

/**
 * struct cli_msg - a message and its answer
 * @io: RTRS's
 * @done: completed when it is over
 * @error: then: what came of it
 * @sg: @data
 * @hdr: user header
 * @data: the answer
 */
struct cli_msg {
	struct rail_clt_io io;
	struct completion done;
	int error;
	struct scatterlist sg;
	u8 hdr[MSG_HDR_MAX];
	u8 data[];
};

static void cli_msg_fill(struct rail_clt_io *io, void *usr)
{
	struct cli_msg *msg = container_of(io, struct cli_msg, io);

	memcpy(usr, msg->hdr, io->usr_len);
}

static void cli_msg_done(struct rail_clt_io *io, int error)
{
	struct cli_msg *msg = container_of(io, struct cli_msg, io);

	msg->error = error;
	complete(&msg->done);
}

static struct cli_msg *cli_msg_alloc(size_t hdr_len, size_t data_len)
{
	struct cli_msg *msg = kzalloc(sizeof(*msg) + data_len, GFP_NOIO);

	if (!msg)
		return NULL;
	init_completion(&msg->done);
	msg->io.dir = data_len ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	msg->io.usr_len = hdr_len;
	msg->io.fill = cli_msg_fill;
	msg->io.done = cli_msg_done;
	msg->io.len = data_len;
	if (data_len) {
		sg_init_one(&msg->sg, msg->data, data_len);
		msg->io.sg = &msg->sg;
		msg->io.nents = 1;
	}
	return msg;
}

static int cli_msg_try(struct cli_sess *sess, struct cli_msg *msg)
{
	struct rail_clt_permit *permit;

	permit = rail_clt_permit_get(sess->clt, RAIL_CLT_ADMIN | RAIL_CLT_WAIT);
	if (!permit)
		return -ENOLINK;
	reinit_completion(&msg->done);
	rail_clt_submit(permit, &msg->io);
	if (wait_for_completion_killable(&msg->done)) {
		rail_clt_cancel(permit);
		wait_for_completion(&msg->done);
	}
	rail_clt_permit_put(permit);
	return msg->error;
}

/*
 * Asks the server and waits. The wait ends with the last path at the latest: while there is another
 * one, it is asked again, for no message does harm when it comes twice. A user who has no patience
 * may kill the task.
 */
static int cli_msg_send(struct cli_sess *sess, struct cli_msg *msg)
{
	int error;

	do
		error = cli_msg_try(sess, msg);
	while (error == -ENOLINK && rail_clt_linked(sess->clt) && !fatal_signal_pending(current));
	return error;
}

static int cli_send_info(struct cli_sess *sess)
{
	size_t len = sizeof(struct rail_rnbd_sess_info);
	enum rail_rnbd_reason reason;
	u16 flags, count;
	struct cli_msg *msg;
	int error;
	u8 ver;

	msg = cli_msg_alloc(len, len);
	if (!msg)
		return -ENOMEM;
	rail_rnbd_sess_info_encode((void *)msg->hdr, false, RAIL_RNBD_VERSION);
	rail_rnbd_ext_encode((void *)msg->hdr, 0, 0);
	error = cli_msg_send(sess, msg);
	if (!error) {
		reason = rail_rnbd_sess_info_rsp_decode(msg->data, len, &ver);
		if (reason) {
			pr_err("session %s: the server's answer to SESS_INFO: %s\n", sess->name,
			       rail_rnbd_reason_text(reason));
			error = -EPROTO;
		}
		rail_rnbd_ext_decode(msg->data, len, &flags, &count);
		WRITE_ONCE(sess->sizes_told, flags & RAIL_RNBD_EXT_SIZES);
	}
	kfree(msg);
	return error;
}

/* ---- new sizes, of a server that tells ---- */

/* So long at most a client does not know of a new size. */
#define SIZES_INTERVAL	(2 * HZ)
/* So many devices with a new size are told of at once. */
#define SIZES_MAX	200

static void cli_new_size(struct cli_sess *sess, u32 id, u64 sectors)
{
	struct cli_dev *dev;

	list_for_each_entry(dev, &sess->devs, entry) {
		if (dev->id != id || READ_ONCE(dev->state) != CLI_OPEN || !dev->disk)
			continue;
		/* What the user wrote to `resize` holds until the server has news. */
		if (dev->told_sectors == sectors)
			return;
		dev->told_sectors = sectors;
		if (set_capacity_and_notify(dev->disk, sectors))
			pr_info("%s: has %llu sectors now, says the server of session %s\n",
				dev->disk->disk_name, sectors, sess->name);
		return;
	}
}

static void cli_ask_sizes(struct cli_sess *sess)
{
	size_t len = sizeof(struct rail_rnbd_sess_info);
	size_t room = len + SIZES_MAX * sizeof(struct rail_rnbd_size);
	u16 flags, count, i;
	struct cli_msg *msg;
	u64 sectors;
	u32 id;
	u8 ver;

	room = min_t(size_t, room, sess->limits->max_io_size);
	msg = cli_msg_alloc(len, room);
	if (!msg)
		return;
	rail_rnbd_sess_info_encode((void *)msg->hdr, false, RAIL_RNBD_VERSION);
	rail_rnbd_ext_encode((void *)msg->hdr, RAIL_RNBD_EXT_SIZES, 0);
	if (!cli_msg_send(sess, msg) &&
	    !rail_rnbd_sess_info_rsp_decode(msg->data, room, &ver) &&
	    rail_rnbd_ext_decode(msg->data, room, &flags, &count))
		for (i = 0; i < count; i++)
			if (!rail_rnbd_size_decode(msg->data, room, i, &id, &sectors))
				cli_new_size(sess, id, sectors);
	kfree(msg);
}

static void cli_sizes_work(struct work_struct *work)
{
	struct cli_sess *sess = container_of(to_delayed_work(work), struct cli_sess, sizes);

	if (READ_ONCE(sess->sizes_told) && rail_clt_linked(sess->clt)) {
		mutex_lock(&sess->lock);
		cli_ask_sizes(sess);
		mutex_unlock(&sess->lock);
	}
	queue_delayed_work(system_long_wq, &sess->sizes, SIZES_INTERVAL);
}

/**
 * cli_sess_open_dev - ask the server for a device
 * @dev: the device; becomes OPEN if the server has it, and else is left as it is
 *
 * Context: process; cli_sess.lock held.
 * Return: 0; what the server answered; -ENOLINK: no path; -EPROTO: an answer without sense;
 *	-EINVAL: not the device it was.
 */
int cli_sess_open_dev(struct cli_dev *dev)
{
	size_t len = sizeof(struct rail_rnbd_open_rsp);
	struct cli_sess *sess = dev->sess;
	struct rail_rnbd_device info;
	enum rail_rnbd_reason reason;
	struct cli_msg *msg;
	int error;

	lockdep_assert_held(&sess->lock);
	msg = cli_msg_alloc(sizeof(struct rail_rnbd_open), len);
	if (!msg)
		return -ENOMEM;
	error = -EINVAL;
	if (rail_rnbd_open_encode((void *)msg->hdr, dev->access, dev->path))
		goto out;
	error = cli_msg_send(sess, msg);
	if (error)
		goto out;
	reason = rail_rnbd_open_rsp_decode(msg->data, len, &info);
	error = -EPROTO;
	if (reason || info.device_id == RAIL_CLI_NO_ID) {
		pr_err("%s of session %s: the server's answer to OPEN: %s\n", dev->path, sess->name,
		       rail_rnbd_reason_text(reason));
		goto out;
	}
	error = -EINVAL;
	if (info.logical_block_size > PAGE_SIZE) {
		/* Older kernels would not refuse it by themselves, but crash. */
		pr_err("%s of session %s has blocks of %u bytes; more than %lu cannot be mapped\n",
		       dev->path, sess->name, info.logical_block_size, PAGE_SIZE);
		goto out;
	}
	error = cli_dev_fits(dev, &info);
	if (error)
		goto out;
	dev->info = info;
	dev->told_sectors = info.nsectors;
	WRITE_ONCE(dev->id, info.device_id);
	/* Pairs with cli_fill(). */
	smp_store_release(&dev->state, CLI_OPEN);
	if (dev->disk && set_capacity_and_notify(dev->disk, info.nsectors))
		pr_info("%s: %s of session %s has %llu sectors now\n", dev->disk->disk_name,
			dev->path, sess->name, info.nsectors);
out:
	kfree(msg);
	return error;
}

/**
 * cli_sess_close_dev - tell the server that a device is not needed any more
 * @dev: the device. Without a path the server knows already.
 *
 * Context: process; cli_sess.lock held.
 */
void cli_sess_close_dev(struct cli_dev *dev)
{
	struct cli_msg *msg;

	lockdep_assert_held(&dev->sess->lock);
	if (dev->id == RAIL_CLI_NO_ID)
		return;
	msg = cli_msg_alloc(sizeof(struct rail_rnbd_close), 0);
	if (!msg)
		return;
	rail_rnbd_close_encode((void *)msg->hdr, dev->id);
	cli_msg_send(dev->sess, msg);
	kfree(msg);
}

/**
 * cli_sess_lost_id - the server says that a device is not open
 * @dev: the device
 * @id: the id it was asked with; an older one says nothing
 *
 * Context: any.
 */
void cli_sess_lost_id(struct cli_dev *dev, u32 id)
{
	if (READ_ONCE(dev->id) == id && cmpxchg(&dev->state, CLI_OPEN, CLI_CLOSED) == CLI_OPEN)
		pr_err("%s: the server of session %s has closed %s; write 1 to remap_device when it may be used again\n",
		       dev->disk->disk_name, dev->sess->name, dev->path);
}

/* ---- link events ---- */

static void cli_link_down(void *priv)
{
	struct cli_sess *sess = priv;
	unsigned int lost = 0;
	struct cli_dev *dev;

	mutex_lock(&sess->lock);
	list_for_each_entry(dev, &sess->devs, entry) {
		lost += cmpxchg(&dev->state, CLI_OPEN, CLI_LOST) == CLI_OPEN;
		WRITE_ONCE(dev->id, RAIL_CLI_NO_ID);
	}
	mutex_unlock(&sess->lock);
	/* None: the session is being closed, for example. */
	if (lost)
		pr_warn("session %s: no path to the server; I/O of %u devices waits\n", sess->name,
			lost);
}

static void cli_link_up(void *priv)
{
	struct cli_sess *sess = priv;
	unsigned int open = 0, refused = 0;
	struct cli_dev *dev;
	int error;

	mutex_lock(&sess->lock);
	error = cli_send_info(sess);
	list_for_each_entry(dev, &sess->devs, entry) {
		if (error == -ENOLINK)
			break;
		/* One that is CLOSED the user has to mend. */
		if (READ_ONCE(dev->state) != CLI_LOST)
			continue;
		error = cli_sess_open_dev(dev);
		if (!error) {
			open++;
			rail_stats_inc(&dev->stats, CLI_N_REOPENED);
		} else if (error != -ENOLINK) {
			refused++;
			cmpxchg(&dev->state, CLI_LOST, CLI_CLOSED);
			pr_err("%s of session %s cannot be opened again: %pe; its I/O fails until 1 is written to remap_device with success\n",
			       dev->path, sess->name, ERR_PTR(error));
		}
	}
	mutex_unlock(&sess->lock);
	if (error != -ENOLINK)
		pr_info("session %s: the server is there again; %u devices opened, %u refused\n",
			sess->name, open, refused);
}

static const struct rail_clt_ops cli_clt_ops = {
	.link_down	= cli_link_down,
	.link_up	= cli_link_up,
};

/* ---- making and ending ---- */

static int cli_addrs(const struct cli_map *map, struct rail_clt_addr *addrs)
{
	unsigned int i;
	int error;

	for (i = 0; i < map->nr_paths; i++) {
		const struct cli_text *text = &map->paths[i];

		error = rail_path_parse(&init_net, text->at, text->len, map->port, &addrs[i].src,
					&addrs[i].dst);
		if (error) {
			pr_err("path=%.*s is no address; write [SOURCE,]DESTINATION, each ip:IPV4, ip:IPV6 or gid:GID\n",
			       (int)text->len, text->at);
			return error;
		}
	}
	return 0;
}

static int cli_open_tags(struct cli_sess *sess)
{
	const struct rail_clt_limits *limits = sess->limits;
	struct blk_mq_tag_set *tags = &sess->tags;

	sess->max_segments = min(limits->max_segments, RAIL_CLI_MAX_SEGMENTS);
	tags->ops = &cli_mq_ops;
	tags->queue_depth = min_t(u32, max(limits->queue_depth, 2U) - 1, BLK_MQ_MAX_DEPTH);
	tags->nr_hw_queues = limits->nr_queues + limits->nr_poll_queues;
	tags->nr_maps = limits->nr_poll_queues ? HCTX_MAX_TYPES : 1;
	tags->numa_node = limits->node;
	/* The server's own scheduler knows the disk better. */
	tags->flags = RAIL_BLK_MERGE | BLK_MQ_F_TAG_HCTX_SHARED | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	tags->cmd_size = struct_size_t(struct cli_req, sg, sess->max_segments);
	return blk_mq_alloc_tag_set(tags);
}

static int cli_sess_open(struct cli_sess *sess, const struct cli_map *map)
{
	struct rail_clt_addr *addrs;
	struct rail_clt_attr attr = {
		.net = &init_net,
		.name = sess->name,
		.nr_paths = map->nr_paths,
		.nr_poll_queues = max(map->nr_poll_queues, 0),
		.no_path_timeout = map->no_path_timeout,
		.ops = &cli_clt_ops,
		.priv = sess,
		.place = &sess->clt,
	};
	int error;

	if (!map->nr_paths) {
		pr_err("session %s is not there yet: its paths have to be given, path=[SOURCE,]DESTINATION\n",
		       sess->name);
		return -EINVAL;
	}
	addrs = kcalloc(map->nr_paths, sizeof(*addrs), GFP_KERNEL);
	if (!addrs)
		return -ENOMEM;
	error = cli_addrs(map, addrs);
	if (error)
		goto free;
	attr.paths = addrs;
	sess->clt = rail_clt_open(&attr);
	if (IS_ERR(sess->clt)) {
		error = PTR_ERR(sess->clt);
		pr_err("session %s cannot be opened: %pe\n", sess->name, ERR_PTR(error));
		goto free;
	}
	sess->limits = rail_clt_limits(sess->clt);
	error = cli_open_tags(sess);
	if (error)
		goto close;
	mutex_lock(&sess->lock);
	error = cli_send_info(sess);
	mutex_unlock(&sess->lock);
	if (error) {
		pr_err("session %s: the server does not answer as an RNBD server does: %pe\n",
		       sess->name, ERR_PTR(error));
		goto free_tags;
	}
	queue_delayed_work(system_long_wq, &sess->sizes, SIZES_INTERVAL);
	kfree(addrs);
	return 0;

free_tags:
	blk_mq_free_tag_set(&sess->tags);
close:
	rail_clt_close(sess->clt);
free:
	kfree(addrs);
	return error;
}

static struct cli_sess *cli_sess_find(const char *name)
{
	struct cli_sess *sess;

	lockdep_assert_held(&cli_lock);
	list_for_each_entry(sess, &cli_sessions, entry)
		if (!strcmp(sess->name, name))
			return sess;
	return NULL;
}

/* Out of the list and out of the world. Whoever calls it is the last one to have it. */
static void cli_sess_free(struct cli_sess *sess)
{
	mutex_lock(&cli_lock);
	list_del(&sess->entry);
	mutex_unlock(&cli_lock);
	mutex_destroy(&sess->lock);
	kfree(sess);
	wake_up_all(&cli_session_gone);
}

static bool cli_sess_is_gone(const char *name)
{
	struct cli_sess *sess;
	bool gone;

	mutex_lock(&cli_lock);
	sess = cli_sess_find(name);
	gone = !sess || sess->refs;
	mutex_unlock(&cli_lock);
	return gone;
}

static struct cli_sess *cli_sess_new(const struct cli_map *map)
{
	struct cli_sess *sess = kzalloc(sizeof(*sess), GFP_KERNEL);

	if (!sess)
		return NULL;
	sess->refs = 1;
	init_completion(&sess->ready);
	mutex_init(&sess->lock);
	INIT_LIST_HEAD(&sess->devs);
	INIT_DELAYED_WORK(&sess->sizes, cli_sizes_work);
	strscpy(sess->name, map->sessname, sizeof(sess->name));
	return sess;
}

/**
 * cli_sess_get - the session that a mapping names, opened if it is not there
 * @map: the mapping
 *
 * Context: process; may wait for the server.
 * Return: the session, for cli_sess_put(), or an error pointer.
 */
struct cli_sess *cli_sess_get(const struct cli_map *map)
{
	struct cli_sess *sess;
	int error;

again:
	mutex_lock(&cli_lock);
	sess = cli_sess_find(map->sessname);
	if (!sess) {
		sess = cli_sess_new(map);
		if (sess)
			list_add_tail(&sess->entry, &cli_sessions);
		mutex_unlock(&cli_lock);
		if (!sess)
			return ERR_PTR(-ENOMEM);
		sess->error = cli_sess_open(sess, map);
		complete_all(&sess->ready);
		goto got;
	}
	if (!sess->refs) {
		/* It is being closed, and the name is taken until then. */
		mutex_unlock(&cli_lock);
		if (wait_event_killable(cli_session_gone, cli_sess_is_gone(map->sessname)))
			return ERR_PTR(-EINTR);
		goto again;
	}
	sess->refs++;
	mutex_unlock(&cli_lock);
	if (wait_for_completion_killable(&sess->ready)) {
		cli_sess_put(sess);
		return ERR_PTR(-EINTR);
	}
	if (!sess->error && map->nr_poll_queues >= 0 &&
	    map->nr_poll_queues != sess->limits->nr_poll_queues) {
		pr_err("session %s has %u poll queues, not %d; leave nr_poll_queues out, or use another sessname\n",
		       sess->name, sess->limits->nr_poll_queues, map->nr_poll_queues);
		cli_sess_put(sess);
		return ERR_PTR(-EINVAL);
	}
got:
	error = sess->error;
	if (error) {
		cli_sess_put(sess);
		return ERR_PTR(error);
	}
	return sess;
}

/**
 * cli_sess_put - the session is not needed any more
 * @sess: the session; closed if nobody else needs it
 *
 * Context: process.
 */
void cli_sess_put(struct cli_sess *sess)
{
	bool last;

	mutex_lock(&cli_lock);
	last = !--sess->refs;
	mutex_unlock(&cli_lock);
	if (!last)
		return;
	/* It is open or never was: who opens it has a reference, and is not the last before. */
	if (!sess->error) {
		cancel_delayed_work_sync(&sess->sizes);
		rail_clt_close(sess->clt);
		blk_mq_free_tag_set(&sess->tags);
	}
	cli_sess_free(sess);
}

static bool cli_sess_none(void)
{
	bool none;

	mutex_lock(&cli_lock);
	none = list_empty(&cli_sessions);
	mutex_unlock(&cli_lock);
	return none;
}

/**
 * cli_sess_first - a mapping that is not being ended
 *
 * Context: process.
 * Return: the mapping, with a reference for cli_dev_put(), or NULL.
 */
struct cli_dev *cli_sess_first(void)
{
	struct cli_dev *dev, *found = NULL;
	struct cli_sess *sess;

	mutex_lock(&cli_lock);
	list_for_each_entry(sess, &cli_sessions, entry) {
		mutex_lock(&sess->lock);
		list_for_each_entry(dev, &sess->devs, entry) {
			if (READ_ONCE(dev->state) != CLI_GONE) {
				refcount_inc(&dev->refs);
				found = dev;
				break;
			}
		}
		mutex_unlock(&sess->lock);
		if (found)
			break;
	}
	mutex_unlock(&cli_lock);
	return found;
}

/**
 * cli_sess_wait_none - wait until the last session is closed
 *
 * Context: process; nobody makes mappings any more.
 */
void cli_sess_wait_none(void)
{
	wait_event(cli_session_gone, cli_sess_none());
}
