// SPDX-License-Identifier: GPL-2.0-only
// A folder that stands in for / and for what the kernel does when its files are written to.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "error.h"
#include "root.h"

namespace rail::ctl
{

// What a test's names are full of that come from peers: it ends a line, colours, and is no UTF-8.
extern const std::string kHostile;

class FakeRoot : public Root
{
public:
	FakeRoot();
	~FakeRoot() override;

	void File(const std::string &path, const std::string &text);
	void Dir(const std::string &path);
	void SymLink(const std::string &path, const std::string &target);
	void Remove(const std::string &path);

	// The modules, loaded, without an object.
	void LoadClient();
	void LoadServer();
	void AddSession(const std::string &name);
	void AddPath(const std::string &session, const std::string &src, const std::string &dst,
		     const std::string &state = "connected");
	void AddDisk(const std::string &name, const std::string &remote, const std::string &session,
		     const std::string &access = "rw", const std::string &state = "open");
	void AddMapping(const std::string &device, const std::string &session,
			const std::string &remote, const std::string &access = "rw");
	void AddExport(const std::string &name, const std::string &device, bool enabled = true,
		       const std::vector<std::string> &allowed = {});
	void AddBlockDevice(const std::string &path);
	void AddRdma(const std::string &name, const std::string &netdev, bool soft = true,
		     const std::string &state = "4: ACTIVE");

	Written Write(std::string_view path, std::string_view text) override;
	int MakeDir(std::string_view path) override;
	int RemoveDir(std::string_view path) override;
	int TryExclusive(std::string_view path) override;
	bool IsBlockDevice(std::string_view path) const override;
	Ran Run(const std::vector<std::string> &argv) override;
	void Pause(unsigned int ms) override;
	void PauseForEvent(unsigned int ms) override { Pause(ms); }
	rail::ctl::Reach Reach(const std::string &address, std::uint16_t port) const override
	{
		const auto found = reach.find(address + " " + std::to_string(port));

		return found == reach.end() ? rail::ctl::Reach::kNotTried : found->second;
	}
	// Only pauses take time.
	std::uint64_t NowMs() const override { return paused_ms; }

	// "PATH <- TEXT", "mkdir PATH", "rmdir PATH", "run ARGUMENTS", in their order.
	std::vector<std::string> log;
	// Writes to these, and folders made or removed there, fail with this errno.
	std::map<std::string, int> errors;
	// Files that cannot even be opened.
	std::map<std::string, int> closed;
	// What else happens at a write; the errno.
	std::map<std::string, std::function<int(const std::string &)>> reactions;
	std::set<std::string> busy;                    // nodes that somebody has open
	std::map<std::string, rail::ctl::Reach> reach; // "192.0.2.1 1234"
	Ran ran;                                       // what programs end with
	std::function<void()> on_run;
	std::function<void()> on_pause;
	unsigned int paused_ms = 0;

private:
	int MapDevice(const std::string &text);

	std::set<std::string> block_devices_;
};

// The Error that a function throws, as it has to.
template <typename Function> Error Thrown(Function function)
{
	try {
		function();
	} catch (const Error &error) {
		return error;
	}
	ADD_FAILURE() << "nothing was thrown";
	return {Exit::kOk, "", ""};
}

} // namespace rail::ctl
