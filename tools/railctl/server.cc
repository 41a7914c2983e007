// SPDX-License-Identifier: GPL-2.0-only
#include "server.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "error.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::size_t kLongestName = 254;

std::uint64_t Nth(const std::vector<std::string> &words, std::size_t n)
{
	return n < words.size() ? ToNumber(words[n]).value_or(0) : 0;
}

std::string ExportDir(std::string_view name)
{
	return Sub(where::kExports, SysfsName(name));
}

std::string RuleDir(std::string_view name, std::string_view rule)
{
	return ExportDir(name) + "/allowed_clients/" + std::string(rule);
}

void CheckExportName(const std::string &name)
{
	if (!IsFileName(SysfsName(name)) || name.size() > kLongestName || HasControl(name) ||
	    name.find(' ') != std::string::npos)
		throw Error(
			Exit::kUsage, name,
			"cannot be an export's name: that has no space or control character, and "
			"is not longer than 254 bytes",
			"choose another one");
}

// A name of the user's that is used to look for something.
void CheckName(std::string_view name)
{
	if (!IsFileName(SysfsName(name)))
		throw Error(Exit::kMissing, std::string(name), "there is nothing of that name",
			    "railctl export list shows what is exported");
}

void NeedServer(const Root &root)
{
	if (root.Exists(where::kExports))
		return;
	if (!root.Exists(Sub(where::kModule, "rnbd_server")))
		throw Error(Exit::kModule, "rnbd_server", "is not loaded", "modprobe rnbd_server");
	if (root.Exists(Sub(where::kModule, "configfs")) && root.List(where::kConfig).empty())
		throw Error(Exit::kModule, "configfs", "is not mounted",
			    "mount -t configfs none /sys/kernel/config");
	throw Error(Exit::kModule, "rnbd_server", "is the kernel's own, which has no exports",
		    "railctl doctor says how to load RAIL's");
}

// configfs tells of its refusals in the log alone.
[[noreturn]] void ConfigFailed(const std::string &object, const std::string &deed, int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		throw Error(Exit::kRoot, object, deed + " needs root", "run it with sudo");
	case EEXIST:
		throw Error(Exit::kExists, object, "is there already", "railctl export list");
	case ENOENT:
		throw Error(Exit::kMissing, object, "is not there", "railctl export list");
	default:
		throw Error(Exit::kFailed, object, deed + " failed: " + ErrnoText(error),
			    "the kernel's log may say more: dmesg | tail");
	}
}

void Refuse(const Export &exported, const std::string &deed)
{
	std::string who;

	for (const Mapping &mapping : exported.mappings)
		who += (who.empty() ? "" : ", ") + mapping.session;
	throw Error(Exit::kInUse, exported.name, "is mapped by " + who + ", whose I/O would fail",
		    "unmap it there first, or " + deed + " it with --force");
}

std::string LongName(const Mapping &mapping)
{
	return mapping.remote + "@" + mapping.session;
}

} // namespace

std::vector<Mapping> Mappings(const Root &root)
{
	const std::string devices = Sub(where::kServer, "devices");
	std::vector<Mapping> mappings;

	for (const std::string &device : root.List(devices)) {
		const std::string sessions = Sub(devices, device, "sessions");

		for (const std::string &session : root.List(sessions)) {
			const std::string dir = Sub(sessions, session);
			const auto remote = root.Read(dir + "/mapping_path");

			if (!remote)
				continue;
			mappings.push_back({device, session, *remote,
					    root.Text(dir + "/access_mode"),
					    root.Text(dir + "/read_only") == "1"});
		}
	}
	return mappings;
}

std::vector<ServerSession> ServerSessions(const Root &root)
{
	const std::vector<Mapping> mappings = Mappings(root);
	std::vector<ServerSession> sessions;

	for (const std::string &name : root.List(where::kServerSessions)) {
		const std::string paths = Sub(where::kServerSessions, name, "paths");
		ServerSession session;

		if (!root.Exists(paths))
			continue;
		session.name = name;
		for (const std::string &path : root.List(paths)) {
			const std::string dir = Sub(paths, path);
			const auto rdma = Words(root.Text(dir + "/stats/rdma"));

			session.paths.push_back(
				{path, root.Text(dir + "/src_addr"), root.Text(dir + "/dst_addr"),
				 root.Text(dir + "/hca_name"),
				 ToNumber(root.Text(dir + "/hca_port")).value_or(0), Nth(rdma, 0),
				 Nth(rdma, 1), Nth(rdma, 2), Nth(rdma, 3)});
		}
		std::copy_if(mappings.begin(), mappings.end(), std::back_inserter(session.mappings),
			     [&](const Mapping &m) { return m.session == name; });
		sessions.push_back(std::move(session));
	}
	return sessions;
}

std::vector<Export> Exports(const Root &root)
{
	const std::vector<Mapping> mappings = Mappings(root);
	std::vector<Export> exports;

	for (const std::string &name : root.List(where::kExports)) {
		const std::string dir = Sub(where::kExports, name);
		const auto enable = root.Read(dir + "/enable");
		Export exported;

		if (!enable)
			continue;
		exported.name = PlainName(name);
		exported.device = root.Text(dir + "/device_path");
		exported.read_only = root.Text(dir + "/access") == "ro";
		exported.enabled = *enable == "1";
		for (const std::string &rule : root.List(dir + "/allowed_clients"))
			exported.allowed.push_back(PlainName(rule));
		std::copy_if(mappings.begin(), mappings.end(),
			     std::back_inserter(exported.mappings),
			     [&](const Mapping &m) { return SysfsName(m.remote) == name; });
		exports.push_back(std::move(exported));
	}
	return exports;
}

Export FindExport(const Root &root, std::string_view name)
{
	NeedServer(root);
	for (const Export &exported : Exports(root))
		if (SysfsName(exported.name) == SysfsName(name))
			return exported;
	throw Error(Exit::kMissing, std::string(name), "there is no export of that name",
		    "railctl export list shows them, railctl export add makes one");
}

ServerSession FindServerSession(const Root &root, std::string_view name)
{
	for (const ServerSession &session : ServerSessions(root))
		if (session.name == name)
			return session;
	throw Error(Exit::kMissing, std::string(name), "no client has a session of that name",
		    "railctl sessions shows them");
}

std::string RuleName(std::string_view rule)
{
	const auto at = rule.rfind('@');
	std::string glob(at == std::string_view::npos ? "" : rule.substr(0, at + 1));
	std::string_view net = at == std::string_view::npos ? rule : rule.substr(at + 1);
	const auto sign = net.find_first_of("/!");
	const auto address = Address(net.substr(0, sign));
	std::string name;

	if (address && WithoutPorts(*address) == *address) {
		name = glob + *address;
		if (sign != std::string_view::npos) {
			const auto bits = ToNumber(net.substr(sign + 1));
			const bool v4 = address->find('.') != std::string::npos &&
					address->find(':', 3) == std::string::npos;

			if (!bits || *bits > (v4 ? 32U : 128U))
				name.clear();
			else
				name += '!' + std::to_string(*bits);
		}
	} else if (!address && at == std::string_view::npos &&
		   rule.find_first_of("./:!") == rule.npos) {
		name = rule;
	}
	if (!IsFileName(name) || HasControl(name))
		throw Error(
			Exit::kUsage, std::string(rule), "is no rule for clients",
			"give an address (ip:192.0.2.7), a network (ip:192.0.2.0/24), a pattern of "
			"session names (host-*), or a pattern and an address "
			"(host-*@ip:192.0.2.7)");
	return name;
}

void ExportAdd(Root &root, const Export &wanted)
{
	const std::string dir = ExportDir(wanted.name);
	std::vector<std::string> rules;
	std::vector<std::string> made;

	CheckExportName(wanted.name);
	if (wanted.device.empty() || wanted.device[0] != '/' || HasControl(wanted.device))
		throw Error(Exit::kUsage, wanted.device, "is no absolute path of a block device",
			    "give one as /dev/vg0/lv0");
	for (const std::string &rule : wanted.allowed)
		rules.push_back(RuleName(rule));
	NeedServer(root);
	if (!root.IsBlockDevice(wanted.device))
		throw Error(
			root.Exists(wanted.device) ? Exit::kUsage : Exit::kMissing, wanted.device,
			root.Exists(wanted.device) ? "is no block device"
						   : "there is no such device",
			"lsblk shows the block devices; a file gets one by losetup --find --show "
			"FILE");
	if (const int error = root.MakeDir(dir))
		ConfigFailed(wanted.name, "making the export", error);
	try {
		WriteTo(root, dir + "/device_path", wanted.device, wanted.name,
			"setting the device");
		WriteTo(root, dir + "/access", wanted.access(), wanted.name, "setting access");
		for (const std::string &rule : rules) {
			const int error = root.MakeDir(RuleDir(wanted.name, rule));

			// Twice the same is no fault.
			if (error && error != EEXIST)
				ConfigFailed(wanted.name, "allowing " + rule, error);
			if (!error)
				made.push_back(rule);
		}
		if (wanted.enabled)
			WriteTo(root, dir + "/enable", "1", wanted.name, "enabling the export");
	} catch (const Error &) {
		for (const std::string &rule : made)
			root.RemoveDir(RuleDir(wanted.name, rule));
		root.RemoveDir(dir);
		throw;
	}
}

void ExportRemove(Root &root, const Export &exported, bool force)
{
	const std::string dir = ExportDir(exported.name);

	if (!exported.mappings.empty() && !force)
		Refuse(exported, "remove");
	// First of all, so that nobody maps it meanwhile.
	if (exported.enabled)
		WriteTo(root, dir + "/enable", "0", exported.name, "disabling the export");
	for (const std::string &rule : root.List(dir + "/allowed_clients"))
		if (const int error = root.RemoveDir(RuleDir(exported.name, rule)))
			ConfigFailed(exported.name, "removing a rule", error);
	if (const int error = root.RemoveDir(dir))
		ConfigFailed(exported.name, "removing the export", error);
}

void ExportDisable(Root &root, const Export &exported, bool force)
{
	if (!exported.mappings.empty() && !force)
		Refuse(exported, "disable");
	WriteTo(root, ExportDir(exported.name) + "/enable", "0", exported.name,
		"disabling the export");
}

void ExportEnable(Root &root, const Export &exported)
{
	if (exported.device.empty())
		throw Error(Exit::kUsage, exported.name, "has no device",
			    "remove it, and add it again with its device");
	WriteTo(root, ExportDir(exported.name) + "/enable", "1", exported.name,
		"enabling the export");
}

void ExportAllow(Root &root, const Export &exported, std::string_view rule)
{
	const std::string name = RuleName(rule);

	if (const int error = root.MakeDir(RuleDir(exported.name, name)))
		ConfigFailed(PlainName(name), "allowing it", error);
}

void ExportDeny(Root &root, const Export &exported, std::string_view rule)
{
	std::string name = SysfsName(rule);

	CheckName(rule);
	// As it stands there, or as it would have been written.
	if (!root.Exists(RuleDir(exported.name, name)))
		name = RuleName(rule);
	if (const int error = root.RemoveDir(RuleDir(exported.name, name)))
		ConfigFailed(PlainName(name), "denying it", error);
}

void ExportSet(Root &root, const Export &exported, const std::string &device, bool read_only)
{
	const std::string dir = ExportDir(exported.name);

	WriteTo(root, dir + "/device_path", device, exported.name, "setting the device");
	WriteTo(root, dir + "/access", read_only ? "ro" : "rw", exported.name, "setting access");
}

void Kick(Root &root, const Mapping &mapping)
{
	WriteTo(root,
		Sub(where::kServer, "devices", mapping.device, "sessions", mapping.session,
		    "force_close"),
		"1", LongName(mapping), "closing");
}

void Disconnect(Root &root, const ServerSession &session, const ServerPath &path)
{
	WriteTo(root, Sub(where::kServerSessions, session.name, "paths", path.name, "disconnect"),
		"1", path.name, "disconnecting");
}

} // namespace rail::ctl
