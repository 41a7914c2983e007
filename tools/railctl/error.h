// SPDX-License-Identifier: GPL-2.0-only
// What went wrong, as a user is told of it.
#pragma once

#include <exception>
#include <string>

namespace rail::ctl
{

// Exit statuses. Documentation/railctl.rst has them too.
enum class Exit {
	kOk = 0,
	kFailed = 1,  // the kernel or the peer refused
	kUsage = 2,   // the command line, or a file given, makes no sense
	kMissing = 3, // there is no such object
	kRoot = 4,    // needs root
	kModule = 5,  // the module is not loaded
	kInUse = 6,   // the object is in use
	kTimeout = 7, // it took too long
	kFound = 8,   // doctor has findings; apply --dry-run has something to do
	kExists = 9,  // there is one already
};

// What happened, to what, and what to do next. The texts may hold any bytes: they are escaped when
// they are shown.
class Error : public std::exception
{
public:
	Error(Exit exit, std::string object, std::string what, std::string next = "");

	Exit exit() const { return exit_; }
	const std::string &object() const { return object_; }
	const std::string &what_happened() const { return what_; }
	const std::string &next() const { return next_; }
	// All in one line.
	const char *what() const noexcept override { return line_.c_str(); }

private:
	Exit exit_;
	std::string object_;
	std::string what_;
	std::string next_;
	std::string line_;
};

// "Permission denied"
std::string ErrnoText(int error);

} // namespace rail::ctl
