// SPDX-License-Identifier: GPL-2.0-only
// Output for programs. Documentation/railctl.rst has the schema; what it names stays.
//
// Each is one object with "schema": 1. Bytes of a name that are no UTF-8 become U+FFFD.
#pragma once

#include <string>
#include <vector>

#include "client.h"
#include "doctor.h"
#include "error.h"
#include "nfs.h"
#include "rdma.h"
#include "server.h"
#include "stats.h"
#include "wanted.h"
#include "watch.h"

namespace rail::ctl
{

std::string DevicesJson(const std::vector<Device> &devices);
std::string SessionsJson(const std::vector<Session> &sessions);
// One device with its session and who uses it.
std::string DeviceJson(const Device &device, const Session *session,
		       const std::vector<std::string> &users);
std::string ServerSessionsJson(const std::vector<ServerSession> &sessions);
std::string ExportsJson(const std::vector<Export> &exports);
std::string NfsJson(const Nfs &nfs);
std::string StatsJson(const std::vector<Stats> &stats);
std::string FindingsJson(const std::vector<Finding> &findings, const std::string &version);
// What that has made, at another host. name: of the file, for what is said of it in an Error.
OtherEnd ParseFindings(const std::string &text, const std::string &name);
std::string PlanJson(const Plan &plan, bool done);
// One line, unlike the others: there is no end to them.
std::string ChangeJson(const StateChange &change, const std::string &time);
std::string ErrorJson(const Error &error);

} // namespace rail::ctl
