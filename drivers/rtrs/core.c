// SPDX-License-Identifier: GPL-2.0-only
/* rtrs-core: what client and server share. */
#include <linux/module.h>

#define CREATE_TRACE_POINTS
#include <trace/events/rail_rtrs.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(rail_clt_path);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_clt_req_start);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_clt_req_failover);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_clt_req_done);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_srv_path);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_srv_req_start);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_srv_req_done);
EXPORT_TRACEPOINT_SYMBOL_GPL(rail_srv_refused);

MODULE_DESCRIPTION("RAIL: RTRS, what client and server share");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
