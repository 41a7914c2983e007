// SPDX-License-Identifier: GPL-2.0-only
// NFS over RDMA: mounts of this host, and the server's counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "root.h"

namespace rail::ctl
{

// A line "xprt: rdma ..." of mountstats, without what has no meaning over RDMA.
struct NfsTransport {
	std::uint64_t connects = 0;
	std::uint64_t idle_s = 0;
	std::uint64_t sends = 0;
	std::uint64_t receives = 0;
	std::uint64_t bad_xids = 0;
	std::uint64_t read_chunks = 0;
	std::uint64_t write_chunks = 0;
	std::uint64_t reply_chunks = 0;
	std::uint64_t rdma_sent = 0;
	std::uint64_t rdma_received = 0;
	std::uint64_t failed_sends = 0;
	std::uint64_t bad_replies = 0;
	std::uint64_t long_calls = 0;
	std::uint64_t regions_replaced = 0;
};

struct NfsMount {
	std::string source; // server:/export
	std::string where;
	std::string type;
	std::string options;
	std::uint64_t operations = 0;
	std::uint64_t retransmits = 0;
	std::uint64_t timeouts = 0;
	std::uint64_t read_bytes = 0; // from and to the server, as READ and WRITE
	std::uint64_t write_bytes = 0;
	std::uint64_t busy_ms = 0;            // what all operations took together
	std::vector<NfsTransport> transports; // as many as nconnect
};

// What the modules have of it; settings are for new mounts and connections.
struct Nfs {
	std::vector<NfsMount> mounts;
	std::optional<std::uint64_t> slots; // credits asked for
	std::optional<std::uint64_t> inline_read;
	std::optional<std::uint64_t> inline_write;
	std::vector<std::uint64_t> ports;            // nfsd listens for RDMA there
	std::map<std::string, std::uint64_t> server; // files of svc_rdma
};

// Mounts over RDMA in the text of /proc/self/mountstats.
std::vector<NfsMount> ParseMountstats(const std::string &text);
Nfs ReadNfs(const Root &root);

} // namespace rail::ctl
