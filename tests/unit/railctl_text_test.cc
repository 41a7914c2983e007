// SPDX-License-Identifier: GPL-2.0-only
// railctl: text, tables, errors.
#include <gtest/gtest.h>

#include <sstream>

#include "error.h"
#include "root.h"
#include "screen.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

TEST(Escape, LeavesTextAlone)
{
	EXPECT_EQ(Escape("vg0/lv-0 ip:192.0.2.1@ip:192.0.2.2"),
		  "vg0/lv-0 ip:192.0.2.1@ip:192.0.2.2");
	EXPECT_EQ(Escape("pl\u00e4tte \u65e5\u672c"), "pl\u00e4tte \u65e5\u672c");
	EXPECT_EQ(Escape(""), "");
}

TEST(Escape, Controls)
{
	EXPECT_EQ(Escape("a\033[31mb"), "a\\x1b[31mb");
	EXPECT_EQ(Escape("a\nb\rc\td\x7f"), "a\\nb\\x0dc\\x09d\\x7f");
	EXPECT_EQ(Escape(std::string_view("a\0b", 3)), "a\\x00b");
	// C1: some terminals take U+009B for ESC [.
	EXPECT_EQ(Escape("a\u009bb"), "a\\u{9b}b");
	EXPECT_EQ(Escape("a\\x1b"), "a\\\\x1b");
}

TEST(Escape, WhatTurnsOrHidesText)
{
	EXPECT_EQ(Escape("a\u202eb\u2066c\u200bd\ufeff"),
		  "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
	EXPECT_EQ(Escape("a\u2028b"), "a\\u{2028}b");
}

TEST(Escape, InvalidUtf8)
{
	EXPECT_EQ(Escape("a\xff\xfe"), "a\\xff\\xfe");
	EXPECT_EQ(Escape("\xc3"), "\\xc3");
	EXPECT_EQ(Escape("\xc0\xaf"), "\\xc0\\xaf");          // overlong
	EXPECT_EQ(Escape("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // surrogate
	EXPECT_EQ(Escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	EXPECT_EQ(Escape("\xe2\x82"), "\\xe2\\x82");
}

TEST(Utf8, Valid)
{
	EXPECT_TRUE(ValidUtf8("pl\u00e4tte"));
	EXPECT_FALSE(ValidUtf8("\xff"));
	EXPECT_FALSE(ValidUtf8("a\xe2\x82"));
}

TEST(Columns, CountsWhatIsSeen)
{
	EXPECT_EQ(Columns("abc"), 3U);
	EXPECT_EQ(Columns("\u00e4"), 1U);
	EXPECT_EQ(Columns("\u65e5\u672c"), 4U);
	EXPECT_EQ(Columns("e\u0301"), 1U);
}

TEST(Fit, CutsBetweenCharacters)
{
	EXPECT_EQ(Fit("abcdef", 6), "abcdef");
	EXPECT_EQ(Fit("abcdefg", 6), "abcd..");
	EXPECT_EQ(Fit("\u65e5\u672c\u8a9e", 5), "\u65e5..");
	EXPECT_LE(Columns(Fit("\u65e5\u672c\u8a9e", 5)), 5U);
}

TEST(Numbers, Parse)
{
	EXPECT_EQ(ToNumber("18446744073709551615"), UINT64_MAX);
	EXPECT_FALSE(ToNumber("18446744073709551616"));
	EXPECT_FALSE(ToNumber(""));
	EXPECT_FALSE(ToNumber("-1"));
	EXPECT_FALSE(ToNumber("1 "));
	EXPECT_FALSE(ToNumber("0x10"));
}

TEST(Numbers, Bytes)
{
	EXPECT_EQ(ToBytes("512"), 512U);
	EXPECT_EQ(ToBytes("10G"), 10ULL << 30);
	EXPECT_EQ(ToBytes("1.5T"), 3ULL << 39);
	EXPECT_EQ(ToBytes("4kiB"), 4096U);
	EXPECT_FALSE(ToBytes(""));
	EXPECT_FALSE(ToBytes("G"));
	EXPECT_FALSE(ToBytes("10X"));
	EXPECT_FALSE(ToBytes("-1G"));
	EXPECT_FALSE(ToBytes("99999999E"));
	EXPECT_FALSE(ToBytes("10Gfoo"));
	EXPECT_FALSE(ToBytes("nan"));
	EXPECT_EQ(BytesText(0), "0 B");
	EXPECT_EQ(BytesText(1023), "1023 B");
	EXPECT_EQ(BytesText(1024), "1.00 KiB");
	EXPECT_EQ(BytesText(104857600), "100.0 MiB");
	EXPECT_EQ(BytesText(UINT64_MAX), "16.0 EiB");
	EXPECT_EQ(NanosecondsText(999), "999 ns");
	EXPECT_EQ(NanosecondsText(54321), "54.3 us");
}

TEST(Address, Canonical)
{
	EXPECT_EQ(Address("192.0.2.1"), "ip:192.0.2.1");
	EXPECT_EQ(Address("ip:192.0.2.1:1234"), "ip:192.0.2.1:1234");
	EXPECT_EQ(Address("FE80:0::1"), "ip:fe80::1");
	EXPECT_EQ(Address("ip:[2001:DB8::0:1]:1234"), "ip:[2001:db8::1]:1234");
	EXPECT_EQ(Address("gid:fe80::1"), "gid:fe80:0000:0000:0000:0000:0000:0000:0001");
	// The loopback interface is there everywhere, and is the first.
	EXPECT_EQ(Address("fe80::1%lo"), "ip:fe80::1%1");
}

TEST(Address, Refused)
{
	for (const char *text : {"", "ip:", "host", "192.0.2", "192.0.2.1 path=ip:192.0.2.2",
				 "192.0.2.1:", "192.0.2.1:x", "[fe80::1", "[fe80::1]x",
				 "gid:192.0.2.1", "fe80::1%", "fe80::1%a b", "1:2:3"})
		EXPECT_FALSE(Address(text)) << text;
}

TEST(Address, Pairs)
{
	EXPECT_EQ(AddressPair("192.0.2.7,192.0.2.1"), "ip:192.0.2.7@ip:192.0.2.1");
	EXPECT_EQ(AddressPair("ip:192.0.2.7@192.0.2.1"), "ip:192.0.2.7@ip:192.0.2.1");
	EXPECT_EQ(AddressPair("192.0.2.1"), "ip:192.0.2.1");
	EXPECT_FALSE(AddressPair("192.0.2.7,"));
	EXPECT_FALSE(AddressPair("a,b"));
}

TEST(Address, WithoutPorts)
{
	EXPECT_EQ(WithoutPorts("ip:192.0.2.1:1234"), "ip:192.0.2.1");
	EXPECT_EQ(WithoutPorts("ip:192.0.2.1"), "ip:192.0.2.1");
	EXPECT_EQ(WithoutPorts("ip:[fe80::1]:1234"), "ip:fe80::1");
	EXPECT_EQ(WithoutPorts("ip:fe80::1"), "ip:fe80::1");
	EXPECT_EQ(WithoutPorts("ip:192.0.2.7:1@ip:192.0.2.1:2"), "ip:192.0.2.7@ip:192.0.2.1");
	EXPECT_EQ(WithoutPorts("gid:fe80:0000:0000:0000:0000:0000:0000:0001"),
		  "gid:fe80:0000:0000:0000:0000:0000:0000:0001");
}

TEST(Names, Natural)
{
	EXPECT_TRUE(NaturalLess("rnbd2", "rnbd10"));
	EXPECT_FALSE(NaturalLess("rnbd10", "rnbd2"));
	EXPECT_TRUE(NaturalLess("a", "b"));
	EXPECT_TRUE(NaturalLess("a", "a1"));
	EXPECT_FALSE(NaturalLess("a", "a"));
	// A strict order, though the numbers are equal.
	EXPECT_NE(NaturalLess("a01", "a1"), NaturalLess("a1", "a01"));
}

TEST(Names, SysfsAndBack)
{
	EXPECT_EQ(SysfsName("vg0/lv0"), "vg0!lv0");
	EXPECT_EQ(PlainName("vg0!lv0"), "vg0/lv0");
	EXPECT_EQ(Unmangle("/a\\040b\\134\\04"), "/a b\\\\04");
}

TEST(Names, OneComponentOfAPath)
{
	EXPECT_TRUE(IsFileName("s1"));
	for (const char *name : {"", ".", "..", "a/b", "/"})
		EXPECT_FALSE(IsFileName(name)) << name;
	EXPECT_FALSE(IsFileName(std::string(256, 'a')));
	EXPECT_FALSE(IsFileName(std::string_view("a\0b", 3)));
}

std::string Print(const Table &table, std::size_t columns, bool colour = false)
{
	std::ostringstream out;
	std::ostringstream err;

	table.Print({out, err, false, colour, false, false, columns});
	return out.str();
}

TEST(Table, AlignsColumns)
{
	Table table({{"NAME"}, {"SIZE", Column::kNumber}, {"STATE"}});

	table.Row({"a", "10", "open"});
	table.Row({"\u65e5\u672c\u8a9e", "5", "closed"});
	EXPECT_EQ(Print(table, 0), "NAME    SIZE  STATE\n"
				   "a         10  open\n"
				   "\u65e5\u672c\u8a9e     5  closed\n");
}

TEST(Table, FitsTheTerminal)
{
	Table table(
		{{"NAME", Column::kFlexible}, {"STATE"}, {"A"}, {"EXTRA", Column::kText, true}});

	table.Row({"a name that is quite long", "open", "1", "more"});
	for (std::size_t columns = 19; columns < 60; columns++) {
		std::istringstream lines(Print(table, columns));
		std::string line;

		while (std::getline(lines, line))
			EXPECT_LE(Columns(line), columns) << line;
	}
	// What matters is there however narrow.
	const std::string narrow = Print(table, 10);
	EXPECT_NE(narrow.find("open"), narrow.npos);
	EXPECT_EQ(narrow.find("more"), narrow.npos);
	EXPECT_NE(Print(table, 60).find("quite long"), narrow.npos);
	// A name that can be read is worth more than a column that may go.
	const std::string some = Print(table, 38);
	EXPECT_NE(some.find("quite long"), some.npos);
	EXPECT_EQ(some.find("more"), some.npos);
}

TEST(Table, ColourOnlyWhereItIsWanted)
{
	Table table({{"STATE"}});

	table.Row({{"open", Tint::kGood}});
	EXPECT_EQ(Print(table, 0), "STATE\nopen\n");
	EXPECT_NE(Print(table, 0, true).find("\033[32mopen\033[0m"), std::string::npos);
}

TEST(Table, EscapesCells)
{
	Table table({{"NAME"}});

	table.Row({"a\033[31m\nb"});
	EXPECT_EQ(Print(table, 0), "NAME\na\\x1b[31m\\nb\n");
}

TEST(Error, SaysAll)
{
	const Error error(Exit::kInUse, "rnbd0", "is in use", "umount /mnt");

	EXPECT_STREQ(error.what(), "rnbd0: is in use; umount /mnt");
	EXPECT_STREQ(Error(Exit::kFailed, "", "it failed").what(), "it failed");
}

} // namespace
} // namespace rail::ctl
