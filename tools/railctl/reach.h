// SPDX-License-Identifier: GPL-2.0-only
// Is there somebody at a port of another host, by RDMA?
#pragma once

#include <cstdint>
#include <string>

namespace rail::ctl
{

enum class Reach {
	kAnswers,       // somebody listens, whether or not they would have us
	kNobodyListens, // the host is there, the port is not
	kSilent,        // nothing comes back
	kNoWay,         // no RDMA device here has a way to it
	kNotTried,      // the kernel's door for this is closed: no module rdma_ucm, or not root
};

// address: an IPv4 or IPv6 one, "fe80::1%eth0" included. Asks for a connection of which nothing
// comes; takes ms at most.
Reach ReachRdma(const std::string &address, std::uint16_t port, unsigned int ms);

} // namespace rail::ctl
