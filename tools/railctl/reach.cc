// SPDX-License-Identifier: GPL-2.0-only
#include "reach.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

namespace rail::ctl
{
namespace
{

// ib_cm's reason for a rejection: there is no such service. In no header for programs.
constexpr int kNoSuchService = 8;

using Clock = std::chrono::steady_clock;

struct Closer {
	void operator()(rdma_event_channel *channel) const { rdma_destroy_event_channel(channel); }
	void operator()(rdma_cm_id *id) const { rdma_destroy_id(id); }
	void operator()(addrinfo *list) const { freeaddrinfo(list); }
};

template <typename T> using Owned = std::unique_ptr<T, Closer>;

struct Event {
	rdma_cm_event_type type;
	int status;
};

// False: none came in time.
bool Wait(rdma_event_channel *channel, Clock::time_point end, Event *event)
{
	const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
	pollfd ready{channel->fd, POLLIN, 0};
	rdma_cm_event *told = nullptr;

	if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) != 1 ||
	    rdma_get_cm_event(channel, &told) != 0)
		return false;
	*event = {told->event, told->status};
	rdma_ack_cm_event(told);
	return true;
}

Reach AskForConnection(rdma_event_channel *channel, rdma_cm_id *id, Clock::time_point end)
{
	rdma_conn_param param{};
	Event event{};

	param.qp_num = 1; // of no queue pair: nothing is ever sent on it
	param.retry_count = 7;
	param.rnr_retry_count = 7;
	if (rdma_connect(id, &param) != 0)
		return Reach::kNoWay;
	if (!Wait(channel, end, &event))
		return Reach::kSilent;
	switch (event.type) {
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return Reach::kAnswers;
	case RDMA_CM_EVENT_REJECTED:
		return event.status == kNoSuchService ? Reach::kNobodyListens : Reach::kAnswers;
	default:
		return Reach::kSilent;
	}
}

} // namespace

Reach ReachRdma(const std::string &address, std::uint16_t port, unsigned int ms)
{
	const auto end = Clock::now() + std::chrono::milliseconds(ms);
	addrinfo hints{};
	addrinfo *found = nullptr;
	rdma_cm_id *made = nullptr;
	Event event{};

	const Owned<rdma_event_channel> channel(rdma_create_event_channel());
	if (!channel)
		return Reach::kNotTried;
	hints.ai_flags = AI_NUMERICHOST;
	hints.ai_socktype = SOCK_STREAM;
	if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
		return Reach::kNotTried;
	const Owned<addrinfo> list(found);
	if (rdma_create_id(channel.get(), &made, nullptr, RDMA_PS_TCP) != 0)
		return Reach::kNotTried;
	const Owned<rdma_cm_id> id(made);

	if (rdma_resolve_addr(id.get(), nullptr, list->ai_addr, static_cast<int>(ms)) != 0)
		return Reach::kNoWay;
	if (!Wait(channel.get(), end, &event))
		return Reach::kSilent;
	// A host that is not there on a network that is, has no address of its own: it is silent.
	if (event.type != RDMA_CM_EVENT_ADDR_RESOLVED)
		return event.status == -ENODEV || event.status == -ENETUNREACH ? Reach::kNoWay
									       : Reach::kSilent;
	if (rdma_resolve_route(id.get(), static_cast<int>(ms)) != 0 ||
	    !Wait(channel.get(), end, &event) || event.type != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return Reach::kNoWay;
	return AskForConnection(channel.get(), id.get(), end);
}

} // namespace rail::ctl
