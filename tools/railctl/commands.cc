// SPDX-License-Identifier: GPL-2.0-only
#include "commands.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

#include "doctor.h"
#include "json.h"
#include "nfs.h"
#include "progress.h"
#include "rdma.h"
#include "stats.h"
#include "text.h"
#include "top.h"
#include "wanted.h"
#include "watch.h"

namespace rail::ctl
{
namespace
{

void Say(const Context &context, const std::string &text)
{
	// A program that asked for JSON gets nothing else.
	if (!context.screen.json)
		context.screen.out << Escape(text) << '\n';
}

void Warn(const Context &context, const std::string &text)
{
	const Screen &screen = context.screen;

	screen.err << Tinted(screen.err_colour, Tint::kWarn, "note: ") << Escape(text) << '\n';
}

void Nothing(const Context &context, const std::string &what, const std::string &next)
{
	context.screen.err << what << (next.empty() ? "" : "; ") << next << '\n';
}

Cell StateCell(const std::string &state)
{
	if (state == "open" || state == "connected" || state == "enabled")
		return {state, Tint::kGood};
	if (state == "connecting" || state == "reconnecting" || state == "disabled")
		return {state, Tint::kWarn};
	return {state, Tint::kBad};
}

Cell PathsCell(const Session *session)
{
	if (!session)
		return {"-"};
	const std::size_t up = session->up();
	const std::string text = fmt::format("{}/{}", up, session->paths.size());

	if (!up)
		return {text, Tint::kBad};
	return {text, up < session->paths.size() ? Tint::kWarn : Tint::kGood};
}

std::string Join(const std::vector<std::string> &list, const std::string &none)
{
	return list.empty() ? none : fmt::format("{}", fmt::join(list, ", "));
}

std::string Number(const std::optional<std::uint64_t> &number, const std::string &none)
{
	return number ? std::to_string(*number) : none;
}

Table PathTable()
{
	return Table({{"SESSION", Column::kFlexible},
		      {"PATH", Column::kFlexible},
		      {"STATE"},
		      {"RDMA", Column::kText, true},
		      {"LATENCY", Column::kNumber},
		      {"READ", Column::kNumber, true},
		      {"WRITTEN", Column::kNumber, true},
		      {"IN FLIGHT", Column::kNumber, true},
		      {"FAILED OVER", Column::kNumber, true},
		      {"RECONNECTS", Column::kNumber, true}});
}

void PathRow(Table *table, const Session &session, const Path &path)
{
	table->Row({session.name, path.name, StateCell(path.state),
		    fmt::format("{}/{}", path.hca, path.hca_port),
		    path.latency_ns ? NanosecondsText(path.latency_ns) : "-",
		    BytesText(path.read_bytes), BytesText(path.write_bytes),
		    std::to_string(path.in_flight), std::to_string(path.failed_over),
		    std::to_string(path.reconnects)});
}

void NeedClient(const Context &context)
{
	if (!context.root.Exists(where::kClient) && !context.root.Exists(where::kClientSessions))
		throw Error(Exit::kModule, "rnbd_client", "is not loaded", "modprobe rnbd_client");
}

} // namespace

/* ---- block devices, client ---- */

Exit CmdMap(const Context &context, const MapRequest &request)
{
	Device device;

	{
		const Progress progress(context.screen, "mapping " + request.remote);

		device = Map(context.root, request);
	}
	if (context.screen.json) {
		const auto sessions = Sessions(context.root);

		context.screen.out
			<< DeviceJson(device, SessionNamed(sessions, device.session), {});
	}
	Say(context, device.node());
	return Exit::kOk;
}

Exit CmdUnmap(const Context &context, const std::vector<std::string> &names, bool force)
{
	std::vector<Device> devices;

	devices.reserve(names.size());
	// All of them are there, or nothing is done.
	for (const std::string &name : names)
		devices.push_back(FindDevice(context.root, name));
	for (const Device &device : devices) {
		const Progress progress(context.screen, "unmapping " + device.name);

		Unmap(context.root, device, force);
		Say(context, device.name + " is unmapped");
	}
	return Exit::kOk;
}

Exit CmdRemap(const Context &context, const std::string &name)
{
	const Device device = FindDevice(context.root, name);
	const Progress progress(context.screen, "remapping " + device.name);

	Say(context,
	    device.name + (Remap(context.root, device) ? " is open again" : " is open already"));
	return Exit::kOk;
}

Exit CmdResize(const Context &context, const std::string &name, const std::string &size)
{
	const auto bytes = ToBytes(size);

	if (!bytes)
		throw Error(Exit::kUsage, size, "is no size", "give one as 10G, or in bytes");
	const Device device = FindDevice(context.root, name);
	Resize(context.root, device, *bytes);
	Say(context, fmt::format("{} is {} long", device.name, BytesText(*bytes)));
	return Exit::kOk;
}

Exit CmdList(const Context &context)
{
	const auto devices = Devices(context.root);
	const auto sessions = Sessions(context.root);
	Table table({{"DEVICE"},
		     {"SIZE", Column::kNumber},
		     {"ACCESS", Column::kText, true},
		     {"STATE"},
		     {"PATHS"},
		     {"REMOTE", Column::kFlexible},
		     {"SESSION", Column::kFlexible}});

	if (context.screen.json) {
		context.screen.out << DevicesJson(devices);
		return Exit::kOk;
	}
	if (devices.empty()) {
		Nothing(context, "nothing is mapped", "railctl map SERVER DEVICE maps a device");
		return Exit::kOk;
	}
	for (const Device &device : devices)
		table.Row({device.name, BytesText(device.bytes), device.access,
			   StateCell(device.state),
			   PathsCell(SessionNamed(sessions, device.session)), device.remote,
			   device.session});
	table.Print(context.screen);
	return Exit::kOk;
}

Exit CmdShow(const Context &context, const std::string &name)
{
	const Device device = FindDevice(context.root, name);
	const auto sessions = Sessions(context.root);
	const Session *session = SessionNamed(sessions, device.session);
	const auto users = Users(context.root, device.name);
	Table table = PathTable();

	if (context.screen.json) {
		context.screen.out << DeviceJson(device, session, users);
		return Exit::kOk;
	}
	std::vector<std::pair<std::string, Cell>> fields = {
		{"device", {device.node(), Tint::kBold}},
		{"state", StateCell(device.state)},
		{"size", fmt::format("{} ({} bytes)", BytesText(device.bytes), device.bytes)},
		{"access", device.access},
		{"remote", device.remote},
		{"session", device.session},
		{"used by", Join(users, "nobody")},
		{"poll queues", std::to_string(device.poll_queues)},
	};
	if (session) {
		fields.emplace_back("policy", session->policy);
		if (session->no_path_timeout)
			fields.emplace_back("no path", fmt::format("I/O waits {} s",
								   *session->no_path_timeout));
		if (session->max_reconnects)
			fields.emplace_back(
				"reconnects",
				*session->max_reconnects < 0
					? "any number"
					: fmt::format("up to {}", *session->max_reconnects));
		for (const Path &path : session->paths)
			PathRow(&table, *session, path);
	}
	PrintFields(context.screen, fields);
	if (!table.empty()) {
		context.screen.out << '\n';
		table.Print(context.screen);
	}
	return Exit::kOk;
}

/* ---- paths ---- */

Exit CmdPathList(const Context &context, const std::string &name)
{
	std::vector<Session> sessions;
	Table table = PathTable();

	if (name.empty())
		sessions = Sessions(context.root);
	else
		sessions.push_back(FindSession(context.root, name));
	if (context.screen.json) {
		context.screen.out << SessionsJson(sessions);
		return Exit::kOk;
	}
	for (const Session &session : sessions)
		for (const Path &path : session.paths)
			PathRow(&table, session, path);
	if (table.empty())
		Nothing(context, "there is no path",
			"railctl map SERVER DEVICE makes the first one");
	else
		table.Print(context.screen);
	return Exit::kOk;
}

Exit CmdPathAdd(const Context &context, const std::string &session, const std::string &path)
{
	NeedClient(context);
	const Session found = FindSession(context.root, session);
	const Progress progress(context.screen, "connecting " + path);

	PathAdd(context.root, found, path);
	Say(context, "session " + session + " has a path to " + path);
	return Exit::kOk;
}

Exit CmdPathRemove(const Context &context, const std::string &session, const std::string &path,
		   bool force)
{
	NeedClient(context);
	const Session found = FindSession(context.root, session);
	const Path one = FindPath(found, path);
	const Progress progress(context.screen, "removing " + path);

	PathRemove(context.root, found, one, force);
	Say(context, one.name + " is removed");
	return Exit::kOk;
}

Exit CmdPathConnect(const Context &context, const std::string &session, const std::string &path)
{
	NeedClient(context);
	const Session found = FindSession(context.root, session);
	const Path one = FindPath(found, path);

	PathConnect(context.root, found, one);
	Say(context, one.name + " connects; railctl path list " + session + " shows its state");
	return Exit::kOk;
}

Exit CmdPathDisconnect(const Context &context, const std::string &session, const std::string &path)
{
	NeedClient(context);
	const Session found = FindSession(context.root, session);
	const Path one = FindPath(found, path);
	const Progress progress(context.screen, "disconnecting " + path);

	PathDisconnect(context.root, found, one);
	Say(context, one.name + " is disconnected");
	return Exit::kOk;
}

Exit CmdPolicy(const Context &context, const std::string &session, const std::string &policy)
{
	NeedClient(context);
	const Session found = FindSession(context.root, session);

	if (policy.empty()) {
		if (context.screen.json)
			context.screen.out << SessionsJson({found});
		Say(context, found.policy);
		return Exit::kOk;
	}
	SetPolicy(context.root, found, policy);
	Say(context, "session " + session + " chooses paths by " + policy);
	return Exit::kOk;
}

/* ---- block devices, server ---- */

Exit CmdExportAdd(const Context &context, const Export &wanted)
{
	ExportAdd(context.root, wanted);
	Say(context, wanted.name + " is exported");
	if (wanted.allowed.empty())
		Warn(context,
		     "no client may map it yet: railctl export allow " + wanted.name + " ADDRESS");
	return Exit::kOk;
}

Exit CmdExportList(const Context &context)
{
	const auto exports = Exports(context.root);
	Table table({{"EXPORT", Column::kFlexible},
		     {"DEVICE", Column::kFlexible},
		     {"ACCESS"},
		     {"STATE"},
		     {"ALLOWED", Column::kFlexible},
		     {"MAPPED BY", Column::kFlexible, true}});

	if (context.screen.json) {
		context.screen.out << ExportsJson(exports);
		return Exit::kOk;
	}
	if (exports.empty()) {
		Nothing(context, "nothing is exported",
			"railctl export add NAME DEVICE --allow ADDRESS exports a device");
		return Exit::kOk;
	}
	for (const Export &exported : exports) {
		std::vector<std::string> who;

		for (const Mapping &mapping : exported.mappings)
			who.push_back(mapping.session);
		table.Row({exported.name, exported.device, exported.access(),
			   StateCell(exported.enabled ? "enabled" : "disabled"),
			   exported.allowed.empty() ? Cell("nobody", Tint::kWarn)
						    : Cell(Join(exported.allowed, "")),
			   Join(who, "-")});
	}
	table.Print(context.screen);
	return Exit::kOk;
}

Exit CmdExportShow(const Context &context, const std::string &name)
{
	const Export exported = FindExport(context.root, name);
	Table table({{"SESSION", Column::kFlexible}, {"ACCESS"}, {"DEVICE", Column::kFlexible}});

	if (context.screen.json) {
		context.screen.out << ExportsJson({exported});
		return Exit::kOk;
	}
	PrintFields(context.screen,
		    {{"export", {exported.name, Tint::kBold}},
		     {"device", exported.device},
		     {"access", exported.access()},
		     {"state", StateCell(exported.enabled ? "enabled" : "disabled")},
		     {"allowed", Join(exported.allowed, "nobody")}});
	for (const Mapping &mapping : exported.mappings)
		table.Row({mapping.session, mapping.access, mapping.device});
	if (!table.empty()) {
		context.screen.out << '\n';
		table.Print(context.screen);
	}
	return Exit::kOk;
}

Exit CmdExportRemove(const Context &context, const std::string &name, bool force)
{
	ExportRemove(context.root, FindExport(context.root, name), force);
	Say(context, name + " is exported no more");
	return Exit::kOk;
}

Exit CmdExportEnable(const Context &context, const std::string &name)
{
	ExportEnable(context.root, FindExport(context.root, name));
	Say(context, name + " is enabled");
	return Exit::kOk;
}

Exit CmdExportDisable(const Context &context, const std::string &name, bool force)
{
	ExportDisable(context.root, FindExport(context.root, name), force);
	Say(context, name + " is disabled");
	return Exit::kOk;
}

Exit CmdExportAllow(const Context &context, const std::string &name,
		    const std::vector<std::string> &rules)
{
	const Export exported = FindExport(context.root, name);

	for (const std::string &rule : rules) {
		ExportAllow(context.root, exported, rule);
		Say(context, name + " may be mapped by " + PlainName(RuleName(rule)));
	}
	return Exit::kOk;
}

Exit CmdExportDeny(const Context &context, const std::string &name,
		   const std::vector<std::string> &rules)
{
	const Export exported = FindExport(context.root, name);

	for (const std::string &rule : rules) {
		ExportDeny(context.root, exported, rule);
		Say(context, fmt::format("{} may no longer be mapped by {}", name, rule));
	}
	if (!exported.mappings.empty())
		Warn(context,
		     "who has it mapped keeps it; railctl kick SESSION " + name + " takes it away");
	return Exit::kOk;
}

Exit CmdExportToml(const Context &context)
{
	context.screen.out << WriteToml(Present(context.root));
	return Exit::kOk;
}

Exit CmdSessions(const Context &context)
{
	const auto sessions = ServerSessions(context.root);
	Table table({{"SESSION", Column::kFlexible},
		     {"PATH", Column::kFlexible},
		     {"RDMA", Column::kText, true},
		     {"READ", Column::kNumber, true},
		     {"WRITTEN", Column::kNumber, true},
		     {"MAPPED", Column::kFlexible}});

	if (context.screen.json) {
		context.screen.out << ServerSessionsJson(sessions);
		return Exit::kOk;
	}
	if (sessions.empty()) {
		Nothing(context, "no client has a session here",
			context.root.Exists(where::kServer) ? "" : "modprobe rnbd_server");
		return Exit::kOk;
	}
	for (const ServerSession &session : sessions) {
		std::vector<std::string> mapped;

		for (const Mapping &mapping : session.mappings)
			mapped.push_back(mapping.remote + " (" + mapping.access + ")");
		std::string devices = Join(mapped, "-");
		for (const ServerPath &path : session.paths) {
			table.Row({session.name, path.name,
				   fmt::format("{}/{}", path.hca, path.hca_port),
				   BytesText(path.read_bytes), BytesText(path.write_bytes),
				   devices});
			// Once a session.
			devices.clear();
		}
	}
	table.Print(context.screen);
	return Exit::kOk;
}

Exit CmdKick(const Context &context, const std::string &name, const std::string &device, bool paths)
{
	const ServerSession session = FindServerSession(context.root, name);
	std::size_t kicked = 0;

	for (const Mapping &mapping : session.mappings) {
		if (!device.empty() && mapping.remote != device && mapping.device != device)
			continue;
		Kick(context.root, mapping);
		Say(context, "session " + name + " has lost " + mapping.remote);
		kicked++;
	}
	if (!device.empty() && !kicked)
		throw Error(Exit::kMissing, device, "is not mapped by session " + name,
			    "railctl sessions shows what is");
	if (paths)
		for (const ServerPath &path : session.paths) {
			Disconnect(context.root, session, path);
			Say(context, path.name + " is disconnected");
		}
	else if (!kicked)
		throw Error(Exit::kMissing, name, "has nothing mapped",
			    "--paths ends its connections");
	Warn(context, "the client may come back; railctl export deny keeps it out");
	return Exit::kOk;
}

/* ---- NFS, numbers ---- */

Exit CmdNfs(const Context &context)
{
	const Nfs nfs = ReadNfs(context.root);
	const Screen &screen = context.screen;
	Table table({{"MOUNT", Column::kFlexible},
		     {"SOURCE", Column::kFlexible},
		     {"TYPE", Column::kText, true},
		     {"LINKS", Column::kNumber, true},
		     {"OPERATIONS", Column::kNumber},
		     {"RETRANSMITS", Column::kNumber},
		     {"READ CHUNKS", Column::kNumber, true},
		     {"WRITE CHUNKS", Column::kNumber, true},
		     {"REPLY CHUNKS", Column::kNumber, true},
		     {"SENT", Column::kNumber},
		     {"RECEIVED", Column::kNumber}});

	if (screen.json) {
		screen.out << NfsJson(nfs);
		return Exit::kOk;
	}
	for (const NfsMount &mount : nfs.mounts) {
		NfsTransport sum;

		for (const NfsTransport &t : mount.transports) {
			sum.read_chunks += t.read_chunks;
			sum.write_chunks += t.write_chunks;
			sum.reply_chunks += t.reply_chunks;
			sum.rdma_sent += t.rdma_sent;
			sum.rdma_received += t.rdma_received;
		}
		table.Row({mount.where,
			   mount.source,
			   mount.type,
			   std::to_string(mount.transports.size()),
			   std::to_string(mount.operations),
			   {std::to_string(mount.retransmits),
			    mount.retransmits ? Tint::kWarn : Tint::kNone},
			   std::to_string(sum.read_chunks),
			   std::to_string(sum.write_chunks),
			   std::to_string(sum.reply_chunks),
			   BytesText(sum.rdma_sent),
			   BytesText(sum.rdma_received)});
	}
	if (table.empty())
		Nothing(context, "nothing is mounted over RDMA",
			"mount -o rdma,port=20049 SERVER:/EXPORT DIR mounts");
	else
		table.Print(screen);
	if (nfs.slots) {
		screen.out << "\nnew mounts ask for\n";
		PrintFields(screen, {{"  credits", Number(nfs.slots, "-")},
				     {"  inline read", BytesText(nfs.inline_read.value_or(0))},
				     {"  inline write", BytesText(nfs.inline_write.value_or(0))}});
	}
	if (!nfs.server.empty()) {
		std::vector<std::pair<std::string, Cell>> fields;
		std::vector<std::string> ports;

		for (const std::uint64_t port : nfs.ports)
			ports.push_back(std::to_string(port));
		fields.emplace_back("  listens on", Join(ports, "no RDMA port"));
		for (const auto &[name, value] : nfs.server)
			fields.emplace_back("  " + Escape(name), std::to_string(value));
		screen.out << "\nserver\n";
		PrintFields(screen, fields);
	}
	return Exit::kOk;
}

namespace
{

std::string Latency(const Stats &stats, const std::string &name, std::uint64_t Histogram::*field)
{
	const Histogram *histogram = stats.numbers.histogram(name);

	if (!histogram || !histogram->count)
		return "-";
	// The last bucket has no upper edge.
	if (histogram->*field == UINT64_MAX)
		return "> 9 min";
	return NanosecondsText(histogram->*field);
}

std::uint64_t Errors(const Stats &stats)
{
	std::uint64_t sum = 0;

	for (const auto &[name, value] : stats.numbers.counters)
		if (name.rfind("err_", 0) == 0)
			sum += value;
	return sum;
}

} // namespace

Exit CmdStats(const Context &context, const std::string &name)
{
	auto all = ReadStats(context.root);
	const Screen &screen = context.screen;
	bool blind = false;
	Table io({{"DEVICE", Column::kFlexible},
		  {"READS", Column::kNumber, true},
		  {"READ", Column::kNumber},
		  {"WRITES", Column::kNumber, true},
		  {"WRITTEN", Column::kNumber},
		  {"READ P50", Column::kNumber, true},
		  {"READ P99", Column::kNumber},
		  {"WRITE P50", Column::kNumber, true},
		  {"WRITE P99", Column::kNumber},
		  {"ERRORS", Column::kNumber}});
	Table rdma({{"RDMA", Column::kText}, {"COUNTER"}, {"VALUE", Column::kNumber}});

	if (!name.empty()) {
		all.erase(std::remove_if(all.begin(), all.end(),
					 [&](const Stats &s) {
						 return s.name != name &&
							"/dev/" + s.name != name &&
							s.session != name;
					 }),
			  all.end());
		if (all.empty())
			throw Error(Exit::kMissing, name, "there are no numbers of it",
				    "railctl stats shows all there are");
	}
	if (screen.json) {
		screen.out << StatsJson(all);
		return Exit::kOk;
	}
	for (const Stats &stats : all) {
		const Counters &n = stats.numbers;

		if (stats.kind == Stats::kRdma) {
			for (const auto &[counter, value] : n.counters)
				rdma.Row({stats.name, counter, std::to_string(value)});
			continue;
		}
		const std::uint64_t errors = Errors(stats);
		blind |= !stats.latencies;
		io.Row({stats.name,
			std::to_string(n.at("reads")),
			BytesText(n.at("read_bytes")),
			std::to_string(n.at("writes")),
			BytesText(n.at("write_bytes")),
			Latency(stats, "read_ns", &Histogram::p50),
			Latency(stats, "read_ns", &Histogram::p99),
			Latency(stats, "write_ns", &Histogram::p50),
			Latency(stats, "write_ns", &Histogram::p99),
			{std::to_string(errors), errors ? Tint::kBad : Tint::kNone}});
	}
	if (!io.empty())
		io.Print(screen);
	if (!rdma.empty()) {
		screen.out << (io.empty() ? "" : "\n");
		rdma.Print(screen);
	}
	if (io.empty() && rdma.empty())
		Nothing(context, "there are no numbers",
			"railctl doctor says what is not loaded or not mounted");
	if (blind)
		Warn(context, "latencies and errors are in debugfs, which cannot be read: be root, "
			      "mount -t debugfs none /sys/kernel/debug");
	return Exit::kOk;
}

/* ---- what goes on ---- */

Exit CmdTop(const Context &context, double seconds, unsigned int count)
{
	const Screen &screen = context.screen;
	const auto interval = static_cast<unsigned int>(1000 * seconds);

	if (screen.json)
		throw Error(Exit::kUsage, "top", "is for people",
			    "railctl stats --json has the numbers");
	if (screen.terminal && !count) {
		ShowTop(context.root, interval, screen.colour);
		return Exit::kOk;
	}
	// Into a file or pipe: frames one after the other.
	Top top(Utf8Terminal());

	top.Feed(TakeSample(context.root));
	for (unsigned int i = 0; i < std::max(count, 1U); i++) {
		context.root.Pause(interval);
		top.Feed(TakeSample(context.root));
		if (i)
			screen.out << '\n';
		for (const Line &line : top.Frame(screen.columns))
			screen.out << LineText(line, screen.colour) << '\n';
		screen.out.flush();
	}
	return Exit::kOk;
}

namespace
{

constexpr unsigned int kLookMs = 500;

// In UTC for programs; for people the time of the day, where they are.
std::string TimeNow(bool utc)
{
	const std::time_t now = std::time(nullptr);
	std::tm parts{};
	std::array<char, 32> text{};

	if (utc)
		gmtime_r(&now, &parts);
	else
		localtime_r(&now, &parts);
	std::strftime(text.data(), text.size(), utc ? "%Y-%m-%dT%H:%M:%SZ" : "%H:%M:%S", &parts);
	return text.data();
}

void ShowChange(const Screen &screen, const StateChange &change)
{
	const std::string name = Escape(change.kind) + " " + Escape(change.name);
	const auto tinted = [&](const std::string &state) {
		const Cell cell = StateCell(state);
		const bool state_of_its_own = change.kind == "path" || change.kind == "port";
		const Tint tint = state == "ACTIVE" ? Tint::kGood : cell.tint;

		return Tinted(screen.colour, state_of_its_own ? tint : Tint::kNone, cell.text);
	};
	std::string line = Tinted(screen.colour, Tint::kDim, TimeNow(false)) + "  ";

	if (!change.was)
		line += Tinted(screen.colour, Tint::kGood, "+ ") + name + ": " + tinted(*change.is);
	else if (!change.is)
		line += Tinted(screen.colour, Tint::kBad, "- ") + name + ": was " +
			tinted(*change.was);
	else
		line += Tinted(screen.colour, Tint::kWarn, "~ ") + name + ": " +
			tinted(*change.was) + " -> " + tinted(*change.is);
	screen.out << line << '\n';
}

} // namespace

Exit CmdWatch(const Context &context, unsigned int count)
{
	const Screen &screen = context.screen;
	States before = ReadStates(context.root);
	unsigned int seen = 0;

	if (!screen.json)
		screen.err << fmt::format("watching {} objects; what changes is said here\n",
					  before.size());
	for (;;) {
		context.root.PauseForEvent(kLookMs);
		States now = ReadStates(context.root);

		for (const StateChange &change : Compare(before, now)) {
			if (screen.json)
				screen.out << ChangeJson(change, TimeNow(true));
			else
				ShowChange(screen, change);
			seen++;
		}
		// Who reads this has it at once; who reads no more ends it.
		if (!screen.out.flush())
			return Exit::kFailed;
		if (count && seen >= count)
			return Exit::kOk;
		before = std::move(now);
	}
}

/* ---- the host ---- */

namespace
{

std::string ReadFile(const std::string &name)
{
	// A folder, or a disk that fails, must not look like an empty file.
	const auto text = Root().Read(name == "-" ? "/dev/stdin" : name);

	if (!text)
		throw Error(Exit::kUsage, name, "cannot be read", "give a file that is there");
	return *text;
}

void Append(std::vector<Finding> *findings, const std::vector<Finding> &more)
{
	findings->insert(findings->end(), more.begin(), more.end());
}

} // namespace

Exit CmdDoctor(const Context &context, bool brief, const std::vector<std::string> &servers,
	       const std::string &with)
{
	auto findings = [&] {
		const Progress progress(context.screen, "looking");
		return Examine(context.root, RAIL_VERSION);
	}();
	for (const std::string &server : servers) {
		const Progress progress(context.screen, "asking " + server);
		Append(&findings, ExamineServer(context.root, server));
	}
	if (!with.empty())
		Append(&findings,
		       ExamineOtherEnd(ParseFindings(ReadFile(with), with), RAIL_VERSION));
	const bool bad = std::any_of(findings.begin(), findings.end(),
				     [](const Finding &f) { return f.level == Finding::kBad; });
	const Screen &screen = context.screen;

	if (screen.json) {
		screen.out << FindingsJson(findings, RAIL_VERSION);
		return bad ? Exit::kFound : Exit::kOk;
	}
	for (const Finding &finding : findings) {
		const bool is_bad = finding.level == Finding::kBad;

		if (brief && !is_bad)
			continue;
		if (finding.level == Finding::kOk)
			screen.out << Tinted(screen.colour, Tint::kGood, "ok  ");
		else if (is_bad)
			screen.out << Tinted(screen.colour, Tint::kBad, "BAD ");
		else
			screen.out << Tinted(screen.colour, Tint::kWarn, "note");
		screen.out << "  " << Escape(finding.about) << ": " << Escape(finding.what) << '\n';
		if (!finding.mend.empty())
			screen.out << "      " << Tinted(screen.colour, Tint::kBold, "mend: ")
				   << Escape(finding.mend) << '\n';
	}
	return bad ? Exit::kFound : Exit::kOk;
}

Exit CmdRxeUp(const Context &context, const std::string &netdev, const std::string &name)
{
	const Progress progress(context.screen, "making a software RDMA device on " + netdev);
	const RxeUp up = RxeAdd(context.root, netdev, name);

	Say(context, up.device + (up.made ? " is up" : " is up already") + " on " + netdev);
	return Exit::kOk;
}

Exit CmdRxeDown(const Context &context, const std::string &name)
{
	Say(context, RxeRemove(context.root, name) + " is removed");
	return Exit::kOk;
}

namespace
{

void ShowStep(const Screen &screen, const Step &step)
{
	const bool add = step.change == Step::kAdd;
	const bool remove = step.change == Step::kRemove;
	const std::string sign = add ? "+ " : remove ? "- " : "~ ";
	const Tint tint = add ? Tint::kGood : remove ? Tint::kBad : Tint::kWarn;

	screen.out << Tinted(screen.colour, tint, sign + Escape(step.text)) << '\n';
}

} // namespace

Exit CmdApply(const Context &context, const std::string &file, bool dry_run, bool prune,
	      const std::string &only)
{
	const Part part = only == "exports"    ? Part::kExports
			  : only == "sessions" ? Part::kSessions
					       : Part::kAll;
	const Wanted wanted = ParseToml(ReadFile(file), file);
	const Plan plan = MakePlan(context.root, wanted, prune, part);
	const Screen &screen = context.screen;
	Exit exit = Exit::kOk;

	for (const Step &step : plan.steps) {
		if (!screen.json)
			ShowStep(screen, step);
		if (dry_run)
			continue;
		// The rest is tried all the same: one server that is away must not keep others'
		// devices.
		try {
			const Progress progress(screen, step.text);

			step.run(context.root);
		} catch (const Error &error) {
			ShowError(screen, error);
			exit = exit == Exit::kOk ? error.exit() : exit;
		}
	}
	if (screen.json)
		screen.out << PlanJson(plan, !dry_run);
	for (const std::string &text : plan.blocked)
		Warn(context, text);
	if (!screen.json)
		for (const std::string &text : plan.kept)
			Warn(context,
			     "not in the file, and stays: " + text + " (--prune takes it away)");
	if (plan.steps.empty() && plan.blocked.empty())
		Say(context, "all is as " + file + " wants it");
	if (exit == Exit::kOk && !plan.blocked.empty())
		exit = Exit::kInUse;
	if (dry_run && exit == Exit::kOk && !plan.steps.empty())
		exit = Exit::kFound;
	return exit;
}

void ShowError(const Screen &screen, const Error &error)
{
	const std::string object = Escape(error.object());

	screen.err << Tinted(screen.err_colour, Tint::kBad, "railctl: ") << object
		   << (object.empty() ? "" : ": ") << Escape(error.what_happened()) << '\n';
	if (!error.next().empty())
		screen.err << "  next: " << Escape(error.next()) << '\n';
}

} // namespace rail::ctl
