// SPDX-License-Identifier: GPL-2.0-only
// The wire headers as C++ sees them, and what every test of them needs.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include <rail/wire/rnbd.h>
#include <rail/wire/rpcrdma.h>
#include <rail/wire/rtrs.h>
}

namespace rail
{

// Allocated to the byte, so that ASan sees one byte too far.
using Bytes = std::vector<std::uint8_t>;

inline Bytes Exact(const Bytes &bytes, std::size_t len)
{
	return Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(len));
}

template <typename T> Bytes BytesOf(const T &object)
{
	const auto *p = reinterpret_cast<const std::uint8_t *>(&object);

	return Bytes(p, p + sizeof(object));
}

inline std::uint32_t Len(const Bytes &bytes)
{
	return static_cast<std::uint32_t>(bytes.size());
}

// A seeded generator: a failure comes back at the next run.
class Random
{
public:
	explicit Random(std::uint32_t seed) : engine_(seed) {}

	std::uint32_t Below(std::uint32_t bound)
	{
		return static_cast<std::uint32_t>(Next() % bound);
	}

	bool OneIn(std::uint32_t n) { return Below(n) == 0; }

	std::uint32_t Word() { return static_cast<std::uint32_t>(Next()); }

	std::uint64_t Next() { return engine_(); }

private:
	std::mt19937_64 engine_;
};

} // namespace rail
