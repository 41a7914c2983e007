// SPDX-License-Identifier: GPL-2.0-only
#include "names.h"

#include <algorithm>

#include "client.h"
#include "rdma.h"
#include "server.h"
#include "text.h"

namespace rail::ctl
{
namespace
{

using Candidates = std::vector<Candidate>;

Candidates OfClient(const Root &root, Kind kind, const std::string &before)
{
	Candidates all;

	if (kind == Kind::kDevice)
		for (const Device &device : Devices(root))
			all.push_back({device.name, device.mapping()});
	else
		for (const Session &session : Sessions(root)) {
			if (kind == Kind::kSession)
				all.push_back({session.name, session.policy});
			else if (session.name == before)
				for (const Path &path : session.paths)
					all.push_back({path.name, path.state});
		}
	return all;
}

Candidates OfServer(const Root &root, Kind kind, const std::string &before)
{
	Candidates all;

	if (kind == Kind::kExport || kind == Kind::kRule)
		for (const Export &exported : Exports(root)) {
			if (kind == Kind::kExport)
				all.push_back({exported.name, exported.device});
			else if (exported.name == before)
				for (const std::string &rule : exported.allowed)
					all.push_back({rule, "allowed client"});
		}
	else
		for (const ServerSession &session : ServerSessions(root)) {
			if (kind == Kind::kServerSession)
				all.push_back({session.name, "session"});
			else if (session.name == before)
				for (const Mapping &mapping : session.mappings)
					all.push_back({mapping.remote, mapping.access});
		}
	return all;
}

Candidates Plain(const std::vector<std::string> &names)
{
	Candidates all;

	for (const std::string &name : names)
		all.push_back({name, ""});
	return all;
}

Candidates Unchecked(const Root &root, Kind kind, const std::string &before)
{
	Candidates all;

	switch (kind) {
	case Kind::kNone:
		break;
	case Kind::kDevice:
	case Kind::kSession:
	case Kind::kPath:
		return OfClient(root, kind, before);
	case Kind::kExport:
	case Kind::kRule:
	case Kind::kServerSession:
	case Kind::kServerDevice:
		return OfServer(root, kind, before);
	case Kind::kNetdev:
		return Plain(root.List(where::kNet));
	case Kind::kRxe:
		for (const RdmaPort &port : RdmaPorts(root))
			if (port.soft)
				all.push_back({port.netdev, port.device});
		break;
	case Kind::kPolicy:
		return Plain(Policies());
	case Kind::kColour:
		return Plain({"auto", "always", "never"});
	case Kind::kPart:
		return Plain({"exports", "sessions"});
	case Kind::kStats:
		all = OfClient(root, Kind::kDevice, "");
		for (const std::string &name : root.List(where::kRdma))
			all.push_back({name, "RDMA device"});
		break;
	}
	return all;
}

// A name that would be another one, or more than one word, when it is shown.
bool Strange(const std::string &text)
{
	return text.empty() || text[0] == '-' || HasControl(text) || Escape(text) != text;
}

} // namespace

std::vector<Candidate> Names(const Root &root, Kind kind, const std::string &before)
{
	Candidates all = Unchecked(root, kind, before);

	all.erase(std::remove_if(all.begin(), all.end(),
				 [](const Candidate &c) { return Strange(c.text); }),
		  all.end());
	for (Candidate &candidate : all)
		candidate.about = Escape(candidate.about);
	return all;
}

} // namespace rail::ctl
