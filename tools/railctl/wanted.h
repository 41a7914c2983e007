// SPDX-License-Identifier: GPL-2.0-only
// Mappings and exports as a file has them, and the way from what is to what is wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct WantedExport {
	std::string name;
	std::string device;
	std::string access = "rw";
	std::vector<std::string> allow;
	bool enable = true;
};

struct WantedDevice {
	std::string name;
	std::string access = "rw";
};

struct WantedSession {
	std::string name;
	std::vector<std::string> paths; // "[SRC,]DST"
	std::optional<std::uint64_t> port;
	std::optional<std::uint64_t> poll_queues;
	std::optional<std::uint64_t> no_path_timeout;
	std::optional<std::int64_t> max_reconnects;
	std::optional<std::string> policy;
	std::vector<WantedDevice> devices;
};

struct Wanted {
	std::vector<WantedExport> exports;
	std::vector<WantedSession> sessions;
};

// What there is now.
Wanted Present(const Root &root);

// Throws Error with the line where it makes no sense. origin is the file's name.
Wanted ParseToml(const std::string &text, const std::string &origin);
std::string WriteToml(const Wanted &wanted);

struct Step {
	enum Change { kAdd, kChange, kRemove };

	Change change = kAdd;
	std::string text; // "map disk@s1"
	std::function<void(Root &)> run;
};

struct Plan {
	std::vector<Step> steps;
	std::vector<std::string> blocked; // cannot be done now: something is in use
	std::vector<std::string> kept;    // is there, not wanted, and stays for want of prune
};

enum class Part { kAll, kExports, kSessions };

// Additions come first, and nothing that is in use is ever taken away. Without prune, what is not
// in the file stays. What is no part is not looked at.
Plan MakePlan(Root &root, const Wanted &wanted, bool prune, Part part = Part::kAll);

} // namespace rail::ctl
