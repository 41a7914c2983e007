// SPDX-License-Identifier: GPL-2.0-only
#include "rpcrdma_model.h"

#include <algorithm>

namespace rail
{
namespace
{

rail_rpcrdma_seg ToWire(const Segment &segment)
{
	rail_rpcrdma_seg seg;

	seg.handle = segment.handle;
	seg.length = segment.length;
	seg.offset = segment.offset;
	return seg;
}

Chunk Segments(const Bytes &buf, const rail_rpcrdma_chunk &chunk)
{
	Chunk segments;

	for (std::uint32_t nr = 0; nr < chunk.nr_segs; nr++) {
		rail_rpcrdma_seg seg;

		rail_rpcrdma_get_seg(buf.data(), &chunk, nr, &seg);
		segments.push_back({seg.handle, seg.length, seg.offset});
	}
	return segments;
}

Segment RandomSegment(Random &random, bool may_be_empty)
{
	static constexpr std::uint32_t kLengths[] = {1, 3, 4, 5, 100, 4096, 65535, 1 << 20};
	Segment segment;

	segment.handle = random.Word();
	segment.length = may_be_empty && random.OneIn(3) ? 0 : kLengths[random.Below(8)];
	segment.offset = random.OneIn(8) ? ~0ULL - segment.length + 1 : random.Next() >> 1;
	return segment;
}

Chunk RandomChunk(Random &random, std::uint32_t least, bool may_be_empty)
{
	Chunk chunk;

	for (std::uint32_t nr = least + random.Below(4); nr; nr--)
		chunk.push_back(RandomSegment(random, may_be_empty));
	return chunk;
}

// A call offers chunks without holes, or one that is not to be used.
Chunk RandomTarget(Random &random, bool call)
{
	Chunk chunk = RandomChunk(random, 0, !call);

	if (call && random.OneIn(8))
		for (Segment &segment : chunk)
			segment.length = 0;
	return chunk;
}

Bytes RandomBody(Random &random, std::uint32_t xid, rail_rpc_dir dir)
{
	Bytes body((dir == RAIL_RPC_CALL ? RAIL_RPC_CALL_MIN : RAIL_RPC_REPLY_MIN) +
		   4 * random.Below(30));

	for (std::uint8_t &byte : body)
		byte = static_cast<std::uint8_t>(random.Word());
	rail_put_be32(body.data(), xid);
	rail_put_be32(body.data() + 4, dir);
	return body;
}

} // namespace

rail_rpcrdma_rules AnyRules(rail_rpc_dir home, bool legacy)
{
	rail_rpcrdma_rules rules = {};

	rules.max_read_segs = 0xffff;
	rules.max_read_chunks = 0xffff;
	rules.max_write_chunks = 0xffff;
	rules.max_chunk_segs = 0xffff;
	rules.home = home;
	rules.legacy = legacy;
	return rules;
}

std::uint64_t Total(const Chunk &chunk)
{
	std::uint64_t total = 0;

	for (const Segment &segment : chunk)
		total += segment.length;
	return total;
}

std::size_t EncodedSize(const Header &header)
{
	std::uint32_t read_segs = 0;
	std::uint32_t write_segs = 0;

	for (const ReadChunk &chunk : header.reads)
		read_segs += static_cast<std::uint32_t>(chunk.segments.size());
	for (const Chunk &chunk : header.writes)
		write_segs += static_cast<std::uint32_t>(chunk.size());
	return rail_rpcrdma_hdr_size(read_segs, static_cast<std::uint32_t>(header.writes.size()),
				     write_segs, header.has_reply,
				     static_cast<std::uint32_t>(header.reply.size())) +
	       (header.proc == RAIL_RPCRDMA_MSGP ? RAIL_RPCRDMA_MSGP_LEN : 0) + header.body.size();
}

Bytes Encode(const Header &header, std::size_t size, rail_rpcrdma_lists *lists)
{
	Bytes buf(size, 0xff); // so that a word that is not written shows
	rail_rpcrdma_enc enc;

	rail_rpcrdma_enc_init(&enc, buf.data(), Len(buf));
	rail_rpcrdma_enc_fixed(&enc, header.xid, header.credit,
			       static_cast<rail_rpcrdma_proc>(header.proc));
	if (header.proc == RAIL_RPCRDMA_MSGP)
		rail_rpcrdma_enc_msgp(&enc, header.align, header.thresh);
	for (const ReadChunk &chunk : header.reads)
		for (const Segment &segment : chunk.segments) {
			const rail_rpcrdma_seg seg = ToWire(segment);

			rail_rpcrdma_enc_read(&enc, chunk.position, &seg);
		}
	rail_rpcrdma_enc_reads_end(&enc);
	const auto put_segments = [&enc](const Chunk &chunk) {
		for (const Segment &segment : chunk) {
			const rail_rpcrdma_seg seg = ToWire(segment);

			rail_rpcrdma_enc_seg(&enc, &seg);
		}
		rail_rpcrdma_enc_chunk_end(&enc);
	};
	for (const Chunk &chunk : header.writes) {
		rail_rpcrdma_enc_write_begin(&enc);
		put_segments(chunk);
	}
	rail_rpcrdma_enc_writes_end(&enc);
	if (header.has_reply) {
		rail_rpcrdma_enc_reply_begin(&enc);
		put_segments(header.reply);
	} else {
		rail_rpcrdma_enc_no_reply(&enc);
	}
	if (!header.body.empty())
		rail_rpcrdma_enc_body(&enc, header.body.data(), Len(header.body));
	if (lists)
		*lists = enc.lists;
	buf.resize(rail_rpcrdma_enc_finish(&enc));
	return Exact(buf, buf.size());
}

Header Read(const Bytes &buf, const rail_rpcrdma_hdr &hdr)
{
	rail_rpcrdma_chunk chunk;
	rail_rpcrdma_iter it;
	Header header;

	header.xid = hdr.xid;
	header.credit = hdr.credit;
	header.proc = hdr.proc;
	header.align = hdr.align;
	header.thresh = hdr.thresh;
	rail_rpcrdma_read_iter(&it, &hdr.lists);
	while (rail_rpcrdma_next_read(buf.data(), &it, &chunk))
		header.reads.push_back({chunk.position, Segments(buf, chunk)});
	rail_rpcrdma_write_iter(&it, &hdr.lists);
	while (rail_rpcrdma_next_write(buf.data(), &it, &chunk))
		header.writes.push_back(Segments(buf, chunk));
	header.has_reply = rail_rpcrdma_reply_chunk(buf.data(), &hdr.lists, &chunk);
	if (header.has_reply)
		header.reply = Segments(buf, chunk);
	header.body.assign(buf.begin() + hdr.body_at, buf.begin() + hdr.body_at + hdr.body_len);
	return header;
}

Bytes Reencode(const Bytes &buf, const rail_rpcrdma_hdr &hdr)
{
	rail_rpcrdma_enc enc;
	Bytes copy(buf.size(), 0xff);

	if (hdr.proc != RAIL_RPCRDMA_DONE && hdr.proc != RAIL_RPCRDMA_ERROR)
		return Encode(Read(buf, hdr), buf.size());
	rail_rpcrdma_enc_init(&enc, copy.data(), Len(copy));
	if (hdr.proc == RAIL_RPCRDMA_DONE)
		rail_rpcrdma_enc_done(&enc, hdr.xid, hdr.credit);
	else if (hdr.err == RAIL_RPCRDMA_ERR_VERS)
		rail_rpcrdma_enc_err_vers(&enc, hdr.xid, hdr.credit, hdr.vers_low, hdr.vers_high);
	else
		rail_rpcrdma_enc_err_chunk(&enc, hdr.xid, hdr.credit);
	copy.resize(rail_rpcrdma_enc_finish(&enc));
	return copy;
}

Header RandomHeader(Random &random, rail_rpc_dir dir, bool legacy)
{
	const bool call = dir == RAIL_RPC_CALL;
	std::uint32_t stream; // what of the RPC message is not in later read chunks
	std::uint64_t moved = 0;
	Header header;

	header.xid = random.Word();
	header.credit = random.Word();
	header.proc = random.OneIn(3) ? RAIL_RPCRDMA_NOMSG : RAIL_RPCRDMA_MSG;
	if (legacy && random.OneIn(4)) {
		header.proc = RAIL_RPCRDMA_MSGP;
		header.align = 4U << random.Below(10);
		header.thresh = 1 + random.Below(4096);
	}
	for (std::uint32_t nr = random.Below(4); nr; nr--)
		header.writes.push_back(RandomTarget(random, call));
	header.has_reply = random.OneIn(2);
	if (header.has_reply)
		header.reply = RandomTarget(random, call);

	if (header.proc != RAIL_RPCRDMA_NOMSG) {
		header.body = RandomBody(random, header.xid, dir);
		stream = Len(header.body);
	} else if (call) {
		Chunk chunk = RandomChunk(random, 1, false);

		chunk[0].length = std::max(chunk[0].length, std::uint32_t{RAIL_RPC_CALL_MIN});
		chunk[0].offset = random.Next() >> 1;
		stream = static_cast<std::uint32_t>(Total(chunk));
		header.reads.push_back({0, chunk});
	} else {
		header.has_reply = true;
		header.reply.insert(header.reply.begin(), {random.Word(), 512, 4096});
		stream = static_cast<std::uint32_t>(Total(header.reply));
	}

	const std::uint32_t first = call ? RAIL_RPC_CALL_MIN : RAIL_RPC_ACCEPTED_MIN;
	std::uint32_t at = first & ~3U;

	if (!call && !legacy)
		return header;
	for (std::uint32_t nr = random.Below(4); nr && at <= stream; nr--) {
		Chunk chunk = RandomChunk(random, 1, false);

		at += 4 * random.Below((stream - at) / 4 + 1);
		header.reads.push_back({at + static_cast<std::uint32_t>(moved), chunk});
		moved += (Total(chunk) + 3) & ~3ULL;
	}
	return header;
}

} // namespace rail
