// SPDX-License-Identifier: GPL-2.0-only
// Any bytes as an RPC-over-RDMA message: nothing is read beyond them, what is refused has a
// reason, and what is taken has exactly one encoding.
#include "check.h"
#include "rpcrdma_model.h"

namespace
{

constexpr std::uint8_t kPickReply = 0x01;
constexpr std::uint8_t kPickLegacy = 0x02;
constexpr std::uint8_t kPickSmall = 0x04;
constexpr std::uint8_t kPickPrivate = 0x08;

void FuzzPrivateData(const rail::Bytes &data)
{
	rail_rpcrdma_conn conn;

	const bool found = rail_rpcrdma_cm_decode(data.data(), rail::Len(data), &conn);

	CHECK(conn.send_max >= 1024 && conn.send_max <= RAIL_RPCRDMA_INLINE_MAX);
	CHECK(conn.recv_max >= 1024 && conn.recv_max <= RAIL_RPCRDMA_INLINE_MAX);
	CHECK(found || !conn.remote_inval);
}

// As a responder would hand the lists back, in both of its ways.
void FuzzReturned(const rail::Bytes &call, const rail_rpcrdma_hdr &hdr, std::uint32_t pick)
{
	rail::Bytes reply(call.size() + RAIL_RPCRDMA_HDR_MIN);
	rail_rpcrdma_chunk chunk;
	rail_rpcrdma_iter it;
	rail_rpcrdma_enc enc;

	rail_rpcrdma_enc_init(&enc, reply.data(), rail::Len(reply));
	rail_rpcrdma_enc_fixed(&enc, hdr.xid, 1, RAIL_RPCRDMA_MSG);
	rail_rpcrdma_enc_reads_end(&enc);
	rail_rpcrdma_write_iter(&it, &hdr.lists);
	while (rail_rpcrdma_next_write(call.data(), &it, &chunk)) {
		const std::uint32_t written = chunk.length ? chunk.length / (1 + pick % 3) : 0;
		rail::Bytes patched = call;

		rail_rpcrdma_enc_returned(&enc, call.data(), &chunk, written);
		CHECK(rail_rpcrdma_patch(patched.data(), &chunk, written));
		const std::uint32_t bytes = chunk.nr_segs * chunk.stride;
		CHECK(!bytes ||
		      !memcmp(reply.data() + enc.len - bytes, patched.data() + chunk.at, bytes));
		CHECK(chunk.length == 0xffffffff ||
		      !rail_rpcrdma_patch(patched.data(), &chunk, chunk.length + 1));
	}
	rail_rpcrdma_enc_writes_end(&enc);
	if (rail_rpcrdma_reply_chunk(call.data(), &hdr.lists, &chunk))
		rail_rpcrdma_enc_returned(&enc, call.data(), &chunk, chunk.length);
	else
		rail_rpcrdma_enc_no_reply(&enc);
	CHECK(rail_rpcrdma_enc_finish(&enc));
	CHECK(!rail_rpcrdma_check_returned(call.data(), &hdr.lists, reply.data(), &enc.lists));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const rail::Input input(data, size);
	const auto home = input.pick & kPickReply ? RAIL_RPC_REPLY : RAIL_RPC_CALL;
	rail_rpcrdma_rules rules = rail::AnyRules(home, input.pick & kPickLegacy);
	rail_rpcrdma_hdr hdr;

	if (input.pick & kPickPrivate) {
		FuzzPrivateData(input.message);
		return 0;
	}
	if (input.pick & kPickSmall) {
		rules.max_msg = 4096;
		rules.max_read_segs = rules.max_chunk_segs = 3;
		rules.max_read_chunks = rules.max_write_chunks = 2;
	}
	const auto reason =
		rail_rpcrdma_decode(input.message.data(), rail::Len(input.message), &rules, &hdr);
	const auto answer = rail_rpcrdma_answer(reason, &hdr);
	CHECK(reason < RAIL_RPCRDMA_RET_CHUNKS && rail_rpcrdma_reason_text(reason));
	CHECK(answer == RAIL_RPCRDMA_DROP || hdr.dir == RAIL_RPC_CALL);
	if (reason)
		return 0;
	CHECK(hdr.body_at + hdr.body_len == input.message.size());
	CHECK(hdr.lists.nr_read_segs <= rules.max_read_segs);
	CHECK(hdr.nr_read_chunks <= rules.max_read_chunks);
	CHECK(hdr.lists.nr_write_chunks <= rules.max_write_chunks);
	CHECK(!rules.max_msg || hdr.msg_len <= rules.max_msg);
	CHECK(rail::Reencode(input.message, hdr) == input.message);
	if (hdr.proc < RAIL_RPCRDMA_DONE)
		FuzzReturned(input.message, hdr, input.pick >> 4);
	return 0;
}
