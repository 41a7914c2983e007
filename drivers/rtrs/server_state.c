// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: the states of a path, apart for KUnit. What they mean stands in server.h. */
#include "server.h"

/**
 * rsrv_path_may - is this move legal?
 * @from: state
 * @to: another one
 */
bool rsrv_path_may(enum rsrv_path_state from, enum rsrv_path_state to)
{
	static const u8 next[RSRV_NR_PATH_STATES] = {
		[RSRV_PATH_CONNECTING] = BIT(RSRV_PATH_INFO) | BIT(RSRV_PATH_CLOSING),
		[RSRV_PATH_INFO] = BIT(RSRV_PATH_UP) | BIT(RSRV_PATH_CLOSING),
		[RSRV_PATH_UP] = BIT(RSRV_PATH_CLOSING),
	};

	return next[from] & BIT(to);
}
