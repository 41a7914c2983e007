// SPDX-License-Identifier: GPL-2.0-only
//
// What the peers have in common: answers, bytes as text, and what a QP is set up and used with.
#ifndef RAIL_TESTS_PEER_H
#define RAIL_TESTS_PEER_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using Milliseconds = std::chrono::milliseconds;

struct Memory {
    std::vector<uint8_t> bytes;
    ibv_mr* mr = nullptr;
};

inline void say(const std::string& text) { std::cout << text << std::endl; }

[[noreturn]] inline void die(const std::string& what) {
    say("error " + what + ": " + std::strerror(errno));
    std::_Exit(1);
}

inline std::string hex(const void* from, size_t size) {
    static const char digits[] = "0123456789abcdef";
    const auto* data = static_cast<const uint8_t*>(from);
    std::string text;
    for (size_t i = 0; i < size; i++) {
        text += digits[data[i] >> 4];
        text += digits[data[i] & 15];
    }
    return text;
}

// The bytes of @text; @word(WORD, bytes) appends what {WORD} stands for.
template <typename Word>
std::vector<uint8_t> parse(const std::string& text, Word word) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < text.size();) {
        if (text[i] == ' ') {
            i++;
        } else if (text[i] == '{') {
            const size_t end = text.find('}', i);
            word(text.substr(i + 1, end - i - 1), bytes);
            i = end + 1;
        } else {
            bytes.push_back(
                static_cast<uint8_t>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16)));
            i += 2;
        }
    }
    return bytes;
}

// Points into @data.
inline rdma_conn_param conn_param(const std::vector<uint8_t>& data) {
    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<uint8_t>(data.size());
    param.responder_resources = 16;
    param.initiator_depth = 16;
    param.retry_count = 7;
    param.rnr_retry_count = 7;
    return param;
}

// Makes @id's QP, with CQs for 64 sends and twice as many receives as there can be.
inline void make_qp(rdma_cm_id* id, ibv_pd* pd, uint32_t receives, ibv_cq*& send_cq,
                    ibv_cq*& recv_cq) {
    send_cq = ibv_create_cq(id->verbs, 64, nullptr, nullptr, 0);
    recv_cq = ibv_create_cq(id->verbs, static_cast<int>(2 * receives), nullptr, nullptr, 0);
    ibv_qp_init_attr attr{};
    attr.send_cq = send_cq;
    attr.recv_cq = recv_cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {32, receives, 1, 1, 0};
    if (!pd || !send_cq || !recv_cq || rdma_create_qp(id, pd, &attr)) die("rdma_create_qp");
}

// Receive number @nr goes to the piece of @size bytes of that number.
inline void post_receive(rdma_cm_id* id, const Memory& in, size_t nr, size_t size) {
    ibv_sge sge{reinterpret_cast<uint64_t>(in.bytes.data() + nr * size),
                static_cast<uint32_t>(size), in.mr->lkey};
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = nr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_post_recv(id->qp, &wr, &bad);
}

inline bool wait_cq(ibv_cq* cq, ibv_wc* wc, int ms) {
    const auto end = std::chrono::steady_clock::now() + Milliseconds(ms);
    while (ibv_poll_cq(cq, 1, wc) < 1) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(Milliseconds(1));
    }
    return true;
}

// Posts @wr, signalled, waits for it, and says what came of it.
inline void post_send(rdma_cm_id* id, ibv_cq* cq, ibv_send_wr& wr, int ms) {
    ibv_send_wr* bad = nullptr;
    ibv_wc wc{};
    wr.send_flags = IBV_SEND_SIGNALED;
    if (ibv_post_send(id->qp, &wr, &bad)) return say("failed post");
    if (!wait_cq(cq, &wc, ms)) return say("failed timeout");
    say(wc.status == IBV_WC_SUCCESS ? "sent"
                                    : std::string("failed ") + ibv_wc_status_str(wc.status));
}

#endif  // RAIL_TESTS_PEER_H
