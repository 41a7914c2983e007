// SPDX-License-Identifier: GPL-2.0-only
// railctl: the command line, output, completion.
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "command_test.h"
#include "error.h"
#include "fake_root.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

using Json = nlohmann::json;

class Cli : public CommandTest
{
protected:
	Cli()
	{
		root_.LoadClient();
		root_.LoadServer();
		root_.AddBlockDevice("/dev/sdb");
	}

	void AddOne()
	{
		root_.AddSession("s1");
		root_.AddPath("s1", "ip:192.0.2.7", "ip:192.0.2.1");
		root_.AddDisk("rnbd0", "disk", "s1");
		root_.AddExport("disk", "/dev/sdb", true, {"host-*"});
		root_.AddMapping("sdb", "peer", "disk");
		root_.File("/sys/class/rtrs-server/peer/paths/a@b/disconnect", "");
		root_.AddRdma("rxe_eth0", "eth0");
	}

	Json RunJson(std::vector<std::string> args)
	{
		args.emplace_back("--json");
		Run(args);
		return Json::parse(out_);
	}

	std::vector<std::string> Complete(std::vector<std::string> words)
	{
		std::vector<std::string> names;

		words.insert(words.begin(), "__complete");
		EXPECT_EQ(Run(words), 0);
		for (const std::string &line : Lines(out_))
			names.push_back(line.substr(0, line.find('\t')));
		return names;
	}
};

using Strings = std::vector<std::string>;

const std::vector<Strings> kListings = {
	{"list"},           {"show", "rnbd0"},
	{"path", "list"},   {"path", "list", "s1"},
	{"export", "list"}, {"export", "show", "disk"},
	{"sessions"},       {"nfs"},
	{"stats"},          {"doctor"},
	{"policy", "s1"},
};

TEST_F(Cli, Usage)
{
	EXPECT_EQ(Run({}), 2);
	EXPECT_EQ(Run({"nonsense"}), 2);
	EXPECT_NE(err_.find("next: railctl --help"), std::string::npos) << err_;
	EXPECT_EQ(Run({"map", "192.0.2.1"}), 2);
	EXPECT_NE(err_.find("DEVICE"), std::string::npos) << err_;
	EXPECT_NE(err_.find("next: railctl map --help"), std::string::npos) << err_;
	EXPECT_EQ(Run({"map", "192.0.2.1", "disk", "--ro", "--migration"}), 2);
	EXPECT_EQ(Run({"map", "192.0.2.1", "disk", "--port", "0"}), 2);
	EXPECT_EQ(Run({"policy", "s1", "best"}), 2);
	EXPECT_EQ(Run({"export"}), 2);
	EXPECT_EQ(Run({"path"}), 2);
	EXPECT_EQ(Run({"resize", "rnbd0", "huge"}), 2);
	EXPECT_TRUE(root_.log.empty());
}

TEST_F(Cli, Help)
{
	EXPECT_EQ(Run({"--help"}), 0);
	EXPECT_NE(out_.find("unmap"), std::string::npos);
	EXPECT_EQ(Run({"--version"}), 0);
	EXPECT_EQ(out_.find("railctl "), 0U);
	for (const Strings &command : std::vector<Strings>{{"map"},
							   {"unmap"},
							   {"remap"},
							   {"resize"},
							   {"list"},
							   {"show"},
							   {"path", "list"},
							   {"path", "add"},
							   {"path", "remove"},
							   {"path", "connect"},
							   {"path", "disconnect"},
							   {"policy"},
							   {"export"},
							   {"export", "add"},
							   {"export", "list"},
							   {"export", "show"},
							   {"export", "remove"},
							   {"export", "enable"},
							   {"export", "disable"},
							   {"export", "allow"},
							   {"export", "deny"},
							   {"sessions"},
							   {"kick"},
							   {"nfs"},
							   {"stats"},
							   {"doctor"},
							   {"rxe", "up"},
							   {"rxe", "down"},
							   {"apply"}}) {
		Strings args = command;

		args.emplace_back("--help");
		EXPECT_EQ(Run(args), 0);
		EXPECT_NE(out_.find("Examples:\n  railctl " + command[0]), std::string::npos)
			<< out_;
	}
}

TEST_F(Cli, MapPrintsTheNode)
{
	EXPECT_EQ(Run({"map", "192.0.2.1", "disk", "--session", "s1", "--path",
		       "192.0.2.7,192.0.2.1", "--path", "198.51.100.1", "--ro", "--port", "7",
		       "--poll-queues", "2", "--no-path-timeout", "0"}),
		  0)
		<< err_;
	EXPECT_EQ(out_, "/dev/rnbd0\n");
	EXPECT_EQ(root_.log.at(0),
		  "/sys/class/rnbd-client/ctl/map_device <- sessname=s1 "
		  "path=ip:192.0.2.7@ip:192.0.2.1 path=ip:198.51.100.1 device_path=disk "
		  "access_mode=ro dest_port=7 nr_poll_queues=2 no_path_timeout=0");
	EXPECT_EQ(Run({"map", "192.0.2.1", "disk", "--session", "s1"}), 9);
	// A path takes one value, so that operands may follow.
	EXPECT_EQ(Run({"map", "--path", "192.0.2.1", "192.0.2.1", "other", "--session", "s1"}), 0);
	const Json json = RunJson({"map", "192.0.2.1", "third", "--migration"});
	EXPECT_EQ(json["device"]["node"], "/dev/rnbd2");
	EXPECT_EQ(json["device"]["access"], "migration");
	EXPECT_EQ(json["session"]["paths"].size(), 2U);
}

TEST_F(Cli, Errors)
{
	AddOne();
	root_.busy = {"/dev/rnbd0"};
	EXPECT_EQ(Run({"unmap", "rnbd0"}), 6);
	EXPECT_EQ(err_, "railctl: rnbd0: is in use: a program has it open\n"
			"  next: give it free (umount, swapoff, vgchange -an ...), or take it away "
			"with --force: what was not written is lost then\n");
	EXPECT_EQ(out_, "");
	EXPECT_EQ(Run({"unmap", "rnbd7"}), 3);
	const Json json = RunJson({"unmap", "rnbd7"});
	EXPECT_EQ(json["error"]["exit"], 3);
	EXPECT_EQ(json["error"]["object"], "rnbd7");
	// Nothing is done if one of them is not there.
	root_.busy.clear();
	EXPECT_EQ(Run({"unmap", "rnbd0", "rnbd7"}), 3);
	EXPECT_EQ(Run({"unmap", "rnbd0"}), 0);
	EXPECT_EQ(out_, "rnbd0 is unmapped\n");
}

TEST_F(Cli, Lists)
{
	AddOne();
	root_.AddDisk("rnbd1", "vg0/other", "s1", "ro", "closed");
	EXPECT_EQ(Run({"list"}), 0);
	EXPECT_EQ(out_, "DEVICE       SIZE  ACCESS  STATE   PATHS  REMOTE     SESSION\n"
			"rnbd0   100.0 MiB  rw      open    1/1    disk       s1\n"
			"rnbd1   100.0 MiB  ro      closed  1/1    vg0/other  s1\n");
	EXPECT_EQ(err_, "");
	EXPECT_EQ(Run({"export", "list"}), 0);
	EXPECT_EQ(out_, "EXPORT  DEVICE    ACCESS  STATE    ALLOWED  MAPPED BY\n"
			"disk    /dev/sdb  rw      enabled  host-*   peer\n");
}

TEST_F(Cli, ListsNothing)
{
	for (const Strings &args : kListings) {
		if (args[0] == "show" || args.size() > 2 || args[0] == "policy")
			continue;
		EXPECT_EQ(Run(args), args[0] == "doctor" ? 8 : 0) << args[0];
		EXPECT_TRUE(!err_.empty() || args[0] == "doctor") << args[0];
	}
	EXPECT_EQ(RunJson({"list"})["devices"], Json::array());
	EXPECT_EQ(RunJson({"export", "list"})["exports"], Json::array());
}

TEST_F(Cli, JsonHasASchema)
{
	AddOne();
	for (const Strings &args : kListings) {
		const Json json = RunJson(args);

		EXPECT_EQ(json["schema"], 1) << args[0];
		EXPECT_EQ(json.size(), args[0] == "show"     ? 3U
				       : args[0] == "nfs"    ? 4U
				       : args[0] == "doctor" ? 3U
							     : 2U)
			<< args[0];
	}
	const Json device = RunJson({"list"})["devices"][0];
	EXPECT_EQ(device, Json::parse(R"({"name":"rnbd0","node":"/dev/rnbd0","remote":"disk",
		"session":"s1","access":"rw","state":"open","bytes":104857600,"poll_queues":0})"));
	const Json path = RunJson({"path", "list"})["sessions"][0]["paths"][0];
	EXPECT_EQ(path["destination"], "ip:192.0.2.1");
	EXPECT_EQ(path["latency_ns"], 54321);
	const Json exported = RunJson({"export", "list"})["exports"][0];
	EXPECT_EQ(exported["allow"], Json::array({"host-*"}));
	EXPECT_EQ(exported["mappings"][0]["session"], "peer");
	EXPECT_EQ(exported["enabled"], true);
}

TEST_F(Cli, HostileNames)
{
	root_.AddSession(kHostile);
	root_.AddPath(kHostile, "ip:192.0.2.7", "ip:192.0.2.1", kHostile);
	root_.AddDisk("rnbd0", kHostile, kHostile, kHostile, kHostile);
	root_.AddExport(kHostile, "/dev/" + kHostile, true, {kHostile});
	root_.AddMapping("sdb", kHostile, kHostile, kHostile);
	root_.File("/sys/class/rtrs-server/" + kHostile + "/paths/" + kHostile + "/hca_name",
		   kHostile);
	root_.AddRdma(kHostile, kHostile);
	root_.File("/proc/self/mountstats",
		   "device " + kHostile + " mounted on " + kHostile +
			   " with fstype nfs4\n\txprt:\trdma 0\n"
			   "device a\033b mounted on /c\xff with fstype nfs\n"
			   "\txprt:\trdma 0\n");
	root_.File("/sys/kernel/debug/rail/rnbd-client/rnbd0/io.json",
		   R"({"counters":{"\u001b[31m\n":1}})");
	root_.File("/sys/kernel/debug/rail/" + kHostile + "/stats.json",
		   R"({"counters":{"\u001b[31m\n":1}})");
	for (Strings args : kListings) {
		for (std::string &arg : args) {
			if (arg == "s1" || arg == "disk")
				arg = kHostile;
		}
		Run(args);
		for (const std::string &text : {out_, err_}) {
			EXPECT_EQ(text.find('\033'), text.npos) << args[0];
			EXPECT_TRUE(ValidUtf8(text)) << args[0];
		}
		const Json json = RunJson(args);
		EXPECT_TRUE(json.is_object()) << args[0];
		EXPECT_TRUE(ValidUtf8(out_)) << args[0];
	}
	// In what an error says, too.
	EXPECT_EQ(Run({"show", "\033[31m\xff"}), 3);
	EXPECT_EQ(err_.find('\033'), err_.npos);
	EXPECT_TRUE(ValidUtf8(err_));
	// A shell would show such a name as something else.
	for (const Strings &words : std::vector<Strings>{
		     {"show", ""}, {"path", "list", ""}, {"export", "show", ""}, {"kick", ""}})
		for (const std::string &line : Complete(words))
			EXPECT_EQ(line, "rnbd0");
}

TEST_F(Cli, Colour)
{
	const Terminal terminal = {true, true, true, 80};
	const Terminal dumb = {true, true, false, 80};

	AddOne();
	Run({"list"});
	EXPECT_EQ(out_.find('\033'), out_.npos);
	Run({"list"}, dumb);
	EXPECT_EQ(out_.find('\033'), out_.npos);
	Run({"list"}, terminal);
	EXPECT_NE(out_.find('\033'), out_.npos);
	Run({"--color=never", "list"}, terminal);
	EXPECT_EQ(out_.find('\033'), out_.npos);
	Run({"list", "--colour", "always"});
	EXPECT_NE(out_.find('\033'), out_.npos);
	Run({"list", "--json"}, terminal);
	EXPECT_EQ(out_.find('\033'), out_.npos);
}

TEST_F(Cli, FitsTheTerminal)
{
	AddOne();
	root_.AddDisk("rnbd1", std::string(100, 'x'), "s1");
	for (const std::size_t columns : {60U, 80U, 120U}) {
		const Terminal terminal = {true, true, false, columns};

		for (const Strings &args : std::vector<Strings>{{"list"},
								{"path", "list"},
								{"export", "list"},
								{"sessions"},
								{"stats"}}) {
			Run(args, terminal);
			for (const std::string &line : Lines(out_))
				EXPECT_LE(Columns(line), columns) << line;
		}
	}
}

TEST_F(Cli, Paths)
{
	AddOne();
	EXPECT_EQ(Run({"path", "add", "s1", "198.51.100.7,198.51.100.1"}), 0) << err_;
	EXPECT_EQ(Run({"path", "disconnect", "s1", "198.51.100.1"}), 0) << err_;
	EXPECT_EQ(Run({"path", "connect", "s1", "198.51.100.1"}), 0) << err_;
	EXPECT_EQ(Run({"path", "remove", "s1", "198.51.100.1"}), 0) << err_;
	EXPECT_EQ(Run({"path", "remove", "s1", "192.0.2.1"}), 6);
	EXPECT_EQ(Run({"path", "remove", "s1", "192.0.2.1", "--force"}), 0) << err_;
	EXPECT_EQ(Run({"policy", "s1"}), 0);
	EXPECT_EQ(out_, "round-robin\n");
	EXPECT_EQ(Run({"policy", "s1", "min-latency"}), 0);
	EXPECT_EQ(Run({"policy", "s1"}), 0);
	EXPECT_EQ(out_, "min-latency\n");
	EXPECT_EQ(Run({"resize", "rnbd0", "1G"}), 0);
	EXPECT_EQ(Run({"remap", "rnbd0"}), 0);
}

TEST_F(Cli, Exports)
{
	EXPECT_EQ(Run({"export", "add", "a", "/dev/sdb", "--allow", "192.0.2.7", "-a", "host-*",
		       "--ro", "--disabled"}),
		  0)
		<< err_;
	EXPECT_EQ(err_, "");
	Json json = RunJson({"export", "show", "a"})["exports"][0];
	EXPECT_EQ(json["access"], "ro");
	EXPECT_EQ(json["enabled"], false);
	EXPECT_EQ(json["allow"].size(), 2U);
	EXPECT_EQ(Run({"export", "enable", "a"}), 0);
	EXPECT_EQ(Run({"export", "allow", "a", "192.0.2.8", "192.0.2.9"}), 0);
	EXPECT_EQ(Run({"export", "deny", "a", "192.0.2.8"}), 0);
	json = RunJson({"export", "show", "a"})["exports"][0];
	EXPECT_EQ(json["enabled"], true);
	EXPECT_EQ(json["allow"].size(), 3U);
	root_.AddMapping("sdb", "peer", "a");
	EXPECT_EQ(Run({"export", "disable", "a"}), 6);
	EXPECT_EQ(Run({"export", "remove", "a"}), 6);
	EXPECT_EQ(Run({"export", "remove", "a", "--force"}), 0) << err_;
	EXPECT_EQ(Run({"export", "show", "a"}), 3);
	EXPECT_EQ(Run({"export", "add", "a", "/dev/sdb"}), 0);
	EXPECT_NE(err_.find("no client may map it"), std::string::npos);
}

TEST_F(Cli, Kick)
{
	const std::string close =
		"/sys/class/rnbd-server/ctl/devices/sdb/sessions/peer/force_close <- 1";

	AddOne();
	EXPECT_EQ(Run({"kick", "nobody"}), 3);
	EXPECT_EQ(Run({"kick", "peer", "other"}), 3);
	EXPECT_TRUE(root_.log.empty());
	EXPECT_EQ(Run({"kick", "peer", "disk"}), 0);
	EXPECT_EQ(root_.log, Strings{close});
	EXPECT_EQ(Run({"kick", "peer", "--paths"}), 0);
	EXPECT_EQ(root_.log,
		  (Strings{close, close, "/sys/class/rtrs-server/peer/paths/a@b/disconnect <- 1"}));
}

TEST_F(Cli, Doctor)
{
	EXPECT_EQ(Run({"doctor"}), 8);
	EXPECT_NE(
		out_.find("BAD   rdma: there is no RDMA device\n      mend: railctl rxe up NETDEV"),
		std::string::npos)
		<< out_;
	Run({"doctor", "--brief"});
	EXPECT_EQ(out_.find("note"), out_.npos);
	const Json json = RunJson({"doctor"});
	EXPECT_EQ(json["findings"][0]["level"], "bad");
	// What it says is what it understands, from another host.
	char file[] = "/tmp/railctl-doctor-XXXXXX";
	const int fd = mkstemp(file);
	ASSERT_GE(fd, 0);
	const std::string text = json.dump();
	EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
	close(fd);
	EXPECT_EQ(Run({"doctor", "--with", file}), 8);
	EXPECT_NE(out_.find("ok    other end: is of the same version"), std::string::npos) << out_;
	EXPECT_NE(out_.find("BAD   other end, rdma: there is no RDMA device"), std::string::npos);
	EXPECT_EQ(truncate(file, 5), 0);
	EXPECT_EQ(Run({"doctor", "--with", file}), 2);
	EXPECT_NE(err_.find("railctl --json doctor"), std::string::npos) << err_;
	unlink(file);
	EXPECT_EQ(Run({"doctor", "192.0.2.1"}), 8);
	EXPECT_NE(out_.find("modprobe rdma_ucm"), std::string::npos) << out_;
}

TEST_F(Cli, Rxe)
{
	root_.Dir("/sys/class/net/eth0");
	EXPECT_EQ(Run({"rxe", "up", "eth0", "--name", "soft"}), 0);
	EXPECT_EQ(out_, "soft is up on eth0\n");
	root_.AddRdma("soft", "eth0");
	EXPECT_EQ(Run({"rxe", "up", "eth0"}), 0);
	EXPECT_EQ(out_, "soft is up already on eth0\n");
	EXPECT_EQ(Run({"rxe", "down", "eth0"}), 0);
	EXPECT_EQ(out_, "soft is removed\n");
}

TEST_F(Cli, Apply)
{
	const std::string file = root_.Real("/rail.toml");
	const auto write = [&](const std::string &text) {
		std::ofstream(file, std::ios::trunc) << text;
	};

	AddOne();
	Run({"export", "--toml"});
	write(out_);
	EXPECT_EQ(Run({"apply", "--dry-run", file}), 0) << out_ << err_;
	EXPECT_EQ(Run({"apply", file}), 0) << err_;
	write(out_.substr(0, 0) + "[[session]]\nname = \"s1\"\npaths = [\"192.0.2.1\"]\n"
				  "[[session.device]]\nname = \"more\"\n");
	root_.log.clear();
	EXPECT_EQ(Run({"apply", "-n", file}), 8);
	EXPECT_EQ(out_, "+ map more@s1 (rw)\n");
	EXPECT_NE(err_.find("stays: map disk@s1 (rw)"), std::string::npos) << err_;
	EXPECT_TRUE(root_.log.empty());
	EXPECT_EQ(RunJson({"apply", "-n", file})["steps"][0]["change"], "add");
	EXPECT_EQ(Run({"apply", file}), 0) << err_;
	EXPECT_EQ(RunJson({"list"})["devices"].size(), 2U);
	// One that fails does not keep the others from being done.
	write("[[session]]\nname = \"s1\"\npaths = [\"192.0.2.1\"]\npolicy = \"numa\"\n"
	      "[[session.device]]\nname = \"third\"\n");
	root_.errors["/sys/class/rnbd-client/ctl/map_device"] = EACCES;
	EXPECT_EQ(Run({"apply", file}), 1);
	EXPECT_NE(err_.find("third@s1"), std::string::npos) << err_;
	Run({"policy", "s1"});
	EXPECT_EQ(out_, "numa\n");
	root_.busy = {"/dev/rnbd0"};
	write("");
	EXPECT_EQ(Run({"apply", "--only", "exports", "--prune", file}), 6);
	EXPECT_EQ(err_, "note: export disk is mapped by clients, so it stays\n");
	EXPECT_EQ(Run({"apply", "--only", "mounts", file}), 2);
	EXPECT_EQ(Run({"apply", "--prune", file}), 6);
	EXPECT_EQ(RunJson({"list"})["devices"].size(), 1U);
	EXPECT_EQ(Run({"apply", root_.Real("/missing")}), 2);
	// What cannot be read is not an empty file, which would take all away.
	EXPECT_EQ(Run({"apply", "--prune", root_.Real("")}), 2);
	write("x = 1");
	EXPECT_EQ(Run({"apply", file}), 2);
	EXPECT_NE(err_.find("rail.toml:1: "), std::string::npos) << err_;
}

TEST_F(Cli, Completion)
{
	AddOne();
	EXPECT_EQ(Complete({"unm"}), Strings{"unmap"});
	EXPECT_EQ(Complete({"unmap", ""}), Strings{"rnbd0"});
	EXPECT_EQ(Complete({"unmap", "rnbd0", ""}), Strings{"rnbd0"});
	EXPECT_EQ(Complete({"unmap", "--fo"}), Strings{"--force"});
	EXPECT_EQ(Complete({"show", "x"}), Strings{});
	EXPECT_EQ(Complete({"show", "rnbd0", ""}), Strings{});
	EXPECT_EQ(Complete({"path", "con"}), Strings{"connect"});
	EXPECT_EQ(Complete({"path", "connect", ""}), Strings{"s1"});
	EXPECT_EQ(Complete({"path", "connect", "s1", ""}), Strings{"ip:192.0.2.7@ip:192.0.2.1"});
	EXPECT_EQ(Complete({"policy", "s1", "min-l"}), Strings{"min-latency"});
	EXPECT_EQ(Complete({"export", "remove", ""}), Strings{"disk"});
	EXPECT_EQ(Complete({"export", "deny", "disk", ""}), Strings{"host-*"});
	EXPECT_EQ(Complete({"kick", "peer", ""}), Strings{"disk"});
	EXPECT_EQ(Complete({"map", "--session", ""}), Strings{"s1"});
	EXPECT_EQ(Complete({"map", "--port", ""}), Strings{});
	EXPECT_EQ(Complete({"--color", "al"}), Strings{"always"});
	EXPECT_EQ(Complete({"--color", "always", "rx"}), Strings{"rxe"});
	EXPECT_EQ(Complete({"rxe", "down", ""}), Strings{"eth0"});
	EXPECT_EQ(Complete({"nonsense", ""}), Strings{});
	EXPECT_EQ(Complete({}), Strings{});
	// What is not for users is not offered.
	EXPECT_EQ(Complete({"--ro"}), Strings{});
}

// The manual has every command, option and exit status.
TEST_F(Cli, IsInTheManual)
{
	std::ostringstream text;
	std::vector<Strings> commands = {{}};

	text << std::ifstream(RAILCTL_MANUAL).rdbuf();
	const std::string manual = text.str();
	ASSERT_FALSE(manual.empty());
	for (std::size_t i = 0; i < commands.size(); i++) {
		std::string name = "``railctl";
		Strings words = commands[i];

		for (const std::string &word : words)
			name += " " + word;
		words.emplace_back("");
		const Strings below = Complete(words);
		words.back() = "--";
		const Strings options = Complete(words);
		for (const std::string &option : options)
			EXPECT_NE(manual.find(option), manual.npos) << name << " " << option;
		for (const std::string &command : below) {
			words.back() = command;
			words.emplace_back("--help");
			// Names of what there is are none of it.
			if (Run(words) == 0 && out_.find("Usage: railctl") != out_.npos)
				commands.emplace_back(words.begin(), words.end() - 1);
			words.pop_back();
		}
		if (i > 0 && below.empty())
			EXPECT_NE(manual.find(name), manual.npos) << name;
	}
	EXPECT_GT(commands.size(), 30U);
	for (int status = 0; status <= static_cast<int>(Exit::kExists); status++)
		EXPECT_NE(manual.find("\n   * - " + std::to_string(status) + "\n"), manual.npos)
			<< status;
}

} // namespace
} // namespace rail::ctl
