// SPDX-License-Identifier: GPL-2.0-only
#include "nfs.h"

#include <string_view>

#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::string_view kDevice = "device ";
constexpr std::string_view kOn = " mounted on ";
constexpr std::string_view kType = " with fstype ";

bool Starts(std::string_view text, std::string_view with)
{
	return text.substr(0, with.size()) == with;
}

// "device server:/export mounted on /mnt with fstype nfs4 statvers=1.1"; white space in a name is
// written as \040, so that the words between are found.
std::optional<NfsMount> ParseDevice(std::string_view line)
{
	const auto on = line.find(kOn);
	const auto type = line.find(kType, on == line.npos ? on : on + kOn.size());
	NfsMount mount;

	if (on == line.npos || type == line.npos)
		return std::nullopt;
	mount.source = Unmangle(line.substr(kDevice.size(), on - kDevice.size()));
	mount.where = Unmangle(line.substr(on + kOn.size(), type - on - kOn.size()));
	const auto rest = Words(line.substr(type + kType.size()));
	if (!rest.empty())
		mount.type = rest[0];
	return mount;
}

NfsTransport ParseTransport(const std::vector<std::string> &words)
{
	// "xprt:", "rdma", then numbers in an order that nfsiostat(8) knows too.
	const auto number = [&](std::size_t n) {
		return n + 2 < words.size() ? ToNumber(words[n + 2]).value_or(0) : 0;
	};
	NfsTransport t;

	t.connects = number(2);
	t.idle_s = number(4);
	t.sends = number(5);
	t.receives = number(6);
	t.bad_xids = number(7);
	t.read_chunks = number(10);
	t.write_chunks = number(11);
	t.reply_chunks = number(12);
	t.rdma_sent = number(13);
	t.rdma_received = number(14);
	t.failed_sends = number(18);
	t.bad_replies = number(19);
	t.long_calls = number(20);
	t.regions_replaced = number(21);
	return t;
}

// "READ: operations transmissions timeouts sent received queued_ms waited_ms took_ms ..."
void AddOperation(const std::vector<std::string> &words, NfsMount *mount)
{
	const auto operations = words.size() > 3 ? ToNumber(words[1]) : std::nullopt;
	const auto transmissions = words.size() > 3 ? ToNumber(words[2]) : std::nullopt;

	if (!operations || !transmissions)
		return;
	mount->operations += *operations;
	mount->timeouts += ToNumber(words[3]).value_or(0);
	if (words.size() > 8)
		mount->busy_ms += ToNumber(words[8]).value_or(0);
	if (*transmissions > *operations)
		mount->retransmits += *transmissions - *operations;
}

} // namespace

std::vector<NfsMount> ParseMountstats(const std::string &text)
{
	std::vector<NfsMount> mounts;
	std::optional<NfsMount> mount;
	bool operations = false;

	const auto keep = [&] {
		if (mount && !mount->transports.empty())
			mounts.push_back(std::move(*mount));
		mount.reset();
		operations = false;
	};

	for (const std::string &line : Lines(text)) {
		if (Starts(line, kDevice)) {
			keep();
			mount = ParseDevice(line);
			continue;
		}
		if (!mount)
			continue;
		const auto words = Words(line);
		if (words.size() > 1 && words[0] == "opts:")
			mount->options = words[1];
		else if (words.size() > 6 && words[0] == "bytes:") {
			mount->read_bytes = ToNumber(words[5]).value_or(0);
			mount->write_bytes = ToNumber(words[6]).value_or(0);
		} else if (words.size() > 1 && words[0] == "xprt:" && words[1] == "rdma")
			mount->transports.push_back(ParseTransport(words));
		else if (!words.empty() && words[0] == "per-op")
			operations = true;
		else if (operations)
			AddOperation(words, &*mount);
	}
	keep();
	return mounts;
}

Nfs ReadNfs(const Root &root)
{
	const std::string server = Sub(where::kSunrpc, "svc_rdma");
	Nfs nfs;

	nfs.mounts = ParseMountstats(root.Text("/proc/self/mountstats"));
	nfs.slots = ToNumber(root.Text(Sub(where::kSunrpc, "rdma_slot_table_entries")));
	nfs.inline_read = ToNumber(root.Text(Sub(where::kSunrpc, "rdma_max_inline_read")));
	nfs.inline_write = ToNumber(root.Text(Sub(where::kSunrpc, "rdma_max_inline_write")));
	for (const std::string &line : Lines(root.Text("/proc/fs/nfsd/portlist"))) {
		const auto words = Words(line);
		const auto port = words.size() > 1 ? ToNumber(words[1]) : std::nullopt;

		if (port && Starts(words[0], "rdma"))
			nfs.ports.push_back(*port);
	}
	for (const std::string &name : root.List(server))
		if (const auto value = ToNumber(root.Text(Sub(server, name))))
			nfs.server[name] = *value;
	return nfs;
}

} // namespace rail::ctl
