// SPDX-License-Identifier: GPL-2.0-only
// The block client: disks, their sessions, the sessions' paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct Path {
	std::string name; // source@destination, as sysfs has it
	std::string state;
	std::string src;
	std::string dst;
	std::string hca;
	std::uint64_t hca_port = 0;
	std::uint64_t latency_ns = 0;
	std::uint64_t reads = 0;
	std::uint64_t read_bytes = 0;
	std::uint64_t writes = 0;
	std::uint64_t write_bytes = 0;
	std::uint64_t in_flight = 0;
	std::uint64_t failed_over = 0;
	std::uint64_t reconnects = 0;
	std::uint64_t failed_reconnects = 0;

	bool up() const { return state == "connected"; }
};

struct Session {
	std::string name;
	std::string policy;
	std::optional<std::int64_t> max_reconnects;   // -1: any number
	std::optional<std::uint64_t> no_path_timeout; // s; mainline's module has none
	std::vector<Path> paths;

	std::size_t up() const;
};

struct Device {
	std::string name; // rnbd0
	std::string session;
	std::string remote; // what the server calls it
	std::string access; // ro, rw, migration
	std::string state;  // open, closed
	std::uint64_t bytes = 0;
	std::uint64_t poll_queues = 0;

	std::string node() const { return "/dev/" + name; }
	std::string mapping() const { return remote + "@" + session; }
};

struct MapRequest {
	std::string server; // an address or a host's name
	std::string remote;
	std::string session;            // "": found or made up, see SessionFor()
	std::vector<std::string> paths; // "[SRC,]DST"; none: the server's address
	std::string access = "rw";
	std::optional<std::uint64_t> port;
	std::optional<std::uint64_t> poll_queues;
	std::optional<std::uint64_t> no_path_timeout;
};

std::vector<Session> Sessions(const Root &root);
std::vector<Device> Devices(const Root &root);

// By "rnbd0", "/dev/rnbd0", a link to that, "REMOTE@SESSION", or a REMOTE that only one has.
Device FindDevice(const Root &root, std::string_view name);
// nullptr: there is none of that name.
const Session *SessionNamed(const std::vector<Session> &sessions, std::string_view name);
Session FindSession(const Root &root, std::string_view name);
// A host's name or address, as Address() makes it. Throws Error.
std::string ResolveServer(const std::string &server);

// "[SRC,]DST" that a user gave, as AddressPair() makes it.
std::string PathPair(std::string_view text);
// Is it that pair's path? One without a source is found by its destination.
bool Leads(const Path &path, std::string_view pair);
// By its name, its destination, or "SRC,DST".
Path FindPath(const Session &session, std::string_view name);

// Who has it: "mounted on /mnt", "held by dm-0". Asks the kernel only what is there to be read.
std::vector<std::string> Users(const Root &root, const std::string &disk);
// The same, and tries to have it alone.
bool InUse(Root &root, const std::string &disk);

// The session that a mapping from this server goes to, when none was named: one that has a path
// there, or "<this host>-<server>".
std::string SessionFor(const Root &root, const std::vector<std::string> &paths,
		       std::string_view server);

// Maps, and waits until the node is there and udev is done with it.
Device Map(Root &root, MapRequest request);
void Unmap(Root &root, const Device &device, bool force);
// False: it is open.
bool Remap(Root &root, const Device &device);
void Resize(Root &root, const Device &device, std::uint64_t bytes);

void PathAdd(Root &root, const Session &session, std::string_view path);
// Without force not the last one of a session with disks.
void PathRemove(Root &root, const Session &session, const Path &path, bool force);
void PathConnect(Root &root, const Session &session, const Path &path);
void PathDisconnect(Root &root, const Session &session, const Path &path);

const std::vector<std::string> &Policies();
void SetPolicy(Root &root, const Session &session, std::string_view policy);
void SetNoPathTimeout(Root &root, const Session &session, std::uint64_t seconds);
void SetMaxReconnects(Root &root, const Session &session, std::int64_t attempts);

} // namespace rail::ctl
