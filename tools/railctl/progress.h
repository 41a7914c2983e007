// SPDX-License-Identifier: GPL-2.0-only
// A line for what takes longer than a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "screen.h"

namespace rail::ctl
{

// Shows the text while it lives, from the second second on, if the error output is a terminal.
class Progress
{
public:
	Progress(const Screen &screen, const std::string &text);
	~Progress();
	Progress(const Progress &) = delete;
	Progress &operator=(const Progress &) = delete;

private:
	void Run();

	const Screen &screen_;
	std::string text_; // escaped
	std::mutex lock_;
	std::condition_variable wake_;
	bool done_ = false;  // lock_
	std::thread thread_; // none where there is no terminal
};

} // namespace rail::ctl
