// SPDX-License-Identifier: GPL-2.0-only
// The only file that knows toml++.
#include <initializer_list>
#include <sstream>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "client.h"
#include "error.h"
#include "text.h"
#include "wanted.h"

namespace rail::ctl
{
namespace
{

constexpr std::uint64_t kLongestNoPathTimeout = 86400;
constexpr std::uint64_t kMostPollQueues = 1024;
constexpr std::uint64_t kMostPort = 65535;

class Reader
{
public:
	explicit Reader(const std::string &origin) : origin_(origin) {}

	[[noreturn]] void Fail(const toml::node &node, const std::string &what) const
	{
		throw Error(Exit::kUsage, Place(node.source()), what,
			    "man railctl has an example of such a file");
	}

	std::string Place(const toml::source_region &region) const
	{
		return fmt::format("{}:{}", origin_, region.begin.line);
	}

	void Known(const toml::table &table, std::initializer_list<std::string_view> keys) const
	{
		for (const auto &[key, node] : table) {
			const std::string_view name = key.str();

			if (std::find(keys.begin(), keys.end(), name) == keys.end())
				Fail(node, fmt::format("there is no '{}' here; known are: {}", name,
						       fmt::join(keys, ", ")));
		}
	}

	template <typename T>
	std::optional<T> Get(const toml::table &table, std::string_view key) const
	{
		const toml::node *node = table.get(key);

		if (!node)
			return std::nullopt;
		if (auto value = node->value_exact<T>())
			return value;
		Fail(*node, fmt::format("'{}' has to be {}", key,
					std::is_same_v<T, std::string> ? "a string in quotes"
					: std::is_same_v<T, bool>      ? "true or false"
								       : "a number"));
	}

	std::string Need(const toml::table &table, std::string_view key) const
	{
		auto value = Get<std::string>(table, key);

		if (!value || value->empty())
			Fail(table, fmt::format("'{}' is missing", key));
		return std::move(*value);
	}

	std::optional<std::uint64_t> Number(const toml::table &table, std::string_view key,
					    std::uint64_t most) const
	{
		const auto value = Get<std::int64_t>(table, key);

		if (!value)
			return std::nullopt;
		if (*value < 0 || static_cast<std::uint64_t>(*value) > most)
			Fail(*table.get(key),
			     fmt::format("'{}' has to be a number from 0 to {}", key, most));
		return static_cast<std::uint64_t>(*value);
	}

	std::vector<std::string> Strings(const toml::table &table, std::string_view key) const
	{
		const toml::node *node = table.get(key);
		std::vector<std::string> strings;

		if (!node)
			return strings;
		if (!node->is_array())
			Fail(*node, fmt::format("'{}' has to be an array of strings", key));
		for (const toml::node &item : *node->as_array()) {
			const auto value = item.value_exact<std::string>();

			if (!value)
				Fail(item, fmt::format("'{}' has to be an array of strings", key));
			strings.push_back(*value);
		}
		return strings;
	}

	std::vector<const toml::table *> Tables(const toml::table &table,
						std::string_view key) const
	{
		const toml::node *node = table.get(key);
		std::vector<const toml::table *> tables;

		if (!node)
			return tables;
		if (!node->is_array())
			Fail(*node, fmt::format("write it as [[{}]]", key));
		for (const toml::node &item : *node->as_array()) {
			if (!item.is_table())
				Fail(item, fmt::format("write it as [[{}]]", key));
			tables.push_back(item.as_table());
		}
		return tables;
	}

	std::string Choice(const toml::table &table, std::string_view key,
			   const std::vector<std::string> &choices) const
	{
		auto value = Get<std::string>(table, key);

		if (!value)
			return choices[0];
		if (std::find(choices.begin(), choices.end(), *value) == choices.end())
			Fail(*table.get(key), fmt::format("'{}' has to be one of: {}", key,
							  fmt::join(choices, ", ")));
		return std::move(*value);
	}

private:
	const std::string &origin_;
};

WantedExport ReadExport(const Reader &reader, const toml::table &table)
{
	WantedExport wanted;

	reader.Known(table, {"name", "device", "access", "allow", "enable"});
	wanted.name = reader.Need(table, "name");
	wanted.device = reader.Need(table, "device");
	wanted.access = reader.Choice(table, "access", {"rw", "ro"});
	wanted.allow = reader.Strings(table, "allow");
	wanted.enable = reader.Get<bool>(table, "enable").value_or(true);
	return wanted;
}

WantedSession ReadSession(const Reader &reader, const toml::table &table)
{
	WantedSession wanted;

	reader.Known(table, {"name", "paths", "port", "poll_queues", "no_path_timeout",
			     "max_reconnect_attempts", "policy", "device"});
	wanted.name = reader.Need(table, "name");
	wanted.paths = reader.Strings(table, "paths");
	if (wanted.paths.empty())
		reader.Fail(table, "a session needs 'paths'");
	wanted.port = reader.Number(table, "port", kMostPort);
	wanted.poll_queues = reader.Number(table, "poll_queues", kMostPollQueues);
	wanted.no_path_timeout = reader.Number(table, "no_path_timeout", kLongestNoPathTimeout);
	wanted.max_reconnects = reader.Get<std::int64_t>(table, "max_reconnect_attempts");
	if (wanted.max_reconnects && *wanted.max_reconnects < -1)
		reader.Fail(*table.get("max_reconnect_attempts"),
			    "'max_reconnect_attempts' is -1 for any number, or from 0 up");
	if (table.contains("policy"))
		wanted.policy = reader.Choice(table, "policy", Policies());
	for (const toml::table *device : reader.Tables(table, "device")) {
		reader.Known(*device, {"name", "access"});
		for (const WantedDevice &other : wanted.devices)
			if (other.name == reader.Need(*device, "name"))
				reader.Fail(*device, fmt::format("there are two devices named '{}'",
								 other.name));
		wanted.devices.push_back(
			{reader.Need(*device, "name"),
			 reader.Choice(*device, "access", {"rw", "ro", "migration"})});
	}
	return wanted;
}

void CheckUtf8(const std::string &text)
{
	if (!ValidUtf8(text))
		throw Error(Exit::kFailed, text, "is a name that a TOML file cannot hold: no UTF-8",
			    "give it another name first");
}

toml::array Strings(const std::vector<std::string> &list)
{
	toml::array array;

	for (const std::string &text : list) {
		CheckUtf8(text);
		array.push_back(text);
	}
	return array;
}

// toml++ sorts keys. These tables are written a key at a time, so that the name comes first.
class Writer
{
public:
	void Head(std::string_view name) { out_ << "\n[[" << name << "]]\n"; }
	void Line(std::string_view key, const std::string &text)
	{
		CheckUtf8(text);
		out_ << key << " = " << toml::value<std::string>(text) << '\n';
	}
	void Line(std::string_view key, const std::vector<std::string> &list)
	{
		out_ << key << " = " << Strings(list) << '\n';
	}
	void Number(std::string_view key, std::int64_t number)
	{
		out_ << key << " = " << number << '\n';
	}
	void Flag(std::string_view key, bool flag)
	{
		out_ << key << " = " << (flag ? "true" : "false") << '\n';
	}
	std::string Text() const { return out_.str(); }

private:
	std::ostringstream out_;
};

} // namespace

Wanted ParseToml(const std::string &text, const std::string &origin)
{
	const Reader reader(origin);
	Wanted wanted;
	toml::table table;

	try {
		table = toml::parse(text);
	} catch (const toml::parse_error &error) {
		throw Error(Exit::kUsage, reader.Place(error.source()),
			    std::string(error.description()),
			    "man railctl has an example of such a file");
	}
	reader.Known(table, {"export", "session"});
	for (const toml::table *one : reader.Tables(table, "export")) {
		wanted.exports.push_back(ReadExport(reader, *one));
		for (std::size_t i = 0; i + 1 < wanted.exports.size(); i++)
			if (SysfsName(wanted.exports[i].name) ==
			    SysfsName(wanted.exports.back().name))
				reader.Fail(*one, fmt::format("there are two exports named '{}'",
							      wanted.exports.back().name));
	}
	for (const toml::table *one : reader.Tables(table, "session")) {
		wanted.sessions.push_back(ReadSession(reader, *one));
		for (std::size_t i = 0; i + 1 < wanted.sessions.size(); i++)
			if (wanted.sessions[i].name == wanted.sessions.back().name)
				reader.Fail(*one, fmt::format("there are two sessions named '{}'",
							      wanted.sessions.back().name));
	}
	return wanted;
}

std::string WriteToml(const Wanted &wanted)
{
	Writer writer;

	for (const WantedExport &one : wanted.exports) {
		writer.Head("export");
		writer.Line("name", one.name);
		writer.Line("device", one.device);
		writer.Line("access", one.access);
		writer.Line("allow", one.allow);
		writer.Flag("enable", one.enable);
	}
	for (const WantedSession &one : wanted.sessions) {
		writer.Head("session");
		writer.Line("name", one.name);
		writer.Line("paths", one.paths);
		if (one.port)
			writer.Number("port", static_cast<std::int64_t>(*one.port));
		if (one.poll_queues)
			writer.Number("poll_queues", static_cast<std::int64_t>(*one.poll_queues));
		if (one.no_path_timeout)
			writer.Number("no_path_timeout",
				      static_cast<std::int64_t>(*one.no_path_timeout));
		if (one.max_reconnects)
			writer.Number("max_reconnect_attempts", *one.max_reconnects);
		if (one.policy)
			writer.Line("policy", *one.policy);
		for (const WantedDevice &device : one.devices) {
			writer.Head("session.device");
			writer.Line("name", device.name);
			writer.Line("access", device.access);
		}
	}
	return "# Written by railctl export --toml; railctl apply takes it.\n" + writer.Text();
}

} // namespace rail::ctl
