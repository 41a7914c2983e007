// SPDX-License-Identifier: GPL-2.0-only
// The block server: exports, sessions, who has what mapped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "root.h"

namespace rail::ctl
{

struct Mapping {
	std::string device; // the server's block device, as sysfs has it
	std::string session;
	std::string remote; // what the client asked for
	std::string access;
	bool read_only = false;
};

struct ServerPath {
	std::string name; // source@destination, as sysfs has it
	std::string src;
	std::string dst;
	std::string hca;
	std::uint64_t hca_port = 0;
	std::uint64_t reads = 0;
	std::uint64_t read_bytes = 0;
	std::uint64_t writes = 0;
	std::uint64_t write_bytes = 0;
};

struct ServerSession {
	std::string name;
	std::vector<ServerPath> paths;
	std::vector<Mapping> mappings;
};

struct Export {
	std::string name; // what clients ask for
	std::string device;
	bool read_only = false;
	bool enabled = false;
	std::vector<std::string> allowed; // rules, with '/'
	std::vector<Mapping> mappings;

	std::string access() const { return read_only ? "ro" : "rw"; }
};

std::vector<Mapping> Mappings(const Root &root);
std::vector<ServerSession> ServerSessions(const Root &root);
std::vector<Export> Exports(const Root &root);
Export FindExport(const Root &root, std::string_view name);
ServerSession FindServerSession(const Root &root, std::string_view name);

// As the kernel will have it: checked, '!' for '/', "ip:" before an address or network.
std::string RuleName(std::string_view rule);

// All or nothing: what was made is removed again on an error.
void ExportAdd(Root &root, const Export &wanted);
// These end all mappings of it: without force only where there is none.
void ExportRemove(Root &root, const Export &exported, bool force);
void ExportDisable(Root &root, const Export &exported, bool force);
void ExportEnable(Root &root, const Export &exported);
void ExportAllow(Root &root, const Export &exported, std::string_view rule);
void ExportDeny(Root &root, const Export &exported, std::string_view rule);
// Of a disabled one.
void ExportSet(Root &root, const Export &exported, const std::string &device, bool read_only);

void Kick(Root &root, const Mapping &mapping);
void Disconnect(Root &root, const ServerSession &session, const ServerPath &path);

} // namespace rail::ctl
