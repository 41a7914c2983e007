/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server: gives clients the use of block devices, over RTRS sessions.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * srv_sess	a client's session. Made by sess_up(); ends with sess_down(), when no request of it
 *		is outstanding, and the last of its mappings.
 * srv_io	what the server keeps beside each request of a session, one a buffer id.
 * srv_dev	a block device that is mapped; there as long as one srv_map of it is.
 * srv_map	a session's right to use a device. Made by OPEN; ended by CLOSE, force_close,
 *		sess_down(), or when its export is disabled, always through srv_map_end().
 * srv_export	an entry of configfs; kept by its folder and by mappings made through it.
 *
 * A mapping's life (srv_map.closing, srv_lock)
 * --------------------------------------------
 *
 *	OPEN --> LIVE --> CLOSING --> freed
 *
 *	LIVE	found by its id, its I/O goes to the device
 *	CLOSING	not found any more, so that the client gets ENOTCONN; waits for its bios, and
 *		counts as a user of the device until they are over
 *
 * Who is CLOSING a mapping, ends it, in this order: out of the session's ids; I/O waited for;
 * sysfs; out of the device's list; the block device closed; export and session let go.
 *
 * Ids are of a session and begin anywhere, so that one of an earlier session (the server was away,
 * the client did not notice) is not another device's.
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	configfs's		its subsystem's mutex
 *	srv_lock		what is mapped by whom, and what may be: all of the above but I/O.
 *				Not held while a device is opened or its I/O is waited for. sysfs
 *				entries are made and removed under it, so that no attribute but
 *				force_close takes it, which first has removed itself.
 *
 * I/O takes no lock: the mapping is found under RCU and held by a per-CPU reference.
 */
#ifndef RNBD_SERVER_H
#define RNBD_SERVER_H

#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <rail/compat.h>
#include <rail/rtrs.h>
#include <rail/stats.h>
#include <rail/wire/rnbd.h>

#include "count.h"
#include "server_access.h"

#undef pr_fmt
#define pr_fmt(fmt) "rnbd_server: " fmt

/* Addresses a session's paths came from: as many as it may have paths, twice over. */
#define RAIL_SRV_MAX_ADDRS	256

struct srv_sess;

/* Behind those of enum rnbd_count. */
enum srv_count {
	SRV_N_ERR_ACCESS = RNBD_NR_COUNTS,
	SRV_N_ERR_RANGE,
	SRV_N_ERR_DEVICE,
	SRV_NR_COUNTS,
};

/**
 * struct srv_export - a device in configfs that clients may map
 * @group: its folder; must be first
 * @clients: allowed_clients
 * @entry: in the list of exports while the folder is there; srv_lock
 * @rules: of allowed_clients; srv_lock
 * @enabled: may be mapped; srv_lock
 * @ro: only for reading; srv_lock, constant while enabled
 * @device_path: of the block device; srv_lock, constant while enabled
 */
struct srv_export {
	struct config_group group;
	struct config_group clients;
	struct list_head entry;
	struct list_head rules;
	bool enabled;
	bool ro;
	char device_path[RAIL_RNBD_NAME_LEN];
};

/**
 * struct srv_dev - a block device in use
 * @entry: in the list of devices; srv_lock
 * @dev: which
 * @maps: its mappings; srv_lock
 * @writers: of them, how many are not read-only; srv_lock
 * @kobj: /sys/class/rnbd-server/ctl/devices/<device>; frees the struct
 * @sessions: "sessions" below it
 */
struct srv_dev {
	struct list_head entry;
	dev_t dev;
	struct list_head maps;
	unsigned int writers;
	struct kobject kobj;
	struct kobject *sessions;
};

/**
 * struct srv_map - a mapping
 * @sess: whose; a reference
 * @dev: of what
 * @dev_entry: in @dev->maps; srv_lock
 * @export: how it came to be; a reference; NULL: through dev_search_path
 * @id: by which the client knows it; constant
 * @access: enum rail_rnbd_access; constant
 * @ro: changes nothing on the device: as @access says, or the device; constant
 * @closing: see above; srv_lock
 * @resized: its size has been another than @told_sectors; srv_lock
 * @bdev: the device, opened for this mapping
 * @told_sectors: its size when it was opened; constant
 * @io: I/O under way
 * @idle: completed when, while CLOSING, no I/O is
 * @kobj: sessions/<session>; frees the struct
 * @stats: numbers
 * @dir: debugfs
 * @path: by what name the client asked for it; constant
 */
struct srv_map {
	struct srv_sess *sess;
	struct srv_dev *dev;
	struct list_head dev_entry;
	struct srv_export *export;
	u32 id;
	u8 access;
	bool ro;
	bool closing;
	bool resized;
	struct rail_bdev bdev;
	u64 told_sectors;
	struct percpu_ref io;
	struct completion idle;
	struct kobject kobj;
	struct rail_stats stats;
	struct dentry *dir;
	char path[RAIL_RNBD_NAME_LEN];
};

/**
 * struct srv_io - beside a request
 * @req: the request
 * @map: of I/O: a reference in srv_map.io
 * @begun: ktime_get_ns() of its submission
 * @op: enum rail_rnbd_op
 * @work: of a message: reads it
 * @bio: of I/O; its pages are the chunk's
 */
struct srv_io {
	struct rail_srv_req *req;
	struct srv_map *map;
	u64 begun;
	u8 op;
	union {
		struct work_struct work;
		struct bio bio;
	};
};

/**
 * struct srv_sess - a session
 * @refs: RTRS's, and each mapping's
 * @rtrs: valid until sess_down() has returned
 * @maps: mappings by id; written under srv_lock, read under RCU
 * @next: where the search for an id begins; srv_lock
 * @closed: sess_down() was called; srv_lock
 * @addrs: where its paths came from, each once; srv_lock
 * @nr_addrs: so many; srv_lock
 * @queue_depth: entries of @ios
 * @name: constant
 * @ios: by buffer id
 */
struct srv_sess {
	struct kref refs;
	struct rail_srv_sess *rtrs;
	struct xarray maps;
	u32 next;
	bool closed;
	struct sockaddr_storage *addrs;
	unsigned int nr_addrs;
	unsigned int queue_depth;
	const char *name;
	struct srv_io ios[];
};

extern struct mutex srv_lock;
extern struct workqueue_struct *srv_wq;
/* Where devices are looked for that no export names; NULL: nowhere. Constant. */
extern char *srv_search_path;

/* server_io.c */
void srv_io_start(struct srv_io *io);

/* server_sess.c */
extern const struct rail_srv_ops srv_ops;
void srv_sess_put(struct srv_sess *sess);

/* server_map.c */
int srv_map_open(struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		 struct rail_rnbd_device *info);
bool srv_map_doom(struct srv_map *map);
void srv_map_end(struct srv_map *map);
void srv_map_free(struct srv_map *map);
void srv_map_close_export(struct srv_export *export);
void srv_map_force_close(struct srv_map *map, struct attribute *self);

/* server_export.c */
int srv_export_find(const struct srv_sess *sess, const struct rail_rnbd_opening *opening,
		    char *path, size_t size, struct srv_export **export);
bool srv_export_admits(const struct srv_export *export, const char *sessname,
		       const struct sockaddr *addr);
bool srv_export_is_for(const struct srv_export *export, const struct srv_sess *sess);
void srv_export_put(struct srv_export *export);
int srv_export_init(void);
void srv_export_exit(void);

/* server_sysfs.c */
int srv_sysfs_add_dev(struct srv_dev *dev, struct block_device *bdev);
void srv_sysfs_del_dev(struct srv_dev *dev);
void srv_sysfs_init_map(struct srv_map *map);
int srv_sysfs_add_map(struct srv_map *map);
void srv_sysfs_del_map(struct srv_map *map);
struct dentry *srv_debugfs(void);

#endif /* RNBD_SERVER_H */
