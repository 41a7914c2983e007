// SPDX-License-Identifier: GPL-2.0-only
//
// A peer that speaks RPC-over-RDMA exactly as it is told, right or wrong. Commands on standard input,
// one a line, answers on standard output:
//
//   connect ADDRESS PORT [PRIVATE_HEX]   -> connected [PRIVATE_HEX] | refused
//   listen PORT                          -> listening
//   accept [PRIVATE_HEX]                 -> accepted [PRIVATE_HEX] | refused
//   mr NAME BYTES [HEX]                  -> mr NAME        memory the other end may read and write
//   send HEX                             -> sent | failed STATUS
//   recv MILLISECONDS                    -> recv HEX [inval] | nothing | gone
//   dump NAME OFFSET BYTES               -> dump HEX
//   sleep MILLISECONDS
//   close                                -> closed
//
// In HEX, {NAME.key} stands for 4 bytes, {NAME.addr} and {NAME.addr+N} for 8 bytes, {xid} for the first 4
// bytes of what was received last; blanks count for nothing.
#include <netdb.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "peer.h"

namespace {

constexpr int kReceives = 64;
constexpr size_t kMessage = 65536;

class Peer {
public:
    void connect(const std::string& address, const std::string& port, const std::string& priv);
    void listen(const std::string& port);
    void accept(const std::string& priv);
    void memory(const std::string& name, size_t size, const std::string& hex);
    void send(const std::string& hex);
    void receive(int ms);
    void dump(const std::string& name, size_t offset, size_t size) const;
    void close();

private:
    std::vector<uint8_t> parse(const std::string& hex) const;
    bool event(rdma_cm_event_type wanted);
    void make_qp();
    void post(size_t nr);

    rdma_event_channel* channel_ = rdma_create_event_channel();
    rdma_cm_id* id_ = nullptr;
    rdma_cm_id* listener_ = nullptr;
    uint32_t xid_ = 0;
    ibv_pd* pd_ = nullptr;
    ibv_cq* send_cq_ = nullptr;
    ibv_cq* recv_cq_ = nullptr;
    Memory out_;
    Memory in_;
    std::map<std::string, Memory> memory_;
    std::string private_;
};

void put(std::vector<uint8_t>& to, uint64_t value, int bytes) {
    while (bytes--) to.push_back(static_cast<uint8_t>(value >> (8 * bytes)));
}

std::vector<uint8_t> Peer::parse(const std::string& text) const {
    return ::parse(text, [this](const std::string& word, std::vector<uint8_t>& bytes) {
        if (word == "xid") return put(bytes, xid_, 4);
        const size_t dot = word.find('.');
        const Memory& memory = memory_.at(word.substr(0, dot));
        const std::string what = word.substr(dot + 1);
        if (what == "key") return put(bytes, memory.mr->rkey, 4);
        const size_t plus = what.find('+');
        const uint64_t more =
            plus == std::string::npos ? 0 : std::strtoull(what.c_str() + plus, nullptr, 0);
        put(bytes, reinterpret_cast<uint64_t>(memory.bytes.data()) + more, 8);
    });
}

bool Peer::event(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event)) die("rdma_get_cm_event");
    const bool ok = event->event == wanted;
    if (ok && wanted == RDMA_CM_EVENT_CONNECT_REQUEST) id_ = event->id;
    if (ok && wanted != RDMA_CM_EVENT_ROUTE_RESOLVED && event->param.conn.private_data)
        private_ = hex(event->param.conn.private_data, event->param.conn.private_data_len);
    if (!ok) say(std::string("event ") + rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return ok;
}

void Peer::post(size_t nr) { post_receive(id_, in_, nr, kMessage); }

void Peer::make_qp() {
    pd_ = ibv_alloc_pd(id_->verbs);
    ::make_qp(id_, pd_, kReceives, send_cq_, recv_cq_);
    in_.bytes.resize(kReceives * kMessage);
    in_.mr = ibv_reg_mr(pd_, in_.bytes.data(), in_.bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    out_.bytes.resize(kMessage);
    out_.mr = ibv_reg_mr(pd_, out_.bytes.data(), out_.bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    if (!in_.mr || !out_.mr) die("ibv_reg_mr");
    for (size_t i = 0; i < kReceives; i++) post(i);
}

void Peer::listen(const std::string& port) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<uint16_t>(std::stoul(port)));
    if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) ||
        rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&any)) || rdma_listen(listener_, 8))
        die("rdma_listen");
    say("listening");
}

void Peer::accept(const std::string& priv) {
    if (!event(RDMA_CM_EVENT_CONNECT_REQUEST)) return say("refused");
    make_qp();
    const std::vector<uint8_t> data = parse(priv);
    rdma_conn_param how = conn_param(data);
    if (rdma_accept(id_, &how) || !event(RDMA_CM_EVENT_ESTABLISHED)) return say("refused");
    say("accepted " + private_);
}

void Peer::connect(const std::string& address, const std::string& port, const std::string& priv) {
    addrinfo* info = nullptr;
    if (getaddrinfo(address.c_str(), port.c_str(), nullptr, &info)) die("getaddrinfo");
    if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP)) die("rdma_create_id");
    if (rdma_resolve_addr(id_, nullptr, info->ai_addr, 2000)) die("rdma_resolve_addr");
    if (!event(RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id_, 2000) ||
        !event(RDMA_CM_EVENT_ROUTE_RESOLVED))
        return say("refused");
    freeaddrinfo(info);

    make_qp();
    const std::vector<uint8_t> data = parse(priv);
    rdma_conn_param how = conn_param(data);
    if (rdma_connect(id_, &how) || !event(RDMA_CM_EVENT_ESTABLISHED)) return say("refused");
    say("connected " + private_);
}

void Peer::memory(const std::string& name, size_t size, const std::string& text) {
    Memory& memory = memory_[name];
    memory.bytes.assign(size, 0xee);
    const std::vector<uint8_t> data = parse(text);
    std::copy_n(data.begin(), std::min(data.size(), size), memory.bytes.begin());
    memory.mr =
        ibv_reg_mr(pd_, memory.bytes.data(), size,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (!memory.mr) die("ibv_reg_mr");
    say("mr " + name);
}

void Peer::send(const std::string& text) {
    const std::vector<uint8_t> data = parse(text);
    std::copy(data.begin(), data.end(), out_.bytes.begin());
    ibv_sge sge{reinterpret_cast<uint64_t>(out_.bytes.data()), static_cast<uint32_t>(data.size()),
                out_.mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    post_send(id_, send_cq_, wr, 10000);
}

void Peer::receive(int ms) {
    ibv_wc wc{};
    if (!wait_cq(recv_cq_, &wc, ms)) return say("nothing");
    if (wc.status != IBV_WC_SUCCESS) return say("gone");
    const uint8_t* data = in_.bytes.data() + wc.wr_id * kMessage;
    xid_ = uint32_t{data[0]} << 24 | data[1] << 16 | data[2] << 8 | data[3];
    std::string text = "recv " + hex(data, wc.byte_len);
    if (wc.wc_flags & IBV_WC_WITH_INV) text += " inval";
    say(text);
    post(wc.wr_id);
}

void Peer::dump(const std::string& name, size_t offset, size_t size) const {
    say("dump " + hex(memory_.at(name).bytes.data() + offset, size));
}

void Peer::close() {
    rdma_disconnect(id_);
    say("closed");
}

}  // namespace

int main() {
    Peer peer;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string command, name, second, rest;
        size_t a = 0, b = 0;
        words >> command;
        if (command == "connect") {
            words >> name >> second;
            std::getline(words, rest);
            peer.connect(name, second, rest);
        } else if (command == "listen") {
            words >> name;
            peer.listen(name);
        } else if (command == "accept") {
            std::getline(words, rest);
            peer.accept(rest);
        } else if (command == "mr") {
            words >> name >> a;
            std::getline(words, rest);
            peer.memory(name, a, rest);
        } else if (command == "send") {
            std::getline(words, rest);
            peer.send(rest);
        } else if (command == "recv") {
            words >> a;
            peer.receive(static_cast<int>(a));
        } else if (command == "dump") {
            words >> name >> a >> b;
            peer.dump(name, a, b);
        } else if (command == "sleep") {
            words >> a;
            std::this_thread::sleep_for(Milliseconds(a));
        } else if (command == "close") {
            peer.close();
        } else if (!command.empty()) {
            say("error what is " + command);
            return 1;
        }
    }
    return 0;
}
