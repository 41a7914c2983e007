// SPDX-License-Identifier: GPL-2.0-only
// railctl's command line, over a folder that stands in for /.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli.h"
#include "fake_root.h"

namespace rail::ctl
{

class CommandTest : public testing::Test
{
protected:
	// Its exit status; what it prints is in out_ and err_.
	int Run(const std::vector<std::string> &args, const Terminal &terminal = {})
	{
		std::ostringstream out;
		std::ostringstream err;
		const int status = rail::ctl::Run(args, terminal, out, err, &root_);

		out_ = out.str();
		err_ = err.str();
		return status;
	}

	FakeRoot root_;
	std::string out_;
	std::string err_;
};

} // namespace rail::ctl
