// SPDX-License-Identifier: GPL-2.0-only
#include "text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <fmt/format.h>

namespace rail::ctl
{
namespace
{

struct Range {
	std::uint32_t from;
	std::uint32_t to;
};

// A code point and how many bytes it took; bytes 0: invalid.
struct Decoded {
	std::uint32_t code = 0;
	std::size_t bytes = 0;
};

template <std::size_t n> bool In(const std::array<Range, n> &ranges, std::uint32_t code)
{
	return std::any_of(ranges.begin(), ranges.end(),
			   [&](const Range &r) { return code >= r.from && code <= r.to; });
}

// Controls, what changes the direction of writing or is not to be seen, and line ends of Unicode's.
constexpr std::array<Range, 10> kUnsafe = {{
	{0x0, 0x1f},
	{0x7f, 0x9f},
	{0xad, 0xad},
	{0x61c, 0x61c},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x206f},
	{0xfeff, 0xfeff},
	{0xfff0, 0xfffb},
	{0xe0000, 0x10ffff},
}};

constexpr std::array<Range, 9> kWide = {{
	{0x1100, 0x115f},
	{0x2e80, 0xa4cf},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff00, 0xff60},
	{0xffe0, 0xffe6},
	{0x1f300, 0x1faff},
	{0x20000, 0x3fffd},
}};

constexpr std::array<Range, 4> kCombining = {{
	{0x300, 0x36f},
	{0x1ab0, 0x1aff},
	{0x20d0, 0x20ff},
	{0xfe00, 0xfe0f},
}};

Decoded Decode(std::string_view text)
{
	static constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
	const auto first = static_cast<unsigned char>(text[0]);
	Decoded d;

	if (first < 0x80)
		return {first, 1};
	if (first >= 0xc2 && first < 0xe0)
		d = {first & 0x1fU, 2};
	else if (first >= 0xe0 && first < 0xf0)
		d = {first & 0xfU, 3};
	else if (first >= 0xf0 && first < 0xf5)
		d = {first & 0x7U, 4};
	else
		return {};
	if (text.size() < d.bytes)
		return {};
	for (std::size_t i = 1; i < d.bytes; i++) {
		const auto next = static_cast<unsigned char>(text[i]);

		if ((next & 0xc0U) != 0x80)
			return {};
		d.code = d.code << 6 | (next & 0x3fU);
	}
	if (d.code < kLeast.at(d.bytes) || d.code > 0x10ffff ||
	    (d.code >= 0xd800 && d.code < 0xe000))
		return {};
	return d;
}

std::size_t Width(std::uint32_t code)
{
	if (In(kCombining, code))
		return 0;
	return In(kWide, code) ? 2 : 1;
}

bool IsDigit(char c)
{
	return c >= '0' && c <= '9';
}

bool IsSpace(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

std::optional<std::string> CanonicalV6(std::string_view text)
{
	const auto percent = text.find('%');
	std::string bare(text.substr(0, percent));
	std::array<char, INET6_ADDRSTRLEN> out{};
	in6_addr addr{};

	if (inet_pton(AF_INET6, bare.c_str(), &addr) != 1 ||
	    !inet_ntop(AF_INET6, &addr, out.data(), out.size()))
		return std::nullopt;
	bare = out.data();
	if (percent != std::string_view::npos) {
		std::string scope(text.substr(percent + 1));
		const unsigned int index = if_nametoindex(scope.c_str());

		if (scope.empty() || std::any_of(scope.begin(), scope.end(), IsSpace))
			return std::nullopt;
		// The kernel shows the index.
		bare += '%' + (index ? std::to_string(index) : scope);
	}
	return bare;
}

std::optional<std::string> CanonicalIp(std::string_view text)
{
	const auto colon = text.find(':');
	std::string_view host = text;
	std::string_view port;
	in_addr v4{};

	if (!text.empty() && text[0] == '[') {
		const auto bracket = text.find(']');

		if (bracket == std::string_view::npos)
			return std::nullopt;
		host = text.substr(1, bracket - 1);
		port = text.substr(bracket + 1);
		if (!port.empty() && (port[0] != ':' || !ToNumber(port.substr(1))))
			return std::nullopt;
		const auto v6 = CanonicalV6(host);
		if (!v6)
			return std::nullopt;
		return port.empty() ? *v6 : fmt::format("[{}]{}", *v6, port);
	}
	if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos)
		return CanonicalV6(text);
	if (colon != std::string_view::npos) {
		host = text.substr(0, colon);
		port = text.substr(colon);
		if (!ToNumber(port.substr(1)))
			return std::nullopt;
	}
	if (inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1)
		return std::nullopt;
	return std::string(text);
}

} // namespace

std::string Escape(std::string_view text)
{
	std::string out;

	while (!text.empty()) {
		const Decoded d = Decode(text);

		if (!d.bytes) {
			out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
			text.remove_prefix(1);
			continue;
		}
		if (d.code == '\\')
			out += "\\\\";
		else if (d.code == '\n')
			out += "\\n";
		else if (d.code < 0x80 && In(kUnsafe, d.code))
			out += fmt::format("\\x{:02x}", d.code);
		else if (In(kUnsafe, d.code))
			out += fmt::format("\\u{{{:x}}}", d.code);
		else
			out += text.substr(0, d.bytes);
		text.remove_prefix(d.bytes);
	}
	return out;
}

std::size_t Columns(std::string_view text)
{
	std::size_t columns = 0;

	while (!text.empty()) {
		const Decoded d = Decode(text);

		columns += d.bytes ? Width(d.code) : 1;
		text.remove_prefix(std::max<std::size_t>(d.bytes, 1));
	}
	return columns;
}

std::string Fit(std::string_view text, std::size_t columns)
{
	constexpr std::string_view kEllipsis = "..";
	std::size_t used = 0;
	std::size_t at = 0;

	if (Columns(text) <= columns)
		return std::string(text);
	while (at < text.size()) {
		const Decoded d = Decode(text.substr(at));
		const std::size_t width = d.bytes ? Width(d.code) : 1;

		if (used + width + kEllipsis.size() > columns)
			break;
		used += width;
		at += std::max<std::size_t>(d.bytes, 1);
	}
	return std::string(text.substr(0, at)) + std::string(kEllipsis);
}

bool ValidUtf8(std::string_view text)
{
	while (!text.empty()) {
		const Decoded d = Decode(text);

		if (!d.bytes)
			return false;
		text.remove_prefix(d.bytes);
	}
	return true;
}

std::string_view Trim(std::string_view text)
{
	while (!text.empty() && IsSpace(text.front()))
		text.remove_prefix(1);
	while (!text.empty() && IsSpace(text.back()))
		text.remove_suffix(1);
	return text;
}

std::vector<std::string> Words(std::string_view text)
{
	std::vector<std::string> words;
	std::size_t at = 0;

	while (at < text.size()) {
		std::size_t end = at;

		while (end < text.size() && !IsSpace(text[end]))
			end++;
		if (end > at)
			words.emplace_back(text.substr(at, end - at));
		at = end + 1;
	}
	return words;
}

std::vector<std::string> Lines(std::string_view text)
{
	std::vector<std::string> lines;

	while (!text.empty()) {
		const auto end = text.find('\n');

		lines.emplace_back(text.substr(0, end));
		if (end == std::string_view::npos)
			break;
		text.remove_prefix(end + 1);
	}
	return lines;
}

std::optional<std::uint64_t> ToNumber(std::string_view text)
{
	std::uint64_t value = 0;
	const char *end = text.data() + text.size();
	const auto [at, error] = std::from_chars(text.data(), end, value);

	if (text.empty() || error != std::errc() || at != end)
		return std::nullopt;
	return value;
}

std::optional<std::uint64_t> ToBytes(std::string_view text)
{
	constexpr std::string_view kUnits = "KMGTPE";
	const char *begin = text.data();
	const char *end = begin + text.size();
	double value = 0;

	// Exact where it can be: a double has 53 bits.
	if (const auto whole = ToNumber(text))
		return whole;
	if (text.empty() || !IsDigit(text[0]))
		return std::nullopt;
	const auto [at, error] = std::from_chars(begin, end, value);
	if (error != std::errc() || at == end)
		return std::nullopt;
	const auto unit = kUnits.find(static_cast<char>(*at & ~0x20));
	const std::string_view rest(at + 1, static_cast<std::size_t>(end - at - 1));
	if (unit == std::string_view::npos || !(rest.empty() || rest == "iB" || rest == "B"))
		return std::nullopt;
	value = std::ldexp(value, 10 * (static_cast<int>(unit) + 1));
	if (!(value >= 0 && value < std::ldexp(1.0, 64)))
		return std::nullopt;
	return static_cast<std::uint64_t>(value);
}

std::string BytesText(std::uint64_t bytes)
{
	constexpr std::string_view kUnits = "KMGTPE";
	double value = static_cast<double>(bytes);
	std::size_t unit = 0;

	if (bytes < 1024)
		return fmt::format("{} B", bytes);
	for (value /= 1024; value >= 1023.95 && unit + 1 < kUnits.size(); value /= 1024)
		unit++;
	return fmt::format("{:.{}f} {}iB", value, value < 9.995 ? 2 : 1, kUnits[unit]);
}

std::string NanosecondsText(std::uint64_t ns)
{
	if (ns < 1000)
		return fmt::format("{} ns", ns);
	if (ns < 1000000)
		return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
	if (ns < 1000000000)
		return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
	return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

bool HasControl(std::string_view text)
{
	return std::any_of(text.begin(), text.end(),
			   [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

std::string Unmangle(std::string_view text)
{
	std::string out;

	for (std::size_t i = 0; i < text.size(); i++) {
		const auto octal = [&](std::size_t at) {
			return at < text.size() && text[at] >= '0' && text[at] <= '7';
		};

		if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
			out += static_cast<char>((text[i + 1] - '0') << 6 |
						 (text[i + 2] - '0') << 3 | (text[i + 3] - '0'));
			i += 3;
		} else {
			out += text[i];
		}
	}
	return out;
}

std::string SysfsName(std::string_view name)
{
	std::string out(name);

	std::replace(out.begin(), out.end(), '/', '!');
	return out;
}

std::string PlainName(std::string_view name)
{
	std::string out(name);

	std::replace(out.begin(), out.end(), '!', '/');
	return out;
}

std::optional<std::string> Address(std::string_view text)
{
	constexpr std::string_view kIp = "ip:";
	constexpr std::string_view kGid = "gid:";
	std::array<char, sizeof("0000:0000:0000:0000:0000:0000:0000:0000")> out{};
	in6_addr gid{};

	if (text.substr(0, kGid.size()) == kGid) {
		const std::string bare(text.substr(kGid.size()));

		if (inet_pton(AF_INET6, bare.c_str(), &gid) != 1)
			return std::nullopt;
		// In full, as the kernel shows GIDs.
		for (std::size_t i = 0; i < 8; i++)
			fmt::format_to(out.data() + 5 * i, "{:02x}{:02x}{}", gid.s6_addr[2 * i],
				       gid.s6_addr[2 * i + 1], i < 7 ? ":" : "");
		return std::string(kGid) + out.data();
	}
	if (text.substr(0, kIp.size()) == kIp)
		text.remove_prefix(kIp.size());
	const auto ip = CanonicalIp(text);
	if (!ip)
		return std::nullopt;
	return std::string(kIp) + *ip;
}

std::optional<std::string> AddressPair(std::string_view text)
{
	const auto sign = text.find_first_of(",@");

	if (sign == std::string_view::npos)
		return Address(text);
	const auto src = Address(text.substr(0, sign));
	const auto dst = Address(text.substr(sign + 1));
	if (!src || !dst)
		return std::nullopt;
	return *src + '@' + *dst;
}

std::string WithoutPorts(std::string_view addresses)
{
	const auto at = addresses.find('@');

	if (at != std::string_view::npos)
		return WithoutPorts(addresses.substr(0, at)) + '@' +
		       WithoutPorts(addresses.substr(at + 1));
	const auto bracket = addresses.find('[');
	const auto colon = addresses.find(':', 3);
	if (addresses.substr(0, 3) != "ip:")
		return std::string(addresses);
	if (bracket == 3)
		return "ip:" + std::string(addresses.substr(4, addresses.find(']') - 4));
	// One colon more is a port, two are an IPv6 address.
	if (colon != std::string_view::npos && addresses.find(':', colon + 1) == addresses.npos &&
	    addresses.find('.') < colon)
		return std::string(addresses.substr(0, colon));
	return std::string(addresses);
}

bool NaturalLess(std::string_view a, std::string_view b)
{
	std::size_t i = 0;
	std::size_t j = 0;

	while (i < a.size() && j < b.size()) {
		if (IsDigit(a[i]) && IsDigit(b[j])) {
			std::size_t iend = i;
			std::size_t jend = j;

			while (iend < a.size() && IsDigit(a[iend]))
				iend++;
			while (jend < b.size() && IsDigit(b[jend]))
				jend++;
			const auto x = ToNumber(a.substr(i, iend - i));
			const auto y = ToNumber(b.substr(j, jend - j));
			if (x && y && *x != *y)
				return *x < *y;
			i = iend;
			j = jend;
			continue;
		}
		if (a[i] != b[j])
			return a[i] < b[j];
		i++;
		j++;
	}
	if (a.size() - i != b.size() - j)
		return a.size() - i < b.size() - j;
	return a < b;
}

} // namespace rail::ctl
