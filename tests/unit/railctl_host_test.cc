// SPDX-License-Identifier: GPL-2.0-only
// railctl: RDMA devices and doctor.
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor.h"
#include "error.h"
#include "fake_root.h"
#include "rdma.h"

namespace rail::ctl
{
namespace
{

constexpr const char *kDep = "/lib/modules/6.1.0-9-amd64/modules.dep";

// A host on which all is well.
class Host : public testing::Test
{
protected:
	Host()
	{
		root_.File("/proc/sys/kernel/osrelease", "6.1.0-9-amd64\n");
		root_.File("/proc/self/limits", "Limit Soft Limit Hard Limit Units\n"
						"Max locked memory         unlimited            "
						"unlimited            bytes\n");
		root_.File("/proc/mounts", "none /sys/kernel/config configfs rw 0 0\n"
					   "none /sys/kernel/debug debugfs rw 0 0\n");
		root_.File("/sys/class/net/eth0/mtu", "9000\n");
		root_.AddRdma("mlx5_0", "eth0", false);
		for (const char *module : {"rail-verbs", "rtrs-core", "rtrs-client", "rtrs-server",
					   "rnbd-client", "rnbd-server", "rpcrdma"})
			Install(module);
		for (const char *module : {"rail_verbs", "rtrs_core", "rtrs_client", "rnbd_client"})
			Load(module);
		root_.LoadClient();
	}

	void Install(const std::string &module, const std::string &where = "updates/drivers/")
	{
		dep_ += where + module + ".ko.xz: kernel/net/foo.ko\n";
		root_.File(kDep, dep_);
	}

	void Load(const std::string &module)
	{
		root_.File("/sys/module/" + module + "/version", "0.1.0\n");
		root_.File("/sys/module/" + module + "/taint", "OE\n");
		if (module != "rail_verbs")
			root_.Dir("/sys/module/rail_verbs/holders/" + module);
	}

	std::vector<Finding> Bad() const
	{
		auto findings = Examine(root_, "0.1.0");

		findings.erase(
			std::remove_if(findings.begin(), findings.end(),
				       [](const Finding &f) { return f.level != Finding::kBad; }),
			findings.end());
		return findings;
	}

	// The only thing that is wrong; "ABOUT: WHAT | MEND".
	std::string OnlyBad() const
	{
		std::string text;

		for (const Finding &finding : Bad())
			text += (text.empty() ? "" : "\n") + finding.about + ": " + finding.what +
				" | " + finding.mend;
		return text;
	}

	bool Notes(const std::string &about) const
	{
		const auto findings = Examine(root_, "0.1.0");

		return std::any_of(findings.begin(), findings.end(), [&](const Finding &f) {
			return f.level == Finding::kNote && f.about == about && !f.mend.empty();
		});
	}

	FakeRoot root_;
	std::string dep_;
};

TEST_F(Host, AllIsWell)
{
	EXPECT_EQ(OnlyBad(), "");
	EXPECT_TRUE(Notes("rnbd_server")); // may be loaded, and is not
	EXPECT_FALSE(Notes("memlock"));
	EXPECT_FALSE(Notes("mlx5_0/1"));
}

TEST_F(Host, TheKernelsOwnIsLoaded)
{
	root_.Remove("/sys/module/rail_verbs/holders/rnbd_client");
	root_.Remove("/sys/module/rnbd_client/version");
	EXPECT_EQ(OnlyBad(), "rnbd_client: the kernel's own is loaded, not RAIL's | "
			     "modprobe -r rnbd_client && modprobe rnbd_client");
}

TEST_F(Host, OneThatDoesNotUseVerbsIsKnownByItsVersion)
{
	root_.Remove("/sys/module/rail_verbs/holders/rtrs_core");
	EXPECT_EQ(OnlyBad(), "");
	root_.File("/sys/module/rtrs_core/taint", "\n");
	EXPECT_NE(OnlyBad().find("rtrs_core: the kernel's own"), std::string::npos);
}

TEST_F(Host, TheKernelsOwnIsInTheWay)
{
	dep_ = "";
	Install("rail_verbs");
	Install("rpcrdma", "kernel/net/sunrpc/xprtrdma/");
	EXPECT_EQ(OnlyBad(), "rpcrdma: modprobe would load the kernel's own, "
			     "kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz | "
			     "make && make install (in RAIL's source tree), then depmod -a");
}

TEST_F(Host, NothingIsInstalled)
{
	root_.Remove(kDep);
	EXPECT_EQ(OnlyBad(), "modules: RAIL's are not installed for Linux 6.1.0-9-amd64 | "
			     "make && make install (in RAIL's source tree)");
	// The package's sources are there: headers are what is missing.
	root_.File("/usr/src/rail-0.1.0/dkms.conf", "");
	EXPECT_EQ(OnlyBad(), "modules: RAIL's are not installed for Linux 6.1.0-9-amd64 | "
			     "apt install linux-headers-6.1.0-9-amd64 && "
			     "dkms autoinstall -k 6.1.0-9-amd64");
}

TEST_F(Host, NothingIsLoaded)
{
	root_.Remove("/sys/module");
	EXPECT_EQ(
		OnlyBad(),
		"modules: none of RAIL's is loaded | modprobe rnbd_client, rnbd_server or rpcrdma");
}

TEST_F(Host, VersionsDiffer)
{
	root_.File("/sys/module/rtrs_core/version", "0.0.9\n");
	EXPECT_EQ(OnlyBad(), "rtrs_core: is of version 0.0.9, railctl of version 0.1.0 | "
			     "modprobe -r rtrs_core && modprobe rtrs_core");
}

TEST_F(Host, NoDevice)
{
	root_.Remove("/sys/class/infiniband");
	EXPECT_EQ(OnlyBad(), "rdma: there is no RDMA device | "
			     "railctl rxe up NETDEV (or load the driver of the card)");
}

TEST_F(Host, PortDown)
{
	root_.File("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	EXPECT_EQ(OnlyBad(), "mlx5_0/1: the port is DOWN on eth0 | ip link set dev eth0 up");
	// Another one is up: this one may be without a cable.
	root_.AddRdma("mlx5_1", "eth0", false);
	EXPECT_EQ(OnlyBad(), "");
	EXPECT_TRUE(Notes("mlx5_0/1"));
}

TEST_F(Host, Mtu)
{
	root_.File("/sys/class/net/eth0/mtu", "1500\n");
	EXPECT_EQ(OnlyBad(), "");
	EXPECT_TRUE(Notes("mlx5_0/1"));
	root_.File("/sys/class/net/eth0/mtu", "300\n");
	EXPECT_NE(OnlyBad().find("mlx5_0/1: MTU 300"), std::string::npos);
	EXPECT_EQ(RdmaMtu(9000), 4096U);
	EXPECT_EQ(RdmaMtu(4200), 4096U);
	EXPECT_EQ(RdmaMtu(4096), 2048U);
	EXPECT_EQ(RdmaMtu(1500), 1024U);
	EXPECT_EQ(RdmaMtu(0), 0U);
}

TEST_F(Host, LockedMemory)
{
	root_.File("/proc/self/limits",
		   "Max locked memory         65536                65536                bytes\n");
	EXPECT_TRUE(Notes("memlock"));
	EXPECT_EQ(OnlyBad(), "");
}

TEST_F(Host, FileSystemsAreNotMounted)
{
	root_.File("/proc/mounts", "");
	Load("rnbd_server");
	EXPECT_EQ(OnlyBad(), "configfs: is not mounted, so nothing can be exported | "
			     "mount -t configfs none /sys/kernel/config");
	EXPECT_TRUE(Notes("debugfs"));
}

TEST_F(Host, ClosedDeviceAndPathDown)
{
	root_.AddSession("s1");
	root_.AddPath("s1", "ip:192.0.2.7", "ip:192.0.2.1", "reconnecting");
	root_.AddDisk("rnbd0", "disk", "s1", "rw", "closed");
	EXPECT_EQ(OnlyBad(), "s1: path ip:192.0.2.7@ip:192.0.2.1 is reconnecting | "
			     "railctl path connect s1 ip:192.0.2.7@ip:192.0.2.1\n"
			     "rnbd0: is closed: its I/O waits or fails | railctl remap rnbd0");
}

TEST_F(Host, OpenToAll)
{
	root_.File("/sys/module/rnbd_server/parameters/dev_search_path", "/dev\n");
	Load("rnbd_server");
	EXPECT_NE(OnlyBad().find("dev_search_path: every host that reaches the port may map"),
		  std::string::npos);
	root_.File("/sys/module/rnbd_server/parameters/dev_search_path", "(null)\n");
	EXPECT_EQ(OnlyBad(), "");
}

TEST_F(Host, Exports)
{
	root_.LoadServer();
	Load("rnbd_server");
	root_.AddBlockDevice("/dev/sdb");
	root_.AddExport("good", "/dev/sdb", true, {"host-*"});
	root_.AddExport("nobody", "/dev/sdb", true);
	root_.AddExport("off", "/dev/sdb", false, {"host-*"});
	EXPECT_EQ(OnlyBad(), "");
	EXPECT_TRUE(Notes("nobody"));
	EXPECT_TRUE(Notes("off"));
	root_.AddExport("gone", "/dev/sdc", true, {"host-*"});
	EXPECT_EQ(OnlyBad(), "gone: its device /dev/sdc is not there | railctl export remove gone");
}

TEST_F(Host, RxeUp)
{
	root_.on_run = [&] {
		if (root_.log.back().find("modprobe") != std::string::npos)
			root_.Dir("/sys/module/rdma_rxe");
	};
	EXPECT_EQ(RxeAdd(root_, "eth0", "").device, "rxe_eth0");
	EXPECT_EQ(root_.log,
		  (std::vector<std::string>{"run modprobe rdma_rxe",
					    "run rdma link add rxe_eth0 type rxe netdev eth0"}));
	EXPECT_EQ(RxeAdd(root_, "eth0", "soft").device, "soft");
	EXPECT_EQ(root_.log.size(), 3U);
	root_.AddRdma("rxe_eth0", "eth0");
	const RxeUp again = RxeAdd(root_, "eth0", "");
	EXPECT_FALSE(again.made);
	EXPECT_EQ(again.device, "rxe_eth0");
	EXPECT_EQ(root_.log.size(), 3U);
}

TEST_F(Host, RxeUpRefused)
{
	EXPECT_EQ(Thrown([&] { RxeAdd(root_, "eth7", ""); }).exit(), Exit::kMissing);
	for (const char *netdev : {"", "..", "../net/eth0", "eth0/mtu"})
		EXPECT_EQ(Thrown([&] { RxeAdd(root_, netdev, ""); }).exit(), Exit::kMissing)
			<< netdev;
	for (const char *name : {"-x", "a/b", "a\nb"})
		EXPECT_EQ(Thrown([&] { RxeAdd(root_, "eth0", name); }).exit(), Exit::kUsage)
			<< name;
	EXPECT_EQ(Thrown([&] { RxeAdd(root_, "eth0", "mlx5_0"); }).exit(), Exit::kExists);
	EXPECT_TRUE(root_.log.empty());
	root_.ran = {1, "error: Operation not permitted\nsecond line\n"};
	const Error error = Thrown([&] { RxeAdd(root_, "eth0", ""); });
	EXPECT_EQ(error.exit(), Exit::kRoot);
	EXPECT_EQ(error.what_happened().find("second"), std::string::npos);
	root_.ran = {1, "error: Invalid argument\n"};
	EXPECT_EQ(Thrown([&] { RxeAdd(root_, "eth0", ""); }).exit(), Exit::kFailed);
	root_.ran = {127, ""};
	EXPECT_EQ(Thrown([&] { RxeAdd(root_, "eth0", ""); }).next(), "apt install kmod");
}

TEST_F(Host, RxeDown)
{
	root_.AddRdma("soft", "eth1");
	EXPECT_EQ(RxeRemove(root_, "eth1"), "soft");
	EXPECT_EQ(root_.log.back(), "run rdma link delete soft");
	EXPECT_EQ(RxeRemove(root_, "soft"), "soft");
	// A card is nothing to be taken down, by either name.
	EXPECT_EQ(Thrown([&] { RxeRemove(root_, "mlx5_0"); }).exit(), Exit::kUsage);
	EXPECT_EQ(Thrown([&] { RxeRemove(root_, "eth0"); }).exit(), Exit::kMissing);
	EXPECT_EQ(root_.log.size(), 2U);
}

TEST(Programs, RunWithoutAShell)
{
	Root root;

	EXPECT_EQ(root.Run({"true"}).status, 0);
	EXPECT_EQ(root.Run({"false"}).status, 1);
	EXPECT_EQ(root.Run({"rail-no-such-program"}).status, 127);
	const Ran ran = root.Run({"printf", "%s", "$(exit 3); `true` *"});
	EXPECT_EQ(ran.status, 0);
	EXPECT_EQ(ran.err, "$(exit 3); `true` *");
}

TEST_F(Host, ServersThatAnswer)
{
	root_.reach = {{"192.0.2.1 1234", Reach::kAnswers},
		       {"192.0.2.1 20049", Reach::kNobodyListens}};
	auto findings = ExamineServer(root_, "192.0.2.1");
	ASSERT_EQ(findings.size(), 2U);
	EXPECT_EQ(findings[0].level, Finding::kOk);
	EXPECT_EQ(findings[0].about, "192.0.2.1 port 1234");
	EXPECT_EQ(findings[1].level, Finding::kNote);
	EXPECT_NE(findings[1].mend.find("rdma 20049"), std::string::npos);

	root_.reach["192.0.2.1 1234"] = Reach::kNobodyListens;
	findings = ExamineServer(root_, "192.0.2.1");
	ASSERT_EQ(findings.size(), 3U);
	EXPECT_EQ(findings[2].level, Finding::kBad);
	EXPECT_EQ(Thrown([&] { ExamineServer(root_, "no host's name"); }).exit(), Exit::kUsage);
}

TEST_F(Host, ServersThatDoNot)
{
	for (const auto &[reach, words] :
	     {std::pair{Reach::kSilent, "does not answer"}, std::pair{Reach::kNoWay, "has a way"},
	      std::pair{Reach::kNotTried, "cannot be tried"}}) {
		root_.reach = {{"192.0.2.1 1234", reach}, {"192.0.2.1 20049", reach}};
		const auto findings = ExamineServer(root_, "192.0.2.1");

		// What holds for one port holds for the other.
		ASSERT_EQ(findings.size(), 1U);
		EXPECT_EQ(findings[0].level, Finding::kBad);
		EXPECT_NE(findings[0].what.find(words), std::string::npos) << findings[0].what;
		EXPECT_NE(findings[0].mend, "");
	}
}

TEST_F(Host, APathThatIsDownIsAskedAfter)
{
	root_.AddSession("s1");
	root_.AddPath("s1", "ip:192.0.2.7", "ip:192.0.2.1");
	root_.AddPath("s1", "ip:198.51.100.7", "ip:198.51.100.1", "reconnecting");
	root_.reach["198.51.100.1 1234"] = Reach::kSilent;
	EXPECT_EQ(OnlyBad().find("198.51.100.1: does not answer by RDMA | "), 0U) << OnlyBad();
	// The host is there: what is wrong is not on the way.
	root_.reach["198.51.100.1 1234"] = Reach::kAnswers;
	EXPECT_EQ(OnlyBad(), "");
	EXPECT_TRUE(Notes("s1"));
}

TEST_F(Host, TheOtherEnd)
{
	auto findings = ExamineOtherEnd({"0.1.0", {{Finding::kNote, "a", "b", "c"}}}, "0.1.0");
	ASSERT_EQ(findings.size(), 1U);
	EXPECT_EQ(findings[0].level, Finding::kOk);
	findings = ExamineOtherEnd({"0.2.0", {{Finding::kBad, "rdma", "b", "c"}}}, "0.1.0");
	ASSERT_EQ(findings.size(), 2U);
	EXPECT_EQ(findings[0].level, Finding::kNote);
	EXPECT_NE(findings[0].what.find("0.2.0"), std::string::npos);
	EXPECT_EQ(findings[1].about, "other end, rdma");
	EXPECT_EQ(findings[1].level, Finding::kBad);
}

} // namespace
} // namespace rail::ctl
