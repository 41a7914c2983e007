// SPDX-License-Identifier: GPL-2.0-only
#include "top.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "client.h"
#include "nfs.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::size_t kHistory = 60;
// Of a wide terminal, and of one that is not.
constexpr std::size_t kSparkColumns = 20;
constexpr std::size_t kFewSparkColumns = 10;
constexpr std::size_t kWide = 110;
// The last bucket of the modules begins there, and has no end.
constexpr std::uint64_t kLastBucket = 1ULL << 39;

// Buckets are powers of two: the highest value that one counts.
std::uint64_t Edge(std::uint64_t lowest)
{
	if (lowest >= kLastBucket)
		return UINT64_MAX;
	return lowest ? 2 * lowest - 1 : 0;
}

std::uint64_t Percentile(const Histogram &histogram, double share)
{
	auto rank =
		static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(histogram.count)));

	for (const auto &[lowest, count] : histogram.buckets) {
		if (count >= rank)
			return Edge(lowest);
		rank -= count;
	}
	return 0;
}

// A counter that has become less has begun anew.
std::uint64_t Grown(std::uint64_t before, std::uint64_t now)
{
	return now < before ? now : now - before;
}

Totals Of(const Stats &stats)
{
	Totals totals;

	totals.operations = stats.numbers.at("reads") + stats.numbers.at("writes");
	totals.read_bytes = stats.numbers.at("read_bytes");
	totals.write_bytes = stats.numbers.at("write_bytes");
	totals.latencies = stats.latencies;
	for (const auto &[name, value] : stats.numbers.counters)
		if (name.rfind("err_", 0) == 0)
			totals.errors += value;
	if (const Histogram *read = stats.numbers.histogram("read_ns"))
		totals.read_ns = *read;
	if (const Histogram *write = stats.numbers.histogram("write_ns"))
		totals.write_ns = *write;
	return totals;
}

void AddDevices(const Root &root, Sample *sample)
{
	std::map<std::string, std::string> states;

	for (const Device &device : Devices(root))
		states[device.name] = device.state;
	for (const Stats &stats : ReadStats(root)) {
		if (stats.kind == Stats::kRdma)
			continue;
		Totals totals = Of(stats);

		if (stats.kind == Stats::kMapping) {
			sample->groups[Sample::kMappings][stats.name] = totals;
			continue;
		}
		const auto reads_writes =
			Words(root.Text(Sub(where::kBlock, stats.name, "inflight")));
		if (reads_writes.size() == 2)
			totals.in_flight = ToNumber(reads_writes[0]).value_or(0) +
					   ToNumber(reads_writes[1]).value_or(0);
		totals.state = states[stats.name];
		sample->groups[Sample::kDevices][stats.name] = totals;
	}
}

void AddPaths(const Root &root, Sample *sample)
{
	for (const Session &session : Sessions(root))
		for (const Path &path : session.paths) {
			Totals totals;

			totals.state = path.state;
			totals.operations = path.reads + path.writes;
			totals.read_bytes = path.read_bytes;
			totals.write_bytes = path.write_bytes;
			totals.in_flight = path.in_flight;
			sample->groups[Sample::kPaths][session.name + " " + path.name] = totals;
		}
}

void AddMounts(const Root &root, Sample *sample)
{
	for (const NfsMount &mount : ReadNfs(root).mounts) {
		Totals totals;

		totals.operations = mount.operations;
		totals.errors = mount.retransmits;
		totals.read_bytes = mount.read_bytes;
		totals.write_bytes = mount.write_bytes;
		totals.busy_ms = mount.busy_ms;
		sample->groups[Sample::kMounts][mount.where] = totals;
	}
}

std::string Count(double value)
{
	if (value < 0.05)
		return "-";
	if (value < 9.95)
		return fmt::format("{:.1f}", value);
	if (value < 9999.5)
		return fmt::format("{:.0f}", value);
	if (value < 999.95e3)
		return fmt::format("{:.1f}k", value / 1e3);
	return fmt::format("{:.1f}M", value / 1e6);
}

// In five columns: "252M"
std::string Bytes(double value)
{
	constexpr std::string_view kUnits = "BKMGTPE";
	std::size_t unit = 0;

	if (value < 0.5)
		return "-";
	for (; value >= 999.5 && unit + 1 < kUnits.size(); value /= 1024)
		unit++;
	return fmt::format("{:.{}f}{}", value, unit && value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string Latency(const Histogram &histogram, std::uint64_t Histogram::*field)
{
	if (!histogram.count)
		return "-";
	return histogram.*field == UINT64_MAX ? "> 9 min" : NanosecondsText(histogram.*field);
}

Cell State(const std::string &state)
{
	if (state == "open" || state == "connected")
		return {state, Tint::kGood};
	if (state == "connecting" || state == "reconnecting")
		return {state, Tint::kWarn};
	return {state, Tint::kBad};
}

struct Shape {
	std::string_view title;
	bool state;
	bool percentiles;
	bool mean;
	bool in_flight;
	std::string_view errors;
};

constexpr std::array<Shape, Sample::kGroups> kShapes = {{
	{"DEVICE", true, true, false, true, "ERRORS"},
	{"PATH", true, false, false, true, ""},
	{"MOUNT", false, false, true, true, "RESENT"},
	{"CLIENTS' MAPPING", false, true, false, false, "ERRORS"},
}};

} // namespace

Sample TakeSample(Root &root)
{
	Sample sample;

	sample.ms = root.NowMs();
	AddDevices(root, &sample);
	AddPaths(root, &sample);
	AddMounts(root, &sample);
	return sample;
}

Histogram Between(const Histogram &before, const Histogram &now)
{
	const std::map<std::uint64_t, std::uint64_t> old(before.buckets.begin(),
							 before.buckets.end());
	Histogram between;

	between.sum = Grown(before.sum, now.sum);
	for (const auto &[lowest, count] : now.buckets) {
		const auto found = old.find(lowest);
		const std::uint64_t grown = Grown(found == old.end() ? 0 : found->second, count);

		if (!grown)
			continue;
		between.count += grown;
		between.buckets.emplace_back(lowest, grown);
	}
	between.p50 = Percentile(between, 0.5);
	between.p90 = Percentile(between, 0.9);
	between.p99 = Percentile(between, 0.99);
	between.p999 = Percentile(between, 0.999);
	return between;
}

Rates Between(const Totals &before, const Totals &now, double seconds)
{
	const std::uint64_t operations = Grown(before.operations, now.operations);
	const std::uint64_t busy = Grown(before.busy_ms, now.busy_ms);
	Rates rates;

	rates.state = now.state;
	rates.latencies = now.latencies;
	rates.errors = Grown(before.errors, now.errors);
	rates.read_ns = Between(before.read_ns, now.read_ns);
	rates.write_ns = Between(before.write_ns, now.write_ns);
	if (operations)
		rates.mean_ns = static_cast<double>(busy) * 1e6 / static_cast<double>(operations);
	if (seconds > 0) {
		rates.operations = static_cast<double>(operations) / seconds;
		rates.read_bytes =
			static_cast<double>(Grown(before.read_bytes, now.read_bytes)) / seconds;
		rates.write_bytes =
			static_cast<double>(Grown(before.write_bytes, now.write_bytes)) / seconds;
		// As many as there were at once on average took that time together (Little's law).
		rates.in_flight = static_cast<double>(busy) / 1e3 / seconds;
	}
	rates.at_present = now.in_flight.has_value();
	if (now.in_flight)
		rates.in_flight = static_cast<double>(*now.in_flight);
	return rates;
}

std::string Spark(const std::deque<double> &values, std::size_t columns, bool utf8)
{
	constexpr std::array<std::string_view, 9> kBlocks = {" ",      "\u2581", "\u2582",
							     "\u2583", "\u2584", "\u2585",
							     "\u2586", "\u2587", "\u2588"};
	constexpr std::array<std::string_view, 9> kSigns = {" ", ".", ".", ":", ":",
							    "+", "+", "#", "#"};
	const std::size_t shown = std::min(values.size(), columns);
	std::string spark(columns - shown, ' ');
	double highest = 0;

	for (std::size_t i = values.size() - shown; i < values.size(); i++)
		highest = std::max(highest, values[i]);
	for (std::size_t i = values.size() - shown; i < values.size(); i++) {
		std::size_t level = 0;

		// Anything at all is to be seen.
		if (values[i] > 0)
			level = static_cast<std::size_t>(std::ceil(8 * values[i] / highest));
		spark += utf8 ? kBlocks.at(level) : kSigns.at(level);
	}
	return spark;
}

void Top::Feed(Sample sample)
{
	for (std::size_t group = 0; group < sample.groups.size(); group++) {
		auto &rows = rows_.at(group);

		// What has gone goes from the screen too.
		for (auto row = rows.begin(); row != rows.end();)
			row = sample.groups.at(group).count(row->first) ? std::next(row)
									: rows.erase(row);
		for (const auto &[name, now] : sample.groups.at(group)) {
			Row &row = rows[name];
			const Totals *before = nullptr;
			double seconds = 0;

			if (last_) {
				const auto &old = last_->groups.at(group);
				const auto found = old.find(name);

				before = found == old.end() ? nullptr : &found->second;
				seconds = static_cast<double>(sample.ms - last_->ms) / 1e3;
			}
			// Without an earlier moment nothing has been done yet.
			row.rates = Between(before ? *before : now, now, seconds);
			if (!before)
				continue;
			row.history.push_back(row.rates.operations);
			if (row.history.size() > kHistory)
				row.history.pop_front();
		}
	}
	last_ = std::move(sample);
}

void Top::AddTable(std::vector<Line> *lines, Sample::Group group, std::size_t columns) const
{
	const Shape &shape = kShapes.at(group);
	std::vector<Column> titles = {{std::string(shape.title), Column::kFlexible}};

	if (shape.state)
		titles.push_back({"STATE"});
	titles.push_back({"OPS/S", Column::kNumber});
	titles.push_back({"READ/S", Column::kNumber});
	titles.push_back({"WRITE/S", Column::kNumber});
	// In the order in which they go when room is short: P50, the blocks, P99.
	if (shape.percentiles) {
		titles.push_back({"READ P50", Column::kNumber, 3});
		titles.push_back({"READ P99", Column::kNumber, 1});
		titles.push_back({"WRITE P50", Column::kNumber, 3});
		titles.push_back({"WRITE P99", Column::kNumber, 1});
	}
	if (shape.mean)
		titles.push_back({"MEAN", Column::kNumber, 1});
	if (shape.in_flight)
		titles.push_back({"IN FLIGHT", Column::kNumber});
	if (!shape.errors.empty())
		titles.push_back({std::string(shape.errors), Column::kNumber});
	titles.push_back({"OPS/S BEFORE", Column::kNumber, 2});
	Table table(std::move(titles));
	const std::size_t blocks = !columns || columns >= kWide ? kSparkColumns : kFewSparkColumns;

	std::vector<std::string> names;
	for (const auto &[name, row] : rows_.at(group))
		names.push_back(name);
	std::sort(names.begin(), names.end(), NaturalLess);
	for (const std::string &name : names) {
		const Row &row = rows_.at(group).at(name);
		const Rates &r = row.rates;
		std::vector<Cell> cells = {{name}};

		if (shape.state)
			cells.push_back(State(r.state));
		cells.emplace_back(Count(r.operations));
		cells.emplace_back(Bytes(r.read_bytes));
		cells.emplace_back(Bytes(r.write_bytes));
		if (shape.percentiles) {
			cells.emplace_back(Latency(r.read_ns, &Histogram::p50));
			cells.emplace_back(Latency(r.read_ns, &Histogram::p99));
			cells.emplace_back(Latency(r.write_ns, &Histogram::p50));
			cells.emplace_back(Latency(r.write_ns, &Histogram::p99));
		}
		if (shape.mean)
			cells.emplace_back(
				r.mean_ns > 0
					? NanosecondsText(static_cast<std::uint64_t>(r.mean_ns))
					: "-");
		if (shape.in_flight)
			cells.emplace_back(r.at_present ? std::to_string(static_cast<unsigned int>(
								  r.in_flight))
							: Count(r.in_flight));
		if (!shape.errors.empty())
			cells.emplace_back(Count(static_cast<double>(r.errors)),
					   r.errors ? Tint::kBad : Tint::kNone);
		cells.emplace_back(Spark(row.history, blocks, utf8_), Tint::kAccent);
		table.Row(std::move(cells));
	}
	if (table.empty())
		return;
	if (!lines->empty())
		lines->emplace_back();
	for (Line &line : table.Lines(columns))
		lines->push_back(std::move(line));
}

std::vector<Line> Top::Frame(std::size_t columns) const
{
	std::vector<Line> lines;
	bool blind = false;

	for (std::size_t group = 0; group < rows_.size(); group++)
		AddTable(&lines, static_cast<Sample::Group>(group), columns);
	for (const auto &[name, row] : rows_.at(Sample::kDevices))
		blind |= !row.rates.latencies;
	if (lines.empty())
		lines = {{{"nothing is mapped, exported to a client, or mounted over RDMA"}},
			 {{"railctl doctor says what is not as it should be"}}};
	if (blind) {
		lines.emplace_back();
		lines.push_back({{"latencies are in debugfs, which cannot be read: be root, mount "
				  "-t debugfs none /sys/kernel/debug"}});
	}
	return lines;
}

} // namespace rail::ctl
