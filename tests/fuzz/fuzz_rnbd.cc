// SPDX-License-Identifier: GPL-2.0-only
// Any bytes as each of the RNBD messages.
#include "check.h"

namespace
{

using rail::Len;

constexpr std::uint8_t kPickRead = 0x01;

void FuzzIo(const rail::Bytes &bytes, bool is_read)
{
	rail_rnbd_req req;
	rail_rnbd_io msg;

	for (const std::uint32_t data_len : {0U, 512U, 4096U, 65536U}) {
		const auto reason =
			rail_rnbd_io_decode(bytes.data(), Len(bytes), is_read, data_len, &req);

		CHECK(rail_rnbd_reason_text(reason));
		if (reason)
			continue;
		CHECK(rail_rnbd_op_is_read(static_cast<rail_rnbd_op>(req.op)) == is_read);
		CHECK(!rail_rnbd_op_has_data(static_cast<rail_rnbd_op>(req.op)) ||
		      req.size == data_len);
		if (!rail_rnbd_io_in_range(&req, 1 << 20))
			CHECK(req.op == RAIL_RNBD_OP_FLUSH ||
			      req.sector + req.size / 512 <= 1 << 20);
		rail_rnbd_io_encode(&msg, &req);
		// All but the padding at both ends.
		CHECK(!memcmp(&msg.device_id, bytes.data() + 4,
			      offsetof(rail_rnbd_io, padding) - 4));
	}
}

void FuzzOpen(const rail::Bytes &bytes)
{
	rail_rnbd_opening opening;

	if (rail_rnbd_open_decode(bytes.data(), Len(bytes), 56, &opening))
		return;
	CHECK(opening.access <= RAIL_RNBD_ACCESS_MIGRATION);
	CHECK(*opening.dev_name && strlen(opening.dev_name) < sizeof(opening.dev_name));
	if (rail_rnbd_name_climbs(opening.dev_name))
		CHECK(strstr(opening.dev_name, ".."));
}

void FuzzAnswers(const rail::Bytes &bytes)
{
	rail_rnbd_device dev;
	std::uint8_t ver;

	if (!rail_rnbd_sess_info_rsp_decode(bytes.data(), Len(bytes), &ver))
		CHECK(ver == 1 || ver == 2);
	if (!rail_rnbd_open_rsp_decode(bytes.data(), Len(bytes), &dev)) {
		CHECK(dev.logical_block_size >= 512);
		CHECK(dev.physical_block_size >= dev.logical_block_size);
		CHECK(dev.max_hw_sectors && dev.max_segments);
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const rail::Input input(data, size);
	std::uint32_t device_id;
	rail_rnbd_type type;
	std::uint8_t ver;

	rail_rnbd_type_decode(input.message.data(), Len(input.message), input.pick & kPickRead,
			      &type);
	if (!rail_rnbd_sess_info_decode(input.message.data(), Len(input.message), 36, &ver))
		CHECK(ver == 1 || ver == 2);
	rail_rnbd_close_decode(input.message.data(), Len(input.message), &device_id);
	FuzzOpen(input.message);
	FuzzIo(input.message, input.pick & kPickRead);
	FuzzAnswers(input.message);
	return 0;
}
