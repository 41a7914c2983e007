// SPDX-License-Identifier: GPL-2.0-only
#include "doctor.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "client.h"
#include "rdma.h"
#include "server.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::uint64_t kFewLockedBytes = 16U << 20;
constexpr std::uint64_t kFullMtu = 4200;
constexpr std::uint16_t kBlockPort = 1234;
constexpr std::uint16_t kNfsPort = 20049;

// In the order in which they can be loaded.
constexpr std::array<std::string_view, 7> kModules = {"rail_verbs",  "rpcrdma",     "rtrs_core",
						      "rtrs_client", "rtrs_server", "rnbd_client",
						      "rnbd_server"};

using Findings = std::vector<Finding>;

std::string Underscores(std::string_view name)
{
	std::string out(name);

	std::replace(out.begin(), out.end(), '-', '_');
	return out;
}

// Which file modprobe would load, below /lib/modules/RELEASE, by the module's name.
std::map<std::string, std::string> ModuleFiles(const Root &root, const std::string &release)
{
	std::map<std::string, std::string> files;

	if (!IsFileName(release))
		return files;
	for (const std::string &line :
	     Lines(root.Text("/lib/modules/" + release + "/modules.dep"))) {
		const std::string file = line.substr(0, line.find(':'));
		const std::string base = file.substr(file.rfind('/') + 1);
		const auto suffix = base.find(".ko");

		if (suffix != std::string::npos)
			files[Underscores(base.substr(0, suffix))] = file;
	}
	return files;
}

// The kernel's own never use rail_verbs.
bool IsRails(const Root &root, const std::string &module)
{
	const std::string dir = Sub(where::kModule, module);
	const std::string verbs = Sub(where::kModule, "rail_verbs");

	if (module == "rail_verbs" || root.Exists(Sub(verbs, "holders", module)))
		return true;
	// Built outside of the kernel's tree, and with RAIL's version.
	return root.Text(dir + "/taint").find('O') != std::string::npos &&
	       !root.Text(dir + "/version").empty() &&
	       root.Text(dir + "/version") == root.Text(verbs + "/version");
}

bool IsUpdate(const std::string &file)
{
	return file.substr(0, 8) == "updates/" || file.substr(0, 6) == "extra/";
}

// How the modules come to be there for a kernel.
std::string Install(const Root &root, const std::string &release)
{
	for (const std::string &name : root.List("/usr/src"))
		if (name.rfind("rail-", 0) == 0 && root.Exists(Sub("/usr/src", name, "dkms.conf")))
			return fmt::format(
				"apt install linux-headers-{0} && dkms autoinstall -k {0}",
				release);
	return "make && make install (in RAIL's source tree)";
}

std::string Reload(const std::string &module)
{
	return fmt::format("modprobe -r {0} && modprobe {0}", module);
}

void Modules(const Root &root, const std::string &version, Findings *findings)
{
	const std::string release = root.Text("/proc/sys/kernel/osrelease");
	const auto files = ModuleFiles(root, release);
	const bool installed = files.count("rail_verbs") > 0;
	bool any = false;

	if (!installed)
		findings->push_back({Finding::kBad, "modules",
				     "RAIL's are not installed for Linux " + release,
				     Install(root, release)});
	for (const std::string_view name : kModules) {
		const std::string module(name);
		const std::string dir = Sub(where::kModule, module);
		const auto file = files.find(module);
		const bool in_way = file != files.end() && !IsUpdate(file->second);

		if (!root.Exists(dir)) {
			if (in_way)
				findings->push_back(
					{Finding::kBad, module,
					 "modprobe would load the kernel's own, " + file->second,
					 Install(root, release) + ", then depmod -a"});
			else if (installed)
				findings->push_back(
					{Finding::kNote, module, "is not loaded",
					 file == files.end() ? "" : "modprobe " + module});
			continue;
		}
		any = true;
		if (!IsRails(root, module)) {
			findings->push_back(
				{Finding::kBad, module, "the kernel's own is loaded, not RAIL's",
				 (in_way || !installed ? Install(root, release) + ", then " : "") +
					 Reload(module)});
			continue;
		}
		const std::string loaded = root.Text(dir + "/version");
		if (loaded != version)
			findings->push_back({Finding::kBad, module,
					     fmt::format("is of version {}, railctl of version {}",
							 loaded, version),
					     Reload(module)});
		else
			findings->push_back({Finding::kOk, module, "loaded, RAIL " + loaded, ""});
	}
	if (!any && installed)
		findings->push_back({Finding::kBad, "modules", "none of RAIL's is loaded",
				     "modprobe rnbd_client, rnbd_server or rpcrdma"});
}

void Devices(const Root &root, Findings *findings)
{
	const auto ports = RdmaPorts(root);
	const bool any = std::any_of(ports.begin(), ports.end(),
				     [](const RdmaPort &port) { return port.active(); });

	if (ports.empty())
		findings->push_back({Finding::kBad, "rdma", "there is no RDMA device",
				     "railctl rxe up NETDEV (or load the driver of the card)"});
	for (const RdmaPort &port : ports) {
		const std::string about = fmt::format("{}/{}", port.device, port.port);
		const std::string on = port.netdev.empty() ? "" : " on " + port.netdev;

		if (!port.active()) {
			findings->push_back(
				{any ? Finding::kNote : Finding::kBad, about,
				 "the port is " +
					 (port.state.empty() ? "in no state" : port.state) + on,
				 port.netdev.empty() ? "rdma link"
						     : "ip link set dev " + port.netdev + " up"});
			continue;
		}
		findings->push_back(
			{Finding::kOk, about, "the port is active" + on + ", " + port.link, ""});
		if (port.link != "Ethernet" || !port.mtu || RdmaMtu(port.mtu) >= 4096)
			continue;
		findings->push_back(
			{RdmaMtu(port.mtu) ? Finding::kNote : Finding::kBad, about,
			 fmt::format("MTU {} of {} gives RDMA packets of {} bytes, not 4096",
				     port.mtu, port.netdev, RdmaMtu(port.mtu)),
			 fmt::format(
				 "ip link set dev {} mtu {} (at both ends, if the switches let it "
				 "pass)",
				 port.netdev, kFullMtu)});
	}
}

void Limits(const Root &root, Findings *findings)
{
	constexpr std::string_view kLine = "Max locked memory";

	for (const std::string &line : Lines(root.Text("/proc/self/limits"))) {
		if (line.substr(0, kLine.size()) != kLine)
			continue;
		const auto words = Words(line.substr(kLine.size()));
		const auto soft = words.empty() ? std::nullopt : ToNumber(words[0]);

		if (soft && *soft < kFewLockedBytes)
			findings->push_back(
				{Finding::kNote, "memlock",
				 "programs may lock " + BytesText(*soft) +
					 " of memory, little for RDMA (RAIL's modules need none)",
				 "ulimit -l unlimited"});
		else
			findings->push_back({Finding::kOk, "memlock",
					     "programs may lock enough memory for RDMA", ""});
	}
}

bool Mounted(const Root &root, std::string_view where, std::string_view type)
{
	for (const std::string &line : Lines(root.Text("/proc/mounts"))) {
		const auto words = Words(line);

		if (words.size() > 2 && words[1] == where && words[2] == type)
			return true;
	}
	return false;
}

void FileSystems(const Root &root, Findings *findings)
{
	if (root.Exists(Sub(where::kModule, "rnbd_server")) &&
	    !Mounted(root, where::kConfig, "configfs"))
		findings->push_back({Finding::kBad, "configfs",
				     "is not mounted, so nothing can be exported",
				     "mount -t configfs none /sys/kernel/config"});
	if (root.Exists(Sub(where::kModule, "rail_verbs")) &&
	    !Mounted(root, "/sys/kernel/debug", "debugfs"))
		findings->push_back({Finding::kNote, "debugfs",
				     "is not mounted, so there are no latencies to see",
				     "mount -t debugfs none /sys/kernel/debug"});
}

// Why there is no way to a host, whatever the port.
Finding NoWay(Reach reach, const std::string &host, const std::string &address)
{
	if (reach == Reach::kNoWay)
		return {Finding::kBad, host, "no RDMA device of this host has a way to it",
			"railctl rxe up NETDEV, on the interface that ip route get " + address +
				" shows"};
	return {Finding::kBad, host, "does not answer by RDMA",
		"railctl doctor (there); firewalls have to let UDP 4791 pass, for iWARP the TCP "
		"port"};
}

// "192.0.2.1" of "ip:192.0.2.1"; "" of a GID.
std::string PlainAddress(const std::string &address)
{
	return address.rfind("ip:", 0) == 0 ? address.substr(3) : "";
}

void Client(const Root &root, Findings *findings)
{
	for (const Session &session : Sessions(root))
		for (const Path &path : session.paths) {
			if (path.up())
				continue;
			findings->push_back(
				{session.up() ? Finding::kNote : Finding::kBad, session.name,
				 "path " + path.name + " is " + path.state,
				 "railctl path connect " + session.name + " " + path.name});
			// One that was disconnected on purpose is not to be asked after.
			const std::string address = PlainAddress(path.dst);
			if (address.empty() || path.state == "disconnected")
				continue;
			const Reach reach = root.Reach(address, kBlockPort);
			if (reach == Reach::kNoWay || reach == Reach::kSilent)
				findings->push_back(NoWay(reach, address, address));
		}
	for (const Device &device : rail::ctl::Devices(root))
		if (device.state == "open")
			findings->push_back(
				{Finding::kOk, device.name, "is open, " + device.mapping(), ""});
		else
			findings->push_back({Finding::kBad, device.name,
					     "is " + device.state + ": its I/O waits or fails",
					     "railctl remap " + device.name});
}

void Server(const Root &root, Findings *findings)
{
	const std::string search =
		root.Text(Sub(where::kModule, "rnbd_server", "parameters", "dev_search_path"));

	if (!search.empty() && search != "(null)")
		findings->push_back({Finding::kBad, "dev_search_path",
				     "every host that reaches the port may map every block device "
				     "below " +
					     search,
				     "railctl export add NAME DEVICE --allow ADDRESS, then load "
				     "rnbd_server without dev_search_path"});
	for (const Export &exported : Exports(root)) {
		if (exported.device.empty())
			findings->push_back({Finding::kBad, exported.name, "has no device",
					     "railctl export remove " + exported.name});
		else if (!root.Exists(exported.device))
			findings->push_back({Finding::kBad, exported.name,
					     "its device " + exported.device + " is not there",
					     "railctl export remove " + exported.name});
		else if (!exported.enabled)
			findings->push_back({Finding::kNote, exported.name, "is not enabled",
					     "railctl export enable " + exported.name});
		else if (exported.allowed.empty())
			findings->push_back({Finding::kNote, exported.name,
					     "is exported, but no client may map it",
					     "railctl export allow " + exported.name + " ADDRESS"});
		else
			findings->push_back({Finding::kOk, exported.name, "is exported", ""});
	}
}

} // namespace

std::vector<Finding> ExamineServer(const Root &root, const std::string &server)
{
	const std::string address = PlainAddress(ResolveServer(server));
	Findings findings;
	bool any = false;

	if (address.empty())
		return {{Finding::kNote, server, "only IP addresses can be tried", ""}};
	for (const std::uint16_t port : {kBlockPort, kNfsPort}) {
		const std::string about = fmt::format("{} port {}", server, port);

		switch (const Reach reach = root.Reach(address, port)) {
		case Reach::kAnswers:
			findings.push_back({Finding::kOk, about, "answers by RDMA", ""});
			any = true;
			break;
		case Reach::kNobodyListens:
			findings.push_back({Finding::kNote, about, "nobody listens there",
					    port == kBlockPort
						    ? "modprobe rnbd_server (there)"
						    : "echo rdma 20049 >/proc/fs/nfsd/portlist "
						      "(there, where nfsd runs)"});
			break;
		case Reach::kSilent:
		case Reach::kNoWay:
			return {NoWay(reach, server, address)};
		case Reach::kNotTried:
			return {{Finding::kBad, server, "cannot be tried from here",
				 "modprobe rdma_ucm (as root)"}};
		}
	}
	if (!any)
		findings.push_back({Finding::kBad, server,
				    "is there, but serves neither block devices nor NFS by RDMA",
				    "railctl doctor (there)"});
	return findings;
}

std::vector<Finding> ExamineOtherEnd(const OtherEnd &other, const std::string &version)
{
	Findings findings;

	if (other.version == version)
		findings.push_back(
			{Finding::kOk, "other end", "is of the same version, " + version, ""});
	else
		findings.push_back({Finding::kNote, "other end",
				    fmt::format("is of version {}, this one of {}: they work "
						"together, but were not tested so",
						other.version, version),
				    "apt install ./rail-dkms_VERSION_all.deb "
				    "./rail-tools_VERSION_ARCH.deb (the same ones at both)"});
	for (const Finding &finding : other.findings)
		if (finding.level == Finding::kBad)
			findings.push_back({finding.level, "other end, " + finding.about,
					    finding.what, finding.mend});
	return findings;
}

std::vector<Finding> Examine(const Root &root, const std::string &version)
{
	Findings findings;

	Modules(root, version, &findings);
	Devices(root, &findings);
	Limits(root, &findings);
	FileSystems(root, &findings);
	Client(root, &findings);
	Server(root, &findings);
	return findings;
}

} // namespace rail::ctl
