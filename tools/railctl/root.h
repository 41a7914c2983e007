// SPDX-License-Identifier: GPL-2.0-only
// The one way to the kernel's files, and to anything else outside of this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reach.h"

namespace rail::ctl
{

// Where the kernel shows what. Names that users and peers give are never put into these unchecked.
namespace where
{
inline constexpr std::string_view kBlock = "/sys/block";
inline constexpr std::string_view kClient = "/sys/class/rnbd-client/ctl";
inline constexpr std::string_view kClientSessions = "/sys/class/rtrs-client";
inline constexpr std::string_view kServer = "/sys/class/rnbd-server/ctl";
inline constexpr std::string_view kServerSessions = "/sys/class/rtrs-server";
inline constexpr std::string_view kRdma = "/sys/class/infiniband";
inline constexpr std::string_view kNet = "/sys/class/net";
inline constexpr std::string_view kModule = "/sys/module";
inline constexpr std::string_view kConfig = "/sys/kernel/config";
inline constexpr std::string_view kExports = "/sys/kernel/config/rnbd/exports";
inline constexpr std::string_view kDebug = "/sys/kernel/debug/rail";
inline constexpr std::string_view kSunrpc = "/proc/sys/sunrpc";
} // namespace where

// A path below another: Sub(kBlock, "rnbd0", "size")
template <typename... Names> std::string Sub(std::string_view dir, const Names &...names)
{
	std::string path(dir);

	((path += '/', path += names), ...);
	return path;
}

// May this be one component of a path?
bool IsFileName(std::string_view name);

// How a write went.
struct Written {
	bool opened = true; // false: error is open()'s
	int error = 0;
};

// How a program ended.
struct Ran {
	int status = 0; // 127: there is no such program
	std::string err;
};

// All paths are absolute and meant below the prefix, so that tests can have a tree of their own.
// What changes the system is virtual: tests stand in for the kernel's part in it.
class Root
{
public:
	explicit Root(std::string prefix = "");
	virtual ~Root();
	Root(const Root &) = delete;
	Root &operator=(const Root &) = delete;

	std::string Real(std::string_view path) const;

	// Without white space at the end; nullopt: it cannot be read, for whatever reason.
	std::optional<std::string> Read(std::string_view path) const;
	// The same, "" if it cannot be read.
	std::string Text(std::string_view path) const;
	bool Exists(std::string_view path) const;
	bool Readable(std::string_view path) const;
	// Names in a folder, as people sort them; none if it cannot be read.
	std::vector<std::string> List(std::string_view path) const;
	// The last component of what a symbolic link points to.
	std::optional<std::string> Link(std::string_view path) const;

	virtual Written Write(std::string_view path, std::string_view text);
	virtual int MakeDir(std::string_view path);
	virtual int RemoveDir(std::string_view path);
	// 0 if a block device can be opened by one user alone; it is closed again.
	virtual int TryExclusive(std::string_view path);
	virtual bool IsBlockDevice(std::string_view path) const;
	// Without a shell.
	virtual Ran Run(const std::vector<std::string> &argv);
	// Is somebody at a port of another host, by RDMA? A few seconds, if nobody answers.
	virtual rail::ctl::Reach Reach(const std::string &address, std::uint16_t port) const;
	// A pause while something is waited for.
	virtual void Pause(unsigned int ms);
	// The same, ended by the first uevent.
	virtual void PauseForEvent(unsigned int ms);
	// Of a clock that is never set.
	virtual std::uint64_t NowMs() const;

private:
	int events_ = -1; // socket; -1: not open yet, or not to be had
	std::string prefix_;
};

// How a write to a file of an object went that was there a moment ago; throws Error, "DEED failed:
// ..." of it.
void CheckWritten(const Written &written, const std::string &object, const std::string &deed);
// Writes, and checks that.
void WriteTo(Root &root, const std::string &file, std::string_view value, const std::string &object,
	     const std::string &deed);

} // namespace rail::ctl
