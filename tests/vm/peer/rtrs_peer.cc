// SPDX-License-Identifier: GPL-2.0-only
//
// A client of an RTRS server that sends exactly what it is told, right or wrong. Commands on standard input,
// one a line, answers on standard output:
//
//   connect CID ADDRESS PORT [HEX]     -> connected HEX | refused [HEX]   with the server's private data
//   mr NAME BYTES                      -> mr NAME       memory the server may write
//   send CID HEX                       -> sent | failed STATUS
//   write CID IMM CHUNK OFFSET [HEX]   -> sent | failed STATUS   RDMA Write; IMM: 8 digits, or - for none
//   chunks CID MILLISECONDS            -> chunks COUNT BYTES | nothing | gone   receives an INFO_RSP
//   recv CID MILLISECONDS              -> recv IMM INVALIDATED [HEX] | nothing | gone
//   show NAME OFFSET BYTES             -> show HEX
//   save CHUNK                         -> saved         its address and key, for writes to "=CHUNK"
//   alive CID MILLISECONDS             -> alive | gone  waits so long for the connection to end
//   sleep MILLISECONDS                 -> slept
//   quit                               as the end of the input
//
// In HEX, {NAME.key} stands for 4 bytes and {NAME.addr} for 8, little-endian; blanks count for nothing. A message
// with a chunk's new key, which an answer may be, is taken note of.
#include <netdb.h>
#include <poll.h>

#include <map>
#include <memory>
#include <sstream>

#include "peer.h"

namespace {

constexpr size_t kReceives = 64;
constexpr size_t kMessage = 16384;
constexpr size_t kOut = 1 << 20;

struct Chunk {
    uint64_t addr;
    uint32_t key;
};

std::string hex32(uint32_t value) {
    const uint8_t bytes[] = {uint8_t(value >> 24), uint8_t(value >> 16), uint8_t(value >> 8), uint8_t(value)};
    return hex(bytes, sizeof(bytes));
}

template <typename T>
T get(const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

// What the connections share. All are on one device.
struct Shared {
    ibv_pd* pd = nullptr;
    Memory out;
    std::map<std::string, Memory> memory;
    std::vector<Chunk> chunks;
    std::map<size_t, Chunk> saved;

    void use(ibv_context* verbs) {
        if (pd) return;
        pd = ibv_alloc_pd(verbs);
        if (!pd) die("ibv_alloc_pd");
        reg(out, kOut);
    }
    void reg(Memory& m, size_t size) {
        m.bytes.assign(size, 0xee);
        m.mr = ibv_reg_mr(pd, m.bytes.data(), size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (!m.mr) die("ibv_reg_mr");
    }
    std::vector<uint8_t> parse(const std::string& text) const;
};

std::vector<uint8_t> Shared::parse(const std::string& text) const {
    return ::parse(text, [this](const std::string& word, std::vector<uint8_t>& bytes) {
        const size_t dot = word.find('.');
        const Memory& m = memory.at(word.substr(0, dot));
        const bool key = word.substr(dot + 1) == "key";
        const uint64_t value = key ? m.mr->rkey : reinterpret_cast<uint64_t>(m.bytes.data());
        for (int n = 0; n < (key ? 4 : 8); n++) bytes.push_back(static_cast<uint8_t>(value >> (8 * n)));
    });
}

class Connection {
public:
    explicit Connection(Shared& shared) : shared_(shared) {}
    void connect(const std::string& address, const std::string& port, const std::string& priv);
    void post(ibv_wr_opcode opcode, uint32_t imm, Chunk to, const std::string& text);
    bool receive(int ms, ibv_wc& wc, const uint8_t*& data);
    void done(const ibv_wc& wc) { receive_post(wc.wr_id); }
    bool alive(int ms);

private:
    bool event(rdma_cm_event_type wanted);
    void receive_post(size_t nr);

    Shared& shared_;
    rdma_event_channel* channel_ = rdma_create_event_channel();
    rdma_cm_id* id_ = nullptr;
    ibv_cq* send_cq_ = nullptr;
    ibv_cq* recv_cq_ = nullptr;
    Memory in_;
    std::string private_;
};

bool Connection::event(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event)) die("rdma_get_cm_event");
    const bool ok = event->event == wanted;
    if (event->event == RDMA_CM_EVENT_ESTABLISHED || event->event == RDMA_CM_EVENT_REJECTED)
        private_ = event->param.conn.private_data
                       ? hex(event->param.conn.private_data, event->param.conn.private_data_len)
                       : "";
    rdma_ack_cm_event(event);
    return ok;
}

void Connection::receive_post(size_t nr) { post_receive(id_, in_, nr, kMessage); }

void Connection::connect(const std::string& address, const std::string& port, const std::string& priv) {
    addrinfo* info = nullptr;
    if (getaddrinfo(address.c_str(), port.c_str(), nullptr, &info)) die("getaddrinfo");
    if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP)) die("rdma_create_id");
    if (rdma_resolve_addr(id_, nullptr, info->ai_addr, 2000) || !event(RDMA_CM_EVENT_ADDR_RESOLVED) ||
        rdma_resolve_route(id_, 2000) || !event(RDMA_CM_EVENT_ROUTE_RESOLVED))
        return say("refused");
    freeaddrinfo(info);

    shared_.use(id_->verbs);
    make_qp(id_, shared_.pd, kReceives, send_cq_, recv_cq_);
    shared_.reg(in_, kReceives * kMessage);
    for (size_t i = 0; i < kReceives; i++) receive_post(i);

    const std::vector<uint8_t> data = shared_.parse(priv);
    rdma_conn_param param = conn_param(data);
    const bool ok = !rdma_connect(id_, &param) && event(RDMA_CM_EVENT_ESTABLISHED);
    say((ok ? "connected " : "refused ") + private_);
}

void Connection::post(ibv_wr_opcode opcode, uint32_t imm, Chunk to, const std::string& text) {
    const std::vector<uint8_t> data = shared_.parse(text);
    if (data.size() > kOut) die("too much to send");
    std::memcpy(shared_.out.bytes.data(), data.data(), data.size());
    ibv_sge sge{reinterpret_cast<uint64_t>(shared_.out.bytes.data()), static_cast<uint32_t>(data.size()),
                shared_.out.mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = data.empty() ? 0 : 1;
    wr.opcode = opcode;
    wr.imm_data = htobe32(imm);
    wr.wr.rdma.remote_addr = to.addr;
    wr.wr.rdma.rkey = to.key;
    post_send(id_, send_cq_, wr, 30000);
}

bool Connection::receive(int ms, ibv_wc& wc, const uint8_t*& data) {
    if (!wait_cq(recv_cq_, &wc, ms)) return say("nothing"), false;
    if (wc.status != IBV_WC_SUCCESS) return say("gone"), false;
    data = in_.bytes.data() + wc.wr_id * kMessage;
    return true;
}

bool Connection::alive(int ms) {
    pollfd fd{channel_->fd, POLLIN, 0};
    return poll(&fd, 1, ms) == 0;
}

class Peer {
public:
    bool run(const std::string& line);

private:
    Connection& at(int cid) {
        auto& connection = connections_[cid];
        if (!connection) connection = std::make_unique<Connection>(shared_);
        return *connection;
    }
    void chunks(Connection& connection, int ms);
    void receive(Connection& connection, int ms);

    Shared shared_;
    std::map<int, std::unique_ptr<Connection>> connections_;
};

void Peer::chunks(Connection& connection, int ms) {
    ibv_wc wc{};
    const uint8_t* data = nullptr;
    if (!connection.receive(ms, wc, data)) return;
    const size_t count = get<uint16_t>(data + 2);
    uint32_t length = 0;
    shared_.chunks.clear();
    for (size_t i = 0; i < count; i++) {
        const uint8_t* sg = data + 8 + 16 * i;
        shared_.chunks.push_back({get<uint64_t>(sg), get<uint32_t>(sg + 8)});
        length = get<uint32_t>(sg + 12);
    }
    connection.done(wc);
    say("chunks " + std::to_string(count) + " " + std::to_string(length));
}

void Peer::receive(Connection& connection, int ms) {
    ibv_wc wc{};
    const uint8_t* data = nullptr;
    if (!connection.receive(ms, wc, data)) return;
    const bool message = wc.opcode == IBV_WC_RECV;
    if (message && wc.byte_len == 8 && get<uint16_t>(data) == 4)
        shared_.chunks.at(get<uint16_t>(data + 2)).key = get<uint32_t>(data + 4);
    say("recv " + (wc.wc_flags & IBV_WC_WITH_IMM ? hex32(be32toh(wc.imm_data)) : std::string("-")) + " " +
        (wc.wc_flags & IBV_WC_WITH_INV ? hex32(wc.invalidated_rkey) : std::string("-")) + " " +
        (message ? hex(data, wc.byte_len) : std::string()));
    connection.done(wc);
}

bool Peer::run(const std::string& line) {
    std::istringstream words(line);
    std::string command, first, second, rest;
    size_t a = 0, b = 0;
    int cid = 0;
    words >> command;
    if (command == "connect") {
        words >> cid >> first >> second;
        std::getline(words, rest);
        at(cid).connect(first, second, rest);
    } else if (command == "mr") {
        words >> first >> a;
        shared_.reg(shared_.memory[first], a);
        say("mr " + first);
    } else if (command == "send") {
        words >> cid;
        std::getline(words, rest);
        at(cid).post(IBV_WR_SEND, 0, {}, rest);
    } else if (command == "write") {
        words >> cid >> first >> second >> a;
        std::getline(words, rest);
        const bool old = second[0] == '=';
        const size_t nr = std::strtoul(second.c_str() + old, nullptr, 0);
        Chunk to = old ? shared_.saved.at(nr) : shared_.chunks.empty() ? Chunk{} : shared_.chunks.at(nr);
        to.addr += a;
        if (first == "-")
            at(cid).post(IBV_WR_RDMA_WRITE, 0, to, rest);
        else
            at(cid).post(IBV_WR_RDMA_WRITE_WITH_IMM,
                         static_cast<uint32_t>(std::strtoul(first.c_str(), nullptr, 16)), to, rest);
    } else if (command == "chunks") {
        words >> cid >> a;
        chunks(at(cid), static_cast<int>(a));
    } else if (command == "recv") {
        words >> cid >> a;
        receive(at(cid), static_cast<int>(a));
    } else if (command == "show") {
        words >> first >> a >> b;
        say("show " + hex(shared_.memory.at(first).bytes.data() + a, b));
    } else if (command == "save") {
        words >> a;
        shared_.saved[a] = shared_.chunks.at(a);
        say("saved");
    } else if (command == "alive") {
        words >> cid >> a;
        say(at(cid).alive(static_cast<int>(a)) ? "alive" : "gone");
    } else if (command == "sleep") {
        words >> a;
        std::this_thread::sleep_for(Milliseconds(a));
        say("slept");
    } else if (command == "quit") {
        return false;
    } else if (!command.empty()) {
        say("error what is " + command);
        std::_Exit(1);
    }
    return true;
}

}  // namespace

int main() {
    Peer peer;
    std::string line;
    while (std::getline(std::cin, line) && peer.run(line)) {
    }
    return 0;
}
