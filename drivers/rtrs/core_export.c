// SPDX-License-Identifier: GPL-2.0-only
/* The codecs know nothing of the kernel, so they are exported from here. */
#include <linux/export.h>
#include <rail/wire/rnbd.h>
#include <rail/wire/rtrs.h>

EXPORT_SYMBOL_GPL(rail_rtrs_reason_text);
EXPORT_SYMBOL_GPL(rail_rtrs_params_init);
EXPORT_SYMBOL_GPL(rail_rtrs_conn_req_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_conn_req_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_conn_rsp_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_accept_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_reject_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_name_check);
EXPORT_SYMBOL_GPL(rail_rtrs_info_req_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_info_req_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_info_rsp_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_info_rsp_get);
EXPORT_SYMBOL_GPL(rail_rtrs_info_rsp_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_info_rsp_put);
EXPORT_SYMBOL_GPL(rail_rtrs_imm_server);
EXPORT_SYMBOL_GPL(rail_rtrs_imm_client);
EXPORT_SYMBOL_GPL(rail_rtrs_imm_rsp);
EXPORT_SYMBOL_GPL(rail_rtrs_req_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_write_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_read_encode);
EXPORT_SYMBOL_GPL(rail_rtrs_rkey_rsp_decode);
EXPORT_SYMBOL_GPL(rail_rtrs_rkey_rsp_encode);
EXPORT_SYMBOL_GPL(rail_rnbd_reason_text);
EXPORT_SYMBOL_GPL(rail_rnbd_type_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_sess_info_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_sess_info_rsp_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_sess_info_encode);
EXPORT_SYMBOL_GPL(rail_rnbd_name_check);
EXPORT_SYMBOL_GPL(rail_rnbd_name_climbs);
EXPORT_SYMBOL_GPL(rail_rnbd_open_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_open_encode);
EXPORT_SYMBOL_GPL(rail_rnbd_open_rsp_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_open_rsp_encode);
EXPORT_SYMBOL_GPL(rail_rnbd_io_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_io_in_range);
EXPORT_SYMBOL_GPL(rail_rnbd_io_encode);
EXPORT_SYMBOL_GPL(rail_rnbd_close_decode);
EXPORT_SYMBOL_GPL(rail_rnbd_close_encode);
