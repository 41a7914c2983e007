// SPDX-License-Identifier: GPL-2.0-only
// The command line.
#pragma once

#include <string>
#include <vector>

#include "root.h"
#include "screen.h"

namespace rail::ctl
{

// What the output is, as main() has found out.
struct Terminal {
	bool out = false;
	bool err = false;
	bool colour = true; // that it can, and that nobody has asked for none
	std::size_t columns = 0;
	bool in = false; // what the input is
};

// Runs railctl; the exit status. root: stands in for the system; nullptr: the system, or what
// --root says.
int Run(const std::vector<std::string> &args, const Terminal &terminal, std::ostream &out,
	std::ostream &err, Root *root = nullptr);

} // namespace rail::ctl
