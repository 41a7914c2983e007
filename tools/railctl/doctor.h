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
// Another host, by what can be seen of it from here. Throws Error if there is no such host.
std::vector<Finding> ExamineServer(const Root &root, const std::string &server);

// What railctl doctor has said at the other end.
struct OtherEnd {
	std::string version;
	std::vector<Finding> findings;
};
std::vector<Finding> ExamineOtherEnd(const OtherEnd &other, const std::string &version);

} // namespace rail::ctl
