// SPDX-License-Identifier: GPL-2.0-only
// railctl: the block client.
#include <gtest/gtest.h>

#include <cerrno>

#include "client.h"
#include "error.h"
#include "fake_root.h"

namespace rail::ctl
{
namespace
{

constexpr const char *kMapDevice = "/sys/class/rnbd-client/ctl/map_device";

class Client : public testing::Test
{
protected:
	Client() { root_.LoadClient(); }

	void AddOne()
	{
		root_.AddSession("s1");
		root_.AddPath("s1", "ip:192.0.2.7", "ip:192.0.2.1");
		root_.AddPath("s1", "ip:198.51.100.7", "ip:198.51.100.1", "reconnecting");
		root_.AddDisk("rnbd0", "vg0/disk", "s1");
	}

	MapRequest Request() const
	{
		MapRequest request;

		request.server = "192.0.2.1";
		request.remote = "disk";
		request.session = "s1";
		return request;
	}

	FakeRoot root_;
};

TEST_F(Client, ReadsSessions)
{
	AddOne();
	const auto sessions = Sessions(root_);

	ASSERT_EQ(sessions.size(), 1U);
	EXPECT_EQ(sessions[0].name, "s1");
	EXPECT_EQ(sessions[0].policy, "round-robin");
	EXPECT_EQ(sessions[0].max_reconnects, -1);
	EXPECT_EQ(sessions[0].no_path_timeout, 30U);
	EXPECT_EQ(sessions[0].up(), 1U);
	ASSERT_EQ(sessions[0].paths.size(), 2U);
	const Path &path = sessions[0].paths[0];
	EXPECT_EQ(path.name, "ip:192.0.2.7@ip:192.0.2.1");
	EXPECT_EQ(path.dst, "ip:192.0.2.1");
	EXPECT_EQ(path.hca, "rxe_eth0");
	EXPECT_EQ(path.hca_port, 1U);
	EXPECT_EQ(path.latency_ns, 54321U);
	EXPECT_EQ(path.reads, 10U);
	EXPECT_EQ(path.read_bytes, 40960U);
	EXPECT_EQ(path.writes, 20U);
	EXPECT_EQ(path.write_bytes, 81920U);
	EXPECT_EQ(path.in_flight, 3U);
	EXPECT_EQ(path.failed_over, 1U);
	EXPECT_EQ(path.reconnects, 2U);
	EXPECT_EQ(path.failed_reconnects, 1U);
	EXPECT_TRUE(path.up());
	EXPECT_FALSE(sessions[0].paths[1].up());
}

TEST_F(Client, MainlinesSessionHasNoTimeout)
{
	AddOne();
	root_.Remove("/sys/class/rtrs-client/s1/no_path_timeout");
	EXPECT_FALSE(Sessions(root_).at(0).no_path_timeout);
}

TEST_F(Client, ReadsDevices)
{
	AddOne();
	root_.File("/sys/block/sda/size", "1\n");
	root_.AddDisk("rnbd10", "b", "s1", "ro", "closed");
	root_.AddDisk("rnbd2", "a", "s1", "migration");
	const auto devices = Devices(root_);

	ASSERT_EQ(devices.size(), 3U);
	EXPECT_EQ(devices[0].name, "rnbd0");
	EXPECT_EQ(devices[0].remote, "vg0/disk");
	EXPECT_EQ(devices[0].session, "s1");
	EXPECT_EQ(devices[0].access, "rw");
	EXPECT_EQ(devices[0].bytes, 104857600U);
	EXPECT_EQ(devices[1].name, "rnbd2");
	EXPECT_EQ(devices[2].state, "closed");
}

TEST_F(Client, FindsADeviceByEachOfItsNames)
{
	AddOne();
	root_.SymLink("/dev/rail/by-session/s1/disk", "../../../rnbd0");
	for (const char *name :
	     {"rnbd0", "/dev/rnbd0", "vg0/disk@s1", "vg0/disk", "/dev/rail/by-session/s1/disk"})
		EXPECT_EQ(FindDevice(root_, name).name, "rnbd0") << name;
	EXPECT_EQ(Thrown([&] { FindDevice(root_, "rnbd1"); }).exit(), Exit::kMissing);
	EXPECT_EQ(Thrown([&] { FindDevice(root_, "/dev/sda"); }).exit(), Exit::kMissing);
	EXPECT_EQ(Thrown([&] { FindDevice(root_, ""); }).exit(), Exit::kMissing);
}

TEST_F(Client, AnAmbiguousRemoteIsAsked)
{
	AddOne();
	root_.AddDisk("rnbd1", "vg0/disk", "s2");
	EXPECT_EQ(Thrown([&] { FindDevice(root_, "vg0/disk"); }).exit(), Exit::kUsage);
	EXPECT_EQ(FindDevice(root_, "vg0/disk@s2").name, "rnbd1");
}

TEST(NoClient, SaysThatTheModuleIsNotLoaded)
{
	FakeRoot root;
	MapRequest request;

	request.server = "192.0.2.1";
	request.remote = "disk";
	EXPECT_EQ(Thrown([&] { FindDevice(root, "rnbd0"); }).exit(), Exit::kModule);
	const Error error = Thrown([&] { Map(root, request); });
	EXPECT_EQ(error.exit(), Exit::kModule);
	EXPECT_EQ(error.next(), "modprobe rnbd_client");
	EXPECT_TRUE(Devices(root).empty());
	EXPECT_TRUE(Sessions(root).empty());
}

TEST_F(Client, MapsAndWaitsForTheNode)
{
	MapRequest request = Request();

	request.remote = "vg0/disk";
	request.access = "ro";
	request.port = 4321;
	request.poll_queues = 2;
	request.no_path_timeout = 0;
	const Device device = Map(root_, request);
	EXPECT_EQ(device.node(), "/dev/rnbd0");
	EXPECT_EQ(device.access, "ro");
	EXPECT_EQ(root_.log,
		  std::vector<std::string>{
			  std::string(kMapDevice) +
			  " <- sessname=s1 path=ip:192.0.2.1 device_path=vg0/disk "
			  "access_mode=ro dest_port=4321 nr_poll_queues=2 no_path_timeout=0"});
	EXPECT_EQ(root_.paused_ms, 0U);
}

TEST_F(Client, MapGivesEachPath)
{
	MapRequest request = Request();

	request.paths = {"192.0.2.7,192.0.2.1", "ip:198.51.100.7@ip:198.51.100.1"};
	Map(root_, request);
	EXPECT_NE(root_.log.at(0).find(" path=ip:192.0.2.7@ip:192.0.2.1 "
				       "path=ip:198.51.100.7@ip:198.51.100.1 "),
		  std::string::npos);
	EXPECT_EQ(Sessions(root_).at(0).paths.size(), 2U);
}

TEST_F(Client, MapWaitsForUdev)
{
	root_.File("/run/udev/control", "");
	root_.on_pause = [&] {
		if (root_.paused_ms >= 100)
			root_.File("/run/udev/data/b252:0", "");
	};
	Map(root_, Request());
	EXPECT_GE(root_.paused_ms, 100U);
	EXPECT_LT(root_.paused_ms, 1000U);
}

TEST_F(Client, MapSaysThatTheNodeDidNotCome)
{
	root_.File("/run/udev/control", "");
	const Error error = Thrown([&] { Map(root_, Request()); });

	EXPECT_EQ(error.exit(), Exit::kTimeout);
	EXPECT_EQ(error.object(), "rnbd0");
	EXPECT_GE(root_.paused_ms, 9000U);
}

TEST_F(Client, MapTakesTheSessionThatLeadsThere)
{
	MapRequest request = Request();

	AddOne();
	request.session = "";
	request.server = "198.51.100.1:1234";
	EXPECT_EQ(Map(root_, request).session, "s1");
	request.server = "203.0.113.1";
	const Device device = Map(root_, request);
	EXPECT_NE(device.session, "s1");
	EXPECT_NE(device.session.find("-203-0-113-1"), std::string::npos);
}

TEST_F(Client, MapRefusesWhatWouldBeMoreWords)
{
	for (const char *bad : {"", "a b", "a\tb", "a\nsessname=x", "disk access_mode=rw"}) {
		MapRequest request = Request();

		request.remote = bad;
		EXPECT_EQ(Thrown([&] { Map(root_, request); }).exit(), Exit::kUsage) << bad;
		request = Request();
		request.session = std::string("s") + bad + " ";
		EXPECT_EQ(Thrown([&] { Map(root_, request); }).exit(), Exit::kUsage) << bad;
		request = Request();
		request.paths = {std::string("192.0.2.1 ") + bad};
		EXPECT_EQ(Thrown([&] { Map(root_, request); }).exit(), Exit::kUsage) << bad;
	}
	for (const char *bad : {"a.b", "a/b", "..", "\033"}) {
		MapRequest request = Request();

		request.session = bad;
		EXPECT_EQ(Thrown([&] { Map(root_, request); }).exit(), Exit::kUsage) << bad;
	}
	EXPECT_TRUE(root_.log.empty());
}

TEST_F(Client, MapExplainsRefusals)
{
	const std::vector<std::pair<int, Exit>> cases = {
		{EEXIST, Exit::kExists},    {EACCES, Exit::kFailed}, {ENOENT, Exit::kMissing},
		{ENOTBLK, Exit::kFailed},   {EROFS, Exit::kFailed},  {EPERM, Exit::kInUse},
		{EINVAL, Exit::kUsage},     {ENODEV, Exit::kFailed}, {ECONNREFUSED, Exit::kFailed},
		{ETIMEDOUT, Exit::kFailed}, {ENOMEM, Exit::kFailed},
	};

	for (const auto &[error, exit] : cases) {
		root_.errors[kMapDevice] = error;
		const Error thrown = Thrown([&] { Map(root_, Request()); });

		EXPECT_EQ(thrown.exit(), exit) << error;
		EXPECT_EQ(thrown.object(), "disk@s1") << error;
		EXPECT_FALSE(thrown.next().empty()) << error;
	}
}

TEST_F(Client, MapNeedsRoot)
{
	root_.closed[kMapDevice] = EACCES;
	EXPECT_EQ(Thrown([&] { Map(root_, Request()); }).exit(), Exit::kRoot);
}

TEST_F(Client, Unmaps)
{
	AddOne();
	Unmap(root_, FindDevice(root_, "rnbd0"), false);
	EXPECT_EQ(root_.log,
		  std::vector<std::string>{"/sys/block/rnbd0/rnbd/unmap_device <- normal"});
	EXPECT_TRUE(Devices(root_).empty());
}

TEST_F(Client, UnmapSaysWhoHasIt)
{
	AddOne();
	root_.busy = {"/dev/rnbd0"};
	root_.File("/sys/block/rnbd0/rnbd0p1/partition", "1\n");
	root_.File("/sys/block/rnbd0/rnbd0p1/dev", "252:1\n");
	root_.File("/sys/block/rnbd0/holders/dm-3/dev", "");
	root_.File("/proc/self/mountinfo",
		   "22 1 252:1 / /mnt/with\\040space rw - ext4 /dev/rnbd0p1 rw\n"
		   "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
	root_.File("/proc/swaps",
		   "Filename Type Size Used Priority\n/dev/rnbd0 partition 1 0 -2\n");
	const Error error = Thrown([&] { Unmap(root_, FindDevice(root_, "rnbd0"), false); });

	EXPECT_EQ(error.exit(), Exit::kInUse);
	EXPECT_EQ(error.what_happened(),
		  "is in use: held by dm-3, used as swap, mounted on /mnt/with space");
	Unmap(root_, FindDevice(root_, "rnbd0"), true);
	EXPECT_TRUE(Devices(root_).empty());
}

TEST_F(Client, UnmapSaysThatAProgramHasIt)
{
	AddOne();
	root_.busy = {"/dev/rnbd0"};
	EXPECT_TRUE(InUse(root_, "rnbd0"));
	EXPECT_EQ(Thrown([&] { Unmap(root_, FindDevice(root_, "rnbd0"), false); }).what_happened(),
		  "is in use: a program has it open");
	root_.busy.clear();
	EXPECT_FALSE(InUse(root_, "rnbd0"));
}

TEST_F(Client, UnmapOfWhatIsGoneIsDone)
{
	AddOne();
	const Device device = FindDevice(root_, "rnbd0");

	root_.Remove("/sys/block/rnbd0");
	EXPECT_NO_THROW(Unmap(root_, device, false));
}

TEST_F(Client, UnmapFails)
{
	AddOne();
	const Device device = FindDevice(root_, "rnbd0");

	root_.errors["/sys/block/rnbd0/rnbd/unmap_device"] = EIO;
	EXPECT_EQ(Thrown([&] { Unmap(root_, device, false); }).exit(), Exit::kFailed);
	root_.closed["/sys/block/rnbd0/rnbd/unmap_device"] = EACCES;
	EXPECT_EQ(Thrown([&] { Unmap(root_, device, false); }).exit(), Exit::kRoot);
}

TEST_F(Client, Remaps)
{
	AddOne();
	const Device device = FindDevice(root_, "rnbd0");

	EXPECT_TRUE(Remap(root_, device));
	EXPECT_EQ(root_.log.back(), "/sys/block/rnbd0/rnbd/remap_device <- 1");
	root_.errors["/sys/block/rnbd0/rnbd/remap_device"] = EALREADY;
	EXPECT_FALSE(Remap(root_, device));
	root_.errors["/sys/block/rnbd0/rnbd/remap_device"] = EACCES;
	EXPECT_EQ(Thrown([&] { Remap(root_, device); }).exit(), Exit::kFailed);
}

TEST_F(Client, Resizes)
{
	AddOne();
	const Device device = FindDevice(root_, "rnbd0");

	Resize(root_, device, 10ULL << 30);
	EXPECT_EQ(root_.log.back(), "/sys/block/rnbd0/rnbd/resize <- 20971520");
	EXPECT_EQ(Thrown([&] { Resize(root_, device, 513); }).exit(), Exit::kUsage);
	EXPECT_EQ(Thrown([&] { Resize(root_, device, 0); }).exit(), Exit::kUsage);
	EXPECT_EQ(root_.log.size(), 1U);
}

TEST_F(Client, FindsPaths)
{
	AddOne();
	root_.AddPath("s1", "ip:192.0.2.8", "ip:192.0.2.1");
	const Session session = FindSession(root_, "s1");

	EXPECT_EQ(FindPath(session, "ip:192.0.2.8@ip:192.0.2.1").src, "ip:192.0.2.8");
	EXPECT_EQ(FindPath(session, "192.0.2.7,192.0.2.1").src, "ip:192.0.2.7");
	EXPECT_EQ(FindPath(session, "198.51.100.1:1234").src, "ip:198.51.100.7");
	EXPECT_EQ(Thrown([&] { FindPath(session, "192.0.2.1"); }).exit(), Exit::kUsage);
	EXPECT_EQ(Thrown([&] { FindPath(session, "203.0.113.1"); }).exit(), Exit::kMissing);
	EXPECT_EQ(Thrown([&] { FindSession(root_, "../rnbd-client"); }).exit(), Exit::kMissing);
}

TEST_F(Client, AddsAPath)
{
	AddOne();
	PathAdd(root_, FindSession(root_, "s1"), "203.0.113.7,203.0.113.1");
	EXPECT_EQ(root_.log.back(),
		  "/sys/class/rtrs-client/s1/add_path <- ip:203.0.113.7@ip:203.0.113.1");
	EXPECT_EQ(FindSession(root_, "s1").paths.size(), 3U);
	EXPECT_EQ(Thrown([&] { PathAdd(root_, FindSession(root_, "s1"), "nonsense"); }).exit(),
		  Exit::kUsage);
	root_.errors["/sys/class/rtrs-client/s1/add_path"] = EEXIST;
	EXPECT_EQ(Thrown([&] { PathAdd(root_, FindSession(root_, "s1"), "203.0.113.1"); }).exit(),
		  Exit::kExists);
	root_.errors["/sys/class/rtrs-client/s1/add_path"] = ECONNREFUSED;
	EXPECT_EQ(Thrown([&] { PathAdd(root_, FindSession(root_, "s1"), "203.0.113.1"); }).exit(),
		  Exit::kFailed);
	// Whatever the kernel says: it is asked once.
	root_.log.clear();
	root_.errors["/sys/class/rtrs-client/s1/add_path"] = EINVAL;
	EXPECT_EQ(Thrown([&] { PathAdd(root_, FindSession(root_, "s1"), "203.0.113.1"); }).exit(),
		  Exit::kFailed);
	EXPECT_EQ(root_.log.size(), 1U);
}

TEST_F(Client, ConnectsAndDisconnects)
{
	AddOne();
	const Session session = FindSession(root_, "s1");
	const std::string dir = "/sys/class/rtrs-client/s1/paths/ip:198.51.100.7@ip:198.51.100.1";

	PathConnect(root_, session, session.paths[1]);
	EXPECT_EQ(root_.log.back(), dir + "/reconnect <- 1");
	PathDisconnect(root_, session, session.paths[1]);
	EXPECT_EQ(root_.log.back(), dir + "/disconnect <- 1");
}

TEST_F(Client, KeepsTheLastPathOfADevice)
{
	AddOne();
	const Session session = FindSession(root_, "s1");

	PathRemove(root_, session, session.paths[1], false);
	const Session now = FindSession(root_, "s1");
	ASSERT_EQ(now.paths.size(), 1U);
	EXPECT_EQ(Thrown([&] { PathRemove(root_, now, now.paths[0], false); }).exit(),
		  Exit::kInUse);
	EXPECT_EQ(FindSession(root_, "s1").paths.size(), 1U);
	PathRemove(root_, now, now.paths[0], true);
	EXPECT_TRUE(FindSession(root_, "s1").paths.empty());
}

TEST_F(Client, SetsThePolicy)
{
	AddOne();
	SetPolicy(root_, FindSession(root_, "s1"), "numa");
	EXPECT_EQ(root_.log.back(), "/sys/class/rtrs-client/s1/mpath_policy <- numa");
	EXPECT_EQ(FindSession(root_, "s1").policy, "numa");
	root_.errors["/sys/class/rtrs-client/s1/mpath_policy"] = EINVAL;
	EXPECT_EQ(Thrown([&] { SetPolicy(root_, FindSession(root_, "s1"), "x"); }).exit(),
		  Exit::kFailed);
}

} // namespace
} // namespace rail::ctl
