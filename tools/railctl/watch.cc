// SPDX-License-Identifier: GPL-2.0-only
#include "watch.h"

#include <fmt/format.h>

#include "client.h"
#include "nfs.h"
#include "rdma.h"
#include "server.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

void AddClient(const Root &root, States *states)
{
	for (const Device &d : Devices(root))
		(*states)[{"device", d.name}] = fmt::format("{} {}, {}, {}", d.mapping(), d.access,
							    BytesText(d.bytes), d.state);
	for (const Session &session : Sessions(root))
		for (const Path &path : session.paths)
			(*states)[{"path", session.name + " " + path.name}] = path.state;
}

void AddServer(const Root &root, States *states)
{
	for (const Export &e : Exports(root))
		(*states)[{"export", e.name}] = fmt::format("{} {}, {}", e.device, e.access(),
							    e.enabled ? "enabled" : "disabled");
	for (const ServerSession &session : ServerSessions(root)) {
		for (const Mapping &mapping : session.mappings)
			(*states)[{"mapping", mapping.remote + "@" + session.name}] =
				mapping.access;
		for (const ServerPath &path : session.paths)
			(*states)[{"client path", session.name + " " + path.name}] = "connected";
	}
}

} // namespace

States ReadStates(const Root &root)
{
	States states;

	AddClient(root, &states);
	AddServer(root, &states);
	for (const RdmaPort &port : RdmaPorts(root))
		states[{"port", fmt::format("{}/{}", port.device, port.port)}] = port.state;
	for (const NfsMount &mount : ReadNfs(root).mounts)
		states[{"mount", mount.where}] = mount.source;
	return states;
}

std::vector<StateChange> Compare(const States &was, const States &is)
{
	std::vector<StateChange> changes;
	auto before = was.begin();
	auto now = is.begin();

	while (before != was.end() || now != is.end()) {
		if (now == is.end() || (before != was.end() && before->first < now->first)) {
			changes.push_back({before->first.first, before->first.second,
					   before->second, std::nullopt});
			++before;
		} else if (before == was.end() || now->first < before->first) {
			changes.push_back(
				{now->first.first, now->first.second, std::nullopt, now->second});
			++now;
		} else {
			if (before->second != now->second)
				changes.push_back({now->first.first, now->first.second,
						   before->second, now->second});
			++before;
			++now;
		}
	}
	return changes;
}

} // namespace rail::ctl
