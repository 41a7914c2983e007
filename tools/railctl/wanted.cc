// SPDX-License-Identifier: GPL-2.0-only
#include "wanted.h"

#include <algorithm>

#include <fmt/format.h>

#include "client.h"
#include "error.h"
#include "server.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

template <typename List> bool Has(const List &list, const std::string &name)
{
	return std::any_of(list.begin(), list.end(),
			   [&](const auto &item) { return item.name == name; });
}

std::vector<std::string> RuleNames(const std::vector<std::string> &rules)
{
	std::vector<std::string> names;

	names.reserve(rules.size());
	for (const std::string &rule : rules)
		names.push_back(RuleName(rule));
	std::sort(names.begin(), names.end());
	names.erase(std::unique(names.begin(), names.end()), names.end());
	return names;
}

class Planner
{
public:
	Planner(Root &root, const Wanted &wanted, bool prune)
		: root_(root), wanted_(wanted), prune_(prune), sessions_(Sessions(root)),
		  devices_(Devices(root)), exports_(Exports(root))
	{
	}

	Plan Make(Part part)
	{
		if (part != Part::kSessions)
			for (const WantedExport &wanted : wanted_.exports)
				AddExport(wanted);
		if (part != Part::kExports)
			for (const WantedSession &wanted : wanted_.sessions)
				AddSession(wanted);
		if (part != Part::kExports)
			PruneSessions();
		if (part != Part::kSessions)
			PruneExports();
		return std::move(plan_);
	}

private:
	void Do(Step::Change change, std::string text, std::function<void(Root &)> run)
	{
		plan_.steps.push_back({change, std::move(text), std::move(run)});
	}

	void AddExport(const WantedExport &wanted);
	void ChangeExport(const WantedExport &wanted, const Export &present);
	void AddSession(const WantedSession &wanted);
	void AddDevice(const WantedSession &session, const WantedDevice &wanted);
	void AddPaths(const WantedSession &wanted, const Session &present);
	void Settings(const WantedSession &wanted, const Session *present);
	void PruneSessions();
	void PruneExports();
	void PruneSession(const WantedSession &wanted, const Session &present);
	static MapRequest Request(const WantedSession &session, const WantedDevice &device);

	Root &root_;
	const Wanted &wanted_;
	bool prune_;
	std::vector<Session> sessions_;
	std::vector<Device> devices_;
	std::vector<Export> exports_;
	Plan plan_;
};

void Planner::AddExport(const WantedExport &wanted)
{
	const auto present = std::find_if(exports_.begin(), exports_.end(), [&](const Export &e) {
		return SysfsName(e.name) == SysfsName(wanted.name);
	});

	if (present != exports_.end()) {
		ChangeExport(wanted, *present);
		return;
	}
	Export made;
	made.name = wanted.name;
	made.device = wanted.device;
	made.read_only = wanted.access == "ro";
	made.enabled = wanted.enable;
	made.allowed = wanted.allow;
	// What makes no sense is told of before anything is done.
	RuleNames(wanted.allow);
	Do(Step::kAdd,
	   fmt::format("export {} = {} ({})", wanted.name, wanted.device, wanted.access),
	   [made](Root &root) { ExportAdd(root, made); });
}

void Planner::ChangeExport(const WantedExport &wanted, const Export &present)
{
	const std::string name = present.name;
	const bool ro = wanted.access == "ro";
	const bool other = present.device != wanted.device || present.read_only != ro;
	const auto rules = RuleNames(wanted.allow);
	const auto had = RuleNames(present.allowed);

	for (const std::string &rule : rules)
		if (!std::binary_search(had.begin(), had.end(), rule))
			Do(Step::kAdd, "export " + name + ": allow " + PlainName(rule),
			   [name, rule](Root &root) {
				   ExportAllow(root, FindExport(root, name), rule);
			   });
	for (const std::string &rule : had)
		if (!std::binary_search(rules.begin(), rules.end(), rule))
			Do(Step::kRemove, "export " + name + ": allow " + PlainName(rule),
			   [name, rule](Root &root) {
				   ExportDeny(root, FindExport(root, name), rule);
			   });
	if ((other || (present.enabled && !wanted.enable)) && !present.mappings.empty()) {
		plan_.blocked.push_back(fmt::format(
			"export {}: clients have it mapped (railctl export show {}), so it "
			"stays as it is",
			name, name));
		return;
	}
	if (other)
		Do(Step::kChange,
		   fmt::format("export {} = {} ({})", name, wanted.device, wanted.access),
		   [name, wanted, ro](Root &root) {
			   const Export now = FindExport(root, name);

			   if (now.enabled)
				   ExportDisable(root, now, false);
			   ExportSet(root, now, wanted.device, ro);
			   if (wanted.enable)
				   ExportEnable(root, FindExport(root, name));
		   });
	else if (present.enabled != wanted.enable)
		Do(Step::kChange,
		   fmt::format("export {}: {}", name, wanted.enable ? "enable" : "disable"),
		   [name, enable = wanted.enable](Root &root) {
			   if (enable)
				   ExportEnable(root, FindExport(root, name));
			   else
				   ExportDisable(root, FindExport(root, name), false);
		   });
}

MapRequest Planner::Request(const WantedSession &session, const WantedDevice &device)
{
	MapRequest request;

	request.remote = device.name;
	request.session = session.name;
	request.paths = session.paths;
	request.access = device.access;
	request.port = session.port;
	request.poll_queues = session.poll_queues;
	request.no_path_timeout = session.no_path_timeout;
	return request;
}

void Planner::AddDevice(const WantedSession &session, const WantedDevice &wanted)
{
	const MapRequest request = Request(session, wanted);
	const std::string name = wanted.name + "@" + session.name;
	const auto present = std::find_if(devices_.begin(), devices_.end(), [&](const Device &d) {
		return d.remote == wanted.name && d.session == session.name;
	});

	if (present == devices_.end()) {
		Do(Step::kAdd, fmt::format("map {} ({})", name, wanted.access),
		   [request](Root &root) { Map(root, request); });
		return;
	}
	if (present->access == wanted.access) {
		if (present->state != "open")
			Do(Step::kChange, "remap " + name,
			   [device = *present](Root &root) { Remap(root, device); });
		return;
	}
	if (InUse(root_, present->name)) {
		plan_.blocked.push_back(
			fmt::format("{} is mapped {} as {} and in use, so it cannot be mapped {}",
				    name, present->access, present->name, wanted.access));
		return;
	}
	Do(Step::kRemove, fmt::format("map {} ({})", name, present->access),
	   [device = *present](Root &root) { Unmap(root, device, false); });
	Do(Step::kAdd, fmt::format("map {} ({})", name, wanted.access),
	   [request](Root &root) { Map(root, request); });
}

void Planner::AddPaths(const WantedSession &wanted, const Session &present)
{
	for (const std::string &text : wanted.paths) {
		const std::string pair = PathPair(text);

		if (std::any_of(present.paths.begin(), present.paths.end(),
				[&](const Path &path) { return Leads(path, pair); }))
			continue;
		Do(Step::kAdd, fmt::format("session {}: path {}", wanted.name, pair),
		   [name = wanted.name, pair](Root &root) {
			   PathAdd(root, FindSession(root, name), pair);
		   });
	}
}

void Planner::Settings(const WantedSession &wanted, const Session *present)
{
	const std::string &name = wanted.name;

	if (wanted.policy && (!present || present->policy != *wanted.policy))
		Do(Step::kChange, fmt::format("session {}: policy {}", name, *wanted.policy),
		   [name, policy = *wanted.policy](Root &root) {
			   SetPolicy(root, FindSession(root, name), policy);
		   });
	if (wanted.max_reconnects && (!present || present->max_reconnects != wanted.max_reconnects))
		Do(Step::kChange,
		   fmt::format("session {}: max_reconnect_attempts {}", name,
			       *wanted.max_reconnects),
		   [name, attempts = *wanted.max_reconnects](Root &root) {
			   SetMaxReconnects(root, FindSession(root, name), attempts);
		   });
	// A new session gets it with its first mapping.
	if (wanted.no_path_timeout && present && present->no_path_timeout != wanted.no_path_timeout)
		Do(Step::kChange,
		   fmt::format("session {}: no_path_timeout {}", name, *wanted.no_path_timeout),
		   [name, seconds = *wanted.no_path_timeout](Root &root) {
			   SetNoPathTimeout(root, FindSession(root, name), seconds);
		   });
}

void Planner::AddSession(const WantedSession &wanted)
{
	const Session *present = SessionNamed(sessions_, wanted.name);

	for (const std::string &path : wanted.paths)
		PathPair(path);
	if (present)
		AddPaths(wanted, *present);
	for (const WantedDevice &device : wanted.devices)
		AddDevice(wanted, device);
	// There is no session without a mapping.
	if (present || !wanted.devices.empty())
		Settings(wanted, present);
}

void Planner::PruneSession(const WantedSession &wanted, const Session &present)
{
	for (const Path &path : present.paths) {
		const bool stays = wanted.paths.empty() ||
				   std::any_of(wanted.paths.begin(), wanted.paths.end(),
					       [&](const std::string &text) {
						       return Leads(path, PathPair(text));
					       });

		if (stays)
			continue;
		const std::string text =
			fmt::format("session {}: path {}", present.name, path.name);
		if (!prune_) {
			plan_.kept.push_back(text);
			continue;
		}
		Do(Step::kRemove, text, [name = present.name, path](Root &root) {
			const Session now = FindSession(root, name);

			// What was to take its place may not have come up.
			if (std::none_of(now.paths.begin(), now.paths.end(),
					 [&](const Path &other) {
						 return other.up() && other.name != path.name;
					 }))
				throw Error(Exit::kInUse, path.name,
					    "no other path of session " + name + " is connected",
					    "railctl path list " + name);
			PathRemove(root, now, path, false);
		});
	}
}

void Planner::PruneSessions()
{
	for (const Device &device : devices_) {
		const std::string text =
			fmt::format("map {} ({})", device.mapping(), device.access);
		const auto session = std::find_if(
			wanted_.sessions.begin(), wanted_.sessions.end(),
			[&](const WantedSession &s) { return s.name == device.session; });

		if (session != wanted_.sessions.end() && Has(session->devices, device.remote))
			continue;
		if (!prune_)
			plan_.kept.push_back(text);
		else if (InUse(root_, device.name))
			plan_.blocked.push_back(
				fmt::format("{} is {} and in use, so it stays mapped",
					    device.mapping(), device.name));
		else
			Do(Step::kRemove, text,
			   [device](Root &root) { Unmap(root, device, false); });
	}
	for (const WantedSession &wanted : wanted_.sessions)
		if (const Session *present = SessionNamed(sessions_, wanted.name))
			PruneSession(wanted, *present);
}

void Planner::PruneExports()
{
	for (const Export &present : exports_) {
		const std::string text =
			fmt::format("export {} = {}", present.name, present.device);

		if (std::any_of(wanted_.exports.begin(), wanted_.exports.end(),
				[&](const WantedExport &w) {
					return SysfsName(w.name) == SysfsName(present.name);
				}))
			continue;
		if (!prune_)
			plan_.kept.push_back(text);
		else if (!present.mappings.empty())
			plan_.blocked.push_back(fmt::format(
				"export {} is mapped by clients, so it stays", present.name));
		else
			Do(Step::kRemove, text, [name = present.name](Root &root) {
				ExportRemove(root, FindExport(root, name), false);
			});
	}
}

} // namespace

Wanted Present(const Root &root)
{
	const auto devices = Devices(root);
	Wanted present;

	for (const Export &exported : Exports(root))
		present.exports.push_back({exported.name, exported.device, exported.access(),
					   exported.allowed, exported.enabled});
	for (const Session &session : Sessions(root)) {
		WantedSession wanted;

		wanted.name = session.name;
		for (const Path &path : session.paths)
			wanted.paths.push_back(path.name);
		wanted.no_path_timeout = session.no_path_timeout;
		wanted.max_reconnects = session.max_reconnects;
		if (!session.policy.empty())
			wanted.policy = session.policy;
		for (const Device &device : devices) {
			if (device.session != session.name)
				continue;
			wanted.devices.push_back({device.remote, device.access});
			wanted.poll_queues = device.poll_queues;
		}
		// What the transport is used for besides is nothing that a file could bring back.
		if (!wanted.devices.empty())
			present.sessions.push_back(std::move(wanted));
	}
	return present;
}

Plan MakePlan(Root &root, const Wanted &wanted, bool prune, Part part)
{
	return Planner(root, wanted, prune).Make(part);
}

} // namespace rail::ctl
