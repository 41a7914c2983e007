/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client: block devices whose disks are at a server, over RTRS sessions.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * cli_sess	a session and its tag set. Made by the first mapping that names it, shared by all
 *		that do; each cli_dev holds a reference. The last one closes it.
 * cli_dev	a mapping and its disk. Made by map_device, ended by unmap_device or module unload,
 *		both through cli_dev_unmap(). The struct is freed with the last reference: the
 *		mapping's, the disk's (free_disk), the kobject's.
 * cli_req	what blk-mq keeps beside a request.
 *
 * A device's life (cli_dev.state, cli_sess.lock)
 * ----------------------------------------------
 *
 *	NEW -- the server opened it ----------------------------------> OPEN
 *	OPEN -- link_down() -------------------------------------------> LOST
 *	LOST -- link_up(), the server opened it again -----------------> OPEN
 *	LOST -- link_up(), it refused ---------------------------------> CLOSED
 *	OPEN -- it says that it has no such device open ---------------> CLOSED
 *	LOST, CLOSED -- remap_device, the server opened it again ------> OPEN
 *
 *	any but GONE -- unmap --> GONE
 *
 *	NEW	not asked for yet; no disk
 *	OPEN	I/O goes out
 *	LOST	no path; I/O goes to RTRS, which holds it until link_up() returned or its time is up
 *	CLOSED	the server has no such device open; I/O fails at once
 *	GONE	being unmapped; I/O and opening fail at once
 *
 * The server forgets its ids when it loses a session, and may give them to other disks. So an id is
 * read by cli_fill(), each time a request is put on a path, and it is RAIL_CLI_NO_ID unless the
 * device is OPEN: what is then sent is refused, and never reaches another's disk.
 *
 * Tear-down of a mapping, in this order: state GONE, so that nobody opens it and no I/O begins; if
 * by force, the disk is marked dead and what is outstanding is cancelled; sysfs; del_gendisk(),
 * which waits for the I/O; CLOSE to the server; out of the lists; the disk; the session.
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	disk->open_mutex	the block layer's; openers against GONE
 *	cli_lock		list of sessions; never held while a peer is waited for
 *	cli_sess.lock		states and ids of its devices; held while the server is asked, which
 *				ends by itself when the path dies (RAIL_CLT_ADMIN)
 */
#ifndef RNBD_CLIENT_H
#define RNBD_CLIENT_H

#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>

#include <rail/compat.h>
#include <rail/rtrs.h>
#include <rail/stats.h>
#include <rail/wire/rnbd.h>
#include <rail/wire/rtrs.h>

#include "client_parse.h"
#include "count.h"

#undef pr_fmt
#define pr_fmt(fmt) "rnbd_client: " fmt

/* No server gives this id. */
#define RAIL_CLI_NO_ID		U32_MAX
/* More segments need more memory a request, and no chunk is that large. */
#define RAIL_CLI_MAX_SEGMENTS	128U

enum cli_state {
	CLI_NEW,
	CLI_OPEN,
	CLI_LOST,
	CLI_CLOSED,
	CLI_GONE,
};

/**
 * struct cli_sess - a session
 * @entry: in the list of sessions; cli_lock
 * @refs: mappings, and whoever makes one; cli_lock
 * @ready: completed when @clt is there, or @error says why not
 * @error: set before @ready
 * @clt: RTRS's session; constant since @ready
 * @limits: of @clt; constant since @ready
 * @max_segments: entries of cli_req.sg; constant since @ready
 * @tags: of all its devices: together they have no more requests than there are permits, less one
 *	  that is kept for messages (with a queue depth of one there is none to keep)
 * @lock: see above
 * @devs: its mappings; @lock
 * @sizes_told: the server tells of new sizes, if it is asked
 * @sizes: asks; queued from @ready to the last reference
 * @name: constant
 */
struct cli_sess {
	struct list_head entry;
	unsigned int refs;
	struct completion ready;
	int error;
	struct rail_clt *clt;
	const struct rail_clt_limits *limits;
	unsigned int max_segments;
	struct blk_mq_tag_set tags;
	struct mutex lock;
	struct list_head devs;
	bool sizes_told;
	struct delayed_work sizes;
	char name[RAIL_RTRS_NAME_LEN];
};

/* Behind those of enum rnbd_count. */
enum cli_count {
	CLI_N_POLLED = RNBD_NR_COUNTS,
	CLI_N_NO_PERMIT,
	CLI_N_OVERDUE,
	CLI_N_ERR_PATH,
	CLI_N_ERR_CLOSED,
	CLI_N_ERR_CANCELLED,
	CLI_N_ERR_SERVER,
	CLI_N_REOPENED,
	CLI_NR_COUNTS,
};

/**
 * struct cli_dev - a mapping
 * @refs: see above
 * @sess: its session; a reference of its own, until the mapping ends
 * @entry: in @sess->devs; @sess->lock
 * @state: see above; written under @sess->lock, or by cli_sess_lost_id(); read anywhere
 * @id: by which the server knows it; written under @sess->lock, before @state; read anywhere
 * @info: what the server said of it last; @sess->lock
 * @told_sectors: the size the server told last; @sess->lock
 * @access: enum rail_rnbd_access; constant
 * @outstanding: cli_cancel_all() has found something; its own
 * @index: N of rnbd<N>; constant
 * @disk: its disk; constant
 * @kobj: "rnbd" below the disk; there between cli_sysfs_add() and cli_sysfs_del()
 * @kobj_live: @kobj was initialised
 * @dir: debugfs
 * @stats: numbers
 * @link: name of its link in ctl/devices, empty: there is none; the mapping's maker and ender
 * @path: its name at the server; constant
 */
struct cli_dev {
	refcount_t refs;
	struct cli_sess *sess;
	struct list_head entry;
	enum cli_state state;
	u32 id;
	struct rail_rnbd_device info;
	u64 told_sectors;
	u8 access;
	bool outstanding;
	int index;
	struct gendisk *disk;
	struct kobject kobj;
	bool kobj_live;
	struct dentry *dir;
	struct rail_stats stats;
	char link[RAIL_RNBD_NAME_LEN + 1 + RAIL_RTRS_NAME_LEN];
	char path[RAIL_RNBD_NAME_LEN];
};

/**
 * struct cli_req - beside each request
 * @io: RTRS's
 * @permit: while the request is submitted; NULL: somebody uses it, see cli_cancel_rq()
 * @dev: whose
 * @begun: ktime_get_ns() of its submission
 * @status: what came of it
 * @msg: what is asked for; the device's id is that it was sent with last
 * @sg: data
 */
struct cli_req {
	struct rail_clt_io io;
	struct rail_clt_permit *permit;
	struct cli_dev *dev;
	u64 begun;
	blk_status_t status;
	struct rail_rnbd_req msg;
	struct scatterlist sg[];
};

extern struct mutex cli_lock;
extern const struct blk_mq_ops cli_mq_ops;

/* client_io.c */
void cli_cancel_all(struct cli_dev *dev);

/* client_sess.c */
struct cli_sess *cli_sess_get(const struct cli_map *map);
void cli_sess_put(struct cli_sess *sess);
int cli_sess_open_dev(struct cli_dev *dev);
void cli_sess_close_dev(struct cli_dev *dev);
void cli_sess_lost_id(struct cli_dev *dev, u32 id);
struct cli_dev *cli_sess_first(void);
void cli_sess_wait_none(void);

/* client_dev.c */
int cli_dev_map(const struct cli_map *map);
int cli_dev_unmap(struct cli_dev *dev, bool force, struct attribute *self);
int cli_dev_remap(struct cli_dev *dev);
int cli_dev_resize(struct cli_dev *dev, u64 sectors);
int cli_dev_fits(const struct cli_dev *dev, const struct rail_rnbd_device *info);
void cli_dev_put(struct cli_dev *dev);
void cli_dev_unmap_all(void);

/* client_sysfs.c */
int cli_sysfs_add(struct cli_dev *dev);
void cli_sysfs_del(struct cli_dev *dev);
struct dentry *cli_debugfs(void);

#endif /* RNBD_CLIENT_H */
