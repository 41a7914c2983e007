// SPDX-License-Identifier: GPL-2.0-only
#include "root.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

// More than any file of the kernel's that is read here has in earnest.
constexpr std::size_t kMostBytes = 64U << 20;

class Fd
{
public:
	explicit Fd(int fd) : fd_(fd) {}
	~Fd() { Close(); }
	Fd(const Fd &) = delete;
	Fd &operator=(const Fd &) = delete;

	int get() const { return fd_; }
	bool ok() const { return fd_ >= 0; }
	void Close()
	{
		if (fd_ >= 0)
			close(fd_);
		fd_ = -1;
	}

private:
	int fd_;
};

bool ReadAll(int fd, std::string *out)
{
	std::array<char, 16384> buf{};

	while (out->size() < kMostBytes) {
		const ssize_t n = read(fd, buf.data(), buf.size());

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			break;
		out->append(buf.data(), static_cast<std::size_t>(n));
	}
	return true;
}

} // namespace

bool IsFileName(std::string_view name)
{
	return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
	       name.find('/') == std::string_view::npos &&
	       name.find('\0') == std::string_view::npos;
}

Root::~Root()
{
	if (events_ >= 0)
		close(events_);
}

Root::Root(std::string prefix) : prefix_(std::move(prefix))
{
	while (!prefix_.empty() && prefix_.back() == '/')
		prefix_.pop_back();
}

std::string Root::Real(std::string_view path) const
{
	return prefix_ + std::string(path);
}

std::optional<std::string> Root::Read(std::string_view path) const
{
	const Fd fd(open(Real(path).c_str(), O_RDONLY | O_CLOEXEC));
	std::string text;

	if (!fd.ok() || !ReadAll(fd.get(), &text))
		return std::nullopt;
	while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
		text.pop_back();
	return text;
}

std::string Root::Text(std::string_view path) const
{
	return Read(path).value_or("");
}

bool Root::Exists(std::string_view path) const
{
	return access(Real(path).c_str(), F_OK) == 0;
}

bool Root::Readable(std::string_view path) const
{
	return access(Real(path).c_str(), R_OK) == 0;
}

std::vector<std::string> Root::List(std::string_view path) const
{
	const std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(Real(path).c_str()), closedir);
	std::vector<std::string> names;

	if (!dir)
		return names;
	while (const dirent *entry = readdir(dir.get())) {
		const std::string_view name = entry->d_name;

		if (name != "." && name != "..")
			names.emplace_back(name);
	}
	std::sort(names.begin(), names.end(), NaturalLess);
	return names;
}

std::optional<std::string> Root::Link(std::string_view path) const
{
	std::array<char, 4096> buf{};
	const ssize_t n = readlink(Real(path).c_str(), buf.data(), buf.size());

	if (n <= 0)
		return std::nullopt;
	const std::string_view target(buf.data(), static_cast<std::size_t>(n));
	// npos + 1 is 0.
	return std::string(target.substr(target.rfind('/') + 1));
}

Written Root::Write(std::string_view path, std::string_view text)
{
	// O_TRUNC is nothing to the kernel's files; no O_CREAT: a file that is not there is an
	// error.
	const Fd fd(open(Real(path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));

	if (!fd.ok())
		return {false, errno};
	// One write: what is written in two is two commands.
	for (;;) {
		const ssize_t n = write(fd.get(), text.data(), text.size());

		if (n >= 0)
			return {true, static_cast<std::size_t>(n) == text.size() ? 0 : EIO};
		if (errno != EINTR)
			return {true, errno};
	}
}

int Root::MakeDir(std::string_view path)
{
	return mkdir(Real(path).c_str(), 0755) == 0 ? 0 : errno;
}

int Root::RemoveDir(std::string_view path)
{
	return rmdir(Real(path).c_str()) == 0 ? 0 : errno;
}

int Root::TryExclusive(std::string_view path)
{
	const Fd fd(open(Real(path).c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));

	return fd.ok() ? 0 : errno;
}

bool Root::IsBlockDevice(std::string_view path) const
{
	struct stat st {
	};

	return stat(Real(path).c_str(), &st) == 0 && S_ISBLK(st.st_mode);
}

Ran Root::Run(const std::vector<std::string> &argv)
{
	std::array<int, 2> ends{};
	posix_spawn_file_actions_t actions;
	std::vector<char *> args;
	pid_t pid = -1;
	int status = 0;
	Ran ran;

	args.reserve(argv.size() + 1);
	for (const std::string &arg : argv)
		args.push_back(const_cast<char *>(arg.c_str()));
	args.push_back(nullptr);
	if (pipe2(ends.data(), O_CLOEXEC) != 0)
		return {126, "pipe2 failed"};
	const Fd from(ends[0]);
	Fd to(ends[1]);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, to.get(), STDERR_FILENO);
	const int error = posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ);
	posix_spawn_file_actions_destroy(&actions);
	to.Close();
	if (error)
		return {127, std::string(argv[0]) + " cannot be started"};
	ReadAll(from.get(), &ran.err);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return ran;
}

void Root::Pause(unsigned int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

rail::ctl::Reach Root::Reach(const std::string &address, std::uint16_t port) const
{
	constexpr unsigned int kPatienceMs = 10000;

	return prefix_.empty() ? ReachRdma(address, port, kPatienceMs)
			       : rail::ctl::Reach::kNotTried;
}

void Root::PauseForEvent(unsigned int ms)
{
	constexpr unsigned int kKernel = 1;
	std::array<char, 8192> buf{};
	sockaddr_nl address{};

	if (events_ < 0) {
		events_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
				 NETLINK_KOBJECT_UEVENT);
		address.nl_family = AF_NETLINK;
		address.nl_groups = kKernel;
		if (events_ >= 0 &&
		    bind(events_, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0) {
			close(events_);
			events_ = -1;
		}
	}
	if (events_ < 0) {
		Pause(ms);
		return;
	}
	pollfd event{events_, POLLIN, 0};
	poll(&event, 1, static_cast<int>(ms));
	// What has happened is looked up, not read from here.
	while (recv(events_, buf.data(), buf.size(), 0) > 0)
		;
}

std::uint64_t Root::NowMs() const
{
	return static_cast<std::uint64_t>(
		std::chrono::duration_cast<std::chrono::milliseconds>(
			std::chrono::steady_clock::now().time_since_epoch())
			.count());
}

void CheckWritten(const Written &written, const std::string &object, const std::string &deed)
{
	if (!written.error)
		return;
	if (written.error == EACCES && !written.opened)
		throw Error(Exit::kRoot, object, deed + " needs root", "run it with sudo");
	if (written.error == ENOENT || written.error == ENODEV)
		throw Error(Exit::kMissing, object, "is gone, or cannot do that",
			    "railctl list and railctl path list show what there is");
	throw Error(Exit::kFailed, object, deed + " failed: " + ErrnoText(written.error),
		    "the kernel's log may say more: dmesg | tail");
}

void WriteTo(Root &root, const std::string &file, std::string_view value, const std::string &object,
	     const std::string &deed)
{
	CheckWritten(root.Write(file, value), object, deed);
}

} // namespace rail::ctl
