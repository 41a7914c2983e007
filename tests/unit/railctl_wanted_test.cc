// SPDX-License-Identifier: GPL-2.0-only
// railctl: apply and export --toml.
#include <gtest/gtest.h>

#include <algorithm>

#include "client.h"
#include "error.h"
#include "fake_root.h"
#include "server.h"
#include "wanted.h"

namespace rail::ctl
{
namespace
{

const std::string kFile = R"(
[[export]]
name = "disk"
device = "/dev/vg0/lv0"
allow = ["ip:192.0.2.0/24", "host-*"]

[[session]]
name = "s1"
paths = ["192.0.2.7,192.0.2.1", "198.51.100.1"]
policy = "numa"
no_path_timeout = 60

[[session.device]]
name = "vg0/a"

[[session.device]]
name = "b"
access = "ro"
)";

std::vector<std::string> Texts(const Plan &plan)
{
	std::vector<std::string> texts;

	for (const Step &step : plan.steps)
		texts.push_back(std::string(1, "+~-"[step.change]) + " " + step.text);
	return texts;
}

Error Refused(const std::string &text)
{
	try {
		ParseToml(text, "f");
	} catch (const Error &error) {
		return error;
	}
	ADD_FAILURE() << "not refused: " << text;
	return {Exit::kOk, "", ""};
}

class Apply : public testing::Test
{
protected:
	Apply()
	{
		root_.LoadClient();
		root_.LoadServer();
		root_.AddBlockDevice("/dev/vg0/lv0");
		root_.AddBlockDevice("/dev/vg0/lv1");
	}

	Plan Of(const std::string &text, bool prune = false)
	{
		return MakePlan(root_, ParseToml(text, "f"), prune);
	}

	void Do(const Plan &plan)
	{
		for (const Step &step : plan.steps)
			step.run(root_);
	}

	FakeRoot root_;
};

TEST(Toml, Reads)
{
	const Wanted wanted = ParseToml(kFile, "f");

	ASSERT_EQ(wanted.exports.size(), 1U);
	EXPECT_EQ(wanted.exports[0].name, "disk");
	EXPECT_EQ(wanted.exports[0].access, "rw");
	EXPECT_TRUE(wanted.exports[0].enable);
	EXPECT_EQ(wanted.exports[0].allow.size(), 2U);
	ASSERT_EQ(wanted.sessions.size(), 1U);
	EXPECT_EQ(wanted.sessions[0].paths.size(), 2U);
	EXPECT_EQ(wanted.sessions[0].policy, "numa");
	EXPECT_EQ(wanted.sessions[0].no_path_timeout, 60U);
	EXPECT_FALSE(wanted.sessions[0].port);
	ASSERT_EQ(wanted.sessions[0].devices.size(), 2U);
	EXPECT_EQ(wanted.sessions[0].devices[0].access, "rw");
	EXPECT_EQ(wanted.sessions[0].devices[1].access, "ro");
	EXPECT_TRUE(ParseToml("", "f").exports.empty());
}

TEST(Toml, RefusesWithTheLine)
{
	EXPECT_EQ(Refused("a = \n").object(), "f:1");
	EXPECT_EQ(Refused("\n[[export]]\nname = \"a\"\n").object(), "f:2");
	EXPECT_EQ(Refused("[[export]]\nname = \"a\"\ndevice = \"/d\"\nallwo = []\n").object(),
		  "f:4");
	EXPECT_EQ(Refused("[[export]]\nname = 1\n").object(), "f:2");
	for (const char *text : {
		     "[exports]",
		     "[export]\nname = \"a\"",
		     "export = [1]",
		     "[[export]]\nname = \"a\"\ndevice = \"/d\"\naccess = \"wo\"",
		     "[[export]]\nname = \"a\"\ndevice = \"/d\"\nallow = \"b\"",
		     "[[export]]\nname = \"a\"\ndevice = \"/d\"\nallow = [1]",
		     "[[export]]\nname = \"a\"\ndevice = \"/d\"\nenable = 1",
		     "[[export]]\nname = \"a/b\"\ndevice = \"/d\"\n[[export]]\nname = "
		     "\"a!b\"\ndevice = \"/d\"",
		     "[[session]]\nname = \"s\"",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\nport = -1",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\nport = 65536",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\npolicy = \"best\"",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\nmax_reconnect_attempts = "
		     "-2",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\n[[session.device]]\naccess "
		     "= \"ro\"",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\n[[session.device]]\nname = "
		     "\"a\"\n"
		     "[[session.device]]\nname = \"a\"",
		     "[[session]]\nname = \"s\"\npaths = [\"1.2.3.4\"]\n[[session]]\nname = "
		     "\"s\"\npaths = "
		     "[\"1.2.3.4\"]",
	     })
		EXPECT_EQ(Refused(text).exit(), Exit::kUsage) << text;
}

TEST(Toml, WritesWhatItReads)
{
	Wanted wanted = ParseToml(kFile, "f");
	wanted.exports[0].name = "a \"quoted\" \\ name\x01";
	wanted.sessions[0].max_reconnects = -1;
	const std::string text = WriteToml(wanted);

	EXPECT_EQ(WriteToml(ParseToml(text, "f")), text);
	EXPECT_EQ(ParseToml(text, "f").exports[0].name, wanted.exports[0].name);
	wanted.exports[0].name = "\xff";
	EXPECT_THROW(WriteToml(wanted), Error);
}

TEST_F(Apply, MakesAllOfIt)
{
	const Plan plan = Of(kFile);

	EXPECT_EQ(Texts(plan), (std::vector<std::string>{"+ export disk = /dev/vg0/lv0 (rw)",
							 "+ map vg0/a@s1 (rw)", "+ map b@s1 (ro)",
							 "~ session s1: policy numa"}));
	EXPECT_TRUE(root_.log.empty());
	Do(plan);
	EXPECT_EQ(Devices(root_).size(), 2U);
	EXPECT_EQ(FindSession(root_, "s1").policy, "numa");
	EXPECT_TRUE(FindExport(root_, "disk").enabled);
	EXPECT_NE(std::find(root_.log.begin(), root_.log.end(),
			    "/sys/class/rnbd-client/ctl/map_device <- sessname=s1 "
			    "path=ip:192.0.2.7@ip:192.0.2.1 path=ip:198.51.100.1 device_path=b "
			    "access_mode=ro no_path_timeout=60"),
		  root_.log.end());
}

TEST_F(Apply, IsIdempotent)
{
	Do(Of(kFile));
	root_.File("/sys/class/rtrs-client/s1/no_path_timeout", "60\n");
	for (const bool prune : {false, true}) {
		const Plan again = Of(kFile, prune);

		EXPECT_TRUE(Texts(again).empty()) << Texts(again)[0];
		EXPECT_TRUE(again.blocked.empty());
		EXPECT_TRUE(again.kept.empty());
	}
	// And so is what export --toml makes of it.
	const Plan same = Of(WriteToml(Present(root_)), true);
	EXPECT_TRUE(Texts(same).empty()) << Texts(same)[0];
}

TEST_F(Apply, WithoutPruneNothingGoes)
{
	Do(Of(kFile));
	const Plan plan = Of("");

	EXPECT_TRUE(plan.steps.empty());
	EXPECT_EQ(plan.kept, (std::vector<std::string>{"map vg0/a@s1 (rw)", "map b@s1 (ro)",
						       "export disk = /dev/vg0/lv0"}));
}

TEST_F(Apply, PruneKeepsWhatIsInUse)
{
	Do(Of(kFile));
	root_.busy = {"/dev/rnbd0"};
	root_.AddMapping("dm-0", "peer", "disk");
	const Plan plan = Of("", true);

	EXPECT_EQ(Texts(plan), std::vector<std::string>{"- map b@s1 (ro)"});
	EXPECT_EQ(plan.blocked,
		  (std::vector<std::string>{"vg0/a@s1 is rnbd0 and in use, so it stays mapped",
					    "export disk is mapped by clients, so it stays"}));
	Do(plan);
	ASSERT_EQ(Devices(root_).size(), 1U);
	EXPECT_EQ(Devices(root_)[0].name, "rnbd0");
}

TEST_F(Apply, WhatComesToBeUsedMeanwhileStays)
{
	Do(Of(kFile));
	const Plan plan = Of("", true);

	root_.busy = {"/dev/rnbd0"};
	ASSERT_EQ(plan.steps[0].text, "map vg0/a@s1 (rw)");
	EXPECT_THROW(plan.steps[0].run(root_), Error);
	EXPECT_EQ(Devices(root_).size(), 2U);
	for (const std::string &line : root_.log)
		EXPECT_EQ(line.find("force"), std::string::npos) << line;
}

TEST_F(Apply, OnlyAPart)
{
	const Wanted all = ParseToml(kFile, "f");
	const auto texts = [&](const Wanted &wanted, bool prune, Part part) {
		return Texts(MakePlan(root_, wanted, prune, part));
	};

	for (const std::string &text : texts(all, false, Part::kExports))
		EXPECT_EQ(text.rfind("+ export ", 0), 0U) << text;
	for (const std::string &text : texts(all, false, Part::kSessions))
		EXPECT_EQ(text.find("export"), std::string::npos) << text;
	EXPECT_EQ(texts(all, false, Part::kExports).size() +
			  texts(all, false, Part::kSessions).size(),
		  texts(all, false, Part::kAll).size());
	Do(Of(kFile));
	// As rail-client.service and rail-server.service stop.
	EXPECT_EQ(texts({}, true, Part::kSessions),
		  (std::vector<std::string>{"- map vg0/a@s1 (rw)", "- map b@s1 (ro)"}));
	EXPECT_EQ(texts({}, true, Part::kExports),
		  std::vector<std::string>{"- export disk = /dev/vg0/lv0"});
	EXPECT_EQ(MakePlan(root_, {}, false, Part::kExports).kept.size(), 1U);
}

TEST_F(Apply, PrunesAll)
{
	Do(Of(kFile));
	Do(Of("", true));
	EXPECT_TRUE(Devices(root_).empty());
	EXPECT_TRUE(Exports(root_).empty());
}

TEST_F(Apply, AnotherAccess)
{
	std::string other = kFile;

	Do(Of(kFile));
	root_.File("/sys/class/rtrs-client/s1/no_path_timeout", "60\n");
	other.replace(other.find("\"ro\""), 4, "\"rw\"");
	EXPECT_EQ(Texts(Of(other)),
		  (std::vector<std::string>{"- map b@s1 (ro)", "+ map b@s1 (rw)"}));
	root_.busy = {"/dev/rnbd1"};
	EXPECT_TRUE(Of(other).steps.empty());
	EXPECT_EQ(Of(other).blocked.size(), 1U);
	root_.busy.clear();
	Do(Of(other));
	EXPECT_EQ(FindDevice(root_, "b@s1").access, "rw");
}

TEST_F(Apply, AClosedDeviceIsRemapped)
{
	Do(Of(kFile));
	root_.File("/sys/class/rtrs-client/s1/no_path_timeout", "60\n");
	root_.File("/sys/block/rnbd1/rnbd/state", "closed\n");
	EXPECT_EQ(Texts(Of(kFile)), std::vector<std::string>{"~ remap b@s1"});
}

TEST_F(Apply, AddsAPathBeforeItRemovesOne)
{
	std::string other = kFile;

	Do(Of(kFile));
	root_.File("/sys/class/rtrs-client/s1/no_path_timeout", "60\n");
	other.replace(other.find("198.51.100.1"), 12, "198.51.100.2");
	EXPECT_EQ(Texts(Of(other)), std::vector<std::string>{"+ session s1: path ip:198.51.100.2"});
	EXPECT_EQ(Of(other).kept,
		  std::vector<std::string>{"session s1: path ip:192.0.2.99@ip:198.51.100.1"});
	const Plan plan = Of(other, true);
	EXPECT_EQ(Texts(plan),
		  (std::vector<std::string>{"+ session s1: path ip:198.51.100.2",
					    "- session s1: path ip:192.0.2.99@ip:198.51.100.1"}));
	Do(plan);
	EXPECT_EQ(FindSession(root_, "s1").paths.size(), 2U);
}

TEST_F(Apply, TheLastPathThatIsUpStays)
{
	std::string other = kFile;

	Do(Of(kFile));
	other.replace(other.find("\"192.0.2.7,192.0.2.1\", "), 23, "");
	const Plan plan = Of(other, true);

	ASSERT_FALSE(plan.steps.empty());
	root_.File("/sys/class/rtrs-client/s1/paths/ip:192.0.2.99@ip:198.51.100.1/state",
		   "reconnecting\n");
	EXPECT_THROW(plan.steps.back().run(root_), Error);
	EXPECT_EQ(FindSession(root_, "s1").paths.size(), 2U);
}

TEST_F(Apply, ChangesAnExport)
{
	std::string other = kFile;

	Do(Of(kFile));
	root_.File("/sys/class/rtrs-client/s1/no_path_timeout", "60\n");
	other.replace(other.find("lv0"), 3, "lv1");
	other.replace(other.find("\"host-*\""), 8, "\"web-*\"");
	EXPECT_EQ(Texts(Of(other)),
		  (std::vector<std::string>{"+ export disk: allow web-*",
					    "- export disk: allow host-*",
					    "~ export disk = /dev/vg0/lv1 (rw)"}));
	root_.AddMapping("dm-0", "peer", "disk");
	EXPECT_EQ(Texts(Of(other)).size(), 2U);
	EXPECT_EQ(Of(other).blocked.size(), 1U);
	root_.Remove("/sys/class/rnbd-server/ctl/devices/dm-0");
	Do(Of(other));
	EXPECT_EQ(FindExport(root_, "disk").device, "/dev/vg0/lv1");
	EXPECT_TRUE(FindExport(root_, "disk").enabled);
	EXPECT_EQ(FindExport(root_, "disk").allowed,
		  (std::vector<std::string>{"ip:192.0.2.0/24", "web-*"}));
	EXPECT_TRUE(Of(other).steps.empty());
}

TEST_F(Apply, EnablesAndDisables)
{
	const std::string head =
		"[[export]]\nname = \"disk\"\ndevice = \"/dev/vg0/lv0\"\nenable = ";

	Do(Of(head + "false"));
	EXPECT_FALSE(FindExport(root_, "disk").enabled);
	Do(Of(head + "true"));
	EXPECT_TRUE(FindExport(root_, "disk").enabled);
	Do(Of(head + "false"));
	EXPECT_FALSE(FindExport(root_, "disk").enabled);
}

TEST_F(Apply, NonsenseIsFoundBeforeAnythingIsDone)
{
	EXPECT_THROW(Of("[[session]]\nname = \"s\"\npaths = [\"nowhere\"]\n"), Error);
	EXPECT_THROW(Of("[[export]]\nname = \"a\"\ndevice = \"/d\"\nallow = [\"a/b\"]\n"), Error);
}

} // namespace
} // namespace rail::ctl
