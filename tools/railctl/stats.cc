// SPDX-License-Identifier: GPL-2.0-only
#include "stats.h"

#include "client.h"
#include "server.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::uint64_t kSector = 512;

bool FromDebugfs(const Root &root, const std::string &file, Stats *stats)
{
	const auto text = root.Read(file);
	auto numbers = text ? ParseCounters(*text) : std::nullopt;

	if (!numbers)
		return false;
	stats->latencies = true;
	stats->numbers = std::move(*numbers);
	return true;
}

// reads, merged, sectors, ms, writes, merged, sectors, ...
void FromBlockLayer(const Root &root, const std::string &disk, Stats *stats)
{
	const auto words = Words(root.Text(Sub(where::kBlock, disk, "stat")));
	const auto number = [&](std::size_t n) {
		return n < words.size() ? ToNumber(words[n]).value_or(0) : 0;
	};

	stats->numbers.counters = {{"reads", number(0)},
				   {"read_bytes", number(2) * kSector},
				   {"writes", number(4)},
				   {"write_bytes", number(6) * kSector}};
}

} // namespace

std::uint64_t Counters::at(const std::string &name) const
{
	const auto found = counters.find(name);

	return found == counters.end() ? 0 : found->second;
}

const Histogram *Counters::histogram(const std::string &name) const
{
	const auto found = histograms.find(name);

	return found == histograms.end() ? nullptr : &found->second;
}

std::vector<Stats> ReadStats(const Root &root)
{
	std::vector<Stats> all;

	for (const Device &device : Devices(root)) {
		Stats stats{Stats::kDevice, device.name, device.session, false, {}};

		if (!FromDebugfs(root, Sub(where::kDebug, "rnbd-client", device.name, "io.json"),
				 &stats))
			FromBlockLayer(root, device.name, &stats);
		all.push_back(std::move(stats));
	}
	for (const Mapping &mapping : Mappings(root)) {
		const std::string name = mapping.remote + "@" + mapping.session;
		const std::string dir = SysfsName(name);
		Stats stats{Stats::kMapping, name, mapping.session, false, {}};

		if (FromDebugfs(root, Sub(where::kDebug, "rnbd-server", dir, "io.json"), &stats))
			all.push_back(std::move(stats));
	}
	for (const std::string &name : root.List(where::kRdma)) {
		Stats stats{Stats::kRdma, name, "", false, {}};

		if (FromDebugfs(root, Sub(where::kDebug, name, "stats.json"), &stats))
			all.push_back(std::move(stats));
	}
	return all;
}

} // namespace rail::ctl
