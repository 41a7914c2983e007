// SPDX-License-Identifier: GPL-2.0-only
// The messages in tests/data/wire/vectors.txt.
#pragma once

#include <map>

#include "wire.h"

namespace rail
{

struct Vector {
	std::string kind;
	std::string source; // capture:packet
	std::map<std::string, std::string> fields;
	Bytes payload;

	// A number among the fields; throws where there is none.
	std::uint32_t Number(const std::string &name) const;
};

// Those of one kind, all for "". Throws when the file is not there or a line makes no sense.
std::vector<Vector> LoadVectors(const std::string &kind);

} // namespace rail
