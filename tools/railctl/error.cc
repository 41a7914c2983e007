// SPDX-License-Identifier: GPL-2.0-only
#include "error.h"

#include <system_error>
#include <utility>

namespace rail::ctl
{

Error::Error(Exit exit, std::string object, std::string what, std::string next)
	: exit_(exit), object_(std::move(object)), what_(std::move(what)), next_(std::move(next)),
	  line_(object_.empty() ? what_ : object_ + ": " + what_)
{
	if (!next_.empty())
		line_ += "; " + next_;
}

std::string ErrnoText(int error)
{
	return std::generic_category().message(error);
}

} // namespace rail::ctl
