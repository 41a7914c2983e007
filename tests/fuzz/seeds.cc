// SPDX-License-Identifier: GPL-2.0-only
// Writes the seed corpus of a fuzzer: fuzz_seeds CODEC DIRECTORY
#include <fstream>
#include <iostream>

#include "rpcrdma_model.h"
#include "vectors.h"

namespace
{

class Corpus
{
public:
	explicit Corpus(std::string directory) : directory_(std::move(directory)) {}

	void Add(std::uint8_t pick, const rail::Bytes &message)
	{
		std::ofstream file(directory_ + "/seed" + std::to_string(count_++),
				   std::ios::binary);

		file.put(static_cast<char>(pick));
		file.write(reinterpret_cast<const char *>(message.data()),
			   static_cast<std::streamsize>(message.size()));
		if (!file)
			throw std::runtime_error(directory_ + ": cannot be written to");
	}

private:
	std::string directory_;
	int count_ = 0;
};

// Captures have one chunk a list; the random headers have the rest.
void AddRandomHeaders(Corpus &corpus)
{
	rail::Random random(8166);

	for (int round = 0; round < 64; round++) {
		const bool reply = round & 1;
		const bool legacy = round & 2;
		const auto dir = reply ? RAIL_RPC_REPLY : RAIL_RPC_CALL;
		const rail::Header header = rail::RandomHeader(random, dir, legacy);

		corpus.Add(static_cast<std::uint8_t>(reply | legacy << 1),
			   rail::Encode(header, rail::EncodedSize(header)));
	}
}

void AddRpcrdma(Corpus &corpus, const rail::Vector &vector)
{
	if (vector.kind == "rpcrdma")
		corpus.Add(vector.fields.at("dir") == "reply", vector.payload);
	else if (vector.kind == "rpcrdma-cm")
		corpus.Add(8, vector.payload);
}

void AddRtrs(Corpus &corpus, const rail::Vector &vector)
{
	if (vector.kind == "rtrs-conn-req")
		corpus.Add(0, vector.payload);
	else if (vector.kind == "rtrs-conn-rsp")
		corpus.Add(1, vector.payload);
	else if (vector.kind == "rtrs-info-req")
		corpus.Add(2, vector.payload);
	else if (vector.kind == "rtrs-info-rsp")
		corpus.Add(static_cast<std::uint8_t>(2 + vector.Number("rotation")),
			   vector.payload);
	else if (vector.kind == "rtrs-rkey-rsp")
		corpus.Add(5, vector.payload);
	else if (vector.kind == "rtrs-req") {
		// What is behind the user header, in the middle and at the end of the fuzzer's
		// chunk.
		const std::uint32_t len = vector.payload.size() >= 56 ? 24 : 4;

		for (const std::uint32_t off : {512U, 512 + 128 - len}) {
			rail::Bytes message(4);

			rail_put_be32(message.data(), off);
			message.insert(message.end(), vector.payload.end() - len,
				       vector.payload.end());
			corpus.Add(4, message);
		}
	}
}

void AddRnbd(Corpus &corpus, const rail::Vector &vector)
{
	if (vector.kind == "rtrs-req" || vector.kind == "rnbd-answer") {
		corpus.Add(0, vector.payload);
		corpus.Add(1, vector.payload);
	}
}

// No in-tree module sends these.
void AddSmall(Corpus &corpus)
{
	for (const std::uint16_t type : {RAIL_RTRS_SMALL_READ, RAIL_RTRS_SMALL_WRITE}) {
		const rail_rtrs_small_req req = {
			.type = type,
			.usr_len = RAIL_RTRS_SMALL_USR,
			.buf_id = 1,
			.alone = true,
			.data_len = 512,
			.addr = 4096,
			.key = 1,
		};
		rail::Bytes message(RAIL_RTRS_SMALL_HDR);

		rail_rtrs_small_encode(message.data(), &req);
		if (type == RAIL_RTRS_SMALL_WRITE)
			message.resize(message.size() + req.data_len);
		corpus.Add(6, message);
	}
	rail_rtrs_small_rsps rsps = {};
	const std::uint32_t len =
		rail_rtrs_small_rsps_put(&rsps, 0, rail_rtrs_imm_rsp(1, 0, false));

	corpus.Add(7, rail::Exact(rail::BytesOf(rsps), len));
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 3) {
		std::cerr << "usage: fuzz_seeds rpcrdma|rtrs|rnbd DIRECTORY\n";
		return 2;
	}
	const std::string codec = argv[1];
	Corpus corpus(argv[2]);

	for (const rail::Vector &vector : rail::LoadVectors("")) {
		if (codec == "rpcrdma")
			AddRpcrdma(corpus, vector);
		else if (codec == "rtrs")
			AddRtrs(corpus, vector);
		else
			AddRnbd(corpus, vector);
	}
	if (codec == "rpcrdma")
		AddRandomHeaders(corpus);
	else if (codec == "rtrs")
		AddSmall(corpus);
	return 0;
} catch (const std::exception &error) {
	std::cerr << error.what() << '\n';
	return 1;
}
