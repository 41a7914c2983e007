// SPDX-License-Identifier: GPL-2.0-only
// railctl: the block server.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "error.h"
#include "fake_root.h"
#include "server.h"

namespace rail::ctl
{
namespace
{

const std::string kExportsDir = "/sys/kernel/config/rnbd/exports";

class Server : public testing::Test
{
protected:
	Server()
	{
		root_.LoadServer();
		root_.AddBlockDevice("/dev/vg0/lv0");
	}

	Export Wanted() const
	{
		Export wanted;

		wanted.name = "vg0/disk";
		wanted.device = "/dev/vg0/lv0";
		wanted.enabled = true;
		wanted.allowed = {"192.0.2.0/24", "host-*"};
		return wanted;
	}

	FakeRoot root_;
};

TEST_F(Server, Rules)
{
	EXPECT_EQ(RuleName("192.0.2.7"), "ip:192.0.2.7");
	EXPECT_EQ(RuleName("ip:192.0.2.0/24"), "ip:192.0.2.0!24");
	EXPECT_EQ(RuleName("ip:192.0.2.0!24"), "ip:192.0.2.0!24");
	EXPECT_EQ(RuleName("2001:DB8::/32"), "ip:2001:db8::!32");
	EXPECT_EQ(RuleName("gid:fe80::1"), "gid:fe80:0000:0000:0000:0000:0000:0000:0001");
	EXPECT_EQ(RuleName("host-*"), "host-*");
	EXPECT_EQ(RuleName("host-*@192.0.2.0/24"), "host-*@ip:192.0.2.0!24");
	for (const char *bad : {"", ".", "..", "a/b", "192.0.2.0/33", "192.0.2.0/x", "192.0.2.0/",
				"192.0.2", "192.0.2.7:80", "2001:db8::/129", "host@", "a.b", "a\n"})
		EXPECT_EQ(Thrown([&] { RuleName(bad); }).exit(), Exit::kUsage) << bad;
}

TEST_F(Server, Exports)
{
	ExportAdd(root_, Wanted());
	EXPECT_EQ(root_.log,
		  (std::vector<std::string>{
			  "mkdir " + kExportsDir + "/vg0!disk",
			  kExportsDir + "/vg0!disk/device_path <- /dev/vg0/lv0",
			  kExportsDir + "/vg0!disk/access <- rw",
			  "mkdir " + kExportsDir + "/vg0!disk/allowed_clients/ip:192.0.2.0!24",
			  "mkdir " + kExportsDir + "/vg0!disk/allowed_clients/host-*",
			  kExportsDir + "/vg0!disk/enable <- 1"}));
	const auto exports = rail::ctl::Exports(root_);
	ASSERT_EQ(exports.size(), 1U);
	EXPECT_EQ(exports[0].name, "vg0/disk");
	EXPECT_EQ(exports[0].device, "/dev/vg0/lv0");
	EXPECT_EQ(exports[0].access(), "rw");
	EXPECT_TRUE(exports[0].enabled);
	EXPECT_EQ(exports[0].allowed, (std::vector<std::string>{"host-*", "ip:192.0.2.0/24"}));
	EXPECT_EQ(FindExport(root_, "vg0!disk").name, "vg0/disk");
	EXPECT_EQ(Thrown([&] { ExportAdd(root_, Wanted()); }).exit(), Exit::kExists);
}

TEST_F(Server, ExportIsAllOrNothing)
{
	for (const std::string &file :
	     {std::string("device_path"), std::string("access"), std::string("enable"),
	      std::string("allowed_clients/host-*")}) {
		const std::string path = Sub(kExportsDir, "vg0!disk", file);

		root_.errors = {{path, EINVAL}};
		EXPECT_EQ(Thrown([&] { ExportAdd(root_, Wanted()); }).exit(), Exit::kFailed)
			<< file;
		EXPECT_TRUE(rail::ctl::Exports(root_).empty()) << file;
	}
}

TEST_F(Server, ExportIsCheckedBeforeAnythingIsDone)
{
	const auto refused = [&](auto spoil) {
		Export wanted = Wanted();

		spoil(wanted);
		return Thrown([&] { ExportAdd(root_, wanted); }).exit();
	};

	for (const char *bad : {"", ".", "..", "a b", "a\nb"})
		EXPECT_EQ(refused([&](Export &e) { e.name = bad; }), Exit::kUsage) << bad;
	EXPECT_EQ(refused([](Export &e) { e.device = "vg0/lv0"; }), Exit::kUsage);
	EXPECT_EQ(refused([](Export &e) { e.device = "/dev/nothing"; }), Exit::kMissing);
	root_.File("/srv/image", "");
	EXPECT_EQ(refused([](Export &e) { e.device = "/srv/image"; }), Exit::kUsage);
	EXPECT_EQ(refused([](Export &e) { e.allowed = {"a/b"}; }), Exit::kUsage);
	EXPECT_TRUE(root_.log.empty());
}

TEST_F(Server, ExportNeedsRoot)
{
	root_.errors = {{kExportsDir + "/vg0!disk", EACCES}};
	EXPECT_EQ(Thrown([&] { ExportAdd(root_, Wanted()); }).exit(), Exit::kRoot);
}

TEST(NoServer, SaysWhatIsMissing)
{
	FakeRoot root;
	const auto what = [&] {
		try {
			FindExport(root, "disk");
		} catch (const Error &error) {
			return error.object() + " " + error.what_happened();
		}
		return std::string();
	};

	EXPECT_EQ(what(), "rnbd_server is not loaded");
	root.Dir("/sys/module/rnbd_server");
	root.Dir("/sys/module/configfs");
	EXPECT_EQ(what(), "configfs is not mounted");
	root.Dir("/sys/kernel/config/nullb");
	EXPECT_EQ(what(), "rnbd_server is the kernel's own, which has no exports");
}

TEST_F(Server, RemovesAnExport)
{
	root_.AddExport("disk", "/dev/vg0/lv0", true, {"host-*"});
	ExportRemove(root_, FindExport(root_, "disk"), false);
	EXPECT_EQ(root_.log,
		  (std::vector<std::string>{kExportsDir + "/disk/enable <- 0",
					    "rmdir " + kExportsDir + "/disk/allowed_clients/host-*",
					    "rmdir " + kExportsDir + "/disk"}));
	EXPECT_EQ(Thrown([&] { FindExport(root_, "disk"); }).exit(), Exit::kMissing);
}

TEST_F(Server, KeepsWhatClientsHave)
{
	root_.AddExport("vg0!disk", "/dev/vg0/lv0");
	root_.AddMapping("dm-0", "s1", "vg0/disk");
	const Export exported = FindExport(root_, "vg0/disk");

	ASSERT_EQ(exported.mappings.size(), 1U);
	EXPECT_EQ(exported.mappings[0].session, "s1");
	EXPECT_EQ(exported.mappings[0].device, "dm-0");
	EXPECT_EQ(Thrown([&] { ExportRemove(root_, exported, false); }).exit(), Exit::kInUse);
	EXPECT_EQ(Thrown([&] { ExportDisable(root_, exported, false); }).exit(), Exit::kInUse);
	EXPECT_TRUE(root_.log.empty());
	ExportDisable(root_, exported, true);
	EXPECT_FALSE(FindExport(root_, "vg0/disk").enabled);
}

TEST_F(Server, EnablesAllowsAndDenies)
{
	root_.AddExport("disk", "/dev/vg0/lv0", false);
	ExportEnable(root_, FindExport(root_, "disk"));
	EXPECT_TRUE(FindExport(root_, "disk").enabled);
	ExportAllow(root_, FindExport(root_, "disk"), "192.0.2.0/24");
	EXPECT_EQ(FindExport(root_, "disk").allowed, std::vector<std::string>{"ip:192.0.2.0/24"});
	EXPECT_EQ(Thrown([&] {
			  ExportAllow(root_, FindExport(root_, "disk"), "192.0.2.0/24");
		  }).exit(),
		  Exit::kExists);
	ExportDeny(root_, FindExport(root_, "disk"), "192.0.2.0/24");
	EXPECT_TRUE(FindExport(root_, "disk").allowed.empty());
	EXPECT_EQ(Thrown([&] {
			  ExportDeny(root_, FindExport(root_, "disk"), "192.0.2.0/24");
		  }).exit(),
		  Exit::kMissing);
	// Rules that the kernel took and railctl would not have written.
	root_.Dir(kExportsDir + "/disk/allowed_clients/192.0.2.9");
	ExportDeny(root_, FindExport(root_, "disk"), "192.0.2.9");
	EXPECT_TRUE(FindExport(root_, "disk").allowed.empty());
	EXPECT_EQ(Thrown([&] { ExportDeny(root_, FindExport(root_, "disk"), ".."); }).exit(),
		  Exit::kMissing);
}

TEST_F(Server, EnablingNeedsADevice)
{
	root_.AddExport("disk", "", false);
	EXPECT_EQ(Thrown([&] { ExportEnable(root_, FindExport(root_, "disk")); }).exit(),
		  Exit::kUsage);
}

TEST_F(Server, ReadsSessions)
{
	const std::string path = "/sys/class/rtrs-server/s1/paths/ip:192.0.2.7@ip:192.0.2.1";

	root_.File(path + "/src_addr", "ip:192.0.2.1\n");
	root_.File(path + "/dst_addr", "ip:192.0.2.7\n");
	root_.File(path + "/hca_name", "mlx5_0\n");
	root_.File(path + "/hca_port", "2\n");
	root_.File(path + "/stats/rdma", "1 2 3 4\n");
	root_.File(path + "/disconnect", "Usage: ...\n");
	root_.AddMapping("dm-0", "s1", "disk", "ro");
	root_.AddMapping("dm-1", "s2", "other");
	const auto sessions = ServerSessions(root_);

	ASSERT_EQ(sessions.size(), 1U);
	ASSERT_EQ(sessions[0].paths.size(), 1U);
	EXPECT_EQ(sessions[0].paths[0].hca, "mlx5_0");
	EXPECT_EQ(sessions[0].paths[0].hca_port, 2U);
	EXPECT_EQ(sessions[0].paths[0].write_bytes, 4U);
	ASSERT_EQ(sessions[0].mappings.size(), 1U);
	EXPECT_EQ(sessions[0].mappings[0].remote, "disk");
	EXPECT_TRUE(sessions[0].mappings[0].read_only);
	Kick(root_, sessions[0].mappings[0]);
	EXPECT_EQ(root_.log.back(),
		  "/sys/class/rnbd-server/ctl/devices/dm-0/sessions/s1/force_close <- 1");
	Disconnect(root_, sessions[0], sessions[0].paths[0]);
	EXPECT_EQ(root_.log.back(), path + "/disconnect <- 1");
	EXPECT_EQ(Thrown([&] { FindServerSession(root_, "s3"); }).exit(), Exit::kMissing);
}

} // namespace
} // namespace rail::ctl
