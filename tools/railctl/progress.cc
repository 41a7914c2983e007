// SPDX-License-Identifier: GPL-2.0-only
#include "progress.h"

#include <chrono>

#include "text.h"

namespace rail::ctl
{

Progress::Progress(const Screen &screen, const std::string &text)
	: screen_(screen), text_(Escape(text))
{
	if (screen_.err_terminal)
		thread_ = std::thread([this] { Run(); });
}

Progress::~Progress()
{
	if (!thread_.joinable())
		return;
	{
		const std::lock_guard guard(lock_);

		done_ = true;
	}
	wake_.notify_one();
	thread_.join();
}

void Progress::Run()
{
	std::unique_lock guard(lock_);
	bool shown = false;
	unsigned int seconds = 0;

	while (!wake_.wait_for(guard, std::chrono::seconds(1), [this] { return done_; })) {
		shown = true;
		screen_.err << "\r" << text_ << " (" << ++seconds << " s)\033[K" << std::flush;
	}
	if (shown)
		screen_.err << "\r\033[K" << std::flush;
}

} // namespace rail::ctl
