// SPDX-License-Identifier: GPL-2.0-only
#include "screen.h"

#include <algorithm>

#include "text.h"

namespace rail::ctl
{
namespace
{

constexpr std::size_t kGap = 2;
// What a cut cell keeps while there are columns to leave out, and what it keeps at least.
constexpr std::size_t kComfortable = 30;
constexpr std::size_t kLeast = 8;

std::string_view Code(Tint tint)
{
	switch (tint) {
	case Tint::kGood:
		return "32";
	case Tint::kWarn:
		return "33";
	case Tint::kBad:
		return "31";
	case Tint::kDim:
		return "2";
	case Tint::kBold:
		return "1";
	case Tint::kAccent:
		return "36";
	case Tint::kNone:
		break;
	}
	return "";
}

std::size_t Sum(const std::vector<std::size_t> &widths)
{
	std::size_t sum = 0;

	for (const std::size_t width : widths)
		sum += width + kGap;
	return sum ? sum - kGap : 0;
}

} // namespace

Cell::Cell(std::string_view raw, Tint t) : text(Escape(raw)), tint(t)
{
}

std::string Tinted(bool colour, Tint tint, std::string_view text)
{
	const std::string_view code = Code(tint);

	if (!colour || code.empty() || text.empty())
		return std::string(text);
	return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::string LineText(const Line &line, bool colour)
{
	std::string text;

	for (const Span &span : line)
		text += Tinted(colour, span.tint, span.text);
	return text;
}

std::vector<Line> Table::Lines(std::size_t columns) const
{
	std::vector<Line> lines;
	std::vector<std::size_t> shown;
	std::vector<std::size_t> widths;

	const auto fits = [&](std::size_t keep) {
		widths.clear();
		for (const std::size_t c : shown) {
			std::size_t width = Columns(columns_[c].title);

			for (const auto &row : rows_)
				width = std::max(width, Columns(row.at(c).text));
			widths.push_back(width);
		}
		// The widest of those that may be cut gives first.
		while (columns && Sum(widths) > columns) {
			std::size_t widest = shown.size();

			for (std::size_t i = 0; i < shown.size(); i++) {
				const Column &column = columns_[shown[i]];
				const std::size_t least = std::max(keep, Columns(column.title));

				if (column.kind == Column::kFlexible && widths[i] > least &&
				    (widest == shown.size() || widths[i] > widths[widest]))
					widest = i;
			}
			if (widest == shown.size())
				return false;
			widths[widest]--;
		}
		return true;
	};

	for (std::size_t c = 0; c < columns_.size(); c++)
		shown.push_back(c);
	while (!fits(kComfortable)) {
		const auto last = std::max_element(
			shown.rbegin(), shown.rend(), [&](std::size_t a, std::size_t b) {
				return columns_[a].optional < columns_[b].optional;
			});

		if (!columns_[*last].optional) {
			// If that is not enough: better too wide than without what matters.
			fits(kLeast);
			break;
		}
		shown.erase(std::next(last).base());
	}

	const auto add = [&](const auto &cell_of) {
		Line line;

		for (std::size_t i = 0; i < shown.size(); i++) {
			const Cell cell = cell_of(shown[i]);
			const std::string fit = Fit(cell.text, widths[i]);
			const std::string pad(widths[i] - std::min(widths[i], Columns(fit)), ' ');
			const bool last = i + 1 == shown.size();
			const bool right = columns_[shown[i]].kind == Column::kNumber;

			if (right)
				line.push_back({pad});
			line.push_back({fit, cell.tint});
			if (!last)
				line.push_back({(right ? "" : pad) + std::string(kGap, ' ')});
		}
		lines.push_back(std::move(line));
	};
	add([&](std::size_t c) { return Cell(columns_[c].title, Tint::kBold); });
	for (const auto &row : rows_)
		add([&](std::size_t c) { return row[c]; });
	return lines;
}

void Table::Print(const Screen &screen) const
{
	for (const Line &line : Lines(screen.columns))
		screen.out << LineText(line, screen.colour) << '\n';
}

void PrintFields(const Screen &screen, const std::vector<std::pair<std::string, Cell>> &fields)
{
	std::size_t width = 0;

	for (const auto &[name, value] : fields)
		width = std::max(width, Columns(name));
	for (const auto &[name, value] : fields)
		screen.out << Tinted(screen.colour, Tint::kDim, name)
			   << std::string(width - Columns(name) + kGap, ' ')
			   << Tinted(screen.colour, value.tint, value.text) << '\n';
}

} // namespace rail::ctl
