// SPDX-License-Identifier: GPL-2.0-only
#include "client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "error.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr unsigned int kNodeTimeoutMs = 10000;
constexpr unsigned int kNodePauseMs = 20;
// The sizes of the messages that carry them, without the NUL.
constexpr std::size_t kLongestRemote = 254;
constexpr std::size_t kLongestSession = 255;
constexpr std::uint64_t kSector = 512;

std::string ClientModule()
{
	return "modprobe rnbd_client";
}

std::vector<std::uint64_t> Numbers(std::string_view text)
{
	std::vector<std::uint64_t> numbers;

	for (const std::string &word : Words(text))
		numbers.push_back(ToNumber(word).value_or(0));
	return numbers;
}

std::uint64_t Nth(const std::vector<std::uint64_t> &numbers, std::size_t n)
{
	return n < numbers.size() ? numbers[n] : 0;
}

std::optional<std::int64_t> Signed(std::string_view text)
{
	const bool minus = !text.empty() && text[0] == '-';
	const auto value = ToNumber(minus ? text.substr(1) : text);

	if (!value || *value > static_cast<std::uint64_t>(INT64_MAX))
		return std::nullopt;
	return minus ? -static_cast<std::int64_t>(*value) : static_cast<std::int64_t>(*value);
}

std::string SessionDir(const Session &session)
{
	return Sub(where::kClientSessions, session.name);
}

std::string PathDir(const Session &session, const Path &path)
{
	return Sub(SessionDir(session), "paths", path.name);
}

std::string DeviceDir(const Device &device)
{
	return Sub(where::kBlock, device.name, "rnbd");
}

Path ReadPath(const Root &root, const std::string &session, const std::string &name)
{
	const std::string dir = Sub(where::kClientSessions, session, "paths", name);
	const auto rdma = Numbers(root.Text(dir + "/stats/rdma"));
	const auto reconnects = Numbers(root.Text(dir + "/stats/reconnects"));
	Path path;

	path.name = name;
	path.state = root.Text(dir + "/state");
	path.src = root.Text(dir + "/src_addr");
	path.dst = root.Text(dir + "/dst_addr");
	path.hca = root.Text(dir + "/hca_name");
	path.hca_port = ToNumber(root.Text(dir + "/hca_port")).value_or(0);
	// "1234 ns"
	path.latency_ns = Nth(Numbers(root.Text(dir + "/cur_latency")), 0);
	path.reads = Nth(rdma, 0);
	path.read_bytes = Nth(rdma, 1);
	path.writes = Nth(rdma, 2);
	path.write_bytes = Nth(rdma, 3);
	path.in_flight = Nth(rdma, 4);
	path.failed_over = Nth(rdma, 5);
	path.reconnects = Nth(reconnects, 0);
	path.failed_reconnects = Nth(reconnects, 1);
	return path;
}

void CheckSessionName(const std::string &name)
{
	if (name.empty() || name.size() > kLongestSession || HasControl(name) ||
	    name.find_first_of("/. ") != std::string::npos)
		throw Error(Exit::kUsage, name,
			    "cannot be a session's name: that has no dot, slash, space or control "
			    "character, and is not longer than 255 bytes",
			    "give another one with --session");
}

void CheckRemoteName(const std::string &name)
{
	if (name.empty() || name.size() > kLongestRemote || HasControl(name) ||
	    name.find(' ') != std::string::npos)
		throw Error(
			Exit::kUsage, name,
			"cannot be the name of a device at a server: that has no space or control "
			"character, and is not longer than 254 bytes",
			"ask the server's operator: railctl export list shows the names there");
}

// The refusals that the kernel's errno tells of.
[[noreturn]] void MapFailed(const MapRequest &request, int error)
{
	const std::string object = request.remote + "@" + request.session;
	const std::string server = request.paths.empty() ? request.server : request.paths.front();

	switch (error) {
	case EEXIST:
		throw Error(Exit::kExists, object, "is mapped already", "railctl list shows where");
	case EACCES:
		throw Error(Exit::kFailed, object, "the server does not let this host map it",
			    "on the server: railctl export allow " + request.remote +
				    " ADDRESS; its log names the address");
	case ENOENT:
		throw Error(Exit::kMissing, object, "the server has no device of that name",
			    "on the server: railctl export list shows the names");
	case ENOTBLK:
		throw Error(Exit::kFailed, object, "is no block device at the server",
			    "on the server, give a file a loop device: losetup --find --show FILE");
	case EROFS:
		throw Error(Exit::kFailed, object, "is exported for reading only",
			    "map it with --ro, or change the export's access at the server");
	case EPERM:
		throw Error(
			Exit::kInUse, object, "somebody else has it mapped for writing",
			"unmap it there, or map it with --ro, or with --migration to take over");
	case EINVAL:
		throw Error(Exit::kUsage, object, "the kernel does not take the request",
			    "the kernel's log says what is wrong: dmesg | tail");
	case ENODEV:
		throw Error(Exit::kFailed, object, "no RDMA device of this host leads to " + server,
			    "railctl doctor shows the devices; without an RDMA card: railctl rxe "
			    "up NETDEV");
	case ECONNREFUSED:
	case ECONNRESET:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENOLINK:
	case ETIMEDOUT:
	case EADDRNOTAVAIL:
		throw Error(Exit::kFailed, object,
			    "cannot connect to " + server + ": " + ErrnoText(error),
			    "is rnbd_server loaded there and the port open? railctl doctor looks "
			    "at this "
			    "end");
	default:
		throw Error(Exit::kFailed, object, "mapping failed: " + ErrnoText(error),
			    "the kernel's log may say more: dmesg | tail");
	}
}

std::string MapText(const MapRequest &request)
{
	std::string text = "sessname=" + request.session;

	for (const std::string &path : request.paths)
		text += " path=" + path;
	text += " device_path=" + request.remote + " access_mode=" + request.access;
	if (request.port)
		text += fmt::format(" dest_port={}", *request.port);
	if (request.poll_queues)
		text += fmt::format(" nr_poll_queues={}", *request.poll_queues);
	if (request.no_path_timeout)
		text += fmt::format(" no_path_timeout={}", *request.no_path_timeout);
	return text;
}

void WaitForNode(Root &root, const Device &device)
{
	const std::string udev =
		"/run/udev/data/b" + root.Text(Sub(where::kBlock, device.name, "dev"));
	const bool has_udev = root.Exists("/run/udev/control");

	for (unsigned int waited = 0; waited < kNodeTimeoutMs; waited += kNodePauseMs) {
		// udev writes that file when its rules have run.
		if (root.Exists(device.node()) && (!has_udev || root.Exists(udev)))
			return;
		root.Pause(kNodePauseMs);
	}
	throw Error(Exit::kTimeout, device.name,
		    "is mapped, but " + device.node() + " did not appear within ten seconds",
		    "is udev running? railctl show " + device.name + " shows the mapping");
}

std::vector<std::string> WithPartitions(const Root &root, const std::string &disk)
{
	std::vector<std::string> dirs = {Sub(where::kBlock, disk)};

	for (const std::string &name : root.List(dirs[0])) {
		const std::string dir = Sub(where::kBlock, disk, name);

		if (root.Exists(dir + "/partition"))
			dirs.push_back(dir);
	}
	return dirs;
}

std::string Base(std::string_view path)
{
	return std::string(path.substr(path.rfind('/') + 1));
}

} // namespace

std::string ResolveServer(const std::string &server)
{
	addrinfo hints{};
	addrinfo *list = nullptr;

	if (const auto address = Address(server))
		return *address;
	hints.ai_socktype = SOCK_STREAM;
	const int error = getaddrinfo(server.c_str(), nullptr, &hints, &list);
	if (error)
		throw Error(Exit::kUsage, server,
			    fmt::format("is neither an address nor a host that is known ({})",
					gai_strerror(error)),
			    "give an address as 192.0.2.1, fe80::1%eth0 or gid:fe80::1");
	const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(list, freeaddrinfo);
	for (const addrinfo *ai = list; ai; ai = ai->ai_next) {
		std::array<char, NI_MAXHOST> text{};

		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, text.data(), text.size(), nullptr, 0,
				NI_NUMERICHOST) != 0)
			continue;
		if (const auto address = Address(text.data()))
			return *address;
	}
	throw Error(Exit::kUsage, server, "has no address", "give an address");
}

std::size_t Session::up() const
{
	return static_cast<std::size_t>(
		std::count_if(paths.begin(), paths.end(), [](const Path &p) { return p.up(); }));
}

std::vector<Session> Sessions(const Root &root)
{
	std::vector<Session> sessions;

	for (const std::string &name : root.List(where::kClientSessions)) {
		const std::string dir = Sub(where::kClientSessions, name);
		const std::string policy = root.Text(dir + "/mpath_policy");
		Session session;

		if (!root.Exists(dir + "/paths"))
			continue;
		session.name = name;
		// "round-robin (RR: 0)"
		session.policy = policy.substr(0, policy.find(" ("));
		session.max_reconnects = Signed(root.Text(dir + "/max_reconnect_attempts"));
		session.no_path_timeout = ToNumber(root.Text(dir + "/no_path_timeout"));
		for (const std::string &path : root.List(dir + "/paths"))
			session.paths.push_back(ReadPath(root, name, path));
		sessions.push_back(std::move(session));
	}
	return sessions;
}

std::vector<Device> Devices(const Root &root)
{
	std::vector<Device> devices;

	for (const std::string &name : root.List(where::kBlock)) {
		const std::string dir = Sub(where::kBlock, name, "rnbd");
		const auto state = root.Read(dir + "/state");
		Device device;

		// No disk of ours, or it went while we looked.
		if (!state)
			continue;
		device.name = name;
		device.state = *state;
		device.session = root.Text(dir + "/session");
		device.remote = root.Text(dir + "/mapping_path");
		device.access = root.Text(dir + "/access_mode");
		device.poll_queues = ToNumber(root.Text(dir + "/nr_poll_queues")).value_or(0);
		device.bytes =
			ToNumber(root.Text(Sub(where::kBlock, name, "size"))).value_or(0) * kSector;
		devices.push_back(std::move(device));
	}
	return devices;
}

Device FindDevice(const Root &root, std::string_view name)
{
	const std::vector<Device> devices = Devices(root);
	std::vector<const Device *> found;
	std::string node;

	if (name.substr(0, 5) == "/dev/")
		node = root.Link(name).value_or(Base(name));
	for (const Device &device : devices) {
		if (device.name == name || device.name == node || device.mapping() == name)
			return device;
		if (device.remote == name)
			found.push_back(&device);
	}
	if (found.size() == 1)
		return *found[0];
	if (found.size() > 1)
		throw Error(
			Exit::kUsage, std::string(name), "is mapped from more than one session",
			fmt::format("name one of them: {} or {}", found[0]->name, found[1]->name));
	if (!root.Exists(where::kClient))
		throw Error(Exit::kModule, "rnbd_client", "is not loaded, so nothing is mapped",
			    ClientModule());
	throw Error(Exit::kMissing, std::string(name), "is not mapped",
		    devices.empty() ? "railctl map SERVER DEVICE maps one"
				    : "railctl list shows what is mapped");
}

const Session *SessionNamed(const std::vector<Session> &sessions, std::string_view name)
{
	const auto found = std::find_if(sessions.begin(), sessions.end(),
					[&](const Session &s) { return s.name == name; });

	return found == sessions.end() ? nullptr : &*found;
}

Session FindSession(const Root &root, std::string_view name)
{
	const auto sessions = Sessions(root);

	if (const Session *session = SessionNamed(sessions, name))
		return *session;
	throw Error(Exit::kMissing, std::string(name), "there is no session of that name",
		    "railctl path list shows the sessions");
}

std::string PathPair(std::string_view text)
{
	auto pair = AddressPair(text);

	if (!pair)
		throw Error(Exit::kUsage, std::string(text), "is no path",
			    "give [SRC,]DST, each an address as 192.0.2.1, fe80::1 or gid:fe80::1");
	return std::move(*pair);
}

bool Leads(const Path &path, std::string_view pair)
{
	const std::string plain = WithoutPorts(pair);

	return path.name == plain || path.dst == plain;
}

Path FindPath(const Session &session, std::string_view name)
{
	const auto with_ports = AddressPair(name);
	const auto pair = with_ports ? std::optional(WithoutPorts(*with_ports)) : std::nullopt;
	std::vector<const Path *> found;

	for (const Path &path : session.paths) {
		if (path.name == name || (pair && path.name == *pair))
			return path;
		if (pair && path.dst == *pair)
			found.push_back(&path);
	}
	if (found.size() == 1)
		return *found[0];
	if (found.size() > 1)
		throw Error(Exit::kUsage, std::string(name),
			    "more than one path of session " + session.name + " leads there",
			    "name its source as well: SRC,DST");
	throw Error(Exit::kMissing, std::string(name), "is no path of session " + session.name,
		    "railctl path list " + session.name + " shows them");
}

std::vector<std::string> Users(const Root &root, const std::string &disk)
{
	const std::vector<std::string> mounts = Lines(root.Text("/proc/self/mountinfo"));
	const std::vector<std::string> swaps = Lines(root.Text("/proc/swaps"));
	std::vector<std::string> users;

	for (const std::string &dir : WithPartitions(root, disk)) {
		const std::string number = root.Text(dir + "/dev");

		for (const std::string &holder : root.List(dir + "/holders"))
			users.push_back("held by " + holder);
		for (const std::string &line : mounts) {
			// id parent major:minor root where ...
			const auto words = Words(line);

			if (words.size() > 4 && !number.empty() && words[2] == number)
				users.push_back("mounted on " + Unmangle(words[4]));
		}
		for (const std::string &line : swaps) {
			const auto words = Words(line);

			if (!words.empty() && words[0] == "/dev/" + Base(dir))
				users.emplace_back("used as swap");
		}
	}
	return users;
}

bool InUse(Root &root, const std::string &disk)
{
	return !Users(root, disk).empty() || root.TryExclusive("/dev/" + disk) == EBUSY;
}

std::string SessionFor(const Root &root, const std::vector<std::string> &paths,
		       std::string_view server)
{
	std::array<char, 256> host{};
	std::string name;

	for (const Session &session : Sessions(root))
		for (const Path &path : session.paths)
			for (const std::string &wanted : paths)
				if (Leads(path, wanted))
					return session.name;
	gethostname(host.data(), host.size() - 1);
	name = host.data();
	name.resize(std::min(name.find('.'), name.size()));
	name += '-';
	name += server;
	std::replace_if(
		name.begin(), name.end(),
		[](char c) { return c == '.' || c == '/' || c == '%' || c == ' '; }, '-');
	return name;
}

Device Map(Root &root, MapRequest request)
{
	std::vector<std::string> paths;

	CheckRemoteName(request.remote);
	for (const std::string &text : request.paths)
		paths.push_back(PathPair(text));
	if (paths.empty())
		paths = {ResolveServer(request.server)};
	request.paths = paths;
	if (request.session.empty())
		request.session = SessionFor(root, paths, request.server);
	CheckSessionName(request.session);

	const Written written = root.Write(Sub(where::kClient, "map_device"), MapText(request));
	if (written.error && !written.opened) {
		if (written.error == EACCES)
			throw Error(Exit::kRoot, "", "mapping a device needs root",
				    "run it with sudo");
		throw Error(Exit::kModule, "rnbd_client", "is not loaded", ClientModule());
	}
	if (written.error)
		MapFailed(request, written.error);

	const std::string link = SysfsName(request.remote + "@" + request.session);
	const auto name = root.Link(Sub(where::kClient, "devices", link));
	for (const Device &device : Devices(root)) {
		if (name ? device.name != *name
			 : device.remote != request.remote || device.session != request.session)
			continue;
		WaitForNode(root, device);
		return device;
	}
	throw Error(Exit::kFailed, request.remote + "@" + request.session,
		    "was mapped, and is gone again", "the kernel's log may say why: dmesg | tail");
}

void Unmap(Root &root, const Device &device, bool force)
{
	const Written written =
		root.Write(DeviceDir(device) + "/unmap_device", force ? "force" : "normal");

	if (written.error == EBUSY) {
		std::string who;

		for (const std::string &user : Users(root, device.name))
			who += (who.empty() ? "" : ", ") + user;
		throw Error(
			Exit::kInUse, device.name,
			"is in use: " + (who.empty() ? "a program has it open" : who),
			"give it free (umount, swapoff, vgchange -an ...), or take it away with "
			"--force: what was not written is lost then");
	}
	// Gone is what was wanted.
	if (written.error == ENODEV || (written.error == ENOENT && !written.opened))
		return;
	if (!written.error)
		return;
	if (written.error == EACCES && !written.opened)
		throw Error(Exit::kRoot, device.name, "unmapping needs root", "run it with sudo");
	throw Error(Exit::kFailed, device.name, "unmapping failed: " + ErrnoText(written.error),
		    "the kernel's log may say more: dmesg | tail");
}

bool Remap(Root &root, const Device &device)
{
	const Written written = root.Write(DeviceDir(device) + "/remap_device", "1");
	MapRequest request;

	if (written.error == EALREADY && written.opened)
		return false;
	if (!written.error)
		return true;
	if (written.error == EACCES && !written.opened)
		throw Error(Exit::kRoot, device.name, "remapping needs root", "run it with sudo");
	if (!written.opened)
		throw Error(Exit::kMissing, device.name, "is gone", "railctl list");
	request.remote = device.remote;
	request.session = device.session;
	request.server = "the server";
	MapFailed(request, written.error);
}

void Resize(Root &root, const Device &device, std::uint64_t bytes)
{
	if (!bytes || bytes % kSector)
		throw Error(
			Exit::kUsage, device.name,
			fmt::format("cannot be {} bytes long: that is no multiple of 512", bytes),
			"give a size as 10G, or in bytes");
	WriteTo(root, DeviceDir(device) + "/resize", std::to_string(bytes / kSector), device.name,
		"resizing");
}

void PathAdd(Root &root, const Session &session, std::string_view text)
{
	const std::string path = PathPair(text);
	const Written written = root.Write(SessionDir(session) + "/add_path", path);

	if (written.opened && written.error == EEXIST)
		throw Error(
			Exit::kExists, path, "is a path of session " + session.name + " already",
			"railctl path connect " + session.name + " " + path + " connects it again");
	if (written.opened && written.error && written.error != EINVAL)
		throw Error(
			Exit::kFailed, path,
			"session " + session.name +
				" cannot connect there: " + ErrnoText(written.error),
			"is that an address of the same server? railctl doctor looks at this end");
	CheckWritten(written, path, "adding a path");
}

void PathRemove(Root &root, const Session &session, const Path &path, bool force)
{
	if (session.paths.size() == 1 && !force)
		for (const Device &device : Devices(root))
			if (device.session == session.name)
				throw Error(Exit::kInUse, path.name,
					    "is the only path of session " + session.name +
						    ", which " + device.name + " needs",
					    "add another one first, or say --force");
	WriteTo(root, PathDir(session, path) + "/remove_path", "1", path.name, "removing a path");
}

void PathConnect(Root &root, const Session &session, const Path &path)
{
	WriteTo(root, PathDir(session, path) + "/reconnect", "1", path.name, "connecting a path");
}

void PathDisconnect(Root &root, const Session &session, const Path &path)
{
	WriteTo(root, PathDir(session, path) + "/disconnect", "1", path.name,
		"disconnecting a path");
}

const std::vector<std::string> &Policies()
{
	static const std::vector<std::string> policies = {"round-robin", "min-inflight",
							  "min-latency", "numa", "weighted"};

	return policies;
}

void SetPolicy(Root &root, const Session &session, std::string_view policy)
{
	WriteTo(root, SessionDir(session) + "/mpath_policy", policy, session.name,
		"setting the policy");
}

void SetNoPathTimeout(Root &root, const Session &session, std::uint64_t seconds)
{
	WriteTo(root, SessionDir(session) + "/no_path_timeout", std::to_string(seconds),
		session.name, "setting no_path_timeout");
}

void SetMaxReconnects(Root &root, const Session &session, std::int64_t attempts)
{
	WriteTo(root, SessionDir(session) + "/max_reconnect_attempts", std::to_string(attempts),
		session.name, "setting max_reconnect_attempts");
}

} // namespace rail::ctl
