// SPDX-License-Identifier: GPL-2.0-only
// The RPC-over-RDMA codec: every refusal, the answers they deserve, round trips, hostile bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "rpcrdma_model.h"
#include "vectors.h"

namespace rail
{
namespace
{

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kXid = 0x0badcafe;
constexpr std::uint32_t kMost = 0xffffffff;

const Words kCall = {kXid, 0, 2, 100003, 3, 0, 0, 0, 0, 0};
const Words kReply = {kXid, 1, 0, 0, 0, 0};

Words operator+(Words a, const Words &b)
{
	a.insert(a.end(), b.begin(), b.end());
	return a;
}

Words Fixed(std::uint32_t proc)
{
	return {kXid, 1, 32, proc};
}

Words Seg(std::uint32_t length, std::uint32_t high = 0, std::uint32_t low = 0x1000)
{
	return {0x1234, length, high, low};
}

Words ReadSeg(std::uint32_t position, std::uint32_t length)
{
	return Words{1, position} + Seg(length);
}

Words Target(std::uint32_t count, const Words &segments)
{
	return Words{1, count} + segments;
}

const Words kNone = {0};
const Words kEmpty = {0, 0, 0};

Bytes ToBytes(const Words &words, std::size_t cut = 0)
{
	Bytes bytes(words.size() * 4);

	for (std::size_t nr = 0; nr < words.size(); nr++)
		rail_put_be32(&bytes[nr * 4], words[nr]);
	return Exact(bytes, bytes.size() - cut);
}

// Tight enough to be reached by a table that a person can read.
rail_rpcrdma_rules SmallRules(rail_rpc_dir home, bool legacy = false)
{
	rail_rpcrdma_rules rules = {};

	rules.max_msg = 1 << 20;
	rules.max_read_segs = 6;
	rules.max_read_chunks = 3;
	rules.max_write_chunks = 2;
	rules.max_chunk_segs = 3;
	rules.home = home;
	rules.legacy = legacy;
	return rules;
}

enum class At { kServer, kClient, kLegacyServer, kLegacyClient };

rail_rpcrdma_rules RulesAt(At at)
{
	return SmallRules(at == At::kServer || at == At::kLegacyServer ? RAIL_RPC_CALL
								       : RAIL_RPC_REPLY,
			  at == At::kLegacyServer || at == At::kLegacyClient);
}

struct Malformed {
	const char *name;
	At at;
	Words words;
	std::size_t cut; // bytes missing at the end
	rail_rpcrdma_reason reason;
	rail_rpcrdma_verdict answer;
};

void PrintTo(const Malformed &row, std::ostream *os)
{
	*os << row.name;
}

constexpr auto kDrop = RAIL_RPCRDMA_DROP;
constexpr auto kErrVers = RAIL_RPCRDMA_SEND_ERR_VERS;
constexpr auto kErrChunk = RAIL_RPCRDMA_SEND_ERR_CHUNK;

const Malformed kMalformed[] = {
	// The fixed part.
	{"Nothing", At::kServer, {}, 0, RAIL_RPCRDMA_SHORT, kDrop},
	{"XidOnly", At::kServer, {kXid}, 0, RAIL_RPCRDMA_SHORT, kDrop},
	{"FixedLessOneByte", At::kServer, Fixed(0), 1, RAIL_RPCRDMA_SHORT, kDrop},
	{"Version0", At::kServer, {kXid, 0, 32, 0}, 0, RAIL_RPCRDMA_BAD_VERS, kErrVers},
	{"Version2", At::kServer, Words{kXid, 2, 32, 0, 0, 0, 0} + kCall, 0, RAIL_RPCRDMA_BAD_VERS,
	 kErrVers},
	{"Version2Error", At::kServer, {kXid, 2, 32, 4}, 0, RAIL_RPCRDMA_BAD_VERS, kDrop},
	{"Version2AtClient", At::kClient, {kXid, 2, 32, 0}, 0, RAIL_RPCRDMA_BAD_VERS, kDrop},
	{"Proc5", At::kServer, Fixed(5) + kEmpty + kCall, 0, RAIL_RPCRDMA_BAD_PROC, kErrChunk},
	{"ProcMost", At::kServer, Fixed(kMost), 0, RAIL_RPCRDMA_BAD_PROC, kErrChunk},
	{"Proc5AtClient", At::kClient, Fixed(5), 0, RAIL_RPCRDMA_BAD_PROC, kDrop},

	// The read list.
	{"NoReadList", At::kServer, Fixed(0), 0, RAIL_RPCRDMA_READ_SHORT, kErrChunk},
	{"ReadListCutInWord", At::kServer, Fixed(0) + kNone, 1, RAIL_RPCRDMA_READ_SHORT, kErrChunk},
	{"ReadListCutInSegment", At::kServer, Fixed(0) + ReadSeg(40, 4), 1, RAIL_RPCRDMA_READ_SHORT,
	 kErrChunk},
	{"ReadListNeverEnds", At::kServer, Fixed(0) + ReadSeg(40, 4) + ReadSeg(40, 4), 0,
	 RAIL_RPCRDMA_READ_SHORT, kErrChunk},
	{"ReadListAtClient", At::kClient, Fixed(0), 0, RAIL_RPCRDMA_READ_SHORT, kDrop},
	{"ReadWord2", At::kServer, Fixed(0) + Words{2, 40} + Seg(4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_READ_WORD, kErrChunk},
	{"ReadSecondWordMost", At::kServer, Fixed(0) + ReadSeg(40, 4) + Words{kMost}, 0,
	 RAIL_RPCRDMA_READ_WORD, kErrChunk},
	{"SevenReadSegments", At::kServer,
	 Fixed(0) + ReadSeg(40, 4) + ReadSeg(40, 4) + ReadSeg(40, 4) + ReadSeg(40, 4) +
		 ReadSeg(40, 4) + ReadSeg(40, 4) + ReadSeg(40, 4) + kEmpty + kCall,
	 0, RAIL_RPCRDMA_READ_SEGS, kErrChunk},
	{"FourReadChunks", At::kServer,
	 Fixed(0) + ReadSeg(40, 4) + ReadSeg(44, 4) + ReadSeg(48, 4) + ReadSeg(52, 4) + kEmpty +
		 kCall,
	 0, RAIL_RPCRDMA_READ_CHUNKS, kErrChunk},
	{"ReadSegmentEmpty", At::kServer, Fixed(0) + ReadSeg(40, 0) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_READ_ZERO, kErrChunk},
	{"ReadSecondSegmentEmpty", At::kServer,
	 Fixed(0) + ReadSeg(40, 4) + ReadSeg(40, 0) + kEmpty + kCall, 0, RAIL_RPCRDMA_READ_ZERO,
	 kErrChunk},
	{"CallChunkEmpty", At::kServer, Fixed(1) + ReadSeg(0, 0) + kEmpty, 0,
	 RAIL_RPCRDMA_READ_ZERO, kErrChunk},
	{"ReadChunkWraps", At::kServer,
	 Fixed(0) + ReadSeg(40, kMost) + ReadSeg(40, 1) + kEmpty + kCall, 0, RAIL_RPCRDMA_READ_WRAP,
	 kErrChunk},
	{"CallChunkWraps", At::kServer,
	 Fixed(1) + ReadSeg(0, 1 << 31) + ReadSeg(0, 1 << 31) + kEmpty, 0, RAIL_RPCRDMA_READ_WRAP,
	 kErrChunk},
	{"ReadChunksWrapTogether", At::kServer,
	 Fixed(0) + ReadSeg(40, 1U << 31) + ReadSeg(40 + (1U << 31), 1U << 31) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_READ_WRAP, kErrChunk},
	{"ReadAddressWraps", At::kServer,
	 Fixed(0) + Words{1, 40} + Seg(2, kMost, kMost) + kEmpty + kCall, 0, RAIL_RPCRDMA_READ_ADDR,
	 kErrChunk},
	{"ReadListInReply", At::kClient, Fixed(0) + ReadSeg(24, 4) + kEmpty + kReply, 0,
	 RAIL_RPCRDMA_READ_REPLY, kDrop},
	{"ReadListInReverseReply", At::kServer, Fixed(0) + ReadSeg(24, 4) + kEmpty + kReply, 0,
	 RAIL_RPCRDMA_READ_REPLY, kDrop},
	{"PositionOdd", At::kServer, Fixed(0) + ReadSeg(41, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_ALIGN, kErrChunk},
	{"PositionHalf", At::kServer, Fixed(0) + ReadSeg(42, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_ALIGN, kErrChunk},
	{"PositionBackwards", At::kServer,
	 Fixed(0) + ReadSeg(44, 4) + ReadSeg(40, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_POS_BACK,
	 kErrChunk},
	{"PositionComesAgain", At::kServer,
	 Fixed(0) + ReadSeg(40, 4) + ReadSeg(44, 4) + ReadSeg(40, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_BACK, kErrChunk},
	{"CallChunkComesLast", At::kServer, Fixed(1) + ReadSeg(40, 4) + ReadSeg(0, 64) + kEmpty, 0,
	 RAIL_RPCRDMA_POS_BACK, kErrChunk},
	{"PositionInChunkBefore", At::kServer,
	 Fixed(0) + ReadSeg(40, 100) + ReadSeg(136, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_POS_INSIDE,
	 kErrChunk},
	{"PositionInPadOfChunkBefore", At::kServer,
	 Fixed(0) + ReadSeg(40, 5) + ReadSeg(44, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_POS_INSIDE,
	 kErrChunk},
	{"PositionZeroInline", At::kServer, Fixed(0) + ReadSeg(0, 64) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_ZERO, kErrChunk},
	{"PositionInRpcHeader", At::kServer, Fixed(0) + ReadSeg(36, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_HEADER, kErrChunk},
	{"PositionInRpcHeaderOfReply", At::kLegacyClient,
	 Fixed(0) + ReadSeg(20, 4) + kEmpty + kReply, 0, RAIL_RPCRDMA_POS_HEADER, kDrop},
	{"PositionInRpcHeaderNomsg", At::kServer,
	 Fixed(1) + ReadSeg(0, 64) + ReadSeg(4, 4) + kEmpty, 0, RAIL_RPCRDMA_POS_HEADER, kErrChunk},
	{"PositionPastMessage", At::kServer, Fixed(0) + ReadSeg(44, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_PAST, kErrChunk},
	{"PositionPastMessageSecond", At::kServer,
	 Fixed(0) + ReadSeg(40, 4) + ReadSeg(48, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_POS_PAST,
	 kErrChunk},
	{"PositionPastCallChunk", At::kServer, Fixed(1) + ReadSeg(0, 64) + ReadSeg(68, 4) + kEmpty,
	 0, RAIL_RPCRDMA_POS_PAST, kErrChunk},
	{"PositionMost", At::kServer, Fixed(0) + ReadSeg(kMost & ~3U, 4) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_POS_PAST, kErrChunk},

	// The write list.
	{"NoWriteList", At::kServer, Fixed(0) + kNone, 0, RAIL_RPCRDMA_WRITE_SHORT, kErrChunk},
	{"WriteListWithoutCount", At::kServer, Fixed(0) + kNone + Words{1}, 0,
	 RAIL_RPCRDMA_WRITE_SHORT, kErrChunk},
	{"WriteListNeverEnds", At::kServer, Fixed(0) + kNone + Target(1, Seg(4)), 0,
	 RAIL_RPCRDMA_WRITE_SHORT, kErrChunk},
	{"WriteWord2", At::kServer, Fixed(0) + Words{0, 2, 0, 0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_WORD, kErrChunk},
	{"WriteWordSwapped", At::kServer, Fixed(0) + Words{0, 0x01000000, 0, 0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_WORD, kErrChunk},
	{"ThreeWriteChunks", At::kServer,
	 Fixed(0) + kNone + Target(0, {}) + Target(0, {}) + Target(0, {}) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_CHUNKS, kErrChunk},
	{"WriteCountPast", At::kServer, Fixed(0) + kNone + Target(3, Seg(4) + Seg(4)), 0,
	 RAIL_RPCRDMA_WRITE_COUNT, kErrChunk},
	{"WriteCountWraps", At::kServer,
	 Fixed(0) + kNone + Target(0x10000000, {}) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_COUNT, kErrChunk},
	{"WriteCountWrapsToOne", At::kServer,
	 Fixed(0) + kNone + Target(0x10000001, Seg(4)) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_COUNT, kErrChunk},
	{"WriteCountMost", At::kServer, Fixed(0) + kNone + Target(kMost, Seg(4)) + kCall, 0,
	 RAIL_RPCRDMA_WRITE_COUNT, kErrChunk},
	{"FourWriteSegments", At::kServer,
	 Fixed(0) + kNone + Target(4, Seg(4) + Seg(4) + Seg(4) + Seg(4)) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_SEGS, kErrChunk},
	{"WriteSegmentEmpty", At::kServer,
	 Fixed(0) + kNone + Target(2, Seg(4) + Seg(0)) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_ZERO, kErrChunk},
	{"WriteChunkWraps", At::kServer,
	 Fixed(0) + kNone + Target(2, Seg(kMost) + Seg(1)) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_WRAP, kErrChunk},
	{"WriteAddressWraps", At::kServer,
	 Fixed(0) + kNone + Target(1, Seg(17, kMost, 0xfffffff0)) + Words{0, 0} + kCall, 0,
	 RAIL_RPCRDMA_WRITE_ADDR, kErrChunk},

	// The reply chunk.
	{"NoReplyChunk", At::kServer, Fixed(0) + Words{0, 0}, 0, RAIL_RPCRDMA_REPLY_SHORT,
	 kErrChunk},
	{"ReplyChunkWithoutCount", At::kServer, Fixed(0) + Words{0, 0, 1}, 0,
	 RAIL_RPCRDMA_REPLY_SHORT, kErrChunk},
	{"ReplyWord2", At::kServer, Fixed(0) + Words{0, 0, 2} + kCall, 0, RAIL_RPCRDMA_REPLY_WORD,
	 kErrChunk},
	{"ReplyCountPast", At::kServer, Fixed(0) + Words{0, 0} + Target(2, Seg(4)), 0,
	 RAIL_RPCRDMA_REPLY_COUNT, kErrChunk},
	{"ReplyCountWraps", At::kServer, Fixed(0) + Words{0, 0} + Target(0x10000000, kCall), 0,
	 RAIL_RPCRDMA_REPLY_COUNT, kErrChunk},
	{"FourReplySegments", At::kServer,
	 Fixed(0) + Words{0, 0} + Target(4, Seg(4) + Seg(4) + Seg(4) + Seg(4)) + kCall, 0,
	 RAIL_RPCRDMA_REPLY_SEGS, kErrChunk},
	{"ReplySegmentEmpty", At::kServer,
	 Fixed(0) + Words{0, 0} + Target(2, Seg(0) + Seg(4)) + kCall, 0, RAIL_RPCRDMA_REPLY_ZERO,
	 kErrChunk},
	{"ReplyChunkWraps", At::kServer,
	 Fixed(0) + Words{0, 0} + Target(2, Seg(1 << 31) + Seg(1 << 31)) + kCall, 0,
	 RAIL_RPCRDMA_REPLY_WRAP, kErrChunk},
	{"ReplyAddressWraps", At::kServer,
	 Fixed(0) + Words{0, 0} + Target(1, Seg(kMost, kMost, 0)) + kCall, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"ReplyAddressWrapsByOne", At::kServer,
	 Fixed(0) + Words{0, 0} + Target(1, Seg(kMost, kMost, 2)) + kCall, 0,
	 RAIL_RPCRDMA_REPLY_ADDR, kErrChunk},

	// The message as a whole.
	{"NoBody", At::kServer, Fixed(0) + kEmpty, 0, RAIL_RPCRDMA_RPC_SHORT, kErrChunk},
	{"NoBodyAtClient", At::kClient, Fixed(0) + kEmpty, 0, RAIL_RPCRDMA_RPC_SHORT, kDrop},
	{"BodyOfSevenBytes", At::kServer, Fixed(0) + kEmpty + Words{kXid, 0}, 1,
	 RAIL_RPCRDMA_RPC_SHORT, kErrChunk},
	{"CallOf39Bytes", At::kServer, Fixed(0) + kEmpty + kCall, 1, RAIL_RPCRDMA_RPC_SHORT,
	 kErrChunk},
	{"ReplyOf19Bytes", At::kClient, Fixed(0) + kEmpty + Words{kXid, 1, 1, 1, 1}, 1,
	 RAIL_RPCRDMA_RPC_SHORT, kDrop},
	{"CallChunkOf36Bytes", At::kServer, Fixed(1) + ReadSeg(0, 36) + kEmpty, 0,
	 RAIL_RPCRDMA_RPC_SHORT, kErrChunk},
	{"ReplyInChunkOf0Bytes", At::kClient, Fixed(1) + Words{0, 0} + Target(1, Seg(0)), 0,
	 RAIL_RPCRDMA_RPC_SHORT, kDrop},
	{"OtherXid", At::kServer, Fixed(0) + kEmpty + Words{1, 0, 2, 3, 4, 5, 6, 7, 8, 9}, 0,
	 RAIL_RPCRDMA_RPC_XID, kErrChunk},
	{"OtherXidInReply", At::kClient, Fixed(0) + kEmpty + Words{1, 1, 0, 0, 0, 0}, 0,
	 RAIL_RPCRDMA_RPC_XID, kDrop},
	{"OtherXidInReverseCall", At::kClient,
	 Fixed(0) + kEmpty + Words{1, 0, 2, 3, 4, 5, 6, 7, 8, 9}, 0, RAIL_RPCRDMA_RPC_XID,
	 kErrChunk},
	{"NeitherCallNorReply", At::kServer, Fixed(0) + kEmpty + Words{kXid, 2, 0, 0, 0, 0}, 0,
	 RAIL_RPCRDMA_RPC_TYPE, kErrChunk},
	{"ReadChunkOf32Bits", At::kServer,
	 Fixed(0) + ReadSeg(40, kMost - 1) + ReadSeg(40, 1) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_RPC_WRAP, kErrChunk},
	{"ReadChunksOf32BitsTogether", At::kServer,
	 Fixed(0) + ReadSeg(40, 1U << 31) + ReadSeg(40 + (1U << 31), (1U << 31) - 1) + kEmpty +
		 kCall,
	 0, RAIL_RPCRDMA_RPC_WRAP, kErrChunk},
	{"MessageWraps", At::kServer, Fixed(0) + ReadSeg(40, 0xfffffff0) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_RPC_WRAP, kErrChunk},
	{"MessageOf32Bits", At::kServer,
	 Fixed(0) + ReadSeg(40, 0xffffffd4) + kEmpty + kCall + Words{0}, 1, RAIL_RPCRDMA_RPC_LONG,
	 kErrChunk},
	{"MessageTooLong", At::kServer, Fixed(0) + ReadSeg(40, (1 << 20) - 39) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_RPC_LONG, kErrChunk},
	{"CallChunkTooLong", At::kServer, Fixed(1) + ReadSeg(0, (1 << 20) + 1) + kEmpty, 0,
	 RAIL_RPCRDMA_RPC_LONG, kErrChunk},
	{"NomsgWithBody", At::kServer, Fixed(1) + ReadSeg(0, 64) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_NOMSG_BODY, kErrChunk},
	{"NomsgWithOneByte", At::kServer, Fixed(1) + ReadSeg(0, 64) + kEmpty + Words{0}, 3,
	 RAIL_RPCRDMA_NOMSG_BODY, kErrChunk},
	{"NomsgReplyWithBody", At::kClient, Fixed(1) + Words{0, 0} + Target(1, Seg(64)) + kReply, 0,
	 RAIL_RPCRDMA_NOMSG_BODY, kDrop},
	{"NomsgCallWithoutCallChunk", At::kServer, Fixed(1) + kEmpty, 0, RAIL_RPCRDMA_NOMSG_NO_CALL,
	 kErrChunk},
	{"NomsgCallWithReplyChunkOnly", At::kServer, Fixed(1) + Words{0, 0} + Target(1, Seg(4096)),
	 0, RAIL_RPCRDMA_NOMSG_NO_CALL, kErrChunk},
	{"NomsgCallWithOtherReadChunk", At::kServer, Fixed(1) + ReadSeg(40, 64) + kEmpty, 0,
	 RAIL_RPCRDMA_NOMSG_NO_CALL, kErrChunk},
	{"NomsgReplyWithoutReplyChunk", At::kClient, Fixed(1) + kEmpty, 0,
	 RAIL_RPCRDMA_NOMSG_NO_REPLY, kDrop},
	{"NomsgReverseCallTooShort", At::kClient, Fixed(1) + ReadSeg(0, 8) + kEmpty, 0,
	 RAIL_RPCRDMA_RPC_SHORT, kErrChunk},

	// MSGP, DONE, ERROR.
	{"MsgpOff", At::kServer, Fixed(2) + Words{64, 512} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_OFF, kErrChunk},
	{"MsgpShort", At::kLegacyServer, Fixed(2) + Words{64}, 0, RAIL_RPCRDMA_MSGP_SHORT,
	 kErrChunk},
	{"MsgpAlign0", At::kLegacyServer, Fixed(2) + Words{0, 512} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_ALIGN, kErrChunk},
	{"MsgpAlign2", At::kLegacyServer, Fixed(2) + Words{2, 512} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_ALIGN, kErrChunk},
	{"MsgpAlign96", At::kLegacyServer, Fixed(2) + Words{96, 512} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_ALIGN, kErrChunk},
	{"MsgpAlignHuge", At::kLegacyServer, Fixed(2) + Words{1U << 31, 512} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_ALIGN, kErrChunk},
	{"MsgpThresh0", At::kLegacyServer, Fixed(2) + Words{64, 0} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_MSGP_THRESH, kErrChunk},
	{"MsgpListShort", At::kLegacyServer, Fixed(2) + Words{64, 512}, 0, RAIL_RPCRDMA_READ_SHORT,
	 kErrChunk},
	{"DoneLong", At::kServer, Fixed(3) + Words{0}, 0, RAIL_RPCRDMA_DONE_SIZE, kDrop},
	{"DoneLongByOneByte", At::kServer, Fixed(3) + Words{0}, 3, RAIL_RPCRDMA_DONE_SIZE, kDrop},
	{"ErrorWithoutCode", At::kClient, Fixed(4), 0, RAIL_RPCRDMA_ERROR_SIZE, kDrop},
	{"ErrorCodeCut", At::kClient, Fixed(4) + Words{2}, 1, RAIL_RPCRDMA_ERROR_SIZE, kDrop},
	{"ErrChunkLong", At::kClient, Fixed(4) + Words{2, 0}, 0, RAIL_RPCRDMA_ERROR_SIZE, kDrop},
	{"ErrVersShort", At::kClient, Fixed(4) + Words{1, 1, 1}, 1, RAIL_RPCRDMA_ERROR_SIZE, kDrop},
	{"ErrVersLong", At::kClient, Fixed(4) + Words{1, 1, 1, 1}, 0, RAIL_RPCRDMA_ERROR_SIZE,
	 kDrop},
	{"Error0", At::kClient, Fixed(4) + Words{0}, 0, RAIL_RPCRDMA_ERROR_CODE, kDrop},
	{"Error3", At::kClient, Fixed(4) + Words{3}, 0, RAIL_RPCRDMA_ERROR_CODE, kDrop},
	{"ErrVersEmptyRange", At::kClient, Fixed(4) + Words{1, 2, 1}, 0, RAIL_RPCRDMA_ERROR_RANGE,
	 kDrop},
	{"ErrorAtServer", At::kServer, Fixed(4) + Words{3}, 0, RAIL_RPCRDMA_ERROR_CODE, kDrop},
};

class RpcrdmaMalformed : public testing::TestWithParam<Malformed>
{
};

TEST_P(RpcrdmaMalformed, IsRefusedForItsReason)
{
	const Malformed &row = GetParam();
	const Bytes message = ToBytes(row.words, row.cut);
	const rail_rpcrdma_rules rules = RulesAt(row.at);
	rail_rpcrdma_hdr hdr;

	const auto reason = rail_rpcrdma_decode(message.data(), Len(message), &rules, &hdr);

	EXPECT_EQ(reason, row.reason) << rail_rpcrdma_reason_text(reason) << ", not "
				      << rail_rpcrdma_reason_text(row.reason);
	EXPECT_EQ(rail_rpcrdma_answer(reason, &hdr), row.answer);
	if (message.size() >= RAIL_RPCRDMA_FIXED_LEN) {
		EXPECT_EQ(hdr.xid, kXid);
		EXPECT_EQ(hdr.credit, 32U);
	}
}

INSTANTIATE_TEST_SUITE_P(Table, RpcrdmaMalformed, testing::ValuesIn(kMalformed),
			 [](const auto &row) { return std::string(row.param.name); });

TEST(Rpcrdma, TableHasEveryReason)
{
	std::set<int> seen;

	for (const Malformed &row : kMalformed)
		seen.insert(row.reason);
	for (int reason = RAIL_RPCRDMA_SHORT; reason < RAIL_RPCRDMA_RET_CHUNKS; reason++)
		EXPECT_TRUE(seen.contains(reason))
			<< rail_rpcrdma_reason_text(static_cast<rail_rpcrdma_reason>(reason));
}

TEST(Rpcrdma, EveryReasonHasItsOwnText)
{
	std::set<std::string> texts;

	for (int reason = 0; reason < RAIL_RPCRDMA_NR_REASONS; reason++) {
		const char *text =
			rail_rpcrdma_reason_text(static_cast<rail_rpcrdma_reason>(reason));

		ASSERT_NE(text, nullptr) << reason;
		EXPECT_TRUE(texts.insert(text).second) << text;
	}
	EXPECT_STREQ(rail_rpcrdma_reason_text(RAIL_RPCRDMA_NR_REASONS), "unknown reason");
}

// What looks suspicious and yet has to be taken.
const Malformed kAccepted[] = {
	{"CallAlone", At::kServer, Fixed(0) + kEmpty + kCall, 0, RAIL_RPCRDMA_OK, kDrop},
	{"ReverseReply", At::kServer, Fixed(0) + kEmpty + kReply, 0, RAIL_RPCRDMA_OK, kDrop},
	{"ReverseCall", At::kClient, Fixed(0) + kEmpty + kCall, 0, RAIL_RPCRDMA_OK, kDrop},
	{"DeniedReply", At::kClient, Fixed(0) + kEmpty + Words{kXid, 1, 1, 1, 1}, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"ChunkAtEnd", At::kServer, Fixed(0) + ReadSeg(40, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"ChunkThenChunkBehindItsPad", At::kServer,
	 Fixed(0) + ReadSeg(40, 5) + ReadSeg(48, 4) + kEmpty + kCall, 0, RAIL_RPCRDMA_OK, kDrop},
	{"ChunkRoundedUp", At::kServer, Fixed(0) + ReadSeg(40, 8) + ReadSeg(48, 4) + kEmpty + kCall,
	 0, RAIL_RPCRDMA_OK, kDrop},
	{"AllLists", At::kServer,
	 Fixed(0) + ReadSeg(40, 5) + kNone + Target(0, {}) + Target(3, Seg(1) + Seg(2) + Seg(3)) +
		 kNone + Target(2, Seg(4) + Seg(5)) + kCall,
	 0, RAIL_RPCRDMA_OK, kDrop},
	{"CallChunkAndMore", At::kServer,
	 Fixed(1) + ReadSeg(0, 60) + ReadSeg(0, 4) + ReadSeg(44, 4) + ReadSeg(68, 7) + kEmpty, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"ReverseCallByChunk", At::kClient, Fixed(1) + ReadSeg(0, 64) + kEmpty, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"UnusedWriteChunk", At::kServer,
	 Fixed(0) + kNone + Target(2, Seg(0) + Seg(0)) + Words{0, 0} + kCall, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"ReturnedWithHoles", At::kClient,
	 Fixed(0) + kNone + Target(2, Seg(4) + Seg(0)) + kNone + Target(1, Seg(0)) + kReply, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"AddressEndsAtLast", At::kServer,
	 Fixed(0) + Words{1, 40} + Seg(16, kMost, 0xfffffff0) + kEmpty + kCall, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"LongestMessage", At::kServer, Fixed(0) + ReadSeg(40, (1 << 20) - 40) + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"LegacyReadListInReply", At::kLegacyClient, Fixed(0) + ReadSeg(24, 4) + kEmpty + kReply, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"LegacyReplyByReadChunk", At::kLegacyClient, Fixed(1) + ReadSeg(0, 24) + kEmpty, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"Msgp", At::kLegacyServer, Fixed(2) + Words{64, 512} + kEmpty + kCall, 0, RAIL_RPCRDMA_OK,
	 kDrop},
	{"MsgpLeastAlign", At::kLegacyServer, Fixed(2) + Words{4, 1} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"MsgpMostAlign", At::kLegacyServer, Fixed(2) + Words{65536, kMost} + kEmpty + kCall, 0,
	 RAIL_RPCRDMA_OK, kDrop},
	{"Done", At::kServer, Fixed(3), 0, RAIL_RPCRDMA_OK, kDrop},
	{"ErrChunk", At::kClient, Fixed(4) + Words{2}, 0, RAIL_RPCRDMA_OK, kDrop},
	{"ErrVersOne", At::kClient, Fixed(4) + Words{1, 1, 1}, 0, RAIL_RPCRDMA_OK, kDrop},
	{"ErrVers", At::kClient, Fixed(4) + Words{1, 1, 2}, 0, RAIL_RPCRDMA_OK, kDrop},
	{"BodyNotOfWords", At::kServer, Fixed(0) + kEmpty + kCall + Words{0}, 3, RAIL_RPCRDMA_OK,
	 kDrop},
};

class RpcrdmaAccepted : public testing::TestWithParam<Malformed>
{
};

TEST_P(RpcrdmaAccepted, IsDecodedAndWrittenAnewTheSame)
{
	const Malformed &row = GetParam();
	const Bytes message = ToBytes(row.words, row.cut);
	const rail_rpcrdma_rules rules = RulesAt(row.at);
	rail_rpcrdma_hdr hdr;

	const auto reason = rail_rpcrdma_decode(message.data(), Len(message), &rules, &hdr);

	ASSERT_EQ(reason, RAIL_RPCRDMA_OK) << rail_rpcrdma_reason_text(reason);
	EXPECT_EQ(Reencode(message, hdr), message);
}

INSTANTIATE_TEST_SUITE_P(Table, RpcrdmaAccepted, testing::ValuesIn(kAccepted),
			 [](const auto &row) { return std::string(row.param.name); });

TEST(Rpcrdma, FillsInWhatTheListsHold)
{
	const Bytes message = ToBytes(Fixed(1) + ReadSeg(0, 60) + ReadSeg(0, 4) + ReadSeg(44, 5) +
				      ReadSeg(56, 7) + kNone + Target(2, Seg(100) + Seg(200)) +
				      Target(1, Seg(kMost)) + kNone + Target(1, Seg(4096)));
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_CALL);
	rail_rpcrdma_hdr hdr;

	ASSERT_EQ(rail_rpcrdma_decode(message.data(), Len(message), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(hdr.dir, RAIL_RPC_CALL);
	EXPECT_TRUE(hdr.has_call_chunk);
	EXPECT_EQ(hdr.lists.nr_read_segs, 4);
	EXPECT_EQ(hdr.nr_read_chunks, 3);
	EXPECT_EQ(hdr.lists.nr_write_chunks, 2);
	EXPECT_EQ(hdr.nr_write_segs, 3U);
	EXPECT_TRUE(hdr.lists.has_reply_chunk);
	EXPECT_EQ(hdr.lists.nr_reply_segs, 1);
	EXPECT_EQ(hdr.call_len, 64U);
	EXPECT_EQ(hdr.read_len, 12U);
	EXPECT_EQ(hdr.write_len, 300ULL + kMost);
	EXPECT_EQ(hdr.reply_len, 4096U);
	EXPECT_EQ(hdr.msg_len, 64U + 8 + 8);
	EXPECT_EQ(hdr.body_at, Len(message));
	EXPECT_EQ(hdr.body_len, 0U);
	EXPECT_EQ(hdr.body_at, rail_rpcrdma_hdr_size(4, 2, 3, true, 1));

	rail_rpcrdma_chunk chunk;
	rail_rpcrdma_iter it;

	rail_rpcrdma_read_iter(&it, &hdr.lists);
	ASSERT_TRUE(rail_rpcrdma_next_read(message.data(), &it, &chunk));
	EXPECT_EQ(chunk.position, 0U);
	EXPECT_EQ(chunk.nr_segs, 2U);
	EXPECT_EQ(chunk.length, 64U);
	ASSERT_TRUE(rail_rpcrdma_next_read(message.data(), &it, &chunk));
	EXPECT_EQ(chunk.position, 44U);
	EXPECT_EQ(chunk.length, 5U);
	ASSERT_TRUE(rail_rpcrdma_next_read(message.data(), &it, &chunk));
	EXPECT_FALSE(rail_rpcrdma_next_read(message.data(), &it, &chunk));

	rail_rpcrdma_write_iter(&it, &hdr.lists);
	ASSERT_TRUE(rail_rpcrdma_next_write(message.data(), &it, &chunk));
	EXPECT_EQ(chunk.position, 0U);
	EXPECT_EQ(chunk.nr_segs, 2U);
	EXPECT_EQ(chunk.length, 300U);
	ASSERT_TRUE(rail_rpcrdma_next_write(message.data(), &it, &chunk));
	EXPECT_EQ(chunk.length, kMost);
	EXPECT_FALSE(rail_rpcrdma_next_write(message.data(), &it, &chunk));
	ASSERT_TRUE(rail_rpcrdma_reply_chunk(message.data(), &hdr.lists, &chunk));
	EXPECT_EQ(chunk.length, 4096U);
}

TEST(Rpcrdma, ErrorsAreTakenApart)
{
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_REPLY);
	const Bytes vers = ToBytes(Fixed(4) + Words{1, 1, 3});
	const Bytes chunk = ToBytes(Fixed(4) + Words{2});
	rail_rpcrdma_hdr hdr;

	ASSERT_EQ(rail_rpcrdma_decode(vers.data(), Len(vers), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(hdr.err, RAIL_RPCRDMA_ERR_VERS);
	EXPECT_EQ(hdr.vers_low, 1U);
	EXPECT_EQ(hdr.vers_high, 3U);
	EXPECT_EQ(hdr.body_at, 28U);
	ASSERT_EQ(rail_rpcrdma_decode(chunk.data(), Len(chunk), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(hdr.err, RAIL_RPCRDMA_ERR_CHUNK);
	EXPECT_EQ(hdr.body_at, 20U);
}

TEST(Rpcrdma, DoneHasNoBody)
{
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_CALL);
	const Bytes done = ToBytes(Fixed(3));
	rail_rpcrdma_hdr hdr;

	ASSERT_EQ(rail_rpcrdma_decode(done.data(), Len(done), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(hdr.body_at, 16U);
	EXPECT_EQ(hdr.body_len, 0U);
}

TEST(Rpcrdma, MsgpPad)
{
	rail_rpcrdma_hdr hdr = {};

	hdr.proc = RAIL_RPCRDMA_MSGP;
	hdr.align = 64;
	hdr.thresh = 512;
	EXPECT_EQ(rail_rpcrdma_msgp_pad(&hdr, 100, 512), 0U);
	EXPECT_EQ(rail_rpcrdma_msgp_pad(&hdr, 100, 513), 28U);
	EXPECT_EQ(rail_rpcrdma_msgp_pad(&hdr, 128, 513), 0U);
	hdr.proc = RAIL_RPCRDMA_MSG;
	EXPECT_EQ(rail_rpcrdma_msgp_pad(&hdr, 100, 513), 0U);
}

TEST(Rpcrdma, PeekNeedsTwoWords)
{
	const Bytes body = ToBytes({kXid, 1});
	std::uint32_t xid = 0;
	std::uint32_t dir = 0;

	for (std::size_t len = 0; len < body.size(); len++) {
		const Bytes cut = Exact(body, len);

		EXPECT_FALSE(rail_rpc_peek(cut.data(), Len(cut), &xid, &dir));
	}
	ASSERT_TRUE(rail_rpc_peek(body.data(), Len(body), &xid, &dir));
	EXPECT_EQ(xid, kXid);
	EXPECT_EQ(dir, std::uint32_t{RAIL_RPC_REPLY});
}

// Random headers: what is encoded is what is decoded.
class RpcrdmaRandom : public testing::TestWithParam<std::tuple<rail_rpc_dir, bool>>
{
};

TEST_P(RpcrdmaRandom, EncodedThenDecodedIsEqual)
{
	const auto [dir, legacy] = GetParam();
	const rail_rpcrdma_rules rules = AnyRules(dir, legacy);
	Random random(8166 + dir * 2 + legacy);

	for (int round = 0; round < 5000; round++) {
		const Header header = RandomHeader(random, dir, legacy);
		rail_rpcrdma_lists lists;
		const Bytes message = Encode(header, EncodedSize(header), &lists);
		rail_rpcrdma_hdr hdr;

		ASSERT_EQ(message.size(), EncodedSize(header)) << "round " << round;
		const auto reason = rail_rpcrdma_decode(message.data(), Len(message), &rules, &hdr);
		ASSERT_EQ(reason, RAIL_RPCRDMA_OK)
			<< "round " << round << ": " << rail_rpcrdma_reason_text(reason);
		ASSERT_EQ(hdr.dir, dir);
		ASSERT_TRUE(Read(message, hdr) == header) << "round " << round;

		EXPECT_EQ(lists.read_at, hdr.lists.read_at);
		EXPECT_EQ(lists.write_at, hdr.lists.write_at);
		EXPECT_EQ(lists.reply_at, hdr.lists.reply_at);
		EXPECT_EQ(lists.nr_read_segs, hdr.lists.nr_read_segs);
		EXPECT_EQ(lists.nr_write_chunks, hdr.lists.nr_write_chunks);
		EXPECT_EQ(lists.nr_reply_segs, hdr.lists.nr_reply_segs);
		EXPECT_EQ(lists.has_reply_chunk, hdr.lists.has_reply_chunk);

		std::uint64_t written = 0;
		for (const Chunk &chunk : header.writes)
			written += Total(chunk);
		ASSERT_EQ(hdr.write_len, written);
		ASSERT_EQ(hdr.reply_len, Total(header.reply));
	}
}

TEST_P(RpcrdmaRandom, EveryBufferTooSmallIsNoticed)
{
	const auto [dir, legacy] = GetParam();
	Random random(5531 + dir * 2 + legacy);

	for (int round = 0; round < 40; round++) {
		const Header header = RandomHeader(random, dir, legacy);

		for (std::size_t size = 0; size < EncodedSize(header); size++)
			ASSERT_TRUE(Encode(header, size).empty()) << "round " << round;
	}
}

TEST_P(RpcrdmaRandom, EveryTruncatedHeaderIsRefused)
{
	const auto [dir, legacy] = GetParam();
	const rail_rpcrdma_rules rules = AnyRules(dir, legacy);
	Random random(8167 + dir * 2 + legacy);

	for (int round = 0; round < 100; round++) {
		const Header header = RandomHeader(random, dir, legacy);
		const Bytes message = Encode(header, EncodedSize(header));
		const std::size_t least =
			message.size() - header.body.size() + (header.body.empty() ? 0 : 8);
		rail_rpcrdma_hdr hdr;

		for (std::size_t len = 0; len < least; len++) {
			const Bytes cut = Exact(message, len);

			ASSERT_NE(rail_rpcrdma_decode(cut.data(), Len(cut), &rules, &hdr),
				  RAIL_RPCRDMA_OK)
				<< "round " << round << ", " << len << " of " << message.size();
		}
	}
}

TEST_P(RpcrdmaRandom, EveryMutatedByteIsHarmless)
{
	const auto [dir, legacy] = GetParam();
	const rail_rpcrdma_rules any = AnyRules(dir, legacy);
	const rail_rpcrdma_rules small = SmallRules(dir, legacy);
	Random random(8797 + dir * 2 + legacy);
	int taken = 0;

	for (int round = 0; round < 100; round++) {
		const Header header = RandomHeader(random, dir, legacy);
		Bytes message = Encode(header, EncodedSize(header));
		rail_rpcrdma_hdr hdr;

		for (std::uint8_t &byte : message) {
			const std::uint8_t was = byte;

			for (const std::uint8_t now :
			     {0x00, 0xff, was ^ 0x80, was ^ 0x01, was + 1, was - 1}) {
				byte = now;
				rail_rpcrdma_decode(message.data(), Len(message), &small, &hdr);
				if (rail_rpcrdma_decode(message.data(), Len(message), &any, &hdr))
					continue;
				// Whatever is taken is canonical: it has one encoding.
				ASSERT_EQ(Reencode(message, hdr), message);
				taken++;
			}
			byte = was;
		}
	}
	EXPECT_GT(taken, 0);
}

INSTANTIATE_TEST_SUITE_P(Directions, RpcrdmaRandom,
			 testing::Combine(testing::Values(RAIL_RPC_CALL, RAIL_RPC_REPLY),
					  testing::Bool()));

// The encoder.
TEST(RpcrdmaEncoder, RefusesWhatComesOutOfOrder)
{
	const rail_rpcrdma_seg seg = {1, 2, 3};
	Bytes buf(256);
	rail_rpcrdma_enc enc;

	const auto begin = [&](rail_rpcrdma_proc proc = RAIL_RPCRDMA_MSG) {
		rail_rpcrdma_enc_init(&enc, buf.data(), Len(buf));
		rail_rpcrdma_enc_fixed(&enc, kXid, 1, proc);
	};
	const auto lists = [&] {
		rail_rpcrdma_enc_reads_end(&enc);
		rail_rpcrdma_enc_writes_end(&enc);
		rail_rpcrdma_enc_no_reply(&enc);
	};

	begin();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "not complete";
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 28U);
	rail_rpcrdma_enc_body(&enc, kCall.data(), 40);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 68U);
	rail_rpcrdma_enc_read(&enc, 40, &seg);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "a read segment behind the body";

	begin();
	rail_rpcrdma_enc_fixed(&enc, kXid, 1, RAIL_RPCRDMA_MSG);
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "two fixed parts";

	begin();
	rail_rpcrdma_enc_seg(&enc, &seg);
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "a segment outside of a chunk";

	begin();
	rail_rpcrdma_enc_chunk_end(&enc);
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "the end of a chunk that never began";

	begin();
	rail_rpcrdma_enc_reads_end(&enc);
	rail_rpcrdma_enc_write_begin(&enc);
	rail_rpcrdma_enc_seg(&enc, &seg);
	rail_rpcrdma_enc_writes_end(&enc);
	rail_rpcrdma_enc_no_reply(&enc);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "a chunk left open";

	begin(RAIL_RPCRDMA_NOMSG);
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 28U);
	rail_rpcrdma_enc_body(&enc, kCall.data(), 4);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "NOMSG with a body";

	begin(RAIL_RPCRDMA_MSGP);
	lists();
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "MSGP without its words";

	begin(RAIL_RPCRDMA_ERROR);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "ERROR has calls of its own";
	rail_rpcrdma_enc_err_chunk(&enc, kXid, 1);
	EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U) << "what is bad stays bad";
}

TEST(RpcrdmaEncoder, ErrorsAndDone)
{
	Bytes buf(28, 0xff);
	rail_rpcrdma_enc enc;

	rail_rpcrdma_enc_init(&enc, buf.data(), Len(buf));
	rail_rpcrdma_enc_err_vers(&enc, kXid, 32, 1, 1);
	ASSERT_EQ(rail_rpcrdma_enc_finish(&enc), 28U);
	EXPECT_EQ(buf, ToBytes(Fixed(4) + Words{1, 1, 1}));

	rail_rpcrdma_enc_init(&enc, buf.data(), Len(buf));
	rail_rpcrdma_enc_err_chunk(&enc, kXid, 32);
	ASSERT_EQ(rail_rpcrdma_enc_finish(&enc), 20U);
	EXPECT_EQ(Exact(buf, 20), ToBytes(Fixed(4) + Words{2}));

	rail_rpcrdma_enc_init(&enc, buf.data(), Len(buf));
	rail_rpcrdma_enc_done(&enc, kXid, 32);
	ASSERT_EQ(rail_rpcrdma_enc_finish(&enc), 16U);
	EXPECT_EQ(Exact(buf, 16), ToBytes(Fixed(3)));

	for (std::uint32_t size = 0; size < 28; size++) {
		Bytes small(size);

		rail_rpcrdma_enc_init(&enc, small.data(), size);
		rail_rpcrdma_enc_err_vers(&enc, kXid, 32, 1, 1);
		EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), 0U);
		rail_rpcrdma_enc_init(&enc, small.data(), size);
		rail_rpcrdma_enc_err_chunk(&enc, kXid, 32);
		EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), size < 20 ? 0U : 20U);
		rail_rpcrdma_enc_init(&enc, small.data(), size);
		rail_rpcrdma_enc_done(&enc, kXid, 32);
		EXPECT_EQ(rail_rpcrdma_enc_finish(&enc), size < 16 ? 0U : 16U);
	}
}

// What a responder hands back.
struct Returned {
	Bytes call;
	rail_rpcrdma_hdr call_hdr;
	Bytes reply;
	rail_rpcrdma_hdr reply_hdr;
};

Returned Return(const Words &writes, const Words &reply_chunk,
		const std::vector<std::uint32_t> &written, std::uint32_t replied)
{
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_CALL);
	const rail_rpcrdma_rules client = SmallRules(RAIL_RPC_REPLY);
	rail_rpcrdma_chunk chunk;
	rail_rpcrdma_iter it;
	rail_rpcrdma_enc enc;
	Returned r;

	r.call = ToBytes(Fixed(0) + kNone + writes + kNone + reply_chunk + kCall);
	EXPECT_EQ(rail_rpcrdma_decode(r.call.data(), Len(r.call), &rules, &r.call_hdr),
		  RAIL_RPCRDMA_OK);
	r.reply.resize(512, 0xff);
	rail_rpcrdma_enc_init(&enc, r.reply.data(), Len(r.reply));
	rail_rpcrdma_enc_fixed(&enc, kXid, 32, RAIL_RPCRDMA_MSG);
	rail_rpcrdma_enc_reads_end(&enc);
	rail_rpcrdma_write_iter(&it, &r.call_hdr.lists);
	for (const std::uint32_t bytes : written) {
		EXPECT_TRUE(rail_rpcrdma_next_write(r.call.data(), &it, &chunk));
		rail_rpcrdma_enc_returned(&enc, r.call.data(), &chunk, bytes);
	}
	rail_rpcrdma_enc_writes_end(&enc);
	if (rail_rpcrdma_reply_chunk(r.call.data(), &r.call_hdr.lists, &chunk))
		rail_rpcrdma_enc_returned(&enc, r.call.data(), &chunk, replied);
	else
		rail_rpcrdma_enc_no_reply(&enc);
	rail_rpcrdma_enc_body(&enc, ToBytes(kReply).data(), 24);
	r.reply.resize(rail_rpcrdma_enc_finish(&enc));
	rail_rpcrdma_decode(r.reply.data(), Len(r.reply), &client, &r.reply_hdr);
	return r;
}

const Words kTwoWrites = Target(2, Seg(100) + Seg(200)) + Target(1, Seg(50));

TEST(RpcrdmaReturned, LengthsAreThoseWritten)
{
	const Returned r = Return(kTwoWrites, Target(2, Seg(10) + Seg(20)), {150, 0}, 30);

	EXPECT_EQ(r.reply,
		  ToBytes(Fixed(0) + kNone + Target(2, Seg(100) + Seg(50)) + Target(1, Seg(0)) +
			  kNone + Target(2, Seg(10) + Seg(20)) + kReply));
	EXPECT_EQ(rail_rpcrdma_check_returned(r.call.data(), &r.call_hdr.lists, r.reply.data(),
					      &r.reply_hdr.lists),
		  RAIL_RPCRDMA_OK);
}

TEST(RpcrdmaReturned, MoreThanOfferedIsNoticed)
{
	EXPECT_TRUE(Return(kTwoWrites, kNone, {301, 0}, 0).reply.empty());
	EXPECT_TRUE(Return(kTwoWrites, Target(1, Seg(10)), {300, 50}, 11).reply.empty());
	EXPECT_FALSE(Return(kTwoWrites, Target(1, Seg(10)), {300, 50}, 10).reply.empty());
}

TEST(RpcrdmaReturned, PatchIsTheSameInPlace)
{
	const Returned offered = Return(kTwoWrites, kNone, {300, 50}, 0);
	const Returned wanted = Return(kTwoWrites, kNone, {150, 7}, 0);
	Bytes reply = offered.reply;
	rail_rpcrdma_chunk chunk;
	rail_rpcrdma_iter it;

	rail_rpcrdma_write_iter(&it, &offered.reply_hdr.lists);
	ASSERT_TRUE(rail_rpcrdma_next_write(reply.data(), &it, &chunk));
	EXPECT_FALSE(rail_rpcrdma_patch(reply.data(), &chunk, 301));
	EXPECT_EQ(reply, offered.reply);
	EXPECT_TRUE(rail_rpcrdma_patch(reply.data(), &chunk, 300));
	EXPECT_EQ(reply, offered.reply);
	EXPECT_TRUE(rail_rpcrdma_patch(reply.data(), &chunk, 150));
	ASSERT_TRUE(rail_rpcrdma_next_write(reply.data(), &it, &chunk));
	EXPECT_TRUE(rail_rpcrdma_patch(reply.data(), &chunk, 7));
	EXPECT_EQ(reply, wanted.reply);
}

struct BadReturn {
	const char *name;
	Words writes;
	Words reply_chunk;
	rail_rpcrdma_reason reason;
};

void PrintTo(const BadReturn &row, std::ostream *os)
{
	*os << row.name;
}

const BadReturn kReturns[] = {
	{"Same", kTwoWrites, Target(1, Seg(64)), RAIL_RPCRDMA_OK},
	{"LeftOut", {}, kNone, RAIL_RPCRDMA_OK},
	{"OneChunkFewer", Target(2, Seg(100) + Seg(200)), kNone, RAIL_RPCRDMA_RET_CHUNKS},
	{"OneSegmentFewer", Target(1, Seg(100)) + Target(1, Seg(50)), kNone, RAIL_RPCRDMA_RET_SEGS},
	{"OneSegmentMore", kTwoWrites, Target(2, Seg(64) + Seg(0)), RAIL_RPCRDMA_RET_SEGS},
	{"OtherHandle", kTwoWrites, Target(1, {0x1235, 64, 0, 0x1000}), RAIL_RPCRDMA_RET_HANDLE},
	{"OtherOffset", kTwoWrites, Target(1, Seg(64, 0, 0x1001)), RAIL_RPCRDMA_RET_OFFSET},
	{"Longer", Target(2, Seg(100) + Seg(201)) + Target(1, Seg(50)), kNone,
	 RAIL_RPCRDMA_RET_LENGTH},
	{"Hole", Target(2, Seg(99) + Seg(1)) + Target(1, Seg(50)), kNone, RAIL_RPCRDMA_RET_HOLE},
};

class RpcrdmaReturns : public testing::TestWithParam<BadReturn>
{
};

TEST_P(RpcrdmaReturns, AreHeldAgainstTheOffer)
{
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_REPLY);
	const Returned offer = Return(kTwoWrites, Target(1, Seg(64)), {0, 0}, 0);
	const Bytes reply = ToBytes(Fixed(0) + kNone + GetParam().writes + kNone +
				    GetParam().reply_chunk + kReply);
	rail_rpcrdma_hdr hdr;

	ASSERT_EQ(rail_rpcrdma_decode(reply.data(), Len(reply), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(rail_rpcrdma_check_returned(offer.call.data(), &offer.call_hdr.lists,
					      reply.data(), &hdr.lists),
		  GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Table, RpcrdmaReturns, testing::ValuesIn(kReturns),
			 [](const auto &row) { return std::string(row.param.name); });

TEST(RpcrdmaReturned, ReplyChunkThatWasNotOffered)
{
	const rail_rpcrdma_rules rules = SmallRules(RAIL_RPC_REPLY);
	const Returned offer = Return({}, kNone, {}, 0);
	const Bytes reply = ToBytes(Fixed(0) + Words{0, 0} + Target(1, Seg(64)) + kReply);
	rail_rpcrdma_hdr hdr;

	ASSERT_EQ(rail_rpcrdma_decode(reply.data(), Len(reply), &rules, &hdr), RAIL_RPCRDMA_OK);
	EXPECT_EQ(rail_rpcrdma_check_returned(offer.call.data(), &offer.call_hdr.lists,
					      reply.data(), &hdr.lists),
		  RAIL_RPCRDMA_RET_CHUNKS);
}

// Connection private data.
const Bytes kPrivate = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 7};

TEST(RpcrdmaPrivateData, IsFoundAtEveryWord)
{
	for (std::size_t before = 0; before <= 64; before++) {
		for (std::size_t after : {0U, 1U, 48U}) {
			Bytes data(before, 0xf6);
			rail_rpcrdma_conn conn;

			data.insert(data.end(), kPrivate.begin(), kPrivate.end());
			data.insert(data.end(), after, 0);
			data.shrink_to_fit();
			ASSERT_EQ(rail_rpcrdma_cm_decode(data.data(), Len(data), &conn),
				  before % 4 == 0);
			if (before % 4)
				continue;
			EXPECT_EQ(conn.send_max, 4096U);
			EXPECT_EQ(conn.recv_max, 8192U);
			EXPECT_TRUE(conn.remote_inval);
		}
	}
}

TEST(RpcrdmaPrivateData, AbsentMeansDefaults)
{
	const auto expect_defaults = [](const Bytes &data) {
		rail_rpcrdma_conn conn = {1, 2, true};

		EXPECT_FALSE(rail_rpcrdma_cm_decode(data.data(), Len(data), &conn));
		EXPECT_EQ(conn.send_max, 1024U);
		EXPECT_EQ(conn.recv_max, 1024U);
		EXPECT_FALSE(conn.remote_inval);
	};

	for (std::size_t len = 0; len < kPrivate.size(); len++)
		expect_defaults(Exact(kPrivate, len));
	expect_defaults(Bytes(196, 0));
	for (std::size_t at = 0; at < 5; at++) {
		Bytes data = kPrivate;

		data[at]++;
		expect_defaults(data);
	}
}

TEST(RpcrdmaPrivateData, UnknownVersionIsPassedOver)
{
	Bytes data = kPrivate;
	rail_rpcrdma_conn conn;

	data[4] = 2;
	data.insert(data.end(), kPrivate.begin(), kPrivate.end());
	EXPECT_TRUE(rail_rpcrdma_cm_decode(data.data(), Len(data), &conn));
	EXPECT_EQ(conn.recv_max, 8192U);
}

TEST(RpcrdmaPrivateData, UnknownFlagsAreIgnored)
{
	Bytes data = kPrivate;
	rail_rpcrdma_conn conn;

	data[5] = 0xfe;
	ASSERT_TRUE(rail_rpcrdma_cm_decode(data.data(), Len(data), &conn));
	EXPECT_FALSE(conn.remote_inval);
}

TEST(RpcrdmaPrivateData, EncodesEverySizeThatCanBeSaid)
{
	for (std::uint32_t units = 1; units <= 256; units++) {
		const rail_rpcrdma_conn said = {units * 1024, (257 - units) * 1024, units % 2 == 0};
		rail_rpcrdma_conn heard;
		Bytes data(RAIL_RPCRDMA_CM_LEN);

		rail_rpcrdma_cm_encode(data.data(), &said);
		ASSERT_TRUE(rail_rpcrdma_cm_decode(data.data(), Len(data), &heard));
		EXPECT_EQ(heard.send_max, said.send_max);
		EXPECT_EQ(heard.recv_max, said.recv_max);
		EXPECT_EQ(heard.remote_inval, said.remote_inval);
	}
}

TEST(RpcrdmaPrivateData, OtherSizesAreRoundedDown)
{
	const rail_rpcrdma_conn said = {0, 0xffffffff, false};
	Bytes data(RAIL_RPCRDMA_CM_LEN, 0xff);

	rail_rpcrdma_cm_encode(data.data(), &said);
	EXPECT_EQ(data[6], 0);
	EXPECT_EQ(data[7], 255);
	const rail_rpcrdma_conn odd = {4095, 4097, false};
	rail_rpcrdma_cm_encode(data.data(), &odd);
	EXPECT_EQ(data[6], 2);
	EXPECT_EQ(data[7], 3);
}

TEST(RpcrdmaPrivateData, AgreementIsTheLesserOfBoth)
{
	const rail_rpcrdma_conn client = {4096, 1024, true};
	const rail_rpcrdma_conn server = {8192, 2048, true};
	rail_rpcrdma_conn plain = server;
	rail_rpcrdma_agreed agreed = {};

	rail_rpcrdma_agree(&client, &server, &agreed);
	EXPECT_EQ(agreed.call_max, 2048U);
	EXPECT_EQ(agreed.reply_max, 1024U);
	EXPECT_TRUE(agreed.remote_inval);
	plain.remote_inval = false;
	rail_rpcrdma_agree(&client, &plain, &agreed);
	EXPECT_FALSE(agreed.remote_inval);
	rail_rpcrdma_agree(&plain, &client, &agreed);
	EXPECT_FALSE(agreed.remote_inval);
}

// What the in-tree modules sent each other.
TEST(RpcrdmaVectors, DecodeAndReencodeTheSame)
{
	const auto vectors = LoadVectors("rpcrdma");

	ASSERT_GE(vectors.size(), 40U);
	for (const Vector &vector : vectors) {
		const auto dir = vector.fields.at("dir") == "call" ? RAIL_RPC_CALL : RAIL_RPC_REPLY;
		const rail_rpcrdma_rules rules = AnyRules(dir, false);
		rail_rpcrdma_hdr hdr;

		const auto reason = rail_rpcrdma_decode(vector.payload.data(), Len(vector.payload),
							&rules, &hdr);
		ASSERT_EQ(reason, RAIL_RPCRDMA_OK)
			<< vector.source << ": " << rail_rpcrdma_reason_text(reason);
		EXPECT_EQ(hdr.dir, dir) << vector.source;
		EXPECT_EQ(Reencode(vector.payload, hdr), vector.payload) << vector.source;
	}
}

TEST(RpcrdmaVectors, ReturnedListsMatchTheirCalls)
{
	std::map<std::string, const Vector *> calls;
	const auto vectors = LoadVectors("rpcrdma");
	int matched = 0;

	for (const Vector &vector : vectors) {
		const std::string capture = vector.source.substr(0, vector.source.find(':'));
		const std::string id =
			capture + std::to_string(rail_get_be32(vector.payload.data()));
		rail_rpcrdma_hdr call;
		rail_rpcrdma_hdr reply;

		if (vector.fields.at("dir") == "call") {
			calls[id] = &vector;
			continue;
		}
		if (!calls.contains(id))
			continue;
		const Bytes &sent = calls[id]->payload;
		const rail_rpcrdma_rules server = AnyRules(RAIL_RPC_CALL, false);
		const rail_rpcrdma_rules client = AnyRules(RAIL_RPC_REPLY, false);

		ASSERT_EQ(rail_rpcrdma_decode(sent.data(), Len(sent), &server, &call),
			  RAIL_RPCRDMA_OK);
		ASSERT_EQ(rail_rpcrdma_decode(vector.payload.data(), Len(vector.payload), &client,
					      &reply),
			  RAIL_RPCRDMA_OK);
		EXPECT_EQ(rail_rpcrdma_check_returned(sent.data(), &call.lists,
						      vector.payload.data(), &reply.lists),
			  RAIL_RPCRDMA_OK)
			<< vector.source;
		matched += call.lists.nr_write_chunks || call.lists.has_reply_chunk;
	}
	EXPECT_GT(matched, 5);
}

TEST(RpcrdmaVectors, PrivateData)
{
	const auto vectors = LoadVectors("rpcrdma-cm");

	ASSERT_GE(vectors.size(), 4U);
	for (const Vector &vector : vectors) {
		rail_rpcrdma_conn conn;

		// With what the RDMA-CM put before it in a request, and with the pad after it.
		ASSERT_TRUE(
			rail_rpcrdma_cm_decode(vector.payload.data(), Len(vector.payload), &conn));
		EXPECT_EQ(conn.send_max, 4096U);
		EXPECT_EQ(conn.recv_max, 4096U);

		Bytes data(RAIL_RPCRDMA_CM_LEN);
		rail_rpcrdma_cm_encode(data.data(), &conn);
		EXPECT_NE(std::search(vector.payload.begin(), vector.payload.end(), data.begin(),
				      data.end()),
			  vector.payload.end());
	}
}

} // namespace
} // namespace rail
