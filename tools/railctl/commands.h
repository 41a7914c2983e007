// SPDX-License-Identifier: GPL-2.0-only
// What railctl's commands do and print. They throw Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client.h"
#include "error.h"
#include "root.h"
#include "screen.h"
#include "server.h"

namespace rail::ctl
{

struct Context {
	Root &root;
	Screen &screen;
};

Exit CmdMap(const Context &context, const MapRequest &request);
Exit CmdUnmap(const Context &context, const std::vector<std::string> &names, bool force);
Exit CmdRemap(const Context &context, const std::string &name);
Exit CmdResize(const Context &context, const std::string &name, const std::string &size);
Exit CmdList(const Context &context);
Exit CmdShow(const Context &context, const std::string &name);

Exit CmdPathList(const Context &context, const std::string &session);
Exit CmdPathAdd(const Context &context, const std::string &session, const std::string &path);
Exit CmdPathRemove(const Context &context, const std::string &session, const std::string &path,
		   bool force);
Exit CmdPathConnect(const Context &context, const std::string &session, const std::string &path);
Exit CmdPathDisconnect(const Context &context, const std::string &session, const std::string &path);
// policy "": show it.
Exit CmdPolicy(const Context &context, const std::string &session, const std::string &policy);

Exit CmdExportAdd(const Context &context, const Export &wanted);
Exit CmdExportList(const Context &context);
Exit CmdExportShow(const Context &context, const std::string &name);
Exit CmdExportRemove(const Context &context, const std::string &name, bool force);
Exit CmdExportEnable(const Context &context, const std::string &name);
Exit CmdExportDisable(const Context &context, const std::string &name, bool force);
Exit CmdExportAllow(const Context &context, const std::string &name,
		    const std::vector<std::string> &rules);
Exit CmdExportDeny(const Context &context, const std::string &name,
		   const std::vector<std::string> &rules);
Exit CmdExportToml(const Context &context);
Exit CmdSessions(const Context &context);
// device "": all of the session's.
Exit CmdKick(const Context &context, const std::string &session, const std::string &device,
	     bool paths);

Exit CmdNfs(const Context &context);
Exit CmdStats(const Context &context, const std::string &name);
// count 0: without end
Exit CmdTop(const Context &context, double seconds, unsigned int count);
Exit CmdWatch(const Context &context, unsigned int count);
// servers: other hosts to look at; with: a file with what doctor has said at another one, or ""
Exit CmdDoctor(const Context &context, bool brief, const std::vector<std::string> &servers,
	       const std::string &with);
Exit CmdRxeUp(const Context &context, const std::string &netdev, const std::string &name);
Exit CmdRxeDown(const Context &context, const std::string &name);
// "-" is the standard input.
// only: "exports", "sessions", or "" for both
Exit CmdApply(const Context &context, const std::string &file, bool dry_run, bool prune,
	      const std::string &only);

// Two lines at most: what, and what next.
void ShowError(const Screen &screen, const Error &error);

} // namespace rail::ctl
