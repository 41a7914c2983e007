// SPDX-License-Identifier: GPL-2.0-only
// The only file that knows ncurses.
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include <curses.h>
#include <langinfo.h>
#include <unistd.h>

#include <fmt/format.h>

#include "error.h"
#include "text.h"
#include "top.h"

namespace rail::ctl
{
namespace
{

constexpr unsigned int kFastest = 250;
constexpr unsigned int kSlowest = 60000;
constexpr int kEscapeKey = 27;

enum Pair : short { kGreen = 1, kYellow, kRed, kCyan };

attr_t Attribute(Tint tint, bool colour)
{
	const auto pair = [&](Pair which) { return colour ? COLOR_PAIR(which) : attr_t(A_NORMAL); };

	switch (tint) {
	case Tint::kGood:
		return pair(kGreen);
	case Tint::kWarn:
		return pair(kYellow);
	case Tint::kBad:
		return pair(kRed) | A_BOLD;
	case Tint::kAccent:
		return pair(kCyan);
	case Tint::kBold:
		return A_BOLD;
	case Tint::kDim:
		return A_DIM;
	case Tint::kNone:
		break;
	}
	return A_NORMAL;
}

void Draw(int y, const Line &line, bool colour)
{
	move(y, 0);
	for (const Span &span : line) {
		attrset(Attribute(span.tint, colour));
		addnstr(span.text.data(), static_cast<int>(span.text.size()));
	}
	attrset(A_NORMAL);
}

std::string Clock()
{
	const std::time_t now = std::time(nullptr);
	std::tm local{};

	localtime_r(&now, &local);
	return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string HostName()
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1) != 0)
		return "";
	return Escape(name);
}

class Curses
{
public:
	explicit Curses(bool colour)
		: screen_(newterm(nullptr, stdout, stdin), delscreen), colour_(colour)
	{
		if (!screen_)
			throw Error(Exit::kUsage, "TERM", "this terminal is not known",
				    "set TERM to what it is, or: railctl top --count 1");
		cbreak();
		noecho();
		keypad(stdscr, TRUE);
		curs_set(0);
		colour_ = colour_ && has_colors();
		if (!colour_)
			return;
		start_color();
		use_default_colors();
		init_pair(kGreen, COLOR_GREEN, -1);
		init_pair(kYellow, COLOR_YELLOW, -1);
		init_pair(kRed, COLOR_RED, -1);
		init_pair(kCyan, COLOR_CYAN, -1);
	}
	~Curses() { endwin(); }
	Curses(const Curses &) = delete;
	Curses &operator=(const Curses &) = delete;

	bool colour() const { return colour_; }

private:
	std::unique_ptr<SCREEN, decltype(&delscreen)> screen_;
	bool colour_;
};

struct View {
	unsigned int interval_ms;
	bool paused = false;
	std::size_t first = 0; // line at the top
};

void Show(const Top &top, View *view, bool colour)
{
	const auto lines = top.Frame(static_cast<std::size_t>(COLS));
	const int room = std::max(LINES - 3, 1);
	const std::size_t last = lines.size() > static_cast<std::size_t>(room)
					 ? lines.size() - static_cast<std::size_t>(room)
					 : 0;
	const std::string right =
		view->paused ? "paused" : fmt::format("every {:g} s", view->interval_ms / 1000.0);

	view->first = std::min(view->first, last);
	erase();
	attrset(A_BOLD);
	mvaddstr(0, 0, fmt::format("railctl top  {}  {}", HostName(), Clock()).c_str());
	attrset(view->paused ? A_REVERSE : A_DIM);
	mvaddstr(0, std::max(COLS - static_cast<int>(right.size()), 0), right.c_str());
	attrset(A_NORMAL);
	for (int y = 0; y < room; y++) {
		const std::size_t line = view->first + static_cast<std::size_t>(y);

		if (line < lines.size())
			Draw(2 + y, lines[line], colour);
	}
	attrset(A_DIM);
	mvaddnstr(LINES - 1, 0,
		  last ? "q quit   space pause   + - interval   up down scroll"
		       : "q quit   space pause   + - interval",
		  COLS - 1);
	attrset(A_NORMAL);
	refresh();
}

// False: the user has had enough.
bool Key(int key, View *view)
{
	const auto page = static_cast<std::size_t>(std::max(LINES - 4, 1));

	switch (key) {
	case 'q':
	case 'Q':
	case kEscapeKey:
		return false;
	case ' ':
		view->paused = !view->paused;
		break;
	case '+':
		view->interval_ms = std::min(view->interval_ms * 2, kSlowest);
		break;
	case '-':
		view->interval_ms = std::max(view->interval_ms / 2, kFastest);
		break;
	case KEY_UP:
		view->first -= view->first ? 1 : 0;
		break;
	case KEY_DOWN:
		view->first++;
		break;
	case KEY_PPAGE:
		view->first -= std::min(view->first, page);
		break;
	case KEY_NPAGE:
		view->first += page;
		break;
	case KEY_HOME:
		view->first = 0;
		break;
	default:
		break;
	}
	return true;
}

} // namespace

bool Utf8Terminal()
{
	std::setlocale(LC_CTYPE, "");
	return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

void ShowTop(Root &root, unsigned int interval_ms, bool colour)
{
	Top top(Utf8Terminal());
	View view{interval_ms};
	const Curses curses(colour);
	std::uint64_t next = root.NowMs();
	bool first = true;

	for (;;) {
		const std::uint64_t now = root.NowMs();

		if (now >= next && !view.paused) {
			top.Feed(TakeSample(root));
			// Numbers need two moments; nobody is to wait for the first of them.
			next = now +
			       (first ? std::min(view.interval_ms, kFastest) : view.interval_ms);
			first = false;
		}
		Show(top, &view, curses.colour());
		timeout(view.paused ? -1 : static_cast<int>(next > now ? next - now : 0));
		const int key = getch();
		if (key != ERR && !Key(key, &view))
			return;
	}
}

} // namespace rail::ctl
