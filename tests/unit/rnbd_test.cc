// SPDX-License-Identifier: GPL-2.0-only
// The RNBD codec: every refusal, round trips, and what the in-tree modules sent.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <set>

#include "vectors.h"

namespace rail
{
namespace
{

// A row of a table: what is done to a valid message, and why it is refused then.
struct Malformed {
	const char *name;
	std::function<void(Bytes &)> spoil;
	rail_rnbd_reason reason;
};

void PrintTo(const Malformed &row, std::ostream *os)
{
	*os << row.name;
}

std::string Name(const testing::TestParamInfo<Malformed> &info)
{
	return info.param.name;
}

auto Set(std::size_t at, std::initializer_list<std::uint8_t> values)
{
	const Bytes bytes = values;

	return [=](Bytes &message) {
		std::copy(bytes.begin(), bytes.end(),
			  message.begin() + static_cast<std::ptrdiff_t>(at));
	};
}

auto Cut(std::size_t bytes)
{
	return [=](Bytes &message) { message = Exact(message, message.size() - bytes); };
}

auto Nothing()
{
	return [](Bytes &bytes) { bytes = Bytes(); };
}

auto Longer()
{
	return [](Bytes &bytes) { bytes.resize(bytes.size() + 8); };
}

class RnbdMalformed : public testing::TestWithParam<Malformed>
{
protected:
	void Check(Bytes message, const std::function<rail_rnbd_reason(const Bytes &)> &decode)
	{
		rail_rnbd_reason reason = decode(message);

		ASSERT_EQ(reason, RAIL_RNBD_OK) << rail_rnbd_reason_text(reason);
		GetParam().spoil(message);
		reason = decode(Exact(message, message.size()));
		EXPECT_EQ(reason, GetParam().reason) << rail_rnbd_reason_text(reason) << ", not "
						     << rail_rnbd_reason_text(GetParam().reason);
	}
};

// Which message it is, and whether it travels the right way.
TEST(Rnbd, TypesAndTheirWays)
{
	for (std::uint32_t type = 0; type < 0x300; type++) {
		const Bytes bytes = {static_cast<std::uint8_t>(type),
				     static_cast<std::uint8_t>(type >> 8), 0, 0};

		for (const bool is_read : {false, true}) {
			rail_rnbd_reason wanted = RAIL_RNBD_OK;
			rail_rnbd_type got;

			switch (type) {
			case RAIL_RNBD_SESS_INFO:
			case RAIL_RNBD_OPEN:
				wanted = is_read ? RAIL_RNBD_OK : RAIL_RNBD_BAD_WAY;
				break;
			case RAIL_RNBD_CLOSE:
				wanted = is_read ? RAIL_RNBD_BAD_WAY : RAIL_RNBD_OK;
				break;
			case RAIL_RNBD_IO:
				break;
			default:
				wanted = RAIL_RNBD_BAD_TYPE;
			}
			ASSERT_EQ(rail_rnbd_type_decode(bytes.data(), Len(bytes), is_read, &got),
				  wanted)
				<< type;
			if (!wanted) {
				EXPECT_EQ(got, static_cast<rail_rnbd_type>(type));
			}
		}
	}
}

TEST(Rnbd, TypeNeedsFourBytes)
{
	rail_rnbd_type type;

	for (std::size_t len = 0; len < 4; len++) {
		const Bytes bytes(len);

		EXPECT_EQ(rail_rnbd_type_decode(bytes.data(), Len(bytes), true, &type),
			  RAIL_RNBD_SHORT);
	}
}

// SESS_INFO
Bytes SessInfo(bool rsp, std::uint8_t ver = RAIL_RNBD_VERSION)
{
	rail_rnbd_sess_info msg;

	rail_rnbd_sess_info_encode(&msg, rsp, ver);
	return BytesOf(msg);
}

const Malformed kSessInfo[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},
	{"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Longer", Longer(), RAIL_RNBD_OK},
	{"Type", Set(0, {1}), RAIL_RNBD_BAD_TYPE},
	{"Version0", Set(4, {0}), RAIL_RNBD_BAD_VERSION},
	{"Version9", Set(4, {9}), RAIL_RNBD_OK},
};

class RnbdSessInfo : public RnbdMalformed
{
};

TEST_P(RnbdSessInfo, Reason)
{
	Check(SessInfo(false), [](const Bytes &bytes) {
		std::uint8_t ver;

		return rail_rnbd_sess_info_decode(bytes.data(), Len(bytes), 36, &ver);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdSessInfo, testing::ValuesIn(kSessInfo), Name);

TEST(Rnbd, SessInfoAgreesOnTheLowerVersion)
{
	for (const std::uint8_t theirs : {1, 2, 3, 255}) {
		const Bytes bytes = SessInfo(false, theirs);
		std::uint8_t ver = 0;

		ASSERT_EQ(rail_rnbd_sess_info_decode(bytes.data(), Len(bytes), 36, &ver),
			  RAIL_RNBD_OK);
		EXPECT_EQ(ver, theirs == 1 ? 1 : 2);
	}
}

TEST(Rnbd, SessInfoNeedsRoomForItsAnswer)
{
	const Bytes bytes = SessInfo(false);
	std::uint8_t ver;

	EXPECT_EQ(rail_rnbd_sess_info_decode(bytes.data(), Len(bytes), 35, &ver),
		  RAIL_RNBD_ANSWER_SPACE);
}

const Malformed kSessInfoRsp[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},     {"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Type", Set(0, {0}), RAIL_RNBD_BAD_TYPE}, {"Version0", Set(4, {0}), RAIL_RNBD_BAD_VERSION},
	{"Version1", Set(4, {1}), RAIL_RNBD_OK},   {"Version3", Set(4, {3}), RAIL_RNBD_BAD_VERSION},
};

class RnbdSessInfoRsp : public RnbdMalformed
{
};

TEST_P(RnbdSessInfoRsp, Reason)
{
	Check(SessInfo(true), [](const Bytes &bytes) {
		std::uint8_t ver;

		return rail_rnbd_sess_info_rsp_decode(bytes.data(), Len(bytes), &ver);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdSessInfoRsp, testing::ValuesIn(kSessInfoRsp), Name);

// What RAIL says to RAIL in the reserved bytes: others send zeros, and are not taken for RAIL.
TEST(Rnbd, ExtensionIsSeenOnlyWhereItIs)
{
	Bytes bytes = SessInfo(false);
	std::uint16_t flags = 7;
	std::uint16_t count = 7;

	EXPECT_FALSE(rail_rnbd_ext_decode(bytes.data(), Len(bytes), &flags, &count));
	EXPECT_EQ(flags, 0);
	EXPECT_EQ(count, 0);
	rail_rnbd_ext_encode(reinterpret_cast<rail_rnbd_sess_info *>(bytes.data()),
			     RAIL_RNBD_EXT_SIZES, 0x1234);
	EXPECT_TRUE(rail_rnbd_ext_decode(bytes.data(), Len(bytes), &flags, &count));
	EXPECT_EQ(flags, RAIL_RNBD_EXT_SIZES);
	EXPECT_EQ(count, 0x1234);
	EXPECT_EQ(Bytes(bytes.begin() + 8, bytes.begin() + 16),
		  (Bytes{'R', 'A', 'I', 'L', 1, 0, 0x34, 0x12}));
	EXPECT_FALSE(rail_rnbd_ext_decode(bytes.data(), Len(bytes) - 1, &flags, &count));
	bytes[8]++;
	EXPECT_FALSE(rail_rnbd_ext_decode(bytes.data(), Len(bytes), &flags, &count));
}

TEST(Rnbd, SizesStayWithinTheAnswer)
{
	Bytes bytes = SessInfo(true);
	std::uint32_t id = 7;
	__u64 sectors = 7;

	for (const __u64 size : {5ULL, RAIL_RNBD_MAX_SECTORS}) {
		rail_rnbd_size msg;

		rail_rnbd_size_encode(&msg, 0x01020304, size);
		const Bytes more = BytesOf(msg);
		bytes.insert(bytes.end(), more.begin(), more.end());
	}
	EXPECT_EQ(rail_rnbd_size_decode(bytes.data(), Len(bytes), 0, &id, &sectors), RAIL_RNBD_OK);
	EXPECT_EQ(id, 0x01020304U);
	EXPECT_EQ(sectors, 5U);
	EXPECT_EQ(rail_rnbd_size_decode(bytes.data(), Len(bytes), 1, &id, &sectors),
		  RAIL_RNBD_CAPACITY);
	EXPECT_EQ(rail_rnbd_size_decode(bytes.data(), Len(bytes), 2, &id, &sectors),
		  RAIL_RNBD_SHORT);
	EXPECT_EQ(rail_rnbd_size_decode(bytes.data(), Len(bytes) - 1, 1, &id, &sectors),
		  RAIL_RNBD_SHORT);
	EXPECT_EQ(rail_rnbd_size_decode(bytes.data(), Len(bytes), 0xffff, &id, &sectors),
		  RAIL_RNBD_SHORT);
	EXPECT_EQ(sectors, 0U);
}

// OPEN
Bytes Open(const std::string &name = "/dev/nullb0")
{
	rail_rnbd_open msg;

	EXPECT_EQ(rail_rnbd_open_encode(&msg, RAIL_RNBD_ACCESS_RW, name.c_str()), RAIL_RNBD_OK);
	return BytesOf(msg);
}

auto SetName(const std::string &name)
{
	return [=](Bytes &bytes) { std::copy(name.begin(), name.end(), bytes.begin() + 6); };
}

const Malformed kOpen[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},
	{"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Longer", Longer(), RAIL_RNBD_OK},
	{"Type", Set(0, {3}), RAIL_RNBD_BAD_TYPE},
	{"TypeHighByte", Set(1, {1}), RAIL_RNBD_BAD_TYPE},
	{"Migration", Set(4, {2}), RAIL_RNBD_OK},
	{"Access3", Set(4, {3}), RAIL_RNBD_ACCESS},
	{"Access255", Set(4, {255}), RAIL_RNBD_ACCESS},
	{"NoEnd", SetName(std::string(255, 'a')), RAIL_RNBD_NAME_END},
	{"NoEndAndGoesOn", SetName(std::string(258, 'a')), RAIL_RNBD_NAME_END},
	{"Longest", SetName(std::string(254, 'a')), RAIL_RNBD_OK},
	{"NoName", SetName(std::string(1, '\0')), RAIL_RNBD_NAME_EMPTY},
	{"Newline", SetName("sda\n"), RAIL_RNBD_NAME_CHAR},
	{"Delete", SetName("sd\177"), RAIL_RNBD_NAME_CHAR},
	{"JunkBehindTheEnd", Set(100, {1}), RAIL_RNBD_OK},
};

class RnbdOpen : public RnbdMalformed
{
};

TEST_P(RnbdOpen, Reason)
{
	Check(Open(), [](const Bytes &bytes) {
		rail_rnbd_opening opening;

		return rail_rnbd_open_decode(bytes.data(), Len(bytes), 56, &opening);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdOpen, testing::ValuesIn(kOpen), Name);

TEST(Rnbd, OpenSurvivesTheTrip)
{
	const Bytes bytes = Open("disk 1");
	rail_rnbd_opening opening;

	EXPECT_EQ(rail_rnbd_open_decode(bytes.data(), Len(bytes), 55, &opening),
		  RAIL_RNBD_ANSWER_SPACE);
	ASSERT_EQ(rail_rnbd_open_decode(bytes.data(), Len(bytes), 56, &opening), RAIL_RNBD_OK);
	EXPECT_EQ(opening.access, RAIL_RNBD_ACCESS_RW);
	EXPECT_STREQ(opening.dev_name, "disk 1");
}

TEST(Rnbd, OpenIsNotEncodedWithABadName)
{
	rail_rnbd_open msg;

	EXPECT_EQ(rail_rnbd_open_encode(&msg, RAIL_RNBD_ACCESS_RO, ""), RAIL_RNBD_NAME_EMPTY);
	EXPECT_EQ(rail_rnbd_open_encode(&msg, RAIL_RNBD_ACCESS_RO, "\n"), RAIL_RNBD_NAME_CHAR);
	EXPECT_EQ(rail_rnbd_open_encode(&msg, RAIL_RNBD_ACCESS_RO, std::string(255, 'a').c_str()),
		  RAIL_RNBD_NAME_END);
}

TEST(Rnbd, NamesThatClimb)
{
	for (const char *name : {"..", "../a", "/..", "a/..", "a/../b", "a//../b", "/../"})
		EXPECT_TRUE(rail_rnbd_name_climbs(name)) << name;
	for (const char *name : {"", "/", "a", ".", "...", "..a", "a..", "a/..b", "./a", "a/.../b"})
		EXPECT_FALSE(rail_rnbd_name_climbs(name)) << name;
}

// OPEN_RSP
rail_rnbd_device Device()
{
	rail_rnbd_device dev = {};

	dev.nsectors = 0x200000;
	dev.device_id = 7;
	dev.max_hw_sectors = 255;
	dev.max_write_zeroes_sectors = 1;
	dev.max_discard_sectors = 2;
	dev.discard_granularity = 3;
	dev.discard_alignment = 4;
	dev.physical_block_size = 4096;
	dev.logical_block_size = 512;
	dev.max_segments = 128;
	dev.secure_discard = 1;
	dev.cache_policy = RAIL_RNBD_CACHE_FUA | RAIL_RNBD_CACHE_WRITEBACK;
	return dev;
}

Bytes OpenRsp()
{
	const rail_rnbd_device dev = Device();
	rail_rnbd_open_rsp msg;

	rail_rnbd_open_rsp_encode(&msg, &dev);
	return BytesOf(msg);
}

const Malformed kOpenRsp[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},
	{"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Type", Set(0, {2}), RAIL_RNBD_BAD_TYPE},
	{"Logical0", Set(38, {0, 0}), RAIL_RNBD_BLOCK_SIZE},
	{"Logical256", Set(38, {0, 1}), RAIL_RNBD_BLOCK_SIZE},
	{"Logical520", Set(38, {8, 2}), RAIL_RNBD_BLOCK_SIZE},
	{"Logical4096", Set(38, {0, 16}), RAIL_RNBD_OK},
	{"CapacityMost", Set(8, {255, 255, 255, 255, 255, 255, 255, 255}), RAIL_RNBD_CAPACITY},
	{"CapacityTooLarge", Set(8, {0, 0, 0, 0, 0, 0, 0x40, 0}), RAIL_RNBD_CAPACITY},
	{"CapacityLargest", Set(8, {255, 255, 255, 255, 255, 255, 0x3f, 0}), RAIL_RNBD_OK},
	{"Capacity0", Set(8, {0, 0, 0, 0, 0, 0, 0, 0}), RAIL_RNBD_OK},
	{"MaxSectors0", Set(16, {0, 0, 0, 0}), RAIL_RNBD_LIMITS},
	{"MaxSectorsLessThanABlock",
	 [](Bytes &bytes) {
		 Set(38, {0, 16})(bytes), Set(16, {7, 0, 0, 0})(bytes);
	 },
	 RAIL_RNBD_LIMITS},
	{"MaxSectorsOfABlock",
	 [](Bytes &bytes) {
		 Set(38, {0, 16})(bytes), Set(16, {8, 0, 0, 0})(bytes);
	 },
	 RAIL_RNBD_OK},
	{"MaxSegments0", Set(40, {0, 0}), RAIL_RNBD_LIMITS},
	{"Physical0", Set(36, {0, 0}), RAIL_RNBD_OK},
};

class RnbdOpenRsp : public RnbdMalformed
{
};

TEST_P(RnbdOpenRsp, Reason)
{
	Check(OpenRsp(), [](const Bytes &bytes) {
		rail_rnbd_device dev;

		return rail_rnbd_open_rsp_decode(bytes.data(), Len(bytes), &dev);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdOpenRsp, testing::ValuesIn(kOpenRsp), Name);

TEST(Rnbd, OpenRspSurvivesTheTrip)
{
	const rail_rnbd_device sent = Device();
	const Bytes bytes = OpenRsp();
	rail_rnbd_device got;

	ASSERT_EQ(rail_rnbd_open_rsp_decode(bytes.data(), Len(bytes), &got), RAIL_RNBD_OK);
	EXPECT_EQ(got.nsectors, sent.nsectors);
	EXPECT_EQ(got.device_id, sent.device_id);
	EXPECT_EQ(got.max_hw_sectors, sent.max_hw_sectors);
	EXPECT_EQ(got.max_write_zeroes_sectors, sent.max_write_zeroes_sectors);
	EXPECT_EQ(got.max_discard_sectors, sent.max_discard_sectors);
	EXPECT_EQ(got.discard_granularity, sent.discard_granularity);
	EXPECT_EQ(got.discard_alignment, sent.discard_alignment);
	EXPECT_EQ(got.physical_block_size, sent.physical_block_size);
	EXPECT_EQ(got.logical_block_size, sent.logical_block_size);
	EXPECT_EQ(got.max_segments, sent.max_segments);
	EXPECT_EQ(got.secure_discard, sent.secure_discard);
	EXPECT_EQ(got.cache_policy, sent.cache_policy);
}

TEST(Rnbd, PhysicalBlockSizeThatMakesNoSense)
{
	for (const std::uint16_t size : {0, 256, 768, 4095}) {
		rail_rnbd_device dev = Device();
		rail_rnbd_open_rsp msg;

		dev.physical_block_size = size;
		rail_rnbd_open_rsp_encode(&msg, &dev);
		ASSERT_EQ(rail_rnbd_open_rsp_decode(&msg, sizeof(msg), &dev), RAIL_RNBD_OK);
		EXPECT_EQ(dev.physical_block_size, 512);
	}
}

// IO
struct Io {
	const char *name;
	std::uint32_t rw;
	std::uint32_t size;
	bool is_read;
	std::uint32_t data_len;
	rail_rnbd_reason reason;
};

void PrintTo(const Io &row, std::ostream *os)
{
	*os << row.name;
}

const Io kIos[] = {
	{"Read", 0, 4096, true, 4096, RAIL_RNBD_OK},
	{"ReadSync", 0x100, 512, true, 512, RAIL_RNBD_OK},
	{"Write", 1, 4096, false, 4096, RAIL_RNBD_OK},
	{"WriteFuaPreflush", 0x601, 4096, false, 4096, RAIL_RNBD_OK},
	{"Flush", 2, 0, true, 0, RAIL_RNBD_OK},
	{"Discard", 3, 0xfffffe00, false, 0, RAIL_RNBD_OK},
	{"SecureErase", 4, 512, false, 0, RAIL_RNBD_OK},
	{"WriteZeroes", 5, 1 << 30, false, 0, RAIL_RNBD_OK},
	{"WriteZeroesNoUnmap", 0x805, 512, false, 0, RAIL_RNBD_OK},

	{"Op6", 6, 512, false, 512, RAIL_RNBD_OP},
	{"Op255", 0xff, 512, false, 512, RAIL_RNBD_OP},
	{"UnknownFlag", 0x1001, 512, false, 512, RAIL_RNBD_FLAGS},
	{"HighestFlag", 0x80000000, 512, true, 512, RAIL_RNBD_FLAGS},
	{"ReadAsWrite", 0, 512, false, 512, RAIL_RNBD_IO_WAY},
	{"FlushAsWrite", 2, 0, false, 0, RAIL_RNBD_IO_WAY},
	{"WriteAsRead", 1, 512, true, 512, RAIL_RNBD_IO_WAY},
	{"DiscardAsRead", 3, 512, true, 0, RAIL_RNBD_IO_WAY},
	{"EraseAsRead", 4, 512, true, 0, RAIL_RNBD_IO_WAY},
	{"ZeroesAsRead", 5, 512, true, 0, RAIL_RNBD_IO_WAY},
	{"ReadLargerThanItsBuffer", 0, 4096, true, 512, RAIL_RNBD_IO_DATA},
	{"ReadSmallerThanItsBuffer", 0, 512, true, 4096, RAIL_RNBD_IO_DATA},
	{"WriteLargerThanItsData", 1, 4096, false, 512, RAIL_RNBD_IO_DATA},
	{"WriteSmallerThanItsData", 1, 512, false, 4096, RAIL_RNBD_IO_DATA},
	{"DiscardWithData", 3, 512, false, 512, RAIL_RNBD_IO_DATA},
	{"FlushWithData", 2, 512, true, 512, RAIL_RNBD_IO_DATA},
	{"FlushWithSize", 2, 512, true, 0, RAIL_RNBD_IO_SIZE},
	{"ReadOfNothing", 0, 0, true, 0, RAIL_RNBD_IO_SIZE},
	{"WriteOfNothing", 1, 0, false, 0, RAIL_RNBD_IO_SIZE},
	{"DiscardOfNothing", 3, 0, false, 0, RAIL_RNBD_IO_SIZE},
	{"ReadOfPartOfASector", 0, 513, true, 513, RAIL_RNBD_IO_SIZE},
	{"ZeroesOfPartOfASector", 5, 511, false, 0, RAIL_RNBD_IO_SIZE},
};

class RnbdIo : public testing::TestWithParam<Io>
{
};

TEST_P(RnbdIo, Reason)
{
	const Io &row = GetParam();
	rail_rnbd_req sent = {};
	rail_rnbd_req got;
	rail_rnbd_io msg;

	sent.sector = 0x123456789a;
	sent.device_id = 0xfedcba98;
	sent.op = static_cast<std::uint8_t>(row.rw);
	sent.flags = row.rw & ~0xffU;
	sent.size = row.size;
	sent.prio = 0x4004;
	rail_rnbd_io_encode(&msg, &sent);
	const Bytes bytes = BytesOf(msg);

	const auto reason =
		rail_rnbd_io_decode(bytes.data(), Len(bytes), row.is_read, row.data_len, &got);

	ASSERT_EQ(reason, row.reason) << rail_rnbd_reason_text(reason);
	if (reason)
		return;
	EXPECT_EQ(got.sector, sent.sector);
	EXPECT_EQ(got.device_id, sent.device_id);
	EXPECT_EQ(got.op, sent.op);
	EXPECT_EQ(got.flags, sent.flags);
	EXPECT_EQ(got.size, sent.size);
	EXPECT_EQ(got.prio, sent.prio);
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdIo, testing::ValuesIn(kIos),
			 [](const auto &row) { return std::string(row.param.name); });

Bytes ReadIo()
{
	rail_rnbd_req req = {};
	rail_rnbd_io msg;

	req.size = 512;
	rail_rnbd_io_encode(&msg, &req);
	return BytesOf(msg);
}

const Malformed kIoBytes[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},
	{"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Longer", Longer(), RAIL_RNBD_OK},
	{"Type", Set(0, {5}), RAIL_RNBD_BAD_TYPE},
};

class RnbdIoBytes : public RnbdMalformed
{
};

TEST_P(RnbdIoBytes, Reason)
{
	Check(ReadIo(), [](const Bytes &bytes) {
		rail_rnbd_req req;

		return rail_rnbd_io_decode(bytes.data(), Len(bytes), true, 512, &req);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdIoBytes, testing::ValuesIn(kIoBytes), Name);

TEST(Rnbd, RangeOnTheDevice)
{
	const struct {
		std::uint64_t sector;
		std::uint32_t size;
		std::uint64_t nsectors;
		bool fits;
	} rows[] = {
		{0, 512, 1, true},
		{0, 1024, 1, false},
		{1, 512, 1, false},
		{7, 512, 8, true},
		{7, 1024, 8, false},
		{8, 512, 8, false},
		{9, 512, 8, false},
		{~0ULL, 512, ~0ULL, false},
		{~0ULL - 1, 512, ~0ULL, true},
		{~0ULL - 1, 1024, ~0ULL, false},
		{~0ULL, 0xfffffe00, 100, false},
		{0, 512, 0, false},
	};
	rail_rnbd_req req = {};

	for (const auto &row : rows) {
		req.op = RAIL_RNBD_OP_WRITE;
		req.sector = row.sector;
		req.size = row.size;
		EXPECT_EQ(rail_rnbd_io_in_range(&req, row.nsectors),
			  row.fits ? RAIL_RNBD_OK : RAIL_RNBD_IO_RANGE)
			<< row.sector << " + " << row.size << " of " << row.nsectors;
	}
	req.op = RAIL_RNBD_OP_FLUSH;
	req.sector = ~0ULL;
	req.size = 0;
	EXPECT_EQ(rail_rnbd_io_in_range(&req, 0), RAIL_RNBD_OK);
}

TEST(Rnbd, WhatAReadOnlyDeviceMustNotSee)
{
	EXPECT_FALSE(rail_rnbd_op_modifies(RAIL_RNBD_OP_READ));
	EXPECT_FALSE(rail_rnbd_op_modifies(RAIL_RNBD_OP_FLUSH));
	for (const auto op : {RAIL_RNBD_OP_WRITE, RAIL_RNBD_OP_DISCARD, RAIL_RNBD_OP_SECURE_ERASE,
			      RAIL_RNBD_OP_WRITE_ZEROES})
		EXPECT_TRUE(rail_rnbd_op_modifies(op));
}

// CLOSE
Bytes Close()
{
	rail_rnbd_close msg;

	rail_rnbd_close_encode(&msg, 0x01020304);
	return BytesOf(msg);
}

const Malformed kClose[] = {
	{"Empty", Nothing(), RAIL_RNBD_SHORT},
	{"Short", Cut(1), RAIL_RNBD_SHORT},
	{"Longer", Longer(), RAIL_RNBD_OK},
	{"Type", Set(0, {4}), RAIL_RNBD_BAD_TYPE},
};

class RnbdClose : public RnbdMalformed
{
};

TEST_P(RnbdClose, Reason)
{
	Check(Close(), [](const Bytes &bytes) {
		std::uint32_t device_id;

		return rail_rnbd_close_decode(bytes.data(), Len(bytes), &device_id);
	});
}

INSTANTIATE_TEST_SUITE_P(Table, RnbdClose, testing::ValuesIn(kClose), Name);

TEST(Rnbd, CloseSurvivesTheTrip)
{
	const Bytes bytes = Close();
	std::uint32_t device_id;

	ASSERT_EQ(rail_rnbd_close_decode(bytes.data(), Len(bytes), &device_id), RAIL_RNBD_OK);
	EXPECT_EQ(device_id, 0x01020304U);
}

TEST(Rnbd, TablesHaveEveryReason)
{
	std::set<int> seen = {RAIL_RNBD_BAD_WAY, RAIL_RNBD_ANSWER_SPACE, RAIL_RNBD_IO_RANGE};

	const auto add = [&seen](const auto &table) {
		for (const auto &row : table)
			seen.insert(row.reason);
	};
	add(kSessInfo);
	add(kSessInfoRsp);
	add(kOpen);
	add(kOpenRsp);
	add(kIos);
	add(kIoBytes);
	add(kClose);
	for (int reason = 0; reason < RAIL_RNBD_NR_REASONS; reason++)
		EXPECT_TRUE(seen.contains(reason))
			<< rail_rnbd_reason_text(static_cast<rail_rnbd_reason>(reason));
}

TEST(Rnbd, EveryReasonHasItsOwnText)
{
	std::set<std::string> texts;

	for (int reason = 0; reason < RAIL_RNBD_NR_REASONS; reason++) {
		const char *text = rail_rnbd_reason_text(static_cast<rail_rnbd_reason>(reason));

		ASSERT_NE(text, nullptr) << reason;
		EXPECT_TRUE(texts.insert(text).second) << text;
	}
	EXPECT_STREQ(rail_rnbd_reason_text(RAIL_RNBD_NR_REASONS), "unknown reason");
}

// What the in-tree modules sent each other: the user headers in RTRS requests.
TEST(RnbdVectors, Requests)
{
	const auto vectors = LoadVectors("rtrs-req");
	std::set<rail_rnbd_type> seen;

	for (const Vector &vector : vectors) {
		const std::uint32_t off = vector.Number("imm") & 0xffffff;
		const bool is_read = vector.payload.size() == vector.Number("written") &&
				     vector.payload.size() >= 56;
		const std::size_t usr_len = vector.payload.size() - (is_read ? 24 : 4);
		const auto data_len = static_cast<std::uint32_t>(off - usr_len);
		const Bytes user = Exact(vector.payload, usr_len);
		rail_rnbd_type type;
		Bytes copy;

		ASSERT_EQ(rail_rnbd_type_decode(user.data(), Len(user), is_read, &type),
			  RAIL_RNBD_OK)
			<< vector.source;
		seen.insert(type);
		if (type == RAIL_RNBD_SESS_INFO) {
			rail_rnbd_sess_info msg;
			std::uint8_t ver;

			ASSERT_EQ(
				rail_rnbd_sess_info_decode(user.data(), Len(user), data_len, &ver),
				RAIL_RNBD_OK);
			rail_rnbd_sess_info_encode(&msg, false, ver);
			copy = BytesOf(msg);
		} else if (type == RAIL_RNBD_OPEN) {
			rail_rnbd_opening opening;
			rail_rnbd_open msg;

			ASSERT_EQ(rail_rnbd_open_decode(user.data(), Len(user), data_len, &opening),
				  RAIL_RNBD_OK);
			EXPECT_STREQ(opening.dev_name, "/dev/nullb0");
			ASSERT_EQ(rail_rnbd_open_encode(
					  &msg, static_cast<rail_rnbd_access>(opening.access),
					  opening.dev_name),
				  RAIL_RNBD_OK);
			copy = BytesOf(msg);
		} else if (type == RAIL_RNBD_IO) {
			rail_rnbd_req req;
			rail_rnbd_io msg;

			ASSERT_EQ(rail_rnbd_io_decode(user.data(), Len(user), is_read, data_len,
						      &req),
				  RAIL_RNBD_OK)
				<< vector.source;
			EXPECT_EQ(rail_rnbd_io_in_range(&req, 0x200000), RAIL_RNBD_OK);
			rail_rnbd_io_encode(&msg, &req);
			copy = BytesOf(msg);
		} else {
			std::uint32_t device_id;
			rail_rnbd_close msg;

			ASSERT_EQ(rail_rnbd_close_decode(user.data(), Len(user), &device_id),
				  RAIL_RNBD_OK);
			rail_rnbd_close_encode(&msg, device_id);
			copy = BytesOf(msg);
		}
		EXPECT_EQ(copy, user) << vector.source;
	}
	EXPECT_EQ(seen.size(), 4U);
}

TEST(RnbdVectors, Answers)
{
	const auto vectors = LoadVectors("rnbd-answer");

	ASSERT_GE(vectors.size(), 4U);
	for (const Vector &vector : vectors) {
		if (vector.payload.size() == sizeof(rail_rnbd_sess_info)) {
			rail_rnbd_sess_info msg;
			std::uint8_t ver;

			ASSERT_EQ(rail_rnbd_sess_info_rsp_decode(vector.payload.data(),
								 Len(vector.payload), &ver),
				  RAIL_RNBD_OK);
			rail_rnbd_sess_info_encode(&msg, true, ver);
			EXPECT_EQ(BytesOf(msg), vector.payload);
		} else {
			rail_rnbd_open_rsp msg;
			rail_rnbd_device dev;

			ASSERT_EQ(rail_rnbd_open_rsp_decode(vector.payload.data(),
							    Len(vector.payload), &dev),
				  RAIL_RNBD_OK);
			EXPECT_EQ(dev.nsectors, 0x200000U);
			EXPECT_EQ(dev.max_segments, 128);
			rail_rnbd_open_rsp_encode(&msg, &dev);
			EXPECT_EQ(BytesOf(msg), vector.payload);
		}
	}
}

} // namespace
} // namespace rail
