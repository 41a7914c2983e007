// SPDX-License-Identifier: GPL-2.0-only
// Counters and latencies, as the modules have them in debugfs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct Histogram {
	std::uint64_t count = 0;
	std::uint64_t sum = 0;
	std::uint64_t p50 = 0;
	std::uint64_t p90 = 0;
	std::uint64_t p99 = 0;
	std::uint64_t p999 = 0;
	std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets; // lowest value, count
};

struct Counters {
	std::map<std::string, std::uint64_t> counters;
	std::map<std::string, Histogram> histograms;

	std::uint64_t at(const std::string &name) const;
	const Histogram *histogram(const std::string &name) const;
};

struct Stats {
	enum Kind { kDevice, kMapping, kRdma };

	Kind kind = kDevice;
	std::string name; // rnbd0; REMOTE@SESSION at the server; the RDMA device
	std::string session;
	bool latencies = false; // false: debugfs cannot be read, numbers are the block layer's
	Counters numbers;
};

// A file *.json of debugfs; nullopt: that it is not.
std::optional<Counters> ParseCounters(const std::string &text);
// Of everything there is.
std::vector<Stats> ReadStats(const Root &root);

} // namespace rail::ctl
