// SPDX-License-Identifier: GPL-2.0-only
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

int main(int argc, char **argv)
{
	const char *term = std::getenv("TERM");
	const char *no_colour = std::getenv("NO_COLOR");
	rail::ctl::Terminal terminal;
	winsize size{};

	terminal.in = isatty(STDIN_FILENO) == 1;
	terminal.out = isatty(STDOUT_FILENO) == 1;
	terminal.err = isatty(STDERR_FILENO) == 1;
	terminal.colour = term && std::strcmp(term, "dumb") != 0 && !(no_colour && *no_colour);
	if (terminal.out && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		terminal.columns = size.ws_col;
	try {
		const int status =
			rail::ctl::Run({argv + 1, argv + argc}, terminal, std::cout, std::cerr);

		// A full disk must not look like success.
		if (!std::cout.flush()) {
			std::cerr << "railctl: the output cannot be written\n";
			return status ? status : 1;
		}
		return status;
	} catch (const std::exception &error) {
		std::cerr << "railctl: " << error.what() << '\n';
		return 1;
	}
}
