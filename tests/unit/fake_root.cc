// SPDX-License-Identifier: GPL-2.0-only
#include "fake_root.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "text.h"

namespace rail::ctl
{

namespace fs = std::filesystem;

const std::string kHostile = "evil\n\033[31m\xff";

namespace
{

std::string MakeTemporary()
{
	std::string name = (fs::temp_directory_path() / "railctl-test-XXXXXX").string();

	if (!mkdtemp(name.data()))
		throw std::runtime_error("mkdtemp failed for " + name);
	return name;
}

bool Below(std::string_view path, std::string_view dir, std::string *name)
{
	if (path.substr(0, dir.size()) != dir || path.size() <= dir.size() ||
	    path[dir.size()] != '/')
		return false;
	*name = path.substr(dir.size() + 1);
	return true;
}

} // namespace

FakeRoot::FakeRoot() : Root(MakeTemporary())
{
}

FakeRoot::~FakeRoot()
{
	std::error_code error;

	fs::remove_all(Real(""), error);
}

void FakeRoot::File(const std::string &path, const std::string &text)
{
	const fs::path real = Real(path);

	fs::create_directories(real.parent_path());
	std::ofstream(real, std::ios::trunc) << text;
}

void FakeRoot::Dir(const std::string &path)
{
	fs::create_directories(Real(path));
}

void FakeRoot::SymLink(const std::string &path, const std::string &target)
{
	const fs::path real = Real(path);

	fs::create_directories(real.parent_path());
	fs::create_symlink(target, real);
}

void FakeRoot::Remove(const std::string &path)
{
	fs::remove_all(Real(path));
}

void FakeRoot::LoadClient()
{
	Dir("/sys/class/rtrs-client");
	Dir("/sys/class/rnbd-client/ctl/devices");
	File("/sys/class/rnbd-client/ctl/map_device", "Usage: ...\n");
	reactions["/sys/class/rnbd-client/ctl/map_device"] = [this](const std::string &text) {
		return MapDevice(text);
	};
}

void FakeRoot::LoadServer()
{
	Dir("/sys/module/rnbd_server");
	Dir("/sys/class/rtrs-server");
	Dir("/sys/class/rnbd-server/ctl/devices");
	Dir("/sys/kernel/config/rnbd/exports");
}

void FakeRoot::AddSession(const std::string &name)
{
	const std::string dir = "/sys/class/rtrs-client/" + name;

	Dir(dir + "/paths");
	File(dir + "/add_path", "Usage: ...\n");
	File(dir + "/mpath_policy", "round-robin (RR: 0)\n");
	File(dir + "/max_reconnect_attempts", "-1\n");
	File(dir + "/no_path_timeout", "30\n");
	reactions[dir + "/add_path"] = [this, name](const std::string &text) {
		const auto at = text.find('@');

		AddPath(name, at == text.npos ? "ip:192.0.2.99" : text.substr(0, at),
			at == text.npos ? text : text.substr(at + 1));
		return 0;
	};
	reactions[dir + "/mpath_policy"] = [this, dir](const std::string &text) {
		File(dir + "/mpath_policy", text + " (XX: 9)\n");
		return 0;
	};
}

void FakeRoot::AddPath(const std::string &session, const std::string &src, const std::string &dst,
		       const std::string &state)
{
	const std::string dir =
		"/sys/class/rtrs-client/" + session + "/paths/" + SysfsName(src + "@" + dst);

	File(dir + "/state", state + "\n");
	File(dir + "/src_addr", src + "\n");
	File(dir + "/dst_addr", dst + "\n");
	File(dir + "/hca_name", "rxe_eth0\n");
	File(dir + "/hca_port", "1\n");
	File(dir + "/cur_latency", "54321 ns\n");
	File(dir + "/reconnect", "Usage: ...\n");
	File(dir + "/disconnect", "Usage: ...\n");
	File(dir + "/remove_path", "Usage: ...\n");
	File(dir + "/stats/rdma", "10 40960 20 81920 3 1\n");
	File(dir + "/stats/reconnects", "2 1\n");
	reactions[dir + "/remove_path"] = [this, dir](const std::string &) {
		Remove(dir);
		return 0;
	};
}

void FakeRoot::AddDisk(const std::string &name, const std::string &remote,
		       const std::string &session, const std::string &access,
		       const std::string &state)
{
	const std::string dir = "/sys/block/" + name;
	const std::string link =
		"/sys/class/rnbd-client/ctl/devices/" + SysfsName(remote + "@" + session);

	File(dir + "/size", "204800\n");
	File(dir + "/dev", "252:" + name.substr(4) + "\n");
	Dir(dir + "/holders");
	File(dir + "/rnbd/state", state + "\n");
	File(dir + "/rnbd/session", session + "\n");
	File(dir + "/rnbd/mapping_path", remote + "\n");
	File(dir + "/rnbd/access_mode", access + "\n");
	File(dir + "/rnbd/nr_poll_queues", "0\n");
	File(dir + "/rnbd/unmap_device", "Usage: ...\n");
	File(dir + "/rnbd/remap_device", "Usage: ...\n");
	File(dir + "/rnbd/resize", "Usage: ...\n");
	File("/dev/" + name, "");
	SymLink(link, "../../../../block/" + name);
	reactions[dir + "/rnbd/unmap_device"] = [this, dir, link, name](const std::string &text) {
		if (text == "normal" && busy.count("/dev/" + name))
			return EBUSY;
		Remove(dir);
		Remove(link);
		Remove("/dev/" + name);
		return 0;
	};
}

void FakeRoot::AddMapping(const std::string &device, const std::string &session,
			  const std::string &remote, const std::string &access)
{
	const std::string dir =
		"/sys/class/rnbd-server/ctl/devices/" + device + "/sessions/" + session;

	File(dir + "/mapping_path", remote + "\n");
	File(dir + "/access_mode", access + "\n");
	File(dir + "/read_only", access == "ro" ? "1\n" : "0\n");
	File(dir + "/force_close", "Usage: ...\n");
}

void FakeRoot::AddExport(const std::string &name, const std::string &device, bool enabled,
			 const std::vector<std::string> &allowed)
{
	const std::string dir = "/sys/kernel/config/rnbd/exports/" + name;

	Dir(dir + "/allowed_clients");
	File(dir + "/device_path", device + "\n");
	File(dir + "/access", "rw\n");
	File(dir + "/enable", enabled ? "1\n" : "0\n");
	for (const std::string &rule : allowed)
		Dir(Sub(dir, "allowed_clients", rule));
}

void FakeRoot::AddBlockDevice(const std::string &path)
{
	File(path, "");
	block_devices_.insert(path);
}

void FakeRoot::AddRdma(const std::string &name, const std::string &netdev, bool soft,
		       const std::string &state)
{
	const std::string dir = "/sys/class/infiniband/" + name;

	File(dir + "/ports/1/state", state + "\n");
	File(dir + "/ports/1/link_layer", "Ethernet\n");
	File(dir + "/ports/1/gid_attrs/ndevs/0", netdev + "\n");
	if (soft)
		File(dir + "/parent", netdev + "\n");
}

Written FakeRoot::Write(std::string_view path, std::string_view text)
{
	const std::string name(path);

	if (const auto found = closed.find(name); found != closed.end())
		return {false, found->second};
	if (!Exists(path))
		return {false, ENOENT};
	log.push_back(name + " <- " + std::string(text));
	if (const auto found = errors.find(name); found != errors.end())
		return {true, found->second};
	if (const auto found = reactions.find(name); found != reactions.end()) {
		// It may remove itself.
		const auto react = found->second;

		return {true, react(std::string(text))};
	}
	return Root::Write(path, text);
}

int FakeRoot::MakeDir(std::string_view path)
{
	std::string name;

	log.push_back("mkdir " + std::string(path));
	if (const auto found = errors.find(std::string(path)); found != errors.end())
		return found->second;
	if (Exists(path))
		return EEXIST;
	if (Below(path, where::kExports, &name) && name.find('/') == name.npos) {
		AddExport(name, "", false);
		return 0;
	}
	return Root::MakeDir(path);
}

int FakeRoot::RemoveDir(std::string_view path)
{
	std::string name;

	log.push_back("rmdir " + std::string(path));
	if (const auto found = errors.find(std::string(path)); found != errors.end())
		return found->second;
	if (!Exists(path))
		return ENOENT;
	if (Below(path, where::kExports, &name) && name.find('/') == name.npos) {
		if (!List(std::string(path) + "/allowed_clients").empty())
			return ENOTEMPTY;
		Remove(std::string(path));
		return 0;
	}
	return Root::RemoveDir(path);
}

int FakeRoot::TryExclusive(std::string_view path)
{
	return busy.count(std::string(path)) ? EBUSY : 0;
}

bool FakeRoot::IsBlockDevice(std::string_view path) const
{
	return block_devices_.count(std::string(path)) > 0;
}

Ran FakeRoot::Run(const std::vector<std::string> &argv)
{
	std::string line = "run";

	for (const std::string &arg : argv)
		line += " " + arg;
	log.push_back(line);
	if (on_run)
		on_run();
	return ran;
}

void FakeRoot::Pause(unsigned int ms)
{
	paused_ms += ms;
	if (on_pause)
		on_pause();
}

// As rnbd-client does.
int FakeRoot::MapDevice(const std::string &text)
{
	std::map<std::string, std::string> words;
	std::vector<std::string> paths;
	int index = 0;

	for (const std::string &word : Words(text)) {
		const auto equals = word.find('=');

		if (equals == word.npos)
			return EINVAL;
		if (word.substr(0, equals) == "path")
			paths.push_back(word.substr(equals + 1));
		else if (!words.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
			return EINVAL;
	}
	const std::string session = words["sessname"];
	if (!Exists("/sys/class/rtrs-client/" + session)) {
		if (paths.empty())
			return EINVAL;
		AddSession(session);
		for (const std::string &path : paths) {
			const auto at = path.find('@');

			AddPath(session, at == path.npos ? "ip:192.0.2.99" : path.substr(0, at),
				WithoutPorts(at == path.npos ? path : path.substr(at + 1)));
		}
	}
	if (Link("/sys/class/rnbd-client/ctl/devices/" +
		 SysfsName(words["device_path"] + "@" + session)))
		return EEXIST;
	while (Exists("/sys/block/rnbd" + std::to_string(index)))
		index++;
	AddDisk("rnbd" + std::to_string(index), words["device_path"], session,
		words["access_mode"]);
	return 0;
}

} // namespace rail::ctl
