// SPDX-License-Identifier: GPL-2.0-only
// What changes: devices, paths, exports, who has them, RDMA ports, NFS mounts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "root.h"

namespace rail::ctl
{

// Kind and name of an object, and its state in words: {"path", "s1 ip:192.0.2.1"}: "connected".
using States = std::map<std::pair<std::string, std::string>, std::string>;

struct StateChange {
	std::string kind;
	std::string name;
	std::optional<std::string> was; // nullopt: it has come
	std::optional<std::string> is;  // nullopt: it has gone
};

States ReadStates(const Root &root);
// In the order of their kinds and names.
std::vector<StateChange> Compare(const States &was, const States &is);

} // namespace rail::ctl
