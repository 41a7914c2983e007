// SPDX-License-Identifier: GPL-2.0-only
// The only file that knows nlohmann/json.
#include "json.h"

#include <nlohmann/json.hpp>

namespace rail::ctl
{
namespace
{

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr int kIndent = 2;

std::string Dump(const Json &json)
{
	return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json Top()
{
	return {{"schema", kSchema}};
}

template <typename T> Json OrNull(const std::optional<T> &value)
{
	return value ? Json(*value) : Json(nullptr);
}

template <typename List, typename Function> Json Array(const List &list, Function function)
{
	Json array = Json::array();

	for (const auto &item : list)
		array.push_back(function(item));
	return array;
}

Json Of(const Device &d)
{
	return {{"name", d.name},     {"node", d.node()},
		{"remote", d.remote}, {"session", d.session},
		{"access", d.access}, {"state", d.state},
		{"bytes", d.bytes},   {"poll_queues", d.poll_queues}};
}

Json Of(const Path &p)
{
	return {{"name", p.name},
		{"state", p.state},
		{"source", p.src},
		{"destination", p.dst},
		{"rdma_device", p.hca},
		{"rdma_port", p.hca_port},
		{"latency_ns", p.latency_ns},
		{"reads", p.reads},
		{"read_bytes", p.read_bytes},
		{"writes", p.writes},
		{"write_bytes", p.write_bytes},
		{"in_flight", p.in_flight},
		{"failed_over", p.failed_over},
		{"reconnects", p.reconnects},
		{"failed_reconnects", p.failed_reconnects}};
}

Json Of(const Session &s)
{
	return {{"name", s.name},
		{"policy", s.policy},
		{"max_reconnect_attempts", OrNull(s.max_reconnects)},
		{"no_path_timeout", OrNull(s.no_path_timeout)},
		{"paths", Array(s.paths, [](const Path &p) { return Of(p); })}};
}

Json Of(const Mapping &m)
{
	return {{"device", m.device},
		{"session", m.session},
		{"remote", m.remote},
		{"access", m.access},
		{"read_only", m.read_only}};
}

Json Of(const ServerPath &p)
{
	return {{"name", p.name},
		{"source", p.src},
		{"destination", p.dst},
		{"rdma_device", p.hca},
		{"rdma_port", p.hca_port},
		{"reads", p.reads},
		{"read_bytes", p.read_bytes},
		{"writes", p.writes},
		{"write_bytes", p.write_bytes}};
}

Json Of(const NfsTransport &t)
{
	return {{"connects", t.connects},
		{"idle_seconds", t.idle_s},
		{"sends", t.sends},
		{"receives", t.receives},
		{"bad_xids", t.bad_xids},
		{"read_chunks", t.read_chunks},
		{"write_chunks", t.write_chunks},
		{"reply_chunks", t.reply_chunks},
		{"rdma_sent_bytes", t.rdma_sent},
		{"rdma_received_bytes", t.rdma_received},
		{"failed_sends", t.failed_sends},
		{"bad_replies", t.bad_replies},
		{"long_calls", t.long_calls},
		{"regions_replaced", t.regions_replaced}};
}

Json Of(const NfsMount &m)
{
	return {{"source", m.source},
		{"where", m.where},
		{"type", m.type},
		{"options", m.options},
		{"operations", m.operations},
		{"retransmits", m.retransmits},
		{"timeouts", m.timeouts},
		{"transports", Array(m.transports, [](const NfsTransport &t) { return Of(t); })}};
}

Json Of(const Histogram &h)
{
	return {{"count", h.count}, {"sum", h.sum},   {"p50", h.p50},        {"p90", h.p90},
		{"p99", h.p99},     {"p999", h.p999}, {"buckets", h.buckets}};
}

const char *KindName(Stats::Kind kind)
{
	switch (kind) {
	case Stats::kDevice:
		return "device";
	case Stats::kMapping:
		return "mapping";
	case Stats::kRdma:
		break;
	}
	return "rdma";
}

Json Of(const Stats &s)
{
	Json histograms = Json::object();
	Json counters = Json::object();

	for (const auto &[name, value] : s.numbers.counters)
		counters[name] = value;
	for (const auto &[name, histogram] : s.numbers.histograms)
		histograms[name] = Of(histogram);
	return {{"kind", KindName(s.kind)},
		{"name", s.name},
		{"session", s.session},
		{"counters", counters},
		{"histograms", histograms}};
}

const char *LevelName(Finding::Level level)
{
	switch (level) {
	case Finding::kOk:
		return "ok";
	case Finding::kNote:
		return "note";
	case Finding::kBad:
		break;
	}
	return "bad";
}

const char *ChangeName(Step::Change change)
{
	switch (change) {
	case Step::kAdd:
		return "add";
	case Step::kChange:
		return "change";
	case Step::kRemove:
		break;
	}
	return "remove";
}

// The modules' own JSON; whatever is not as it should be counts as 0.
std::uint64_t Number(const Json &object, const char *key)
{
	const auto found = object.find(key);

	return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>()
								    : 0;
}

Histogram ReadHistogram(const Json &json)
{
	Histogram h;

	h.count = Number(json, "count");
	h.sum = Number(json, "sum");
	h.p50 = Number(json, "p50");
	h.p90 = Number(json, "p90");
	h.p99 = Number(json, "p99");
	h.p999 = Number(json, "p999");
	const auto buckets = json.find("buckets");
	if (buckets == json.end() || !buckets->is_array())
		return h;
	for (const Json &pair : *buckets)
		if (pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
		    pair[1].is_number_unsigned())
			h.buckets.emplace_back(pair[0].get<std::uint64_t>(),
					       pair[1].get<std::uint64_t>());
	return h;
}

} // namespace

std::optional<Counters> ParseCounters(const std::string &text)
{
	const Json json = Json::parse(text, nullptr, false);
	Counters counters;

	if (!json.is_object())
		return std::nullopt;
	const auto plain = json.find("counters");
	if (plain == json.end() || !plain->is_object())
		return std::nullopt;
	for (const auto &[name, value] : plain->items())
		if (value.is_number_unsigned())
			counters.counters[name] = value.get<std::uint64_t>();
	const auto histograms = json.find("histograms");
	if (histograms != json.end() && histograms->is_object())
		for (const auto &[name, value] : histograms->items())
			if (value.is_object())
				counters.histograms[name] = ReadHistogram(value);
	return counters;
}

std::string DevicesJson(const std::vector<Device> &devices)
{
	Json top = Top();

	top["devices"] = Array(devices, [](const Device &d) { return Of(d); });
	return Dump(top);
}

std::string SessionsJson(const std::vector<Session> &sessions)
{
	Json top = Top();

	top["sessions"] = Array(sessions, [](const Session &s) { return Of(s); });
	return Dump(top);
}

std::string DeviceJson(const Device &device, const Session *session,
		       const std::vector<std::string> &users)
{
	Json top = Top();

	top["device"] = Of(device);
	top["device"]["users"] = users;
	top["session"] = session ? Of(*session) : Json(nullptr);
	return Dump(top);
}

std::string ServerSessionsJson(const std::vector<ServerSession> &sessions)
{
	Json top = Top();

	top["sessions"] = Array(sessions, [](const ServerSession &s) {
		return Json{
			{"name", s.name},
			{"paths", Array(s.paths, [](const ServerPath &p) { return Of(p); })},
			{"mappings", Array(s.mappings, [](const Mapping &m) { return Of(m); })}};
	});
	return Dump(top);
}

std::string ExportsJson(const std::vector<Export> &exports)
{
	Json top = Top();

	top["exports"] = Array(exports, [](const Export &e) {
		return Json{{"name", e.name},
			    {"device", e.device},
			    {"access", e.access()},
			    {"enabled", e.enabled},
			    {"allow", e.allowed},
			    {"mappings", Array(e.mappings, [](const Mapping &m) { return Of(m); })}};
	});
	return Dump(top);
}

std::string NfsJson(const Nfs &nfs)
{
	Json top = Top();

	top["mounts"] = Array(nfs.mounts, [](const NfsMount &m) { return Of(m); });
	top["client"] = {{"slots", OrNull(nfs.slots)},
			 {"inline_read_bytes", OrNull(nfs.inline_read)},
			 {"inline_write_bytes", OrNull(nfs.inline_write)}};
	top["server"] = {{"ports", nfs.ports}, {"settings_and_counters", nfs.server}};
	return Dump(top);
}

std::string StatsJson(const std::vector<Stats> &stats)
{
	Json top = Top();

	top["stats"] = Array(stats, [](const Stats &s) { return Of(s); });
	return Dump(top);
}

OtherEnd ParseFindings(const std::string &text, const std::string &name)
{
	OtherEnd other;

	try {
		const Json top = Json::parse(text);

		other.version = top.at("version");
		for (const Json &f : top.at("findings"))
			other.findings.push_back({f.at("level") == LevelName(Finding::kBad)
							  ? Finding::kBad
							  : Finding::kNote,
						  f.at("about"), f.at("what"), f.at("mend")});
	} catch (const Json::exception &) {
		throw Error(Exit::kUsage, name, "is not what railctl --json doctor prints",
			    "at the other end: railctl --json doctor >FILE");
	}
	return other;
}

std::string FindingsJson(const std::vector<Finding> &findings, const std::string &version)
{
	Json top = Top();

	top["version"] = version;

	top["findings"] = Array(findings, [](const Finding &f) {
		return Json{{"level", LevelName(f.level)},
			    {"about", f.about},
			    {"what", f.what},
			    {"mend", f.mend}};
	});
	return Dump(top);
}

std::string PlanJson(const Plan &plan, bool done)
{
	Json top = Top();

	top["done"] = done;
	top["steps"] = Array(plan.steps, [](const Step &s) {
		return Json{{"change", ChangeName(s.change)}, {"what", s.text}};
	});
	top["blocked"] = plan.blocked;
	top["kept"] = plan.kept;
	return Dump(top);
}

std::string ChangeJson(const StateChange &change, const std::string &time)
{
	Json top = Top();

	top["time"] = time;
	top["kind"] = change.kind;
	top["name"] = change.name;
	top["was"] = OrNull(change.was);
	top["is"] = OrNull(change.is);
	return top.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ErrorJson(const Error &error)
{
	Json top = Top();

	top["error"] = {{"exit", static_cast<int>(error.exit())},
			{"object", error.object()},
			{"what", error.what_happened()},
			{"next", error.next()}};
	return Dump(top);
}

} // namespace rail::ctl
