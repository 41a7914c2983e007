/* SPDX-License-Identifier: GPL-2.0-only */
/* What RTRS does, for ftrace and perf. The points are rtrs-core's; client and server pass them. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rail_rtrs

#if !defined(_TRACE_RAIL_RTRS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RAIL_RTRS_H

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <rail/addr.h>

#ifndef RAIL_TRACE_SESS_LEN
/* Of a session's name; what is longer is cut off. */
#define RAIL_TRACE_SESS_LEN	32
#define RAIL_TRACE_STATE_LEN	16
#endif

DECLARE_EVENT_CLASS(rail_rtrs_path,
	TP_PROTO(const char *sess, const char *path, const char *from, const char *to, int reason),
	TP_ARGS(sess, path, from, to, reason),
	TP_STRUCT__entry(
		__array(char, sess, RAIL_TRACE_SESS_LEN)
		__array(char, path, RAIL_PATH_STRLEN)
		__array(char, from, RAIL_TRACE_STATE_LEN)
		__array(char, to, RAIL_TRACE_STATE_LEN)
		__field(int, reason)
	),
	TP_fast_assign(
		strscpy(__entry->sess, sess, RAIL_TRACE_SESS_LEN);
		strscpy(__entry->path, path, RAIL_PATH_STRLEN);
		strscpy(__entry->from, from, RAIL_TRACE_STATE_LEN);
		strscpy(__entry->to, to, RAIL_TRACE_STATE_LEN);
		__entry->reason = reason;
	),
	TP_printk("sess=%s path=%s %s -> %s reason=%d", __entry->sess, __entry->path,
		  __entry->from, __entry->to, __entry->reason)
);

/* A path moved to another state; @reason: why the last attempt, or the path, failed. */
DEFINE_EVENT(rail_rtrs_path, rail_clt_path,
	TP_PROTO(const char *sess, const char *path, const char *from, const char *to, int reason),
	TP_ARGS(sess, path, from, to, reason));

DEFINE_EVENT(rail_rtrs_path, rail_srv_path,
	TP_PROTO(const char *sess, const char *path, const char *from, const char *to, int reason),
	TP_ARGS(sess, path, from, to, reason));

DECLARE_EVENT_CLASS(rail_rtrs_req,
	TP_PROTO(const char *sess, const char *path, u32 id, u16 cid, bool write, u32 len),
	TP_ARGS(sess, path, id, cid, write, len),
	TP_STRUCT__entry(
		__array(char, sess, RAIL_TRACE_SESS_LEN)
		__array(char, path, RAIL_PATH_STRLEN)
		__field(u32, id)
		__field(u16, cid)
		__field(bool, write)
		__field(u32, len)
	),
	TP_fast_assign(
		strscpy(__entry->sess, sess, RAIL_TRACE_SESS_LEN);
		strscpy(__entry->path, path, RAIL_PATH_STRLEN);
		__entry->id = id;
		__entry->cid = cid;
		__entry->write = write;
		__entry->len = len;
	),
	TP_printk("sess=%s path=%s id=%u cid=%u %s %u bytes", __entry->sess, __entry->path,
		  __entry->id, __entry->cid, __entry->write ? "write" : "read", __entry->len)
);

/* A request is put on a path, for the first time or again. */
DEFINE_EVENT(rail_rtrs_req, rail_clt_req_start,
	TP_PROTO(const char *sess, const char *path, u32 id, u16 cid, bool write, u32 len),
	TP_ARGS(sess, path, id, cid, write, len));

/* A request is handed to the server's user. */
DEFINE_EVENT(rail_rtrs_req, rail_srv_req_start,
	TP_PROTO(const char *sess, const char *path, u32 id, u16 cid, bool write, u32 len),
	TP_ARGS(sess, path, id, cid, write, len));

/* Its path is gone, and it was not answered: it goes elsewhere. */
TRACE_EVENT(rail_clt_req_failover,
	TP_PROTO(const char *sess, const char *path, u32 id),
	TP_ARGS(sess, path, id),
	TP_STRUCT__entry(
		__array(char, sess, RAIL_TRACE_SESS_LEN)
		__array(char, path, RAIL_PATH_STRLEN)
		__field(u32, id)
	),
	TP_fast_assign(
		strscpy(__entry->sess, sess, RAIL_TRACE_SESS_LEN);
		strscpy(__entry->path, path, RAIL_PATH_STRLEN);
		__entry->id = id;
	),
	TP_printk("sess=%s path=%s id=%u", __entry->sess, __entry->path, __entry->id)
);

DECLARE_EVENT_CLASS(rail_rtrs_end,
	TP_PROTO(const char *sess, u32 id, int error, u64 ns),
	TP_ARGS(sess, id, error, ns),
	TP_STRUCT__entry(
		__array(char, sess, RAIL_TRACE_SESS_LEN)
		__field(u32, id)
		__field(int, error)
		__field(u64, ns)
	),
	TP_fast_assign(
		strscpy(__entry->sess, sess, RAIL_TRACE_SESS_LEN);
		__entry->id = id;
		__entry->error = error;
		__entry->ns = ns;
	),
	TP_printk("sess=%s id=%u error=%d after %llu ns", __entry->sess, __entry->id,
		  __entry->error, __entry->ns)
);

/* A request is over, and its user told. */
DEFINE_EVENT(rail_rtrs_end, rail_clt_req_done,
	TP_PROTO(const char *sess, u32 id, int error, u64 ns),
	TP_ARGS(sess, id, error, ns));

/* The answer is on its way, or there is no path for it any more. */
DEFINE_EVENT(rail_rtrs_end, rail_srv_req_done,
	TP_PROTO(const char *sess, u32 id, int error, u64 ns),
	TP_ARGS(sess, id, error, ns));

/* A connection was refused. */
TRACE_EVENT(rail_srv_refused,
	TP_PROTO(const char *conn, int error),
	TP_ARGS(conn, error),
	TP_STRUCT__entry(
		__array(char, conn, RAIL_PATH_STRLEN)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->conn, conn, RAIL_PATH_STRLEN);
		__entry->error = error;
	),
	TP_printk("%s error=%d", __entry->conn, __entry->error)
);

#endif /* _TRACE_RAIL_RTRS_H */

#include <trace/define_trace.h>
