// SPDX-License-Identifier: GPL-2.0-only
// What the fuzzers share: the input taken apart, and a check that ends the run.
#pragma once

#include "wire.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			__builtin_trap();                                                          \
	} while (0)

namespace rail
{

// The first byte picks what is done, the rest is the message, in memory of its own size.
struct Input {
	std::uint8_t pick = 0;
	Bytes message;

	Input(const std::uint8_t *data, std::size_t size)
	{
		if (!size)
			return;
		pick = data[0];
		message = Bytes(data + 1, data + size);
	}
};

} // namespace rail
