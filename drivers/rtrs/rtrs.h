/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What client and server share: heartbeats of a path, and ways to show it in sysfs.
 *
 * Each end sends a heartbeat on connection 0 at every interval, and answers the peer's at once. An
 * interval in which nothing at all was received from the peer is a missed one; so many missed in a
 * row and the path is dead.
 */
#ifndef RTRS_RTRS_H
#define RTRS_RTRS_H

#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>

#include <rail/addr.h>
#include <rail/rtrs.h>
#include <rail/verbs.h>

/**
 * struct rail_hb - a path's heartbeat
 * @work: beats; queued from rail_hb_start() to rail_hb_stop()
 * @wq: where @work runs; constant
 * @conn: connection 0; set by rail_hb_start()
 * @dead: called once, from @work: nothing was heard of the peer for too long. Must not wait for
 *	  rail_hb_stop().
 * @interval_ms: from beat to beat; may be changed at any time
 * @missed_max: so many intervals of silence; may be changed at any time
 * @seen: something was received in this interval. Written by every receive, but only if not set, so
 *	  that its cache line is shared for reading
 * @missed: intervals of silence so far; @work's
 * @sent_ns: when the last heartbeat went out and its acknowledgment is awaited; 0: none is
 * @latency_ns: round trip of the last one acknowledged; 0: none yet
 * @acked: heartbeats acknowledged since rail_hb_start()
 */
struct rail_hb {
	struct delayed_work work;
	struct workqueue_struct *wq;
	struct rail_conn *conn;
	void (*dead)(struct rail_hb *hb);
	unsigned int interval_ms;
	unsigned int missed_max;
	bool seen;
	unsigned int missed;
	u64 sent_ns;
	u64 latency_ns;
	u32 acked;
};

void rail_hb_init(struct rail_hb *hb, struct workqueue_struct *wq,
		  void (*dead)(struct rail_hb *hb));
void rail_hb_start(struct rail_hb *hb, struct rail_conn *conn);
void rail_hb_stop(struct rail_hb *hb);
void rail_hb_received(struct rail_hb *hb, bool ack);
int rail_hb_ask(struct rail_conn *conn);

/**
 * rail_hb_seen - something was received from the peer
 * @hb: the heartbeat
 *
 * Context: any.
 */
static inline void rail_hb_seen(struct rail_hb *hb)
{
	if (!READ_ONCE(hb->seen))
		WRITE_ONCE(hb->seen, true);
}

/* A file in sysfs, with file_show() and, when RW, file_store(). */
#define RTRS_FILE(file, mode)	static struct kobj_attribute file##_file = __ATTR_##mode(file)

/**
 * rtrs_emit_addr - what a file with an address shows
 * @buf: page
 * @addr: address
 *
 * Return: bytes.
 */
static inline ssize_t rtrs_emit_addr(char *buf, const struct sockaddr_storage *addr)
{
	char text[RAIL_ADDR_STRLEN];

	rail_addr_print(text, sizeof(text), (const struct sockaddr *)addr);
	return sysfs_emit(buf, "%s\n", text);
}

#endif /* RTRS_RTRS_H */
