// SPDX-License-Identifier: GPL-2.0-only
// Text: names from peers made safe to show, addresses, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rail::ctl
{

// For a terminal: control characters, invalid UTF-8 and what would turn or hide text are written as
// \xNN or \u{NNNN}, a backslash as two.
std::string Escape(std::string_view text);

// Columns that escaped text takes on a terminal.
std::size_t Columns(std::string_view text);

// The longest beginning of escaped text that fits, with an ellipsis if something is left out.
std::string Fit(std::string_view text, std::size_t columns);

bool ValidUtf8(std::string_view text);

std::string_view Trim(std::string_view text);
std::vector<std::string> Words(std::string_view text);
std::vector<std::string> Lines(std::string_view text);

// A whole decimal number and nothing else.
std::optional<std::uint64_t> ToNumber(std::string_view text);
// "4096", "10M", "1.5T"; powers of 1024.
std::optional<std::uint64_t> ToBytes(std::string_view text);
std::string BytesText(std::uint64_t bytes);
std::string NanosecondsText(std::uint64_t ns);

bool HasControl(std::string_view text);

// White space and such is written as \040 in the kernel's tables of mounts.
std::string Unmangle(std::string_view text);

// A name as sysfs and configfs have it: '!' for '/'.
std::string SysfsName(std::string_view name);
// The other way.
std::string PlainName(std::string_view name);

// "192.0.2.1" -> "ip:192.0.2.1"; what has a prefix keeps it. Spelled as the kernel spells it, so
// that equal addresses compare equal. nullopt: it is none.
std::optional<std::string> Address(std::string_view text);
// The same of "SRC,DST", "SRC@DST" or "DST": "SRC@DST", or "DST".
std::optional<std::string> AddressPair(std::string_view text);

// An address, or a pair of them, as Address() and AddressPair() make them, without ports: so sysfs
// has them.
std::string WithoutPorts(std::string_view addresses);

// Names as people sort them: rnbd2 before rnbd10.
bool NaturalLess(std::string_view a, std::string_view b);

} // namespace rail::ctl
