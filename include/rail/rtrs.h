/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RTRS for its users in the kernel: rtrs-client (rail_clt_*) and rtrs-server (rail_srv_*).
 *
 * A session is named by the client and has paths; a request is a user header, which means something
 * to the two users alone, and data, which goes one way or the other. A request is answered with an
 * errno, exactly once, whatever becomes of the paths.
 *
 * Client
 * ------
 *
 * A request needs a permit, of which a session has as many as its queue is deep. The user gets one,
 * fills in a struct rail_clt_io of its own and submits both; both are the client's until @done,
 * then the user's again. Nothing is allocated on the way.
 *
 *	rail_clt_permit_get() -> rail_clt_submit() -> io->done() -> rail_clt_permit_put()
 *
 * Kinds of request, by @flags of the permit:
 *
 *	I/O (0)			goes out on the connection of the submitting CPU. If its path dies
 *				before the answer, it is sent again on another; without one it waits
 *				up to the session's no_path_timeout, then -ENOLINK.
 *	RAIL_CLT_POLL		the same, on poll queue io->queue: its answer is found by
 *				rail_clt_poll() (or, as long as nobody polls, by nothing at all).
 *	RAIL_CLT_ADMIN		a message to the other user (connection 0). Never sent twice, never
 *				waits: without a path, or if the path dies before the answer,
 *				-ENOLINK, and whether the server saw it is not known.
 *
 * When the last path goes, the server forgets the session. So when the first one is back, the user
 * is told by ops->link_up(), in which it sends the admin requests that bring the server up to date;
 * I/O that waits, or comes, is held until that returns, and has its header filled in anew.
 *
 * errno of a request (io->done): what the server's user answered (0 or negative), or
 *	-ENOLINK	no path (left), see above
 *	-ECANCELED	rail_clt_cancel()
 *	-ESHUTDOWN	the session is being closed
 *	-EMSGSIZE, -EINVAL	the request does not fit the session's limits; nothing was sent
 *	-EIO		no memory region or mapping to be had, after all was tried
 *
 * Server
 * ------
 *
 * rail_srv_open() listens. Of each session that comes up the user is told by ops->sess_up(), of
 * each request by ops->request(), in a thread that may sleep, several at a time; it answers with
 * rail_srv_reply() from any context, once. ops->sess_down() comes after the last reply and
 * after the last path. A request's user header was copied out of the client's reach and does not
 * change; its data, of a write, is in the client's reach until the answer if rkey rotation is off.
 *
 * A request whose path died while the user still has it is sent again by its client on another
 * path, with the same buffer id. The server holds it until the reply to the first, so that a user
 * never has an id twice and an older write never lands on a newer one.
 */
#ifndef RAIL_RTRS_H
#define RAIL_RTRS_H

#include <linux/bvec.h>
#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/types.h>

#include <rail/wire/rtrs.h>

struct net;
struct kobject;

/* The longest user header a client sends: header and RTRS's own fit 512 bytes. */
#define RAIL_CLT_USR_MAX	(512 - RAIL_RTRS_REQ_HDR_MAX)

/* no_path_timeout when the user has no wish, seconds. */
#define RAIL_CLT_NO_PATH_DEFAULT	30

/* ---------------------------------------------------------------- client */

struct rail_clt;		/* a session */

/* Kinds of permit; at most one of them. */
#define RAIL_CLT_POLL		0x01
#define RAIL_CLT_ADMIN		0x02
/* For rail_clt_permit_get(): sleep until there is one. */
#define RAIL_CLT_WAIT		0x10

/**
 * struct rail_clt_permit - the right to have one request outstanding
 * @clt: of which session
 * @id: buffer id, 0 to queue depth - 1; constant
 * @cpu: CPU it was got on: says which connection an I/O request takes
 * @kind: RAIL_CLT_POLL, RAIL_CLT_ADMIN or 0
 *
 * Part of a larger structure of the client.
 */
struct rail_clt_permit {
	struct rail_clt *clt;
	u32 id;
	u16 cpu;
	u8 kind;
};

/**
 * struct rail_clt_io - a request; the user's memory, valid and unchanged until @done
 * @dir: DMA_TO_DEVICE: a write, the data goes with the request; DMA_FROM_DEVICE: a read, the data
 *	 comes before the answer; a read without data is fine (flush)
 * @usr_len: bytes of the user header, up to limits.max_usr_len
 * @queue: poll queue, 0 to limits.nr_poll_queues - 1; of RAIL_CLT_POLL only
 * @sg: data, not DMA-mapped; the client maps it, and writes the DMA fields of it
 * @nents: entries of @sg, up to limits.max_segments; 0: no data
 * @len: bytes of data, up to limits.max_io_size; must be what the entries sum up to
 * @fill: writes exactly @usr_len bytes of user header to @usr. Called each time the request is put
 *	  on a path, that is again after a failover. Context: as rail_clt_submit(), or softirq or
 *	  process; must not sleep.
 * @done: the request is over. Called exactly once for each rail_clt_submit(), even from within
 *	  it. Context: softirq, process, or rail_clt_poll(); must not sleep. May put the permit, and
 *	  may submit again with it.
 */
struct rail_clt_io {
	enum dma_data_direction dir;
	u16 usr_len;
	u16 queue;
	struct scatterlist *sg;
	u32 nents;
	u32 len;
	void (*fill)(struct rail_clt_io *io, void *usr);
	void (*done)(struct rail_clt_io *io, int error);
};

/**
 * struct rail_clt_ops - how a session talks to its user
 * @link_down: the last path is gone. I/O waits from now on.
 * @link_up: after @link_down: a path is there again and the server knows nothing of what was: make
 *	     it know. Admin requests pass; I/O is held until this returns. Must return soon after
 *	     its admin requests are done; should they fail with -ENOLINK, it returns and is called
 *	     again after the next @link_down.
 * @permits: rail_clt_permit_get() without RAIL_CLT_WAIT had found none, and one is free now. Told
 *	     once for any number of failures; a user with several queues restarts all that wait.
 *	     Context: softirq or process, must not sleep. May be NULL.
 *
 * @link_down and @link_up are called one at a time, in order, from a workqueue, and may sleep. They
 * must not call rail_clt_close(), which waits for them. Never called for the connecting within
 * rail_clt_open(); a link that is lost again before that returns is told of when the session is at
 * attr.place, which may be before the caller has what rail_clt_open() returned.
 */
struct rail_clt_ops {
	void (*link_down)(void *priv);
	void (*link_up)(void *priv);
	void (*permits)(void *priv);
};

/**
 * struct rail_clt_addr - where a path goes
 * @src: own address; family AF_UNSPEC: any
 * @dst: the server, with port
 */
struct rail_clt_addr {
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
};

/**
 * struct rail_clt_attr - the session a user wants; see rail_clt_open()
 * @net: network namespace
 * @name: its name; see rail_rtrs_name_check()
 * @paths: addresses, as rail_path_parse() makes them
 * @nr_paths: 1 to 128
 * @nr_poll_queues: connections without interrupts, 0: none
 * @no_path_timeout: seconds that I/O waits for a path; 0: not at all; negative: the default
 * @ops: may not be NULL
 * @priv: for @ops
 * @place: where the session is put before @ops are called, for their use; NULL: they need it not
 */
struct rail_clt_attr {
	struct net *net;
	const char *name;
	const struct rail_clt_addr *paths;
	u32 nr_paths;
	u32 nr_poll_queues;
	int no_path_timeout;
	const struct rail_clt_ops *ops;
	void *priv;
	struct rail_clt **place;
};

/**
 * struct rail_clt_limits - what a session can do; constant while it is open
 * @queue_depth: permits
 * @max_io_size: bytes of data in a request
 * @max_usr_len: bytes of user header
 * @max_segments: entries of io->sg
 * @virt_boundary: as in struct queue_limits: mask that borders between entries must meet; 0: any
 * @nr_queues: connections for I/O with interrupts; CPU c takes c % nr_queues
 * @nr_poll_queues: connections without
 * @node: NUMA node of the first path's device
 */
struct rail_clt_limits {
	u32 queue_depth;
	u32 max_io_size;
	u32 max_usr_len;
	u32 max_segments;
	unsigned long virt_boundary;
	u32 nr_queues;
	u32 nr_poll_queues;
	int node;
};

/*
 * Sleeps until each path is up or has failed once; at least one is up then, and those that are not
 * go on trying. ERR_PTR: -EEXIST: the name is in use; -EINVAL, -ENOMEM; else the errno of the first
 * path, the server's own where it refused.
 */
struct rail_clt *rail_clt_open(const struct rail_clt_attr *attr);
/*
 * Ends what is outstanding with -ESHUTDOWN. Sleeps. The user has every permit back before, or gets
 * it back meanwhile.
 */
void rail_clt_close(struct rail_clt *clt);
const struct rail_clt_limits *rail_clt_limits(const struct rail_clt *clt);
bool rail_clt_linked(const struct rail_clt *clt);
void rail_clt_set_no_path_timeout(struct rail_clt *clt, unsigned int seconds);

struct rail_clt_permit *rail_clt_permit_get(struct rail_clt *clt, unsigned int flags);
void rail_clt_permit_put(struct rail_clt_permit *permit);
void rail_clt_submit(struct rail_clt_permit *permit, struct rail_clt_io *io);
/* If it waits for a path: done(-ECANCELED) was called, and true. On a path: false, it goes on. */
bool rail_clt_cancel(struct rail_clt_permit *permit);
/* Return: completions worked on. Context: any but irq. */
int rail_clt_poll(struct rail_clt *clt, unsigned int queue);

/* ---------------------------------------------------------------- server */

struct rail_srv;		/* a listener */
struct rail_srv_sess;		/* a client's session, all its paths */

/**
 * struct rail_srv_req - a request as the server's user sees it; valid until rail_srv_reply()
 * @sess: whose
 * @id: buffer id; the same id is not seen again before the reply
 * @dir: DMA_FROM_DEVICE: a write of the client: @data is what it wrote. DMA_TO_DEVICE: a read:
 *	 @data is to be filled, and goes to the client with a reply of 0
 * @admin: came on connection 0
 * @usr: user header, a private copy
 * @usr_len: its length; checked against the limits, its content is not
 * @data: the data's place, in pages of the chunk; @data_len bytes from the first on
 * @nr_data: entries of @data
 * @data_len: bytes of data, 0 to max_io_size
 * @priv: the user's own; zero at first
 *
 * Part of a larger structure of the server. @priv is for the user from ops->request() to the reply.
 */
struct rail_srv_req {
	struct rail_srv_sess *sess;
	u32 id;
	enum dma_data_direction dir;
	bool admin;
	const void *usr;
	u32 usr_len;
	const struct bio_vec *data;
	u32 nr_data;
	u32 data_len;
	void *priv;
};

/**
 * struct rail_srv_ops - how the server talks to its user
 * @sess_up: a session's first path is up and it has told its name. Set a context with
 *	     rail_srv_sess_set_priv(). An error refuses the session and is told to the client.
 * @sess_down: the session is gone: no request of it is outstanding, and none comes. Not called
 *	       where @sess_up refused.
 * @request: answer with rail_srv_reply(), now or later. May sleep, though what it makes wait are
 *	     the connection's other requests.
 *	     rail_srv_reply() may be called from hard irq.
 * @path_up: may a further path, from @src, join the session? An error refuses it. May be NULL.
 *
 * All sleepable. @sess_up and @sess_down of a session do not overlap; @request comes in between.
 */
struct rail_srv_ops {
	int (*sess_up)(void *context, struct rail_srv_sess *sess);
	void (*sess_down)(void *context, struct rail_srv_sess *sess);
	void (*request)(struct rail_srv_sess *sess, struct rail_srv_req *req);
	int (*path_up)(struct rail_srv_sess *sess, const struct sockaddr *src);
};

/**
 * struct rail_srv_attr - the server a user wants
 * @net: network namespace
 * @port: 0: RAIL_RTRS_PORT; IPv4 and IPv6
 * @usr_max: longest user header that is taken
 * @ops: may not be NULL
 * @context: for @ops
 */
struct rail_srv_attr {
	struct net *net;
	u16 port;
	u32 usr_max;
	const struct rail_srv_ops *ops;
	void *context;
};

struct rail_srv *rail_srv_open(const struct rail_srv_attr *attr);
void rail_srv_close(struct rail_srv *srv);

void rail_srv_reply(struct rail_srv_req *req, int error);
int rail_srv_req_put_data(struct rail_srv_req *req, const void *from, u32 len);

void rail_srv_sess_set_priv(struct rail_srv_sess *sess, void *priv);
void *rail_srv_sess_priv(const struct rail_srv_sess *sess);
const char *rail_srv_sess_name(const struct rail_srv_sess *sess);
/* The address the session's first path came from. */
const struct sockaddr *rail_srv_sess_addr(const struct rail_srv_sess *sess);
u32 rail_srv_sess_queue_depth(const struct rail_srv_sess *sess);
u32 rail_srv_sess_max_io_size(const struct rail_srv_sess *sess);

/* ---------------------------------------------------------------- rtrs-core, for both */

/* Heartbeats: one each way so often; so many missed in a row and the path is dead. */
#define RAIL_RTRS_HB_INTERVAL_MS	5000
#define RAIL_RTRS_HB_MISSED_MAX		5

#endif /* RAIL_RTRS_H */
