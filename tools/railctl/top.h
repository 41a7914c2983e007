// SPDX-License-Identifier: GPL-2.0-only
// What devices, paths and mounts do at present: the numbers of two moments, and the frame that
// shows them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "root.h"
#include "screen.h"
#include "stats.h"

namespace rail::ctl
{

// Of one object, counted since it came.
struct Totals {
	std::string state;
	std::uint64_t operations = 0;
	std::uint64_t read_bytes = 0;
	std::uint64_t write_bytes = 0;
	std::uint64_t errors = 0;
	Histogram read_ns;
	Histogram write_ns;
	bool latencies = false;
	std::optional<std::uint64_t> in_flight; // at the moment
	std::uint64_t busy_ms = 0;              // what all operations took together
};

struct Sample {
	enum Group { kDevices, kPaths, kMounts, kMappings, kGroups };

	std::uint64_t ms = 0; // when
	std::array<std::map<std::string, Totals>, kGroups> groups;
};

Sample TakeSample(Root &root);

// Between two samples.
struct Rates {
	std::string state;
	double operations = 0; // these three each second
	double read_bytes = 0;
	double write_bytes = 0;
	std::uint64_t errors = 0; // these since the one before
	Histogram read_ns;
	Histogram write_ns;
	bool latencies = false;
	double in_flight = 0;    // at present, or where that is not known on average
	bool at_present = false; // which of the two
	double mean_ns = 0;      // of all operations; 0: not known
};

// The histogram of what was counted between two, percentiles included.
Histogram Between(const Histogram &before, const Histogram &now);
Rates Between(const Totals &before, const Totals &now, double seconds);

// A line of blocks as high as the values are, the newest to the right; the highest value is the
// full block.
std::string Spark(const std::deque<double> &values, std::size_t columns, bool utf8);

class Top
{
public:
	explicit Top(bool utf8) : utf8_(utf8) {}

	void Feed(Sample sample);
	// columns 0: any number.
	std::vector<Line> Frame(std::size_t columns) const;

private:
	struct Row {
		Rates rates;
		std::deque<double> history; // operations each second
	};

	void AddTable(std::vector<Line> *lines, Sample::Group group, std::size_t columns) const;

	bool utf8_;
	std::optional<Sample> last_;
	std::array<std::map<std::string, Row>, Sample::kGroups> rows_;
};

// Does the user's language write UTF-8?
bool Utf8Terminal();
// The live screen, until the user ends it. In screen_top.cc, which alone knows ncurses.
void ShowTop(Root &root, unsigned int interval_ms, bool colour);

} // namespace rail::ctl
