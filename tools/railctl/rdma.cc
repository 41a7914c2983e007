// SPDX-License-Identifier: GPL-2.0-only
#include "rdma.h"

#include <algorithm>
#include <array>

#include "error.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

// IPv6, UDP, the longest headers of RoCE and the check sum.
constexpr std::uint64_t kRoceHeaders = 40 + 8 + 12 + 28 + 4;
constexpr std::size_t kLongestNetdev = 15;
constexpr std::size_t kLongestDevice = 63;

void RunRdma(Root &root, const std::vector<std::string> &argv, const std::string &object)
{
	const Ran ran = root.Run(argv);
	std::string line(Trim(ran.err));

	if (!ran.status)
		return;
	if (ran.status == 127)
		throw Error(Exit::kFailed, argv[0], "is not installed",
			    argv[0] == "rdma" ? "apt install iproute2" : "apt install kmod");
	line.resize(std::min(line.find('\n'), line.size()));
	if (line.find("ermitted") != std::string::npos ||
	    line.find("ermission") != std::string::npos)
		throw Error(Exit::kRoot, object, argv[0] + " says: " + line, "run it with sudo");
	throw Error(Exit::kFailed, object, argv[0] + " says: " + line,
		    "railctl doctor shows the RDMA devices there are");
}

} // namespace

std::uint64_t RdmaMtu(std::uint64_t mtu)
{
	static constexpr std::array<std::uint64_t, 5> kSizes = {4096, 2048, 1024, 512, 256};

	for (const std::uint64_t size : kSizes)
		if (mtu >= size + kRoceHeaders)
			return size;
	return 0;
}

std::vector<RdmaPort> RdmaPorts(const Root &root)
{
	std::vector<RdmaPort> all;

	for (const std::string &device : root.List(where::kRdma)) {
		const std::string dir = Sub(where::kRdma, device);
		// Only a software device has it.
		const auto parent = root.Read(dir + "/parent");

		for (const std::string &number : root.List(dir + "/ports")) {
			const std::string at = Sub(dir, "ports", number);
			const std::string state = root.Text(at + "/state");
			const auto colon = state.find(": ");
			RdmaPort port;

			port.device = device;
			port.port = ToNumber(number).value_or(0);
			// "4: ACTIVE"
			port.state = colon == std::string::npos ? state : state.substr(colon + 2);
			port.link = root.Text(at + "/link_layer");
			port.netdev = parent.value_or(root.Text(at + "/gid_attrs/ndevs/0"));
			port.soft = parent.has_value();
			if (IsFileName(port.netdev))
				port.mtu = ToNumber(root.Text(Sub(where::kNet, port.netdev, "mtu")))
						   .value_or(0);
			all.push_back(std::move(port));
		}
	}
	return all;
}

RxeUp RxeAdd(Root &root, std::string_view netdev, std::string_view name)
{
	const std::string on(netdev);
	const std::string device(name.empty() ? "rxe_" + on : name);

	if (!IsFileName(on) || on.size() > kLongestNetdev || !root.Exists(Sub(where::kNet, on)))
		throw Error(Exit::kMissing, on, "there is no such network interface",
			    "ip link shows them");
	if (!IsFileName(device) || device.size() > kLongestDevice || device[0] == '-' ||
	    HasControl(device))
		throw Error(Exit::kUsage, device, "cannot be an RDMA device's name",
			    "give another one with --name");
	for (const RdmaPort &port : RdmaPorts(root))
		if (port.soft && port.netdev == on)
			return {port.device, false};
	if (root.Exists(Sub(where::kRdma, device)))
		throw Error(Exit::kExists, device, "there is an RDMA device of that name",
			    "give another one with --name");
	if (!root.Exists(Sub(where::kModule, "rdma_rxe")))
		RunRdma(root, {"modprobe", "rdma_rxe"}, "rdma_rxe");
	RunRdma(root, {"rdma", "link", "add", device, "type", "rxe", "netdev", on}, on);
	return {device, true};
}

std::string RxeRemove(Root &root, std::string_view name)
{
	for (const RdmaPort &port : RdmaPorts(root)) {
		if (port.device != name && port.netdev != name)
			continue;
		if (!port.soft) {
			if (port.device != name)
				continue;
			throw Error(Exit::kUsage, port.device, "is no software device",
				    "only those that railctl rxe up makes can be taken down");
		}
		RunRdma(root, {"rdma", "link", "delete", port.device}, port.device);
		return port.device;
	}
	throw Error(Exit::kMissing, std::string(name), "has no software RDMA device",
		    "railctl doctor shows the RDMA devices there are");
}

} // namespace rail::ctl
