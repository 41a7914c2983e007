// SPDX-License-Identifier: GPL-2.0-only
// railctl: top and watch.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cerrno>

#include "command_test.h"
#include "fake_root.h"
#include "text.h"
#include "top.h"
#include "watch.h"

namespace rail::ctl
{
namespace
{

class Live : public CommandTest
{
protected:
	Live()
	{
		root_.LoadClient();
		root_.LoadServer();
	}

	void AddOne()
	{
		root_.AddSession("s1");
		root_.AddPath("s1", "ip:192.0.2.7", "ip:192.0.2.1");
		root_.AddDisk("rnbd0", "disk", "s1");
		Io(0, "", 0);
	}

	// What rnbd0 has done so far: reads of 4 KiB, how long they took, what is in flight.
	void Io(unsigned int reads, const std::string &buckets, unsigned int in_flight)
	{
		root_.File("/sys/kernel/debug/rail/rnbd-client/rnbd0/io.json",
			   fmt::format(R"({{"counters":{{"reads":{0},"read_bytes":{1}}},)"
				       R"("histograms":{{"read_ns":{{"count":{0},"sum":0,"p50":0,)"
				       R"("p90":0,"p99":0,"p999":0,"buckets":[{2}]}}}}}})",
				       reads, 4096U * reads, buckets));
		root_.File("/sys/block/rnbd0/inflight", fmt::format("  {}  1\n", in_flight));
	}

	// The line of the output that begins with a word, its words.
	std::vector<std::string> Line(const std::string &word)
	{
		for (const std::string &line : Lines(out_))
			if (line.rfind(word, 0) == 0)
				return Words(line);
		ADD_FAILURE() << "no line " << word << " in:\n" << out_;
		return {};
	}
};

Histogram Of(std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets)
{
	Histogram histogram;

	histogram.buckets = std::move(buckets);
	return histogram;
}

TEST(Rates, PercentilesOfTheInterval)
{
	// 1000 slow ones before are of no account.
	const Histogram h = Between(Of({{4096, 1000}}), Of({{64, 50}, {128, 49}, {4096, 1001}}));

	EXPECT_EQ(h.count, 100U);
	EXPECT_EQ(h.p50, 127U);
	EXPECT_EQ(h.p90, 255U);
	EXPECT_EQ(h.p99, 255U);
	EXPECT_EQ(h.p999, 8191U);
	EXPECT_EQ(Between(Of({}), Of({{0, 1}})).p50, 0U);
	EXPECT_EQ(Between(Of({}), Of({{1ULL << 39, 1}})).p50, UINT64_MAX);
	EXPECT_EQ(Between(Of({{64, 5}}), Of({{64, 5}})).count, 0U);
	// Counters that began anew.
	EXPECT_EQ(Between(Of({{64, 500}}), Of({{64, 5}})).count, 5U);
}

TEST(Rates, EachSecond)
{
	Totals before;
	Totals now;

	before.operations = 100;
	now.operations = 300;
	now.read_bytes = 4096;
	now.busy_ms = 1000;
	Rates rates = Between(before, now, 2);
	EXPECT_DOUBLE_EQ(rates.operations, 100);
	EXPECT_DOUBLE_EQ(rates.read_bytes, 2048);
	EXPECT_DOUBLE_EQ(rates.mean_ns, 5e6);
	EXPECT_DOUBLE_EQ(rates.in_flight, 0.5);
	now.in_flight = 7;
	EXPECT_DOUBLE_EQ(Between(before, now, 2).in_flight, 7);
	// Two looks at the same moment, and a counter that began anew.
	EXPECT_DOUBLE_EQ(Between(before, now, 0).operations, 0);
	now.operations = 10;
	EXPECT_DOUBLE_EQ(Between(before, now, 1).operations, 10);
}

TEST(Sparks, AsHighAsTheHighest)
{
	EXPECT_EQ(Spark({0, 1, 4, 8}, 5, true), "  \u2581\u2584\u2588");
	EXPECT_EQ(Spark({0, 1, 4, 8}, 4, false), " .:#");
	EXPECT_EQ(Spark({8, 0.001, 0}, 2, true), "\u2588 ");
	EXPECT_EQ(Spark({}, 3, true), "   ");
	EXPECT_EQ(Columns(Spark({1, 2, 3}, 20, true)), 20U);
}

TEST_F(Live, TopShowsWhatWasDoneBetween)
{
	unsigned int look = 0;

	AddOne();
	root_.on_pause = [&] {
		look++;
		Io(1000 * look, fmt::format("[65536,{}]", 1000 * look), 3);
	};
	EXPECT_EQ(Run({"top", "--count", "2", "--interval", "2"}), 0) << err_;
	EXPECT_EQ(look, 2U);
	EXPECT_EQ(root_.paused_ms, 4000U);
	const auto words = Line("rnbd0");
	ASSERT_GT(words.size(), 12U) << out_;
	EXPECT_EQ(words[1], "open");
	EXPECT_EQ(words[2], "500");
	EXPECT_EQ(words[3], "2.0M");
	EXPECT_EQ(words[4], "-");
	EXPECT_EQ(words[5] + words[6], "131.1us");
	EXPECT_EQ(words[11], "4");
	EXPECT_NE(out_.find("s1 ip:192.0.2.7@ip:192.0.2.1  connected"), std::string::npos) << out_;
}

TEST_F(Live, TopShowsMounts)
{
	const auto stats = [&](unsigned int reads) {
		root_.File(
			"/proc/self/mountstats",
			fmt::format("device srv:/x mounted on /mnt with fstype nfs4 statvers=1.1\n"
				    "\tbytes:\t0 0 0 0 {0} 0 0 0\n"
				    "\txprt:\trdma 0 0 1 0 0 9 9 0 0 0 0 0 0 0 0\n"
				    "\tper-op statistics\n"
				    "\t        READ: {1} {1} 0 100 100 0 0 {2} 0\n",
				    1048576 * reads, reads, 2 * reads));
	};

	stats(100);
	root_.on_pause = [&] { stats(600); };
	EXPECT_EQ(Run({"top", "--count", "1"}), 0) << err_;
	const auto words = Line("/mnt");
	ASSERT_GE(words.size(), 7U) << out_;
	EXPECT_EQ(std::vector<std::string>(words.begin(), words.begin() + 7),
		  (std::vector<std::string>{"/mnt", "500", "500M", "-", "2.0", "ms", "1.0"}));
}

TEST_F(Live, TopWithNothingToShow)
{
	EXPECT_EQ(Run({"top"}), 0) << err_;
	EXPECT_NE(out_.find("nothing is mapped"), std::string::npos) << out_;
	EXPECT_NE(out_.find("railctl doctor"), std::string::npos) << out_;
	EXPECT_EQ(Run({"top", "--json"}), 2);
	EXPECT_NE(err_.find("railctl stats --json"), std::string::npos) << err_;
	EXPECT_EQ(Run({"top", "--interval", "0"}), 2);
}

std::string Text(const std::vector<Line> &lines, bool colour = false)
{
	std::string text;

	for (const Line &line : lines)
		text += LineText(line, colour) + "\n";
	return text;
}

TEST_F(Live, TopFollowsWhatComesAndGoes)
{
	Top top(true);

	AddOne();
	top.Feed(TakeSample(root_));
	root_.AddDisk("rnbd1", kHostile, "s1", "rw", "closed");
	root_.paused_ms = 1000;
	top.Feed(TakeSample(root_));
	std::string all = Text(top.Frame(60));
	EXPECT_NE(all.find("rnbd1"), std::string::npos) << all;
	EXPECT_NE(all.find("closed"), std::string::npos) << all;
	// The block layer's numbers, and a word on why there are no latencies.
	EXPECT_NE(all.find("debugfs"), std::string::npos) << all;
	EXPECT_FALSE(HasControl(LineText(Top(true).Frame(60)[0], false))) << all;
	root_.Remove("/sys/class/rnbd-client/ctl/devices/" + SysfsName(kHostile + "@s1"));
	root_.Remove("/sys/block/rnbd1");
	root_.paused_ms = 2000;
	top.Feed(TakeSample(root_));
	all = Text(top.Frame(60));
	EXPECT_EQ(all.find("rnbd1"), std::string::npos) << all;
	// Colour is asked for.
	EXPECT_EQ(all.find('\033'), std::string::npos);
	EXPECT_NE(Text(top.Frame(60), true).find('\033'), std::string::npos);
	for (const std::string &line : Lines(all))
		EXPECT_LE(Columns(line), line.find("debugfs") == line.npos ? 60U : 100U) << line;
	// Without colour in them: a terminal that is not made of escapes shows them too.
	for (const rail::ctl::Line &line : top.Frame(60))
		for (const Span &span : line)
			EXPECT_FALSE(HasControl(span.text)) << span.text;
}

TEST_F(Live, WatchSaysWhatChanges)
{
	unsigned int look = 0;

	AddOne();
	root_.on_pause = [&] {
		switch (look++) {
		case 0:
			root_.File(
				"/sys/class/rtrs-client/s1/paths/ip:192.0.2.7@ip:192.0.2.1/state",
				"reconnecting\n");
			break;
		case 2:
			root_.AddDisk("rnbd1", kHostile, "s1", "ro");
			break;
		case 3:
			root_.Remove("/sys/class/rnbd-client/ctl/devices/disk@s1");
			root_.Remove("/sys/block/rnbd0");
			break;
		default:
			break;
		}
	};
	EXPECT_EQ(Run({"watch", "--count", "3"}), 0) << err_;
	EXPECT_EQ(look, 4U);
	const auto lines = Lines(out_);
	ASSERT_EQ(lines.size(), 3U) << out_;
	EXPECT_EQ(lines[0].substr(10),
		  "~ path s1 ip:192.0.2.7@ip:192.0.2.1: connected -> reconnecting");
	EXPECT_EQ(lines[1].substr(10),
		  "+ device rnbd1: " + Escape(kHostile) + "@s1 ro, 100.0 MiB, open");
	EXPECT_EQ(lines[2].substr(10), "- device rnbd0: was disk@s1 rw, 100.0 MiB, open");
}

TEST_F(Live, WatchForPrograms)
{
	AddOne();
	root_.on_pause = [&] { root_.AddExport("disk", "/dev/sdb"); };
	EXPECT_EQ(Run({"watch", "--json", "--count", "1"}), 0) << err_;
	EXPECT_EQ(out_.find(R"({"schema":1,"time":")"), 0U) << out_;
	EXPECT_NE(
		out_.find(
			R"("kind":"export","name":"disk","was":null,"is":"/dev/sdb rw, enabled"})"),
		std::string::npos)
		<< out_;
	EXPECT_EQ(out_.find('\n'), out_.size() - 1);
	EXPECT_EQ(err_, "");
}

TEST(Compare, ComeGoneChanged)
{
	const States was = {{{"a", "1"}, "x"}, {{"a", "2"}, "x"}, {{"b", "1"}, "x"}};
	const States is = {{{"a", "2"}, "y"}, {{"a", "3"}, "x"}, {{"b", "1"}, "x"}};
	const auto changes = Compare(was, is);

	ASSERT_EQ(changes.size(), 3U);
	EXPECT_EQ(changes[0].name, "1");
	EXPECT_FALSE(changes[0].is);
	EXPECT_EQ(changes[1].name, "2");
	EXPECT_EQ(changes[1].is, "y");
	EXPECT_EQ(changes[2].name, "3");
	EXPECT_FALSE(changes[2].was);
	EXPECT_TRUE(Compare(is, is).empty());
}

} // namespace
} // namespace rail::ctl
