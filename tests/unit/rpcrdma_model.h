// SPDX-License-Identifier: GPL-2.0-only
// RPC-over-RDMA headers as plain C++ data: made at random, encoded, and read back out of a
// decoded buffer by the iterators that the kernel code uses.
#pragma once

#include "wire.h"

namespace rail
{

struct Segment {
	std::uint32_t handle;
	std::uint32_t length;
	std::uint64_t offset;

	bool operator==(const Segment &) const = default;
};

struct ReadChunk {
	std::uint32_t position;
	std::vector<Segment> segments;

	bool operator==(const ReadChunk &) const = default;
};

using Chunk = std::vector<Segment>;

struct Header {
	std::uint32_t xid = 0;
	std::uint32_t credit = 0;
	std::uint32_t proc = RAIL_RPCRDMA_MSG;
	std::uint32_t align = 0;
	std::uint32_t thresh = 0;
	std::vector<ReadChunk> reads;
	std::vector<Chunk> writes;
	bool has_reply = false;
	Chunk reply;
	Bytes body;

	bool operator==(const Header &) const = default;
};

// Rules that take anything that is well-formed.
rail_rpcrdma_rules AnyRules(rail_rpc_dir home, bool legacy);

// Encodes into a buffer of @size bytes; empty when the encoder says that it did not fit.
Bytes Encode(const Header &header, std::size_t size, rail_rpcrdma_lists *lists = nullptr);
std::size_t EncodedSize(const Header &header);

// What a valid MSG, NOMSG or MSGP in @buf says, by way of the iterators.
Header Read(const Bytes &buf, const rail_rpcrdma_hdr &hdr);

// Any decoded message, written anew.
Bytes Reencode(const Bytes &buf, const rail_rpcrdma_hdr &hdr);

std::uint64_t Total(const Chunk &chunk);

Header RandomHeader(Random &random, rail_rpc_dir dir, bool legacy);

} // namespace rail
