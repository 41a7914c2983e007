// SPDX-License-Identifier: GPL-2.0-only
// railctl: NFS mounts, and numbers.
#include <gtest/gtest.h>

#include "fake_root.h"
#include "nfs.h"
#include "stats.h"

namespace rail::ctl
{
namespace
{

const std::string kMountstats =
	"device rootfs mounted on / with fstype rootfs\n"
	"device 192.0.2.1:/export\\040one mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1\n"
	"\topts:\trw,vers=4.2,proto=rdma,port=20049\n"
	"\tage:\t11\n"
	"\txprt:\trdma 0 0 2 0 7 100 99 1 0 0 11 12 13 4096 8192 0 0 0 3 2 5 4 0 6 0 0 0\n"
	"\txprt:\trdma 0 0 1 0 0 1 1 0 0 0 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0\n"
	"\tper-op statistics\n"
	"\t        NULL: 1 1 0 44 24 0 0 0 0\n"
	"\t        READ: 20 23 2 1 2 3 4 5 0\n"
	"\n"
	"device 192.0.2.1:/tcp mounted on /tcp with fstype nfs4 statvers=1.1\n"
	"\txprt:\ttcp 0 0 1 0 7 100 99 1 0 0\n"
	"\tper-op statistics\n"
	"\t        READ: 20 29 2 1 2 3 4 5 0\n";

TEST(Mountstats, MountsOverRdma)
{
	const auto mounts = ParseMountstats(kMountstats);

	ASSERT_EQ(mounts.size(), 1U);
	EXPECT_EQ(mounts[0].source, "192.0.2.1:/export one");
	EXPECT_EQ(mounts[0].where, "/mnt/a b");
	EXPECT_EQ(mounts[0].type, "nfs4");
	EXPECT_EQ(mounts[0].options, "rw,vers=4.2,proto=rdma,port=20049");
	EXPECT_EQ(mounts[0].operations, 21U);
	EXPECT_EQ(mounts[0].retransmits, 3U);
	EXPECT_EQ(mounts[0].timeouts, 2U);
	ASSERT_EQ(mounts[0].transports.size(), 2U);
	const NfsTransport &t = mounts[0].transports[0];
	EXPECT_EQ(t.connects, 2U);
	EXPECT_EQ(t.idle_s, 7U);
	EXPECT_EQ(t.sends, 100U);
	EXPECT_EQ(t.receives, 99U);
	EXPECT_EQ(t.bad_xids, 1U);
	EXPECT_EQ(t.read_chunks, 11U);
	EXPECT_EQ(t.write_chunks, 12U);
	EXPECT_EQ(t.reply_chunks, 13U);
	EXPECT_EQ(t.rdma_sent, 4096U);
	EXPECT_EQ(t.rdma_received, 8192U);
	EXPECT_EQ(t.failed_sends, 3U);
	EXPECT_EQ(t.bad_replies, 2U);
	EXPECT_EQ(t.long_calls, 5U);
	EXPECT_EQ(t.regions_replaced, 4U);
}

TEST(Mountstats, NonsenseIsNoMount)
{
	EXPECT_TRUE(ParseMountstats("").empty());
	EXPECT_TRUE(ParseMountstats("device \n\txprt:\trdma 1\n").empty());
	EXPECT_TRUE(ParseMountstats("\txprt:\trdma 1 2 3\nper-op\nREAD: 1 2 3\n").empty());
	const auto cut =
		ParseMountstats("device a:/b mounted on /c with fstype nfs\n\txprt:\trdma 0");

	ASSERT_EQ(cut.size(), 1U);
	EXPECT_EQ(cut[0].transports.at(0).rdma_sent, 0U);
}

TEST(Nfs, ReadsTheServer)
{
	FakeRoot root;

	root.File("/proc/self/mountstats", kMountstats);
	root.File("/proc/sys/sunrpc/rdma_slot_table_entries", "128\n");
	root.File("/proc/sys/sunrpc/rdma_max_inline_read", "4096\n");
	root.File("/proc/sys/sunrpc/svc_rdma/rdma_stat_recv", "42\n");
	root.File("/proc/sys/sunrpc/svc_rdma/max_requests", "64\n");
	root.File("/proc/fs/nfsd/portlist", "rdma 20049\nrdma6 20050\ntcp 2049\n");
	const Nfs nfs = ReadNfs(root);

	EXPECT_EQ(nfs.mounts.size(), 1U);
	EXPECT_EQ(nfs.slots, 128U);
	EXPECT_EQ(nfs.inline_read, 4096U);
	EXPECT_FALSE(nfs.inline_write);
	EXPECT_EQ(nfs.ports, (std::vector<std::uint64_t>{20049, 20050}));
	EXPECT_EQ(nfs.server.at("rdma_stat_recv"), 42U);
	EXPECT_EQ(nfs.server.size(), 2U);
}

const std::string kIo =
	R"({"counters":{"reads":5,"read_bytes":20480,"writes":6,"err_server":2},)"
	R"("histograms":{"read_ns":{"count":5,"sum":100,"p50":31,"p90":31,"p99":63,)"
	R"("p999":18446744073709551615,"buckets":[[16,4],[32,1]]}}})"
	"\n";

TEST(Counters, Parse)
{
	const auto counters = ParseCounters(kIo);

	ASSERT_TRUE(counters);
	EXPECT_EQ(counters->at("reads"), 5U);
	EXPECT_EQ(counters->at("nothing"), 0U);
	const Histogram *read = counters->histogram("read_ns");
	ASSERT_TRUE(read);
	EXPECT_EQ(read->p99, 63U);
	EXPECT_EQ(read->p999, UINT64_MAX);
	ASSERT_EQ(read->buckets.size(), 2U);
	EXPECT_EQ(read->buckets[1].first, 32U);
	EXPECT_EQ(counters->histogram("write_ns"), nullptr);
}

TEST(Counters, Nonsense)
{
	for (const char *text : {"", "{", "[]", "null", "{}", R"({"counters":[]})"})
		EXPECT_FALSE(ParseCounters(text)) << text;
	const auto odd = ParseCounters(
		R"({"counters":{"a":-1,"b":"x","c":3},"histograms":{"h":{"buckets":[1,[2],[3,4]]},"i":1}})");
	ASSERT_TRUE(odd);
	EXPECT_EQ(odd->counters.size(), 1U);
	EXPECT_EQ(odd->histogram("h")->buckets.size(), 1U);
	EXPECT_EQ(odd->histogram("i"), nullptr);
}

TEST(Stats, OfAllThereIs)
{
	FakeRoot root;

	root.AddDisk("rnbd0", "disk", "s1");
	root.AddDisk("rnbd1", "disk2", "s1");
	root.AddMapping("dm-0", "s2", "vg0/disk");
	root.AddRdma("mlx5_0", "eth0", false);
	root.File("/sys/kernel/debug/rail/rnbd-client/rnbd0/io.json", kIo);
	root.File("/sys/kernel/debug/rail/rnbd-server/vg0!disk@s2/io.json", kIo);
	root.File("/sys/kernel/debug/rail/mlx5_0/stats.json", R"({"counters":{"connects":7}})");
	root.File("/sys/block/rnbd1/stat", "  1 0 2 0   3 0 4 0 0 0 0\n");
	const auto stats = ReadStats(root);

	ASSERT_EQ(stats.size(), 4U);
	EXPECT_EQ(stats[0].name, "rnbd0");
	EXPECT_TRUE(stats[0].latencies);
	EXPECT_EQ(stats[0].numbers.at("reads"), 5U);
	// Without debugfs, the block layer's.
	EXPECT_FALSE(stats[1].latencies);
	EXPECT_EQ(stats[1].numbers.at("reads"), 1U);
	EXPECT_EQ(stats[1].numbers.at("read_bytes"), 1024U);
	EXPECT_EQ(stats[1].numbers.at("writes"), 3U);
	EXPECT_EQ(stats[1].numbers.at("write_bytes"), 2048U);
	EXPECT_EQ(stats[2].kind, Stats::kMapping);
	EXPECT_EQ(stats[2].name, "vg0/disk@s2");
	EXPECT_EQ(stats[3].kind, Stats::kRdma);
	EXPECT_EQ(stats[3].numbers.at("connects"), 7U);
}

} // namespace
} // namespace rail::ctl
