// SPDX-License-Identifier: GPL-2.0-only
// RDMA devices, and software ones on any network interface (rxe).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct RdmaPort {
	std::string device;
	std::uint64_t port = 0;
	std::string state; // ACTIVE, DOWN, ...
	std::string link;  // Ethernet, InfiniBand
	std::string netdev;
	std::uint64_t mtu = 0; // of netdev
	bool soft = false;     // rxe

	bool active() const { return state == "ACTIVE"; }
};

std::vector<RdmaPort> RdmaPorts(const Root &root);

// How much data an RDMA packet carries where the network interface has this MTU.
std::uint64_t RdmaMtu(std::uint64_t mtu);

// The name of the device; made is false where there was one.
struct RxeUp {
	std::string device;
	bool made = true;
};

RxeUp RxeAdd(Root &root, std::string_view netdev, std::string_view name);
// By the name of the network interface or of the device. The name of the device.
std::string RxeRemove(Root &root, std::string_view name);

} // namespace rail::ctl
