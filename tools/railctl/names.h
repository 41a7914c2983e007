// SPDX-License-Identifier: GPL-2.0-only
// Names that there are now, for completion.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "root.h"

namespace rail::ctl
{

enum class Kind {
	kNone,
	kDevice,
	kSession,
	kPath, // of the session before it
	kExport,
	kRule, // of the export before it
	kServerSession,
	kServerDevice, // of the session before it
	kNetdev,
	kRxe,
	kPolicy,
	kColour,
	kPart, // of a file
	kStats,
};

struct Candidate {
	std::string text;
	std::string about;
};

// before: the operand before it. Names that a shell would show as something else are left out.
std::vector<Candidate> Names(const Root &root, Kind kind, const std::string &before);

} // namespace rail::ctl
