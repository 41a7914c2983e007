// SPDX-License-Identifier: GPL-2.0-only
// What is wrong with this host, and which command mends it.
#pragma once

#include <string>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct Finding {
	enum Level { kOk, kNote, kBad };

	Level level = kOk;
	std::string about;
	std::string what;
	std::string mend; // a command, or ""
};

// version: railctl's own.
std::vector<Finding> Examine(const Root &root, const std::string &version);

} // namespace rail::ctl
