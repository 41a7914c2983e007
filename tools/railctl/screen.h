// SPDX-License-Identifier: GPL-2.0-only
// Where output goes, and tables.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rail::ctl
{

enum class Tint { kNone, kGood, kWarn, kBad, kDim, kBold, kAccent };

struct Screen {
	std::ostream &out;
	std::ostream &err;
	bool json = false;
	bool colour = false;     // of out
	bool err_colour = false; // of err
	bool err_terminal = false;
	std::size_t columns = 0; // of out; 0: any number
	bool terminal = false;   // out is one, with a keyboard
};

// Text of a cell, escaped.
struct Cell {
	std::string text;
	Tint tint = Tint::kNone;

	Cell() = default;
	// Escapes.
	Cell(std::string_view raw, Tint t = Tint::kNone); // NOLINT: cells are made of any text
	Cell(const std::string &raw, Tint t = Tint::kNone) : Cell(std::string_view(raw), t) {}
	Cell(const char *raw, Tint t = Tint::kNone) : Cell(std::string_view(raw), t) {}
};

// A piece of a line, ready to be shown.
struct Span {
	std::string text;
	Tint tint = Tint::kNone;
};
using Line = std::vector<Span>;

// As the bytes that a terminal, or without colour anything, is sent.
std::string LineText(const Line &line, bool colour);

struct Column {
	enum Kind {
		kText,     // never cut
		kFlexible, // may be cut to fit the terminal
		kNumber,   // to the right, never cut
	};
	std::string title;
	Kind kind = kText;
	// Not 0: may be left out where the terminal is too narrow, the highest first, of those the
	// last.
	int optional = 0;
};

class Table
{
public:
	explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

	void Row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
	bool empty() const { return rows_.empty(); }
	// Its lines, in so many columns; 0: any number.
	std::vector<Line> Lines(std::size_t columns) const;
	void Print(const Screen &screen) const;

private:
	std::vector<Column> columns_;
	std::vector<std::vector<Cell>> rows_;
};

// Lines "name  value" of one object; names are aligned.
void PrintFields(const Screen &screen, const std::vector<std::pair<std::string, Cell>> &fields);

std::string Tinted(bool colour, Tint tint, std::string_view text);

} // namespace rail::ctl
