// SPDX-License-Identifier: GPL-2.0-only
// Any bytes as each of the RTRS messages.
#include "check.h"

namespace
{

using rail::Len;

constexpr std::uint32_t kDepth = 16;

rail_rtrs_params Params(std::uint32_t io, std::uint32_t hdr, bool new_rkey)
{
	rail_rtrs_params params;

	CHECK(!rail_rtrs_params_init(&params, kDepth, io, hdr, new_rkey));
	return params;
}

void FuzzConnReq(const rail::Bytes &bytes)
{
	rail_rtrs_conn_req msg;
	rail_rtrs_conn again;
	rail_rtrs_conn conn;

	if (rail_rtrs_conn_req_decode(bytes.data(), Len(bytes), &conn))
		return;
	CHECK(conn.cid < conn.cid_num && conn.cid_num <= RAIL_RTRS_MAX_CONS);
	rail_rtrs_conn_req_encode(&msg, &conn);
	CHECK(!rail_rtrs_conn_req_decode(&msg, sizeof(msg), &again));
	CHECK(again.cid == conn.cid && again.recon_cnt == conn.recon_cnt);
}

void FuzzConnRsp(const rail::Bytes &bytes)
{
	rail_rtrs_params params;
	rail_rtrs_params again;
	rail_rtrs_conn_rsp msg;
	int error;

	const auto reason = rail_rtrs_conn_rsp_decode(bytes.data(), Len(bytes), &params, &error);

	CHECK((reason == RAIL_RTRS_REFUSED) == (error != 0));
	CHECK(error <= 0 && error >= -4095);
	if (reason)
		return;
	CHECK(params.chunk_size <= 1U << params.mem_bits);
	rail_rtrs_accept_encode(&msg, &params);
	CHECK(!rail_rtrs_conn_rsp_decode(&msg, sizeof(msg), &again, &error));
	CHECK(again.chunk_size == params.chunk_size && again.mem_bits == params.mem_bits);
}

void FuzzInfo(const rail::Bytes &bytes, bool new_rkey)
{
	const rail_rtrs_params params = Params(126976, 4096, new_rkey);
	char name[RAIL_RTRS_NAME_LEN];
	std::uint32_t sg_cnt;
	std::uint64_t total = 0;

	if (!rail_rtrs_info_req_decode(bytes.data(), Len(bytes), name))
		CHECK(*name && strlen(name) < sizeof(name) && !strpbrk(name, "/."));
	if (rail_rtrs_info_rsp_decode(bytes.data(), Len(bytes), &params, &sg_cnt)) {
		CHECK(!sg_cnt);
		return;
	}
	for (std::uint32_t nr = 0; nr < sg_cnt; nr++) {
		rail_rtrs_mem mem;

		rail_rtrs_info_rsp_get(bytes.data(), nr, &mem);
		total += mem.len;
	}
	CHECK(total == std::uint64_t{kDepth} * params.chunk_size);
}

void FuzzSmall(const rail::Bytes &bytes)
{
	const rail_rtrs_params params = Params(126976, 4096, true);
	rail_rtrs_req req;
	std::uint32_t buf_id;

	if (rail_rtrs_small_decode(bytes.data(), Len(bytes), &params, &buf_id, &req))
		return;
	CHECK(buf_id < kDepth && req.data_len <= RAIL_RTRS_SMALL_DATA && !req.inval);
	CHECK(req.usr_at + req.usr_len <= RAIL_RTRS_SMALL_HDR);
	if (req.type == RAIL_RTRS_WRITE)
		CHECK(bytes.size() == RAIL_RTRS_SMALL_HDR + std::size_t{req.data_len});
	else
		CHECK(bytes.size() == RAIL_RTRS_SMALL_HDR && req.data_len <= req.mem.len);
}

void FuzzSmallRsps(const rail::Bytes &bytes)
{
	std::uint32_t rsp[RAIL_RTRS_SMALL_RSPS_MAX];
	std::uint32_t count;

	if (rail_rtrs_small_rsps_decode(bytes.data(), Len(bytes), rsp, &count)) {
		CHECK(!count);
		return;
	}
	CHECK(bytes.size() == 4 + std::size_t{4} * count);
}

// The first four bytes are the immediate value, the rest lies where that points to.
void FuzzRequest(const rail::Bytes &bytes)
{
	const rail_rtrs_params params = Params(512, 128, false);
	rail::Bytes chunk(params.chunk_size);
	rail_rtrs_imm imm;
	rail_rtrs_req req;

	if (bytes.size() < 4)
		return;
	const std::uint32_t value = rail_get_be32(bytes.data());
	const std::uint32_t off = value & 0xfff;
	for (std::size_t at = 4; at < bytes.size() && off + at - 4 < chunk.size(); at++)
		chunk[off + at - 4] = bytes[at];
	if (!rail_rtrs_imm_client(value, &params, &imm))
		CHECK(imm.buf_id < kDepth && imm.error <= 0);
	if (!rail_rtrs_imm_server(value, &params, &imm))
		CHECK(imm.buf_id < kDepth && imm.off <= params.chunk_size - 4);
	const auto reason = rail_rtrs_req_decode(chunk.data(), &params, off, 0, &req);
	CHECK(rail_rtrs_reason_text(reason));
	if (reason)
		return;
	CHECK(req.data_len <= params.max_io_size);
	CHECK(req.usr_at + req.usr_len <= params.chunk_size);
	CHECK(req.has_mem || !req.inval);
	CHECK(req.type != RAIL_RTRS_READ || req.data_len <= req.mem.len);
}

void FuzzRkeyRsp(const rail::Bytes &bytes)
{
	rail_rtrs_rkey_rsp msg;
	std::uint32_t rkey;

	if (rail_rtrs_rkey_rsp_decode(bytes.data(), Len(bytes), 1, &rkey))
		return;
	rail_rtrs_rkey_rsp_encode(&msg, 1, rkey);
	CHECK(!memcmp(&msg, bytes.data(), sizeof(msg)));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const rail::Input input(data, size);

	switch (input.pick % 8) {
	case 0:
		FuzzConnReq(input.message);
		break;
	case 1:
		FuzzConnRsp(input.message);
		break;
	case 2:
	case 3:
		FuzzInfo(input.message, input.pick % 8 == 3);
		break;
	case 4:
		FuzzRequest(input.message);
		break;
	case 5:
		FuzzRkeyRsp(input.message);
		break;
	case 6:
		FuzzSmall(input.message);
		break;
	default:
		FuzzSmallRsps(input.message);
	}
	return 0;
}
