// SPDX-License-Identifier: GPL-2.0-only
// The only file that knows CLI11.
#include "cli.h"

#include <functional>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "json.h"
#include "names.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr const char *kComplete = "__complete";
constexpr std::size_t kHelpColumn = 26;
constexpr int kMostCount = 1000000;

// Without its text in the help, where the option's own says it.
template <typename Number> CLI::Validator Between(Number least, Number most)
{
	CLI::Validator range = CLI::Range(least, most);

	range.description("");
	return range;
}

CLI::Validator OneOf(const std::vector<std::string> &choices)
{
	CLI::Validator member = CLI::IsMember(choices);

	member.description("");
	return member;
}

class Cli
{
public:
	Cli();

	int Run(std::vector<std::string> args, const Terminal &terminal, std::ostream &out,
		std::ostream &err, Root *root);

private:
	using Action = std::function<Exit(const Context &)>;

	CLI::App *Command(CLI::App *parent, const std::string &name, const std::string &what,
			  const std::string &examples, const Action &action = {});
	CLI::Option *Operand(CLI::App *command, const std::string &name, std::string *to,
			     const std::string &what, Kind kind = Kind::kNone);
	CLI::Option *Operands(CLI::App *command, const std::string &name,
			      std::vector<std::string> *to, const std::string &what,
			      Kind kind = Kind::kNone);
	void Force(CLI::App *command, const std::string &what);

	void AddClient();
	void AddPaths();
	void AddServer();
	void AddHost();

	void Complete(const Root &root, const std::vector<std::string> &words, std::ostream &out);
	void CompleteWord(const Root &root, const CLI::App *app, const std::string &word,
			  const std::vector<std::string> &operands, std::ostream &out);
	static bool TakesValue(const CLI::Option *option);

	CLI::App app_{"Maps and exports block devices over RDMA, and looks after NFS over RDMA",
		      "railctl"};
	Action action_;
	std::map<const CLI::Option *, Kind> kinds_;

	// What the command line says.
	bool json_ = false;
	std::string colour_ = "auto";
	std::string root_;
	MapRequest map_;
	bool ro_ = false;
	bool migration_ = false;
	bool force_ = false;
	bool flag_ = false;
	bool prune_ = false;
	bool off_ = false;
	double seconds_ = 1;
	unsigned int count_ = 0;
	std::string first_;
	std::string second_;
	std::string option_;
	std::vector<std::string> many_;
};

CLI::App *Cli::Command(CLI::App *parent, const std::string &name, const std::string &what,
		       const std::string &examples, const Action &action)
{
	CLI::App *command = parent->add_subcommand(name, what);

	command->fallthrough();
	if (!examples.empty())
		command->footer("Examples:\n" + examples);
	if (action)
		command->callback([this, command, action] {
			// Of a command with commands of its own only when none of them was given.
			if (command->get_subcommands().empty())
				action_ = action;
		});
	return command;
}

CLI::Option *Cli::Operand(CLI::App *command, const std::string &name, std::string *to,
			  const std::string &what, Kind kind)
{
	CLI::Option *option = command->add_option(name, *to, what)->required();

	kinds_[option] = kind;
	return option;
}

CLI::Option *Cli::Operands(CLI::App *command, const std::string &name, std::vector<std::string> *to,
			   const std::string &what, Kind kind)
{
	CLI::Option *option = command->add_option(name, *to, what)->required();

	kinds_[option] = kind;
	return option;
}

void Cli::Force(CLI::App *command, const std::string &what)
{
	command->add_flag("-f,--force", force_, what);
}

void Cli::AddClient()
{
	CLI::App *map =
		Command(&app_, "map", "Map a server's device; prints its node",
			"  railctl map 192.0.2.1 disk\n"
			"  railctl map storage1 vg0/lv0 --ro\n"
			"  railctl map 192.0.2.1 disk --session s1 --path 192.0.2.7,192.0.2.1 \\\n"
			"          --path 198.51.100.7,198.51.100.1",
			[this](const Context &c) {
				map_.access = ro_ ? "ro" : migration_ ? "migration" : "rw";
				return CmdMap(c, map_);
			});
	Operand(map, "SERVER", &map_.server, "The server: an address, or a host's name");
	Operand(map, "DEVICE", &map_.remote, "What the server calls the device");
	kinds_[map->add_option("-s,--session", map_.session,
			       "Name of the session (one that leads there, or HOST-SERVER)")
		       ->type_name("NAME")] = Kind::kSession;
	map->add_option("-p,--path", map_.paths,
			"A path, [SRC,]DST; may be given more than once (default: SERVER)")
		->type_name("PATH")
		->allow_extra_args(false);
	CLI::Option *ro = map->add_flag("--ro", ro_, "For reading only");
	map->add_flag("--migration", migration_,
		      "For writing, though another client has it for writing too")
		->excludes(ro);
	map->add_option("--port", map_.port, "The server's port (1234)")
		->type_name("N")
		->check(Between(1, 65535));
	map->add_option("--poll-queues", map_.poll_queues,
			"Queues for I/O that is polled for (0 to 1024)")
		->type_name("N")
		->check(Between(0, 1024));
	map->add_option("--no-path-timeout", map_.no_path_timeout,
			"Seconds that I/O waits while there is no path (30; 0: not at all)")
		->type_name("S")
		->check(Between(0, 86400));

	CLI::App *unmap = Command(&app_, "unmap", "Unmap devices",
				  "  railctl unmap rnbd0\n"
				  "  railctl unmap disk@s1\n"
				  "  railctl unmap --force rnbd0 rnbd1",
				  [this](const Context &c) { return CmdUnmap(c, many_, force_); });
	Operands(unmap, "DEVICE", &many_, "rnbdN, its node, or REMOTE@SESSION", Kind::kDevice);
	Force(unmap, "Even if it is in use: what was not written is lost");

	CLI::App *remap =
		Command(&app_, "remap", "Open a closed device again", "  railctl remap rnbd0",
			[this](const Context &c) { return CmdRemap(c, first_); });
	Operand(remap, "DEVICE", &first_, "rnbdN, its node, or REMOTE@SESSION", Kind::kDevice);

	CLI::App *resize =
		Command(&app_, "resize", "Tell of a new size of the server's device",
			"  railctl resize rnbd0 20G\n"
			"\nNot needed between RAIL and RAIL: the new size is seen by itself.",
			[this](const Context &c) { return CmdResize(c, first_, second_); });
	Operand(resize, "DEVICE", &first_, "rnbdN, its node, or REMOTE@SESSION", Kind::kDevice);
	Operand(resize, "SIZE", &second_, "As 20G, or in bytes");

	Command(&app_, "list", "List the devices that are mapped",
		"  railctl list\n"
		"  railctl list --json | jq -r '.devices[].node'",
		CmdList);

	CLI::App *show =
		Command(&app_, "show", "Show a mapped device and its paths", "  railctl show rnbd0",
			[this](const Context &c) { return CmdShow(c, first_); });
	Operand(show, "DEVICE", &first_, "rnbdN, its node, or REMOTE@SESSION", Kind::kDevice);
}

void Cli::AddPaths()
{
	const std::string kSessionText = "The session";
	const std::string kPathText = "The path: its name, its destination, or SRC,DST";
	CLI::App *path = Command(&app_, "path", "Paths of the sessions with servers",
				 "  railctl path list\n"
				 "  railctl path add s1 198.51.100.7,198.51.100.1");

	path->require_subcommand(1);
	CLI::App *list = Command(path, "list", "List paths, their state and their numbers",
				 "  railctl path list\n"
				 "  railctl path list s1 --json",
				 [this](const Context &c) { return CmdPathList(c, first_); });
	Operand(list, "SESSION", &first_, "Of this session only", Kind::kSession)->required(false);

	CLI::App *add =
		Command(path, "add", "Add a path to a session",
			"  railctl path add s1 198.51.100.1\n"
			"  railctl path add s1 198.51.100.7,198.51.100.1",
			[this](const Context &c) { return CmdPathAdd(c, first_, second_); });
	Operand(add, "SESSION", &first_, kSessionText, Kind::kSession);
	Operand(add, "PATH", &second_, "[SRC,]DST, addresses");

	CLI::App *remove =
		Command(path, "remove", "Remove a path from a session",
			"  railctl path remove s1 198.51.100.1", [this](const Context &c) {
				return CmdPathRemove(c, first_, second_, force_);
			});
	Operand(remove, "SESSION", &first_, kSessionText, Kind::kSession);
	Operand(remove, "PATH", &second_, kPathText, Kind::kPath);
	Force(remove, "Even the last one of a session with devices");

	CLI::App *connect = Command(
		path, "connect", "Connect a path again", "  railctl path connect s1 198.51.100.1",
		[this](const Context &c) { return CmdPathConnect(c, first_, second_); });
	Operand(connect, "SESSION", &first_, kSessionText, Kind::kSession);
	Operand(connect, "PATH", &second_, kPathText, Kind::kPath);

	CLI::App *disconnect =
		Command(path, "disconnect", "Disconnect a path, and leave it so",
			"  railctl path disconnect s1 198.51.100.1",
			[this](const Context &c) { return CmdPathDisconnect(c, first_, second_); });
	Operand(disconnect, "SESSION", &first_, kSessionText, Kind::kSession);
	Operand(disconnect, "PATH", &second_, kPathText, Kind::kPath);

	CLI::App *policy =
		Command(&app_, "policy", "Show or set how a session chooses paths",
			"  railctl policy s1\n"
			"  railctl policy s1 min-latency",
			[this](const Context &c) { return CmdPolicy(c, first_, second_); });
	Operand(policy, "SESSION", &first_, kSessionText, Kind::kSession);
	Operand(policy, "POLICY", &second_,
		"round-robin, min-inflight, min-latency, numa or weighted", Kind::kPolicy)
		->required(false)
		->check(OneOf(Policies()));
}

void Cli::AddServer()
{
	CLI::App *exports = Command(
		&app_, "export", "Devices that clients may map; or with --toml, all there is",
		"  railctl export add disk /dev/vg0/lv0 --allow 192.0.2.7\n"
		"  railctl export list\n"
		"  railctl export --toml >/etc/rail/rail.toml",
		[this](const Context &c) {
			if (!flag_)
				throw Error(Exit::kUsage, "export", "needs a command, or --toml",
					    "railctl export --help shows them");
			return CmdExportToml(c);
		});
	exports->require_subcommand(0, 1);
	exports->add_flag("--toml", flag_,
			  "Print what is mapped and exported as a file for railctl apply");

	CLI::App *add = Command(exports, "add", "Export a block device",
				"  railctl export add disk /dev/vg0/lv0 --allow 192.0.2.7\n"
				"  railctl export add iso /dev/loop0 --ro --allow 192.0.2.0/24\n"
				"  railctl export add disk /dev/sdb --allow 'host-*@192.0.2.0/24'",
				[this](const Context &c) {
					Export wanted;

					wanted.name = first_;
					wanted.device = second_;
					wanted.read_only = ro_;
					wanted.enabled = !off_;
					wanted.allowed = many_;
					return CmdExportAdd(c, wanted);
				});
	Operand(add, "NAME", &first_, "What clients ask for");
	Operand(add, "DEVICE", &second_, "The block device");
	add->add_option(
		   "-a,--allow", many_,
		   "A client that may map it: an address, a network, a pattern of session names, "
		   "or PATTERN@ADDRESS; may be given more than once")
		->type_name("RULE")
		->allow_extra_args(false);
	add->add_flag("--ro", ro_, "For reading only");
	add->add_flag("--disabled", off_, "Not to be mapped until railctl export enable");

	Command(exports, "list", "List what is exported, to whom, and who has it",
		"  railctl export list --json", CmdExportList);

	const auto one = [&](const char *name, const char *what, const Action &action) {
		CLI::App *command =
			Command(exports, name, what,
				std::string("  railctl export ") + name + " disk", action);

		Operand(command, "NAME", &first_, "The export", Kind::kExport);
		return command;
	};
	one("show", "Show an export and who has it mapped",
	    [this](const Context &c) { return CmdExportShow(c, first_); });
	Force(one("remove", "Export a device no more",
		  [this](const Context &c) { return CmdExportRemove(c, first_, force_); }),
	      "Even if clients have it mapped: their I/O fails");
	one("enable", "Let clients map it",
	    [this](const Context &c) { return CmdExportEnable(c, first_); });
	Force(one("disable", "Let no client map it",
		  [this](const Context &c) { return CmdExportDisable(c, first_, force_); }),
	      "Even if clients have it mapped: their I/O fails");

	CLI::App *allow =
		Command(exports, "allow", "Let more clients map it",
			"  railctl export allow disk 192.0.2.8 192.0.2.0/24",
			[this](const Context &c) { return CmdExportAllow(c, first_, many_); });
	Operand(allow, "NAME", &first_, "The export", Kind::kExport);
	Operands(allow, "RULE", &many_,
		 "An address, a network, a pattern of session names, or PATTERN@ADDRESS");

	CLI::App *deny = Command(exports, "deny", "Take back what allow gave",
				 "  railctl export deny disk 192.0.2.8", [this](const Context &c) {
					 return CmdExportDeny(c, first_, many_);
				 });
	Operand(deny, "NAME", &first_, "The export", Kind::kExport);
	Operands(deny, "RULE", &many_, "As railctl export show has it", Kind::kRule);

	Command(&app_, "sessions", "List clients' sessions with this server", "  railctl sessions",
		CmdSessions);

	CLI::App *kick =
		Command(&app_, "kick", "Take devices away from a client",
			"  railctl kick host-a disk\n"
			"  railctl kick host-a --paths",
			[this](const Context &c) { return CmdKick(c, first_, second_, flag_); });
	Operand(kick, "SESSION", &first_, "The client's session", Kind::kServerSession);
	Operand(kick, "DEVICE", &second_, "This one only", Kind::kServerDevice)->required(false);
	kick->add_flag("--paths", flag_, "End the session's connections as well");
}

void Cli::AddHost()
{
	Command(&app_, "nfs", "List NFS mounts over RDMA, and the server's counters",
		"  railctl nfs --json", CmdNfs);

	CLI::App *stats = Command(&app_, "stats", "Show numbers and latencies",
				  "  railctl stats\n"
				  "  railctl stats rnbd0 --json",
				  [this](const Context &c) { return CmdStats(c, first_); });
	Operand(stats, "NAME", &first_, "Of this device, session or RDMA device only", Kind::kStats)
		->required(false);

	CLI::App *top = Command(&app_, "top", "Show what devices, paths and mounts do, live",
				"  railctl top\n"
				"  railctl top --interval 5\n"
				"  railctl top --count 1 | less",
				[this](const Context &c) { return CmdTop(c, seconds_, count_); });
	top->add_option("-i,--interval", seconds_, "Seconds between two looks (1)")
		->type_name("S")
		->check(Between(0.25, 60.0));
	top->add_option("-n,--count", count_, "Print N frames instead, one after the other")
		->type_name("N")
		->check(Between(1, kMostCount));

	CLI::App *watch = Command(&app_, "watch", "Print changes of state as they happen",
				  "  railctl watch\n"
				  "  railctl watch --json --count 1",
				  [this](const Context &c) { return CmdWatch(c, count_); });
	watch->add_option("-n,--count", count_, "End after N changes")
		->type_name("N")
		->check(Between(1, kMostCount));

	CLI::App *doctor = Command(
		&app_, "doctor", "Look for what is wrong with this host, and on the way to others",
		"  railctl doctor\n"
		"  railctl doctor 192.0.2.1\n"
		"  ssh 192.0.2.1 railctl --json doctor | railctl doctor --with -\n"
		"  railctl doctor --brief || echo 'something is wrong'",
		[this](const Context &c) { return CmdDoctor(c, flag_, many_, option_); });
	Operands(doctor, "SERVER", &many_, "Another host: does it answer by RDMA?")
		->required(false);
	doctor->add_option("--with", option_,
			   "What railctl --json doctor printed at the other end; - is the standard "
			   "input")
		->type_name("FILE");
	doctor->add_flag("-b,--brief", flag_, "Only what is wrong");

	CLI::App *rxe = Command(&app_, "rxe", "Software RDMA, for hosts without an RDMA card",
				"  railctl rxe up eth0\n"
				"  railctl rxe down eth0");
	rxe->require_subcommand(1);
	CLI::App *up = Command(rxe, "up", "Make a software RDMA device", "  railctl rxe up eth0",
			       [this](const Context &c) { return CmdRxeUp(c, first_, option_); });
	Operand(up, "NETDEV", &first_, "On this network interface", Kind::kNetdev);
	up->add_option("-n,--name", option_, "Its name (rxe_NETDEV)")->type_name("NAME");
	CLI::App *down =
		Command(rxe, "down", "Remove a software RDMA device", "  railctl rxe down eth0",
			[this](const Context &c) { return CmdRxeDown(c, first_); });
	Operand(down, "NETDEV", &first_, "The network interface, or the device", Kind::kRxe);

	CLI::App *apply = Command(
		&app_, "apply", "Make mappings and exports as a file wants them",
		"  railctl apply --dry-run /etc/rail/rail.toml\n"
		"  railctl apply /etc/rail/rail.toml\n"
		"\nNothing that is in use is taken away. railctl export --toml writes such a file.",
		[this](const Context &c) { return CmdApply(c, first_, flag_, prune_, option_); });
	Operand(apply, "FILE", &first_, "The file; - is the standard input");
	apply->add_flag("-n,--dry-run", flag_,
			"Only say what would be done; exit status 8 if anything");
	apply->add_flag("--prune", prune_, "Take away what is not in the file");
	kinds_[apply->add_option("--only", option_, "Only its exports or sessions")
		       ->type_name("PART")
		       ->check(OneOf({"exports", "sessions"}))] = Kind::kPart;
}

Cli::Cli()
{
	const auto &formatter = app_.get_formatter();

	formatter->label("SUBCOMMAND", "COMMAND");
	formatter->label("Subcommands", "Commands");
	formatter->label("Positionals", "Operands");
	// Who has to give what, the line of usage says.
	formatter->label("REQUIRED", "");
	formatter->label("TEXT", "");
	formatter->column_width(kHelpColumn);
	app_.footer("railctl COMMAND --help has examples. man railctl has the exit statuses.");
	app_.require_subcommand(1);
	app_.set_version_flag("--version", "railctl " RAIL_VERSION, "Print the version and exit");
	app_.add_flag("--json", json_, "Output for programs");
	kinds_[app_.add_option("--color,--colour", colour_, "auto, always or never")
		       ->type_name("WHEN")
		       ->check(OneOf({"auto", "always", "never"}))] = Kind::kColour;
	// For tests: a folder that stands in for /.
	app_.add_option("--root", root_)->group("");
	AddClient();
	AddPaths();
	AddServer();
	AddHost();
}

bool Cli::TakesValue(const CLI::Option *option)
{
	return option->get_type_size() > 0 && option->get_items_expected_max() > 0;
}

void Cli::CompleteWord(const Root &root, const CLI::App *app, const std::string &word,
		       const std::vector<std::string> &operands, std::ostream &out)
{
	const auto offer = [&](const std::string &text, const std::string &about) {
		if (text.compare(0, word.size(), word) == 0)
			out << text << '\t' << about << '\n';
	};

	if (!word.empty() && word[0] == '-') {
		for (const CLI::App *at = app; at; at = at->get_parent())
			for (const CLI::Option *option : at->get_options()) {
				if (option->get_group().empty())
					continue;
				for (const std::string &name : option->get_lnames())
					offer("--" + name, option->get_description());
			}
		return;
	}
	if (operands.empty())
		for (const CLI::App *command :
		     app->get_subcommands([](const CLI::App *) { return true; }))
			offer(command->get_name(), command->get_description());
	std::size_t at = 0;
	const CLI::Option *last = nullptr;
	for (const CLI::Option *option : app->get_options()) {
		if (!option->get_positional())
			continue;
		last = option;
		if (at++ == operands.size())
			break;
	}
	// The last one may be there more than once.
	if (!last || (at <= operands.size() && last->get_items_expected_max() <= 1))
		return;
	const auto kind = kinds_.find(last);
	if (kind == kinds_.end())
		return;
	// Rules belong to the export, which is the first.
	const std::string before = operands.empty() ? "" : operands[0];
	for (const Candidate &candidate : Names(root, kind->second, before))
		offer(candidate.text, candidate.about);
}

void Cli::Complete(const Root &root, const std::vector<std::string> &words, std::ostream &out)
{
	const CLI::App *app = &app_;
	const CLI::Option *waits = nullptr;
	std::vector<std::string> operands;

	if (words.empty())
		return;
	for (std::size_t i = 0; i + 1 < words.size(); i++) {
		const std::string &word = words[i];
		const CLI::App *next = nullptr;

		if (waits) {
			waits = nullptr;
			continue;
		}
		if (word.size() > 1 && word[0] == '-') {
			if (word.find('=') != std::string::npos)
				continue;
			for (const CLI::App *at = app; at && !waits; at = at->get_parent())
				for (const CLI::Option *option : at->get_options())
					if (option->check_name(word) && TakesValue(option))
						waits = option;
			continue;
		}
		if (operands.empty())
			for (const CLI::App *command :
			     app->get_subcommands([](const CLI::App *) { return true; }))
				if (command->get_name() == word)
					next = command;
		if (next)
			app = next;
		else
			operands.push_back(word);
	}
	if (!waits) {
		CompleteWord(root, app, words.back(), operands, out);
		return;
	}
	const auto kind = kinds_.find(waits);
	if (kind == kinds_.end())
		return;
	for (const Candidate &candidate : Names(root, kind->second, ""))
		if (candidate.text.compare(0, words.back().size(), words.back()) == 0)
			out << candidate.text << '\t' << candidate.about << '\n';
}

int Cli::Run(std::vector<std::string> args, const Terminal &terminal, std::ostream &out,
	     std::ostream &err, Root *root)
{
	std::unique_ptr<Root> own;
	Screen screen{out, err};

	if (!args.empty() && args[0] == kComplete) {
		own = std::make_unique<Root>();
		args.erase(args.begin());
		Complete(root ? *root : *own, args, out);
		return 0;
	}
	screen.err_colour = terminal.err && terminal.colour;
	try {
		std::reverse(args.begin(), args.end());
		app_.parse(std::move(args));
	} catch (const CLI::Success &success) {
		app_.exit(success, out, err);
		return 0;
	} catch (const CLI::ParseError &error) {
		const CLI::App *at = &app_;
		std::string name = "railctl";

		// Help is there for the innermost command that was understood.
		while (!at->get_subcommands().empty()) {
			at = at->get_subcommands().back();
			name += " " + at->get_name();
		}
		ShowError(screen, Error(Exit::kUsage, "", error.what(), name + " --help"));
		return static_cast<int>(Exit::kUsage);
	}
	screen.json = json_;
	screen.colour =
		colour_ == "always" || (colour_ == "auto" && terminal.out && terminal.colour);
	screen.err_colour = colour_ == "always" || (colour_ == "auto" && screen.err_colour);
	screen.err_terminal = terminal.err;
	screen.terminal = terminal.out && terminal.in;
	screen.columns = terminal.columns;
	if (!root) {
		own = std::make_unique<Root>(root_);
		root = own.get();
	}
	try {
		return static_cast<int>(action_({*root, screen}));
	} catch (const Error &error) {
		ShowError(screen, error);
		if (json_)
			out << ErrorJson(error);
		return static_cast<int>(error.exit());
	}
}

} // namespace

int Run(const std::vector<std::string> &args, const Terminal &terminal, std::ostream &out,
	std::ostream &err, Root *root)
{
	return Cli().Run(args, terminal, out, err, root);
}

} // namespace rail::ctl
