/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rail_verbs

#if !defined(_TRACE_RAIL_VERBS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RAIL_VERBS_H

#include <linux/tracepoint.h>
#include <rail/verbs.h>

TRACE_DEFINE_ENUM(RAIL_IDLE);
TRACE_DEFINE_ENUM(RAIL_RESOLVING);
TRACE_DEFINE_ENUM(RAIL_CONNECTING);
TRACE_DEFINE_ENUM(RAIL_UP);
TRACE_DEFINE_ENUM(RAIL_CLOSING);
TRACE_DEFINE_ENUM(RAIL_DEAD);

#define rail_show_state(state) \
	__print_symbolic(state, { RAIL_IDLE, "idle" }, { RAIL_RESOLVING, "resolving" }, \
			 { RAIL_CONNECTING, "connecting" }, { RAIL_UP, "up" }, \
			 { RAIL_CLOSING, "closing" }, { RAIL_DEAD, "dead" })

/* A connection moved to another state; @reason counts for "closing". */
TRACE_EVENT(rail_conn_state,
	TP_PROTO(u32 id, const char *name, int from, int to, int reason),
	TP_ARGS(id, name, from, to, reason),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, name, RAIL_PATH_STRLEN)
		__field(int, from)
		__field(int, to)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		strscpy(__entry->name, name, RAIL_PATH_STRLEN);
		__entry->from = from;
		__entry->to = to;
		__entry->reason = reason;
	),
	TP_printk("conn=%u %s %s -> %s reason=%d", __entry->id, __entry->name,
		  rail_show_state(__entry->from), rail_show_state(__entry->to), __entry->reason)
);

/* The CM told something of a connection. */
TRACE_EVENT(rail_conn_event,
	TP_PROTO(u32 id, const char *name, int event, int status),
	TP_ARGS(id, name, event, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, name, RAIL_PATH_STRLEN)
		__field(int, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = id;
		strscpy(__entry->name, name, RAIL_PATH_STRLEN);
		__entry->event = event;
		__entry->status = status;
	),
	TP_printk("conn=%u %s event=%d status=%d", __entry->id, __entry->name, __entry->event,
		  __entry->status)
);

#endif /* _TRACE_RAIL_VERBS_H */

#include <trace/define_trace.h>
