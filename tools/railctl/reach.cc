// SPDX-License-Identifier: GPL-2.0-only
// By /dev/infiniband/rdma_cm itself: librdmacm would be one more library for four calls.
#include "reach.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rail::ctl
{
namespace
{

// What the kernel calls these (ib_verbs.h, ib_cm.h, rdma_cm.h), for it has them in no header for
// programs.
constexpr std::uint8_t kReliableConnected = 2;
constexpr int kNoSuchService = 8;
enum Event : std::uint32_t {
	kAddressResolved = 0,
	kRouteResolved = 2,
	kConnectResponse = 5,
	kRejected = 8,
	kEstablished = 9,
};
constexpr std::uint16_t kTcpPorts = 0x106;

using Clock = std::chrono::steady_clock;

class Door
{
public:
	Door() : fd_(open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC)) {}
	// With it goes all that was made by it.
	~Door()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	Door(const Door &) = delete;
	Door &operator=(const Door &) = delete;

	bool IsOpen() const { return fd_ >= 0; }

	template <typename Command>
	bool Tell(std::uint32_t number, const Command &command, std::size_t answer = 0)
	{
		struct {
			rdma_ucm_cmd_hdr header;
			Command command;
		} __attribute__((packed)) message{{number, sizeof(Command), 0}, command};

		message.header.out = static_cast<__u16>(answer);
		return write(fd_, &message, sizeof(message)) ==
		       static_cast<ssize_t>(sizeof(message));
	}

	// False: none came in time.
	bool Wait(rdma_ucm_event_resp *event, Clock::time_point end)
	{
		const auto left =
			std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
		pollfd ready{fd_, POLLIN, 0};
		rdma_ucm_get_event command{};

		if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) != 1)
			return false;
		command.response = reinterpret_cast<std::uintptr_t>(event);
		return Tell(RDMA_USER_CM_CMD_GET_EVENT, command, sizeof(*event));
	}

private:
	int fd_;
};

} // namespace

Reach ReachRdma(const std::string &address, std::uint16_t port, unsigned int ms)
{
	const auto end = Clock::now() + std::chrono::milliseconds(ms);
	rdma_ucm_event_resp event{};
	addrinfo hints{};
	addrinfo *list = nullptr;
	Door door;

	if (!door.IsOpen())
		return Reach::kNotTried;
	hints.ai_flags = AI_NUMERICHOST;
	hints.ai_socktype = SOCK_STREAM;
	if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list) != 0)
		return Reach::kNotTried;
	const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(list, freeaddrinfo);

	rdma_ucm_create_id create{};
	rdma_ucm_create_id_resp made{};
	create.response = reinterpret_cast<std::uintptr_t>(&made);
	create.uid = 1; // of an id without one the kernel keeps what happens to itself
	create.ps = kTcpPorts;
	create.qp_type = kReliableConnected;
	if (!door.Tell(RDMA_USER_CM_CMD_CREATE_ID, create, sizeof(made)))
		return Reach::kNotTried;

	rdma_ucm_resolve_addr resolve{};
	resolve.id = made.id;
	resolve.timeout_ms = ms;
	resolve.dst_size = static_cast<__u16>(list->ai_addrlen);
	std::memcpy(&resolve.dst_addr, list->ai_addr, list->ai_addrlen);
	if (!door.Tell(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve))
		return Reach::kNoWay;
	if (!door.Wait(&event, end))
		return Reach::kSilent;
	// A host that is not there on a network that is, has no address of its own: it is silent.
	const int error = static_cast<int>(event.status);
	if (event.event != kAddressResolved)
		return error == -ENODEV || error == -ENETUNREACH ? Reach::kNoWay : Reach::kSilent;

	rdma_ucm_resolve_route route{};
	route.id = made.id;
	route.timeout_ms = ms;
	if (!door.Tell(RDMA_USER_CM_CMD_RESOLVE_ROUTE, route) || !door.Wait(&event, end) ||
	    event.event != kRouteResolved)
		return Reach::kNoWay;

	rdma_ucm_connect connect{};
	connect.id = made.id;
	connect.conn_param.qp_num = 1; // of no queue pair: nothing is ever sent on it
	connect.conn_param.retry_count = 7;
	connect.conn_param.rnr_retry_count = 7;
	connect.conn_param.valid = 1;
	if (!door.Tell(RDMA_USER_CM_CMD_CONNECT, connect))
		return Reach::kNoWay;
	if (!door.Wait(&event, end))
		return Reach::kSilent;
	switch (event.event) {
	case kConnectResponse:
	case kEstablished:
		return Reach::kAnswers;
	case kRejected:
		return event.status == kNoSuchService ? Reach::kNobodyListens : Reach::kAnswers;
	default:
		return Reach::kSilent;
	}
}

} // namespace rail::ctl
