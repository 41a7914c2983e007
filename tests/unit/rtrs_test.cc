// SPDX-License-Identifier: GPL-2.0-only
// The RTRS codec: every refusal, round trips, hostile bytes, and what the in-tree modules sent.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <set>

#include "vectors.h"

namespace rail
{
namespace
{

constexpr std::uint32_t kDepth = 16;
constexpr std::uint32_t kIo = 126976;
constexpr std::uint32_t kHdr = 4096;
constexpr std::uint32_t kChunk = kIo + kHdr;

rail_rtrs_params Params(bool new_rkey = false)
{
	rail_rtrs_params params;

	EXPECT_EQ(rail_rtrs_params_init(&params, kDepth, kIo, kHdr, new_rkey), RAIL_RTRS_OK);
	return params;
}

void Put16(Bytes &bytes, std::size_t at, std::uint32_t value)
{
	bytes.at(at) = static_cast<std::uint8_t>(value);
	bytes.at(at + 1) = static_cast<std::uint8_t>(value >> 8);
}

void Put32(Bytes &bytes, std::size_t at, std::uint32_t value)
{
	Put16(bytes, at, value);
	Put16(bytes, at + 2, value >> 16);
}

void Put64(Bytes &bytes, std::size_t at, std::uint64_t value)
{
	Put32(bytes, at, static_cast<std::uint32_t>(value));
	Put32(bytes, at + 4, static_cast<std::uint32_t>(value >> 32));
}

// A row of a table: what is done to a valid message, and why it is refused then.
struct Malformed {
	const char *name;
	std::function<void(Bytes &)> spoil;
	rail_rtrs_reason reason;
};

void PrintTo(const Malformed &row, std::ostream *os)
{
	*os << row.name;
}

std::string Name(const testing::TestParamInfo<Malformed> &info)
{
	return info.param.name;
}

auto Set16(std::size_t at, std::uint32_t value)
{
	return [=](Bytes &bytes) { Put16(bytes, at, value); };
}

auto Set32(std::size_t at, std::uint32_t value)
{
	return [=](Bytes &bytes) { Put32(bytes, at, value); };
}

auto Set64(std::size_t at, std::uint64_t value)
{
	return [=](Bytes &bytes) { Put64(bytes, at, value); };
}

auto Cut(std::size_t bytes)
{
	return [=](Bytes &message) { message = Exact(message, message.size() - bytes); };
}

auto Nothing()
{
	return [](Bytes &bytes) { bytes = Bytes(); };
}

class RtrsMalformed : public testing::TestWithParam<Malformed>
{
protected:
	void Check(Bytes message, const std::function<rail_rtrs_reason(const Bytes &)> &decode)
	{
		rail_rtrs_reason reason = decode(message);

		ASSERT_EQ(reason, RAIL_RTRS_OK) << rail_rtrs_reason_text(reason);
		GetParam().spoil(message);
		reason = decode(Exact(message, message.size()));
		EXPECT_EQ(reason, GetParam().reason) << rail_rtrs_reason_text(reason) << ", not "
						     << rail_rtrs_reason_text(GetParam().reason);
	}
};

// Connect request.
rail_rtrs_conn Conn()
{
	rail_rtrs_conn conn = {};

	conn.version = RAIL_RTRS_VERSION;
	conn.cid = 1;
	conn.cid_num = 3;
	conn.recon_cnt = 7;
	conn.first_conn = true;
	for (std::size_t at = 0; at < sizeof(conn.path_uuid); at++) {
		conn.path_uuid[at] = static_cast<std::uint8_t>(at);
		conn.sess_uuid[at] = static_cast<std::uint8_t>(at + 100);
	}
	return conn;
}

Bytes ConnReq()
{
	const rail_rtrs_conn conn = Conn();
	rail_rtrs_conn_req msg;

	rail_rtrs_conn_req_encode(&msg, &conn);
	return BytesOf(msg);
}

const Malformed kConnReq[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"Short", Cut(1), RAIL_RTRS_SHORT},
	{"Magic", Set16(2, 0xbd1b), RAIL_RTRS_BAD_MAGIC},
	{"Major1", Set16(4, 0x0100), RAIL_RTRS_BAD_VERSION},
	{"Major3", Set16(4, 0x0300), RAIL_RTRS_BAD_VERSION},
	{"Swapped", Set16(4, 0x0002), RAIL_RTRS_BAD_VERSION},
	{"Minor7", Set16(4, 0x0207), RAIL_RTRS_OK},
	{"NoConnections", Set16(8, 0), RAIL_RTRS_CID_NUM},
	{"OneConnection", [](Bytes &bytes) { Put16(bytes, 6, 0), Put16(bytes, 8, 1); },
	 RAIL_RTRS_CID_NUM},
	{"TooManyConnections", Set16(8, 4097), RAIL_RTRS_CID_NUM},
	{"MostConnections", Set16(8, 4096), RAIL_RTRS_OK},
	{"CidIsNumber", Set16(6, 3), RAIL_RTRS_CID},
	{"CidMost", Set16(6, 0xffff), RAIL_RTRS_CID},
	{"Padded", [](Bytes &bytes) { bytes.resize(92); }, RAIL_RTRS_OK},
};

class RtrsConnReq : public RtrsMalformed
{
};

TEST_P(RtrsConnReq, Reason)
{
	Check(ConnReq(), [](const Bytes &bytes) {
		rail_rtrs_conn conn;

		return rail_rtrs_conn_req_decode(bytes.data(), Len(bytes), &conn);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsConnReq, testing::ValuesIn(kConnReq), Name);

TEST(Rtrs, ConnReqSurvivesTheTrip)
{
	const rail_rtrs_conn sent = Conn();
	const Bytes bytes = ConnReq();
	rail_rtrs_conn got;

	ASSERT_EQ(rail_rtrs_conn_req_decode(bytes.data(), Len(bytes), &got), RAIL_RTRS_OK);
	EXPECT_EQ(got.version, sent.version);
	EXPECT_EQ(got.cid, sent.cid);
	EXPECT_EQ(got.cid_num, sent.cid_num);
	EXPECT_EQ(got.recon_cnt, sent.recon_cnt);
	EXPECT_EQ(got.first_conn, sent.first_conn);
	EXPECT_EQ(memcmp(got.path_uuid, sent.path_uuid, sizeof(got.path_uuid)), 0);
	EXPECT_EQ(memcmp(got.sess_uuid, sent.sess_uuid, sizeof(got.sess_uuid)), 0);
}

// Accept and reject.
Bytes ConnRsp()
{
	const rail_rtrs_params params = Params(true);
	rail_rtrs_conn_rsp msg;

	rail_rtrs_accept_encode(&msg, &params);
	return BytesOf(msg);
}

const Malformed kConnRsp[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"Short", Cut(1), RAIL_RTRS_SHORT},
	{"Magic", Set16(0, 0), RAIL_RTRS_BAD_MAGIC},
	{"Major", Set16(2, 0x0300), RAIL_RTRS_BAD_VERSION},
	{"Refused", Set16(4, 0xfff0), RAIL_RTRS_REFUSED},
	{"QueueDepth0", Set16(6, 0), RAIL_RTRS_QUEUE_DEPTH},
	{"IoSize0", Set32(8, 0), RAIL_RTRS_IO_SIZE},
	{"IoSize511", Set32(8, 511), RAIL_RTRS_IO_SIZE},
	{"HdrSize23", Set32(12, 23), RAIL_RTRS_HDR_SIZE},
	{"HdrSize24", Set32(12, 24), RAIL_RTRS_OK},
	{"ChunkWraps", Set32(8, 0xffffffff), RAIL_RTRS_CHUNK_SIZE},
	{"ChunkTooLarge", Set32(8, (1 << 24) - kHdr + 1), RAIL_RTRS_CHUNK_SIZE},
	{"ChunkLargest", Set32(8, (1 << 24) - kHdr), RAIL_RTRS_OK},
	{"DepthTooDeepForChunk", Set16(6, 65535), RAIL_RTRS_CHUNK_SIZE},
	{"UnknownFlags", Set32(16, 0xffffffff), RAIL_RTRS_OK},
};

class RtrsConnRsp : public RtrsMalformed
{
};

TEST_P(RtrsConnRsp, Reason)
{
	Check(ConnRsp(), [](const Bytes &bytes) {
		rail_rtrs_params params;
		int error;

		return rail_rtrs_conn_rsp_decode(bytes.data(), Len(bytes), &params, &error);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsConnRsp, testing::ValuesIn(kConnRsp), Name);

TEST(Rtrs, AcceptSurvivesTheTrip)
{
	const Bytes bytes = ConnRsp();
	rail_rtrs_params params;
	int error = 1;

	ASSERT_EQ(rail_rtrs_conn_rsp_decode(bytes.data(), Len(bytes), &params, &error),
		  RAIL_RTRS_OK);
	EXPECT_EQ(error, 0);
	EXPECT_EQ(params.queue_depth, kDepth);
	EXPECT_EQ(params.max_io_size, kIo);
	EXPECT_EQ(params.max_hdr_size, kHdr);
	EXPECT_EQ(params.chunk_size, kChunk);
	EXPECT_EQ(params.mem_bits, 24);
	EXPECT_TRUE(params.new_rkey);
}

TEST(Rtrs, RejectBringsANegativeErrno)
{
	const std::pair<int, int> errors[] = {
		{-EBUSY, -EBUSY}, {EBUSY, -EBUSY},   {-4095, -4095},
		{-4096, -EPROTO}, {-32768, -EPROTO},
	};

	for (const auto &[sent, heard] : errors) {
		rail_rtrs_conn_rsp msg;
		rail_rtrs_params params;
		int error = 0;

		rail_rtrs_reject_encode(&msg, sent);
		EXPECT_EQ(rail_rtrs_conn_rsp_decode(&msg, sizeof(msg), &params, &error),
			  RAIL_RTRS_REFUSED);
		EXPECT_EQ(error, heard) << sent;
	}
}

TEST(Rtrs, MemBitsLeaveRoomForTheIds)
{
	for (std::uint32_t depth = 1; depth <= 65535; depth++) {
		rail_rtrs_params params;

		ASSERT_EQ(rail_rtrs_params_init(&params, depth, 512, 512, false), RAIL_RTRS_OK);
		// The most a buffer id and an offset can be, and no bit given away.
		ASSERT_LE((std::uint64_t{depth - 1} << params.mem_bits) |
				  ((1U << params.mem_bits) - 1),
			  RAIL_RTRS_IMM_PAYLOAD_MASK);
		ASSERT_GT(std::uint64_t{depth} << (params.mem_bits + 1),
			  RAIL_RTRS_IMM_PAYLOAD_MASK);
	}
}

// Names and INFO_REQ.
Bytes InfoReq()
{
	rail_rtrs_info_req msg;

	EXPECT_EQ(rail_rtrs_info_req_encode(&msg, "cap"), RAIL_RTRS_OK);
	return BytesOf(msg);
}

auto SetName(const std::string &name)
{
	return [=](Bytes &bytes) { std::copy(name.begin(), name.end(), bytes.begin() + 2); };
}

const Malformed kInfoReq[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"Short", Cut(1), RAIL_RTRS_SHORT},
	{"Type", Set16(0, RAIL_RTRS_INFO_RSP), RAIL_RTRS_BAD_TYPE},
	{"NoEnd", SetName(std::string(255, 'a')), RAIL_RTRS_NAME_END},
	{"NoEndAndGoesOn", SetName(std::string(270, 'a')), RAIL_RTRS_NAME_END},
	{"Longest", SetName(std::string(254, 'a')), RAIL_RTRS_OK},
	{"NoName", SetName(std::string(1, '\0')), RAIL_RTRS_NAME_EMPTY},
	{"Slash", SetName("a/b"), RAIL_RTRS_NAME_CHAR},
	{"Dot", SetName("a.b"), RAIL_RTRS_NAME_CHAR},
	{"DotDot", SetName(".."), RAIL_RTRS_NAME_CHAR},
	{"Newline", SetName("a\nb"), RAIL_RTRS_NAME_CHAR},
	{"Escape", SetName("\033[m"), RAIL_RTRS_NAME_CHAR},
	{"Delete", SetName("\177"), RAIL_RTRS_NAME_CHAR},
	{"Space", SetName("a b"), RAIL_RTRS_OK},
	{"Utf8", SetName("s\xc3\xa9ssion"), RAIL_RTRS_OK},
	{"JunkBehindTheEnd", [](Bytes &bytes) { bytes[100] = '/'; }, RAIL_RTRS_OK},
};

class RtrsInfoReq : public RtrsMalformed
{
};

TEST_P(RtrsInfoReq, Reason)
{
	Check(InfoReq(), [](const Bytes &bytes) {
		char name[RAIL_RTRS_NAME_LEN];

		return rail_rtrs_info_req_decode(bytes.data(), Len(bytes), name);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsInfoReq, testing::ValuesIn(kInfoReq), Name);

TEST(Rtrs, InfoReqIsNotEncodedWithABadName)
{
	rail_rtrs_info_req msg;

	EXPECT_EQ(rail_rtrs_info_req_encode(&msg, ""), RAIL_RTRS_NAME_EMPTY);
	EXPECT_EQ(rail_rtrs_info_req_encode(&msg, "a/b"), RAIL_RTRS_NAME_CHAR);
	EXPECT_EQ(rail_rtrs_info_req_encode(&msg, std::string(255, 'a').c_str()),
		  RAIL_RTRS_NAME_END);
	EXPECT_EQ(rail_rtrs_info_req_encode(&msg, std::string(254, 'a').c_str()), RAIL_RTRS_OK);
}

// INFO_RSP: four descriptors of four chunks each.
constexpr std::uint32_t kSgCnt = 4;

Bytes InfoRsp(std::uint32_t sg_cnt = kSgCnt)
{
	Bytes bytes(rail_rtrs_info_rsp_size(sg_cnt));

	rail_rtrs_info_rsp_encode(bytes.data(), static_cast<std::uint16_t>(sg_cnt));
	for (std::uint32_t nr = 0; nr < sg_cnt; nr++) {
		const rail_rtrs_mem mem = {0x1000000ULL * nr, 0x300 + nr,
					   kChunk * (kDepth / sg_cnt)};

		rail_rtrs_info_rsp_put(bytes.data(), nr, &mem);
	}
	return bytes;
}

constexpr std::size_t SgAt(std::uint32_t nr)
{
	return sizeof(rail_rtrs_info_rsp) + nr * sizeof(rail_rtrs_sg);
}

const Malformed kInfoRsp[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"HeadShort", [](Bytes &bytes) { bytes = Exact(bytes, 7); }, RAIL_RTRS_SHORT},
	{"LastDescriptorShort", Cut(1), RAIL_RTRS_SHORT},
	{"Type", Set16(0, RAIL_RTRS_INFO_REQ), RAIL_RTRS_BAD_TYPE},
	{"NoDescriptors", Set16(2, 0), RAIL_RTRS_SG_CNT},
	{"DoesNotDivide", Set16(2, 3), RAIL_RTRS_SG_CNT},
	{"MoreThanQueueDepth", Set16(2, 32), RAIL_RTRS_SG_CNT},
	{"CountMost", Set16(2, 0xffff), RAIL_RTRS_SG_CNT},
	{"CountPastMessage", Set16(2, 8), RAIL_RTRS_SHORT},
	{"NoLength", Set32(SgAt(1) + 12, 0), RAIL_RTRS_SG_LEN},
	{"NotWholeChunks", Set32(SgAt(3) + 12, 4 * kChunk - 1), RAIL_RTRS_SG_LEN},
	{"AddressWraps", Set64(SgAt(2), ~0ULL - 4 * kChunk + 2), RAIL_RTRS_SG_ADDR},
	{"AddressEndsAtLast", Set64(SgAt(2), ~0ULL - 4 * kChunk + 1), RAIL_RTRS_OK},
	{"OneChunkFewer", Set32(SgAt(0) + 12, 3 * kChunk), RAIL_RTRS_SG_TOTAL},
	{"OneChunkMore", Set32(SgAt(0) + 12, 5 * kChunk), RAIL_RTRS_SG_TOTAL},
	{"Uneven",
	 [](Bytes &bytes) {
		 Put32(bytes, SgAt(0) + 12, 3 * kChunk);
		 Put32(bytes, SgAt(1) + 12, 5 * kChunk);
	 },
	 RAIL_RTRS_OK},
};

class RtrsInfoRsp : public RtrsMalformed
{
};

TEST_P(RtrsInfoRsp, Reason)
{
	Check(InfoRsp(), [](const Bytes &bytes) {
		const rail_rtrs_params params = Params();
		std::uint32_t sg_cnt;

		return rail_rtrs_info_rsp_decode(bytes.data(), Len(bytes), &params, &sg_cnt);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsInfoRsp, testing::ValuesIn(kInfoRsp), Name);

TEST(Rtrs, RotationNeedsADescriptorAChunk)
{
	const rail_rtrs_params params = Params(true);
	std::uint32_t sg_cnt;

	for (const std::uint32_t cnt : {1U, 2U, 4U, 8U}) {
		const Bytes bytes = InfoRsp(cnt);

		EXPECT_EQ(rail_rtrs_info_rsp_decode(bytes.data(), Len(bytes), &params, &sg_cnt),
			  RAIL_RTRS_SG_CNT);
		EXPECT_EQ(sg_cnt, 0U);
	}
	const Bytes bytes = InfoRsp(kDepth);
	EXPECT_EQ(rail_rtrs_info_rsp_decode(bytes.data(), Len(bytes), &params, &sg_cnt),
		  RAIL_RTRS_OK);
	EXPECT_EQ(sg_cnt, kDepth);
}

// Immediate values.
TEST(RtrsImm, RequestsSurviveTheTrip)
{
	for (const std::uint32_t depth : {1U, 2U, 3U, 16U, 17U, 512U, 513U, 65535U}) {
		rail_rtrs_params params;

		ASSERT_EQ(rail_rtrs_params_init(&params, depth, 512, 512, false), RAIL_RTRS_OK);
		for (const std::uint32_t buf_id : {0U, depth / 2, depth - 1}) {
			for (const std::uint32_t off : {0U, 1U, 1019U, 1020U}) {
				rail_rtrs_imm imm;

				ASSERT_EQ(rail_rtrs_imm_server(
						  rail_rtrs_imm_req(&params, buf_id, off), &params,
						  &imm),
					  RAIL_RTRS_OK);
				EXPECT_EQ(imm.type, RAIL_RTRS_IMM_IO_REQ);
				EXPECT_EQ(imm.buf_id, buf_id);
				EXPECT_EQ(imm.off, off);
			}
		}
	}
}

TEST(RtrsImm, ResponsesSurviveTheTrip)
{
	const rail_rtrs_params params = Params();

	for (const bool inval : {false, true}) {
		for (int error = 0; error >= -600; error--) {
			const std::uint32_t buf_id = static_cast<std::uint32_t>(-error) % kDepth;
			rail_rtrs_imm imm;

			ASSERT_EQ(rail_rtrs_imm_client(rail_rtrs_imm_rsp(buf_id, error, inval),
						       &params, &imm),
				  RAIL_RTRS_OK);
			EXPECT_EQ(imm.type,
				  inval ? RAIL_RTRS_IMM_IO_RSP_INVAL : RAIL_RTRS_IMM_IO_RSP);
			EXPECT_EQ(imm.buf_id, buf_id);
			EXPECT_EQ(imm.error, error >= -511 ? error : -EIO);
		}
	}
}

TEST(RtrsImm, ErrnoOfEitherSignAndSize)
{
	EXPECT_EQ(rail_rtrs_imm_rsp(3, EINVAL, false), rail_rtrs_imm_rsp(3, -EINVAL, false));
	EXPECT_EQ(rail_rtrs_imm_rsp(3, INT32_MIN, false), rail_rtrs_imm_rsp(3, -EIO, false));
}

TEST(RtrsImm, Heartbeats)
{
	const rail_rtrs_params params = Params();
	rail_rtrs_imm imm;

	EXPECT_EQ(rail_rtrs_imm_hb(false), 0x80000000U);
	EXPECT_EQ(rail_rtrs_imm_hb(true), 0x90000000U);
	memset(&imm, 0xff, sizeof(imm));
	for (const bool ack : {false, true}) {
		EXPECT_EQ(rail_rtrs_imm_server(rail_rtrs_imm_hb(ack), &params, &imm), RAIL_RTRS_OK);
		EXPECT_EQ(imm.type, ack ? RAIL_RTRS_IMM_HB_ACK : RAIL_RTRS_IMM_HB);
		EXPECT_EQ(imm.error, 0);
		EXPECT_EQ(imm.off, 0U);
		EXPECT_EQ(rail_rtrs_imm_client(rail_rtrs_imm_hb(ack), &params, &imm), RAIL_RTRS_OK);
	}
}

TEST(RtrsImm, EveryTypeIsKnownOrRefused)
{
	const rail_rtrs_params params = Params();

	for (std::uint32_t type = 0; type < 16; type++) {
		const bool hb = type == 8 || type == 9;
		rail_rtrs_imm imm;

		EXPECT_EQ(rail_rtrs_imm_server(type << 28, &params, &imm),
			  hb || type == 0 ? RAIL_RTRS_OK : RAIL_RTRS_IMM_TYPE);
		EXPECT_EQ(rail_rtrs_imm_client(type << 28, &params, &imm),
			  hb || type == 1 || type == 2 ? RAIL_RTRS_OK : RAIL_RTRS_IMM_TYPE);
	}
}

TEST(RtrsImm, WhatDoesNotExistIsRefused)
{
	rail_rtrs_params params;
	rail_rtrs_imm imm;

	// 12 is no power of two: ids 12 to 15 have bits, but no buffer.
	ASSERT_EQ(rail_rtrs_params_init(&params, 12, kIo, kHdr, false), RAIL_RTRS_OK);
	EXPECT_EQ(rail_rtrs_imm_server(11U << 24, &params, &imm), RAIL_RTRS_OK);
	EXPECT_EQ(rail_rtrs_imm_server(12U << 24, &params, &imm), RAIL_RTRS_IMM_BUF);
	EXPECT_EQ(rail_rtrs_imm_server(kChunk - 4, &params, &imm), RAIL_RTRS_OK);
	EXPECT_EQ(rail_rtrs_imm_server(kChunk - 3, &params, &imm), RAIL_RTRS_IMM_OFF);
	EXPECT_EQ(rail_rtrs_imm_client(rail_rtrs_imm_rsp(11, 0, false), &params, &imm),
		  RAIL_RTRS_OK);
	EXPECT_EQ(rail_rtrs_imm_client(rail_rtrs_imm_rsp(12, 0, false), &params, &imm),
		  RAIL_RTRS_IMM_BUF);
	EXPECT_EQ(rail_rtrs_imm_client(0x1007ffff, &params, &imm), RAIL_RTRS_IMM_BUF);
}

// I/O requests, in a chunk as small as can be so that its end is near.
constexpr std::uint32_t kSmallIo = 512;
constexpr std::uint32_t kSmallHdr = 64;
constexpr std::uint32_t kSmallChunk = kSmallIo + kSmallHdr;

rail_rtrs_params SmallParams()
{
	rail_rtrs_params params;

	EXPECT_EQ(rail_rtrs_params_init(&params, kDepth, kSmallIo, kSmallHdr, false), RAIL_RTRS_OK);
	return params;
}

struct Request {
	const char *name;
	std::uint32_t off;
	std::uint16_t type;
	std::uint16_t usr_len;
	std::uint16_t flags;
	std::uint16_t sg_cnt;
	rail_rtrs_mem mem;
	std::uint32_t written; // 0: not known
	rail_rtrs_reason reason;
};

void PrintTo(const Request &row, std::ostream *os)
{
	*os << row.name;
}

constexpr rail_rtrs_mem kMem = {0x10000, 0x44, kSmallIo};

const Request kRequests[] = {
	{"Write", 512 + 32, 2, 32, 0, 0, {}, 512 + 36, RAIL_RTRS_OK},
	{"WriteUnknownSize", 512 + 32, 2, 32, 0, 0, {}, 0, RAIL_RTRS_OK},
	{"WriteNoData", 32, 2, 32, 0, 0, {}, 36, RAIL_RTRS_OK},
	{"WriteNothingAtAll", 0, 2, 0, 0, 0, {}, 4, RAIL_RTRS_OK},
	{"WriteAtVeryEnd", kSmallChunk - 4, 2, 60, 0, 0, {}, kSmallChunk, RAIL_RTRS_OK},
	{"Read", 512 + 32, 3, 32, 1, 1, kMem, 32 + 24, RAIL_RTRS_OK},
	{"ReadAtVeryEnd", kSmallChunk - 24, 3, 40, 1, 1, kMem, 64, RAIL_RTRS_OK},
	{"ReadUnaligned", 13 + 32, 3, 32, 1, 1, kMem, 32 + 24, RAIL_RTRS_OK},
	{"Flush", 32, 3, 32, 0, 0, {}, 32 + 8, RAIL_RTRS_OK},
	{"FlushWithInval", 32, 3, 32, 1, 0, {}, 32 + 8, RAIL_RTRS_OK},

	{"HeaderPastChunk", kSmallChunk - 3, 2, 32, 0, 0, {}, 0, RAIL_RTRS_HDR_PAST},
	{"HeaderFarPastChunk", 0xffffffff, 2, 32, 0, 0, {}, 0, RAIL_RTRS_HDR_PAST},
	{"ReadHeaderEndsWithChunk", kSmallChunk - 8, 3, 56, 0, 0, {}, 0, RAIL_RTRS_READ_SG},
	{"ReadHeaderPastChunk", kSmallChunk - 4, 3, 60, 0, 0, {}, 0, RAIL_RTRS_HDR_PAST},
	{"DescriptorPastChunk", kSmallChunk - 20, 3, 44, 0, 1, kMem, 0, RAIL_RTRS_HDR_PAST},
	{"Type0", 32, 0, 32, 0, 0, {}, 0, RAIL_RTRS_BAD_TYPE},
	{"Type4", 32, 4, 32, 0, 0, {}, 0, RAIL_RTRS_BAD_TYPE},
	{"UserLongerThanOffset", 32, 2, 33, 0, 0, {}, 0, RAIL_RTRS_USR_LEN},
	{"UserMost", 544, 2, 0xffff, 0, 0, {}, 0, RAIL_RTRS_USR_LEN},
	{"UserLongerThanRoom", 544, 2, 61, 0, 0, {}, 0, RAIL_RTRS_USR_LONG},
	{"UserLongerThanRoomForRead", 512, 3, 41, 0, 1, kMem, 0, RAIL_RTRS_USR_LONG},
	{"DataTooLong", 513 + 32, 2, 32, 0, 0, {}, 0, RAIL_RTRS_DATA_LONG},
	{"ReadTooLong", 513, 3, 0, 0, 1, {0, 0, 1024}, 0, RAIL_RTRS_DATA_LONG},
	{"Flags", 32, 3, 32, 2, 0, {}, 0, RAIL_RTRS_FLAGS},
	{"TwoDescriptors", 512, 3, 32, 0, 2, kMem, 0, RAIL_RTRS_READ_SG},
	{"DescriptorsMost", 512, 3, 32, 0, 0xffff, kMem, 0, RAIL_RTRS_READ_SG},
	{"DataWithoutDescriptor", 512, 3, 32, 0, 0, {}, 0, RAIL_RTRS_READ_SG},
	{"DescriptorTooSmall", 512 + 32, 3, 32, 0, 1, {0, 0, 511}, 0, RAIL_RTRS_READ_LEN},
	{"AddressWraps", 512 + 32, 3, 32, 0, 1, {~0ULL - 510, 0, 512}, 0, RAIL_RTRS_READ_ADDR},
	{"AddressEndsAtLast", 512 + 32, 3, 32, 0, 1, {~0ULL - 511, 0, 512}, 0, RAIL_RTRS_OK},
	{"WroteLess", 512 + 32, 2, 32, 0, 0, {}, 512 + 35, RAIL_RTRS_WRITTEN},
	{"WroteMore", 512 + 32, 2, 32, 0, 0, {}, 512 + 37, RAIL_RTRS_WRITTEN},
	{"ReadWroteDataToo", 512 + 32, 3, 32, 1, 1, kMem, 512 + 32 + 24, RAIL_RTRS_WRITTEN},
};

class RtrsRequest : public testing::TestWithParam<Request>
{
};

TEST_P(RtrsRequest, Reason)
{
	const Request &row = GetParam();
	const rail_rtrs_params params = SmallParams();
	Bytes chunk(kSmallChunk);
	Bytes header(RAIL_RTRS_REQ_HDR_MAX);
	rail_rtrs_req req;

	Put16(header, 0, row.type);
	Put16(header, 2, row.usr_len);
	if (row.type == RAIL_RTRS_READ) {
		Put16(header, 4, row.flags);
		Put16(header, 6, row.sg_cnt);
		Put64(header, 8, row.mem.addr);
		Put32(header, 16, row.mem.key);
		Put32(header, 20, row.mem.len);
	}
	for (std::size_t at = 0; at < header.size() && row.off + at < chunk.size(); at++)
		chunk[row.off + at] = header[at];

	const auto reason = rail_rtrs_req_decode(chunk.data(), &params, row.off, row.written, &req);

	ASSERT_EQ(reason, row.reason) << rail_rtrs_reason_text(reason);
	if (reason)
		return;
	EXPECT_EQ(req.type, row.type);
	EXPECT_EQ(req.usr_len, row.usr_len);
	EXPECT_EQ(req.usr_at, row.off - row.usr_len);
	EXPECT_EQ(req.data_len, row.off - row.usr_len);
	EXPECT_EQ(req.has_mem, row.sg_cnt == 1);
	EXPECT_EQ(req.inval, row.sg_cnt == 1 && row.flags);
	EXPECT_EQ(req.mem.addr, row.mem.addr);
	EXPECT_EQ(req.mem.key, row.mem.key);
	EXPECT_EQ(req.mem.len, row.mem.len);
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsRequest, testing::ValuesIn(kRequests),
			 [](const auto &row) { return std::string(row.param.name); });

TEST(Rtrs, RandomRequestsSurviveTheTrip)
{
	const rail_rtrs_params params = SmallParams();
	Random random(1234);

	for (int round = 0; round < 20000; round++) {
		const bool read = random.OneIn(2);
		const bool inval = random.OneIn(2);
		const std::uint32_t data = random.OneIn(4) ? 0 : random.Below(kSmallIo + 1);
		const auto usr = static_cast<std::uint16_t>(random.Below(41));
		const std::uint32_t off = data + usr;
		const rail_rtrs_mem mem = {random.Next() >> 1, random.Word(), kSmallIo};
		Bytes chunk(kSmallChunk);
		std::uint32_t written;
		rail_rtrs_req req;

		if (read) {
			written = usr + rail_rtrs_read_encode(&chunk[off], usr,
							      data ? &mem : nullptr, inval);
		} else {
			rail_rtrs_write msg;

			rail_rtrs_write_encode(&msg, usr);
			memcpy(&chunk[off], &msg, sizeof(msg));
			written = off + sizeof(msg);
		}
		const auto reason = rail_rtrs_req_decode(chunk.data(), &params, off, written, &req);
		ASSERT_EQ(reason, RAIL_RTRS_OK) << rail_rtrs_reason_text(reason);
		ASSERT_EQ(req.type, read ? RAIL_RTRS_READ : RAIL_RTRS_WRITE);
		ASSERT_EQ(req.usr_len, usr);
		ASSERT_EQ(req.data_len, data);
		ASSERT_EQ(req.has_mem, read && data);
		ASSERT_EQ(req.inval, read && data && inval);
		if (req.has_mem) {
			ASSERT_EQ(req.mem.addr, mem.addr);
			ASSERT_EQ(req.mem.key, mem.key);
		}
	}
}

TEST(Rtrs, RandomChunksAreHarmless)
{
	const rail_rtrs_params params = SmallParams();
	Random random(4321);
	int taken = 0;

	for (int round = 0; round < 100000; round++) {
		Bytes chunk(kSmallChunk);
		const std::uint32_t off = random.Below(kSmallChunk + 8);
		rail_rtrs_req req;

		// Mostly small numbers, so that some get past the first checks.
		for (std::uint32_t at = off; at < off + 24 && at < kSmallChunk; at++)
			chunk[at] = static_cast<std::uint8_t>(random.OneIn(2)   ? 0
							      : random.OneIn(8) ? random.Word()
										: random.Below(40));
		if (rail_rtrs_req_decode(chunk.data(), &params, off, 0, &req))
			continue;
		taken++;
		ASSERT_LE(req.usr_at + req.usr_len, kSmallChunk);
		ASSERT_LE(req.data_len, kSmallIo);
		ASSERT_LE(req.data_len, req.type == RAIL_RTRS_READ ? req.mem.len : kSmallIo);
	}
	EXPECT_GT(taken, 100);
}

// What RAIL's ends say to each other in reserved bytes.
TEST(Rtrs, ExtensionsAreTheTaggedOnesOnly)
{
	rail_rtrs_conn conn = Conn();
	rail_rtrs_conn_req req;
	const rail_rtrs_conn_req without = [&] {
		rail_rtrs_conn_req msg;

		rail_rtrs_conn_req_encode(&msg, &conn);
		return msg;
	}();
	rail_rtrs_params params = Params(true);
	rail_rtrs_conn_rsp rsp;
	int error;

	// Not offered: the bytes are what they are with others.
	EXPECT_EQ(BytesOf(without.ext), Bytes(4));
	conn.ext = RAIL_RTRS_EXT_SMALL;
	rail_rtrs_conn_req_encode(&req, &conn);
	EXPECT_EQ(Exact(BytesOf(req), 45), Exact(BytesOf(without), 45));
	EXPECT_EQ(BytesOf(req.ext), (Bytes{'R', 'A', 'I', 1}));
	ASSERT_EQ(rail_rtrs_conn_req_decode(&req, sizeof(req), &conn), RAIL_RTRS_OK);
	EXPECT_EQ(conn.ext, RAIL_RTRS_EXT_SMALL);
	req.ext.tag[2]++;
	ASSERT_EQ(rail_rtrs_conn_req_decode(&req, sizeof(req), &conn), RAIL_RTRS_OK);
	EXPECT_EQ(conn.ext, 0);

	rail_rtrs_accept_encode(&rsp, &params);
	EXPECT_EQ(BytesOf(rsp.ext), Bytes(4));
	params.ext = RAIL_RTRS_EXT_SMALL;
	rail_rtrs_accept_encode(&rsp, &params);
	EXPECT_EQ(BytesOf(rsp.ext), (Bytes{'R', 'A', 'I', 1}));
	ASSERT_EQ(rail_rtrs_conn_rsp_decode(&rsp, sizeof(rsp), &params, &error), RAIL_RTRS_OK);
	EXPECT_EQ(params.ext, RAIL_RTRS_EXT_SMALL);
	rsp.ext.tag[0] = 0;
	ASSERT_EQ(rail_rtrs_conn_rsp_decode(&rsp, sizeof(rsp), &params, &error), RAIL_RTRS_OK);
	EXPECT_EQ(params.ext, 0);
}

// Requests that are messages.
Bytes Small(std::uint16_t type, std::uint32_t data, std::uint16_t usr = RAIL_RTRS_SMALL_USR)
{
	const rail_rtrs_small_req req = {
		.type = type,
		.usr_len = usr,
		.buf_id = 5,
		.alone = data == 512,
		.data_len = data,
		.addr = 0x1122334455667788,
		.key = 0xdeadbeef,
	};
	// What was there before must not get out.
	Bytes bytes(RAIL_RTRS_SMALL_HDR, 0xee);
	auto *user = static_cast<std::uint8_t *>(rail_rtrs_small_encode(bytes.data(), &req));

	EXPECT_EQ(user, bytes.data() + 32);
	for (std::uint16_t at = 0; at < usr; at++)
		user[at] = 0x55;
	if (type == RAIL_RTRS_SMALL_WRITE)
		bytes.resize(bytes.size() + data);
	return bytes;
}

constexpr std::uint32_t kMost = RAIL_RTRS_SMALL_DATA;

const Malformed kSmallRead[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"Short", Cut(1), RAIL_RTRS_SHORT},
	{"Long", [](Bytes &bytes) { bytes.push_back(0); }, RAIL_RTRS_WRITTEN},
	{"BroughtData", [](Bytes &bytes) { bytes.resize(64 + kMost); }, RAIL_RTRS_WRITTEN},
	{"TypeRead", Set16(0, RAIL_RTRS_READ), RAIL_RTRS_BAD_TYPE},
	{"TypeInfo", Set16(0, RAIL_RTRS_INFO_REQ), RAIL_RTRS_BAD_TYPE},
	{"IsAWrite", Set16(0, RAIL_RTRS_SMALL_WRITE), RAIL_RTRS_WRITTEN},
	{"UserLong", Set16(2, RAIL_RTRS_SMALL_USR + 1), RAIL_RTRS_USR_LONG},
	{"UserMost", Set16(2, 0xffff), RAIL_RTRS_USR_LONG},
	{"NoUser", Set16(2, 0), RAIL_RTRS_OK},
	{"BufferLast", Set16(4, kDepth - 1), RAIL_RTRS_OK},
	{"Buffer", Set16(4, kDepth), RAIL_RTRS_IMM_BUF},
	{"BufferMost", Set16(4, 0xffff), RAIL_RTRS_IMM_BUF},
	{"Alone", Set16(6, RAIL_RTRS_SMALL_F_ALONE), RAIL_RTRS_OK},
	{"Flags", Set16(6, 2), RAIL_RTRS_FLAGS},
	{"Reserved", Set16(6, 1 << 8), RAIL_RTRS_FLAGS},
	{"Reserved2", Set32(12, 1U << 31), RAIL_RTRS_FLAGS},
	{"DataLong", Set32(8, kMost + 1), RAIL_RTRS_DATA_LONG},
	{"DataMost", Set32(8, 0xffffffff), RAIL_RTRS_DATA_LONG},
	{"NoData", Set32(8, 0), RAIL_RTRS_OK},
	{"MemorySmall", Set32(28, kMost - 1), RAIL_RTRS_READ_LEN},
	{"MemoryNone", Set32(28, 0), RAIL_RTRS_READ_LEN},
	{"MemoryWraps", Set64(16, ~0ULL - kMost + 2), RAIL_RTRS_READ_ADDR},
	{"MemoryEndsAtLast", Set64(16, ~0ULL - kMost + 1), RAIL_RTRS_OK},
};

const Malformed kSmallWrite[] = {
	{"Cut", Cut(1), RAIL_RTRS_WRITTEN},
	{"HeaderOnly", Cut(kMost), RAIL_RTRS_WRITTEN},
	{"LessThanHeader", Cut(kMost + 1), RAIL_RTRS_SHORT},
	{"Long", [](Bytes &bytes) { bytes.push_back(0); }, RAIL_RTRS_WRITTEN},
	{"DataLess", Set32(8, kMost - 1), RAIL_RTRS_WRITTEN},
	{"DataLong", Set32(8, kMost + 1), RAIL_RTRS_DATA_LONG},
	{"DataWraps", Set32(8, 0xffffffc0), RAIL_RTRS_DATA_LONG},
	{"IsARead", Set16(0, RAIL_RTRS_SMALL_READ), RAIL_RTRS_READ_LEN},
	{"MemoryIsNotLookedAt", Set64(16, ~0ULL), RAIL_RTRS_OK},
};

class RtrsSmall : public RtrsMalformed
{
protected:
	static rail_rtrs_reason Decode(const Bytes &bytes)
	{
		const rail_rtrs_params params = Params(true);
		rail_rtrs_req req;
		std::uint32_t buf_id;

		return rail_rtrs_small_decode(bytes.data(), Len(bytes), &params, &buf_id, &req);
	}
};

class RtrsSmallRead : public RtrsSmall
{
};

class RtrsSmallWrite : public RtrsSmall
{
};

TEST_P(RtrsSmallRead, Reason)
{
	Check(Small(RAIL_RTRS_SMALL_READ, kMost), Decode);
}

TEST_P(RtrsSmallWrite, Reason)
{
	Check(Small(RAIL_RTRS_SMALL_WRITE, kMost), Decode);
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsSmallRead, testing::ValuesIn(kSmallRead), Name);
INSTANTIATE_TEST_SUITE_P(Table, RtrsSmallWrite, testing::ValuesIn(kSmallWrite), Name);

TEST(Rtrs, SmallRequestsSurviveTheTrip)
{
	const rail_rtrs_params params = Params(true);

	for (const std::uint16_t type : {RAIL_RTRS_SMALL_READ, RAIL_RTRS_SMALL_WRITE}) {
		for (const std::uint32_t data : {0U, 1U, 512U, kMost}) {
			const bool read = type == RAIL_RTRS_SMALL_READ;
			const Bytes bytes = Small(type, data, 20);
			rail_rtrs_req req;
			std::uint32_t buf_id;

			ASSERT_EQ(rail_rtrs_small_decode(bytes.data(), Len(bytes), &params, &buf_id,
							 &req),
				  RAIL_RTRS_OK);
			EXPECT_EQ(buf_id, 5U);
			EXPECT_EQ(req.type, read ? RAIL_RTRS_READ : RAIL_RTRS_WRITE);
			EXPECT_EQ(req.usr_at, 32U);
			EXPECT_EQ(req.usr_len, 20U);
			EXPECT_EQ(req.data_len, data);
			EXPECT_FALSE(req.inval);
			EXPECT_EQ(req.alone, data == 512);
			EXPECT_EQ(req.has_mem, read && data);
			EXPECT_EQ(req.mem.addr, req.has_mem ? 0x1122334455667788U : 0);
			EXPECT_EQ(req.mem.key, req.has_mem ? 0xdeadbeefU : 0);
			EXPECT_EQ(req.mem.len, req.has_mem ? data : 0);
			for (std::size_t at = 32 + 20; at < bytes.size(); at++)
				ASSERT_EQ(bytes[at], 0) << at;
		}
	}
}

TEST(Rtrs, SmallDataIsNoLongerThanAnyData)
{
	const rail_rtrs_params params = SmallParams();
	const Bytes bytes = Small(RAIL_RTRS_SMALL_READ, kSmallIo + 1);
	rail_rtrs_req req;
	std::uint32_t buf_id;

	EXPECT_EQ(rail_rtrs_small_decode(bytes.data(), Len(bytes), &params, &buf_id, &req),
		  RAIL_RTRS_DATA_LONG);
}

// Several answers in a message.
Bytes SmallRsps(std::uint32_t count)
{
	rail_rtrs_small_rsps msg = {};
	std::uint32_t len = 0;

	for (std::uint32_t n = 0; n < count; n++)
		len = rail_rtrs_small_rsps_put(&msg, n,
					       rail_rtrs_imm_rsp(n, n == 1 ? -EIO : 0, false));
	return Exact(BytesOf(msg), len);
}

const Malformed kSmallRsps[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"NoCount", [](Bytes &bytes) { bytes.resize(3); }, RAIL_RTRS_SHORT},
	{"Type", Set16(0, RAIL_RTRS_RKEY_RSP), RAIL_RTRS_BAD_TYPE},
	{"TypeRequest", Set16(0, RAIL_RTRS_SMALL_READ), RAIL_RTRS_BAD_TYPE},
	{"Count0", Set16(2, 0), RAIL_RTRS_RSPS_COUNT},
	{"CountLess", Set16(2, 2), RAIL_RTRS_RSPS_COUNT},
	{"CountMore", Set16(2, 4), RAIL_RTRS_RSPS_COUNT},
	{"CountMost", Set16(2, 0xffff), RAIL_RTRS_RSPS_COUNT},
	{"CountNone",
	 [](Bytes &bytes) {
		 Put16(bytes, 2, 0);
		 bytes.resize(4);
	 },
	 RAIL_RTRS_RSPS_COUNT},
	{"CountPastMost",
	 [](Bytes &bytes) {
		 Put16(bytes, 2, 16);
		 bytes.resize(4 + 16 * 4);
	 },
	 RAIL_RTRS_RSPS_COUNT},
	{"Cut", Cut(1), RAIL_RTRS_RSPS_COUNT},
	{"Long", [](Bytes &bytes) { bytes.push_back(0); }, RAIL_RTRS_RSPS_COUNT},
	{"Heartbeat", Set32(8, 8U << 28), RAIL_RTRS_IMM_TYPE},
	{"Invalidated", Set32(12, 2U << 28), RAIL_RTRS_IMM_TYPE},
};

class RtrsSmallRsps : public RtrsMalformed
{
};

TEST_P(RtrsSmallRsps, Reason)
{
	Check(SmallRsps(3), [](const Bytes &bytes) {
		std::uint32_t rsp[RAIL_RTRS_SMALL_RSPS_MAX];
		std::uint32_t count;
		const auto reason =
			rail_rtrs_small_rsps_decode(bytes.data(), Len(bytes), rsp, &count);

		EXPECT_EQ(count, reason ? 0U : 3U);
		return reason;
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsSmallRsps, testing::ValuesIn(kSmallRsps), Name);

TEST(Rtrs, SmallAnswersSurviveTheTrip)
{
	for (std::uint32_t n = 1; n <= RAIL_RTRS_SMALL_RSPS_MAX; n++) {
		const Bytes bytes = SmallRsps(n);
		std::uint32_t rsp[RAIL_RTRS_SMALL_RSPS_MAX];
		std::uint32_t count;

		ASSERT_EQ(bytes.size(), 4 + 4 * n);
		ASSERT_EQ(rail_rtrs_small_rsps_decode(bytes.data(), Len(bytes), rsp, &count),
			  RAIL_RTRS_OK);
		ASSERT_EQ(count, n);
		for (std::uint32_t i = 0; i < n; i++)
			EXPECT_EQ(rsp[i], rail_rtrs_imm_rsp(i, i == 1 ? -EIO : 0, false));
	}
}

// RKEY_RSP
Bytes RkeyRsp()
{
	rail_rtrs_rkey_rsp msg;

	rail_rtrs_rkey_rsp_encode(&msg, 5, 0xdeadbeef);
	return BytesOf(msg);
}

const Malformed kRkeyRsp[] = {
	{"Empty", Nothing(), RAIL_RTRS_SHORT},
	{"Short", Cut(1), RAIL_RTRS_SHORT},
	{"Type", Set16(0, RAIL_RTRS_READ), RAIL_RTRS_BAD_TYPE},
	{"OtherBuffer", Set16(2, 4), RAIL_RTRS_RKEY_BUF},
};

class RtrsRkeyRsp : public RtrsMalformed
{
};

TEST_P(RtrsRkeyRsp, Reason)
{
	Check(RkeyRsp(), [](const Bytes &bytes) {
		std::uint32_t rkey;

		return rail_rtrs_rkey_rsp_decode(bytes.data(), Len(bytes), 5, &rkey);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RtrsRkeyRsp, testing::ValuesIn(kRkeyRsp), Name);

TEST(Rtrs, TablesHaveEveryReason)
{
	std::set<int> seen = {RAIL_RTRS_IMM_TYPE, RAIL_RTRS_IMM_BUF, RAIL_RTRS_IMM_OFF};

	const auto add = [&seen](const auto &table) {
		for (const auto &row : table)
			seen.insert(row.reason);
	};
	add(kConnReq);
	add(kConnRsp);
	add(kInfoReq);
	add(kInfoRsp);
	add(kRequests);
	add(kRkeyRsp);
	add(kSmallRsps);
	for (int reason = 0; reason < RAIL_RTRS_NR_REASONS; reason++)
		EXPECT_TRUE(seen.contains(reason))
			<< rail_rtrs_reason_text(static_cast<rail_rtrs_reason>(reason));
}

TEST(Rtrs, EveryReasonHasItsOwnText)
{
	std::set<std::string> texts;

	for (int reason = 0; reason < RAIL_RTRS_NR_REASONS; reason++) {
		const char *text = rail_rtrs_reason_text(static_cast<rail_rtrs_reason>(reason));

		ASSERT_NE(text, nullptr) << reason;
		EXPECT_TRUE(texts.insert(text).second) << text;
	}
	EXPECT_STREQ(rail_rtrs_reason_text(RAIL_RTRS_NR_REASONS), "unknown reason");
}

// What the in-tree modules sent each other.
TEST(RtrsVectors, ConnReq)
{
	const auto vectors = LoadVectors("rtrs-conn-req");

	ASSERT_GE(vectors.size(), 4U);
	for (const Vector &vector : vectors) {
		rail_rtrs_conn_req msg;
		rail_rtrs_conn conn;

		ASSERT_EQ(rail_rtrs_conn_req_decode(vector.payload.data(), Len(vector.payload),
						    &conn),
			  RAIL_RTRS_OK);
		EXPECT_EQ(conn.cid_num, 2);
		EXPECT_TRUE(conn.first_conn);
		rail_rtrs_conn_req_encode(&msg, &conn);
		EXPECT_EQ(BytesOf(msg), Exact(vector.payload, sizeof(msg))) << vector.source;
	}
}

TEST(RtrsVectors, ConnRsp)
{
	const auto vectors = LoadVectors("rtrs-conn-rsp");

	ASSERT_GE(vectors.size(), 4U);
	for (const Vector &vector : vectors) {
		rail_rtrs_params params;
		rail_rtrs_conn_rsp msg;
		int error;

		ASSERT_EQ(rail_rtrs_conn_rsp_decode(vector.payload.data(), Len(vector.payload),
						    &params, &error),
			  RAIL_RTRS_OK);
		EXPECT_EQ(params.queue_depth, kDepth);
		EXPECT_EQ(params.max_io_size, kIo);
		EXPECT_EQ(params.max_hdr_size, kHdr);
		EXPECT_EQ(params.new_rkey, vector.source.starts_with("rnbd-rotation-Y"));
		rail_rtrs_accept_encode(&msg, &params);
		EXPECT_EQ(BytesOf(msg), Exact(vector.payload, sizeof(msg))) << vector.source;
	}
}

TEST(RtrsVectors, Info)
{
	const auto requests = LoadVectors("rtrs-info-req");
	const auto answers = LoadVectors("rtrs-info-rsp");

	ASSERT_EQ(requests.size(), 2U);
	for (const Vector &vector : requests) {
		char name[RAIL_RTRS_NAME_LEN];
		rail_rtrs_info_req msg;

		ASSERT_EQ(
			rail_rtrs_info_req_decode(vector.payload.data(), Len(vector.payload), name),
			RAIL_RTRS_OK);
		EXPECT_STREQ(name, "cap");
		ASSERT_EQ(rail_rtrs_info_req_encode(&msg, name), RAIL_RTRS_OK);
		EXPECT_EQ(BytesOf(msg), vector.payload);
	}
	ASSERT_EQ(answers.size(), 2U);
	for (const Vector &vector : answers) {
		const rail_rtrs_params params = Params(vector.Number("rotation"));
		Bytes copy(vector.payload.size());
		std::uint32_t sg_cnt;

		ASSERT_EQ(rail_rtrs_info_rsp_decode(vector.payload.data(), Len(vector.payload),
						    &params, &sg_cnt),
			  RAIL_RTRS_OK);
		EXPECT_EQ(sg_cnt, params.new_rkey ? kDepth : 1U);
		rail_rtrs_info_rsp_encode(copy.data(), static_cast<std::uint16_t>(sg_cnt));
		for (std::uint32_t nr = 0; nr < sg_cnt; nr++) {
			rail_rtrs_mem mem;

			rail_rtrs_info_rsp_get(vector.payload.data(), nr, &mem);
			rail_rtrs_info_rsp_put(copy.data(), nr, &mem);
		}
		EXPECT_EQ(copy, vector.payload);
	}
}

TEST(RtrsVectors, Requests)
{
	const rail_rtrs_params params = Params();
	const auto vectors = LoadVectors("rtrs-req");
	int reads = 0;

	ASSERT_GE(vectors.size(), 18U);
	for (const Vector &vector : vectors) {
		Bytes chunk(params.chunk_size);
		rail_rtrs_imm imm;
		rail_rtrs_req req;

		ASSERT_EQ(rail_rtrs_imm_server(vector.Number("imm"), &params, &imm), RAIL_RTRS_OK);
		EXPECT_EQ(rail_rtrs_imm_req(&params, imm.buf_id, imm.off), vector.Number("imm"));
		// The file has the user header and what follows: its end is behind the header.
		const bool read = vector.payload.size() == vector.Number("written") &&
				  vector.payload.size() >= 56;
		const std::size_t behind = read ? 24 : 4;
		memcpy(&chunk[imm.off + behind - vector.payload.size()], vector.payload.data(),
		       vector.payload.size());

		const auto reason = rail_rtrs_req_decode(chunk.data(), &params, imm.off,
							 vector.Number("written"), &req);
		ASSERT_EQ(reason, RAIL_RTRS_OK)
			<< vector.source << ": " << rail_rtrs_reason_text(reason);
		EXPECT_EQ(req.usr_at, imm.off + behind - vector.payload.size());
		// What a read fetches is what its descriptor holds.
		if (req.type == RAIL_RTRS_READ) {
			EXPECT_EQ(req.mem.len, req.data_len);
			EXPECT_TRUE(req.inval);
			reads++;
		}

		Bytes copy(RAIL_RTRS_REQ_HDR_MAX);
		if (req.type == RAIL_RTRS_READ) {
			EXPECT_EQ(rail_rtrs_read_encode(copy.data(), req.usr_len, &req.mem,
							req.inval),
				  behind);
		} else {
			rail_rtrs_write msg;

			rail_rtrs_write_encode(&msg, req.usr_len);
			copy = BytesOf(msg);
		}
		EXPECT_EQ(Exact(copy, behind),
			  Bytes(vector.payload.end() - static_cast<std::ptrdiff_t>(behind),
				vector.payload.end()))
			<< vector.source;
	}
	EXPECT_GE(reads, 10);
}

TEST(RtrsVectors, Answers)
{
	const rail_rtrs_params params = Params();
	rail_rtrs_imm imm;

	for (const Vector &vector : LoadVectors("rtrs-imm-client")) {
		const std::uint32_t value = vector.Number("imm");

		ASSERT_EQ(rail_rtrs_imm_client(value, &params, &imm), RAIL_RTRS_OK);
		if (imm.type == RAIL_RTRS_IMM_HB || imm.type == RAIL_RTRS_IMM_HB_ACK)
			EXPECT_EQ(rail_rtrs_imm_hb(imm.type == RAIL_RTRS_IMM_HB_ACK), value);
		else
			EXPECT_EQ(rail_rtrs_imm_rsp(imm.buf_id, imm.error,
						    imm.type == RAIL_RTRS_IMM_IO_RSP_INVAL),
				  value);
	}
	for (const Vector &vector : LoadVectors("rtrs-imm-server")) {
		const std::uint32_t value = vector.Number("imm");

		ASSERT_EQ(rail_rtrs_imm_server(value, &params, &imm), RAIL_RTRS_OK);
		EXPECT_EQ(rail_rtrs_imm_hb(imm.type == RAIL_RTRS_IMM_HB_ACK), value);
	}
	const auto keys = LoadVectors("rtrs-rkey-rsp");
	ASSERT_GE(keys.size(), 3U);
	for (const Vector &vector : keys) {
		rail_rtrs_rkey_rsp msg;
		std::uint32_t rkey;

		ASSERT_EQ(rail_rtrs_imm_client(vector.Number("imm"), &params, &imm), RAIL_RTRS_OK);
		ASSERT_EQ(rail_rtrs_rkey_rsp_decode(vector.payload.data(), Len(vector.payload),
						    imm.buf_id, &rkey),
			  RAIL_RTRS_OK);
		EXPECT_NE(rkey, 0U);
		rail_rtrs_rkey_rsp_encode(&msg, static_cast<std::uint16_t>(imm.buf_id), rkey);
		EXPECT_EQ(BytesOf(msg), vector.payload);
	}
}

} // namespace
} // namespace rail
