// SPDX-License-Identifier: GPL-2.0-only
/* The codecs know nothing of the kernel, so they are exported from here. */
#include <linux/export.h>
#include <rail/wire/rnbd.h>
#include <rail/wire/rtrs.h>

#define WIRE	EXPORT_SYMBOL_GPL

WIRE(rail_rtrs_reason_text);
WIRE(rail_rtrs_params_init);
WIRE(rail_rtrs_conn_req_decode);
WIRE(rail_rtrs_conn_req_encode);
WIRE(rail_rtrs_conn_rsp_decode);
WIRE(rail_rtrs_accept_encode);
WIRE(rail_rtrs_reject_encode);
WIRE(rail_rtrs_name_check);
WIRE(rail_rtrs_info_req_decode);
WIRE(rail_rtrs_info_req_encode);
WIRE(rail_rtrs_info_rsp_decode);
WIRE(rail_rtrs_info_rsp_get);
WIRE(rail_rtrs_info_rsp_encode);
WIRE(rail_rtrs_info_rsp_put);
WIRE(rail_rtrs_imm_server);
WIRE(rail_rtrs_imm_client);
WIRE(rail_rtrs_imm_rsp);
WIRE(rail_rtrs_req_decode);
WIRE(rail_rtrs_write_encode);
WIRE(rail_rtrs_read_encode);
WIRE(rail_rtrs_small_encode);
WIRE(rail_rtrs_small_decode);
WIRE(rail_rtrs_small_rsps_put);
WIRE(rail_rtrs_small_rsps_decode);
WIRE(rail_rtrs_rkey_rsp_decode);
WIRE(rail_rtrs_rkey_rsp_encode);
WIRE(rail_rnbd_reason_text);
WIRE(rail_rnbd_type_decode);
WIRE(rail_rnbd_sess_info_decode);
WIRE(rail_rnbd_sess_info_rsp_decode);
WIRE(rail_rnbd_sess_info_encode);
WIRE(rail_rnbd_ext_encode);
WIRE(rail_rnbd_ext_decode);
WIRE(rail_rnbd_size_encode);
WIRE(rail_rnbd_size_decode);
WIRE(rail_rnbd_name_check);
WIRE(rail_rnbd_name_climbs);
WIRE(rail_rnbd_open_decode);
WIRE(rail_rnbd_open_encode);
WIRE(rail_rnbd_open_rsp_decode);
WIRE(rail_rnbd_open_rsp_encode);
WIRE(rail_rnbd_io_decode);
WIRE(rail_rnbd_io_in_range);
WIRE(rail_rnbd_io_encode);
WIRE(rail_rnbd_close_decode);
WIRE(rail_rnbd_close_encode);
