// SPDX-License-Identifier: GPL-2.0-only
#include "vectors.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rail
{
namespace
{

Bytes FromHex(const std::string &hex)
{
	Bytes bytes;

	if (hex == "-")
		return bytes;
	for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
		bytes.push_back(
			static_cast<std::uint8_t>(std::stoul(hex.substr(at, 2), nullptr, 16)));
	return bytes;
}

std::map<std::string, std::string> Fields(const std::string &text)
{
	std::map<std::string, std::string> fields;
	std::istringstream stream(text);
	std::string pair;

	if (text == "-")
		return fields;
	while (std::getline(stream, pair, ',')) {
		const auto equals = pair.find('=');

		fields[pair.substr(0, equals)] = pair.substr(equals + 1);
	}
	return fields;
}

} // namespace

std::uint32_t Vector::Number(const std::string &name) const
{
	return static_cast<std::uint32_t>(std::stoul(fields.at(name), nullptr, 0));
}

std::vector<Vector> LoadVectors(const std::string &kind)
{
	const char *other = std::getenv("RAIL_VECTORS");
	const std::string path = other ? other : RAIL_VECTORS_FILE;
	std::ifstream file(path);
	std::vector<Vector> vectors;
	std::string line;

	if (!file)
		throw std::runtime_error(path + ": cannot be read");
	while (std::getline(file, line)) {
		std::istringstream words(line);
		std::string fields;
		std::string hex;
		Vector vector;

		if (line.empty() || line[0] == '#')
			continue;
		if (!(words >> vector.kind >> vector.source >> fields >> hex))
			throw std::runtime_error("bad line: " + line);
		if (!kind.empty() && vector.kind != kind)
			continue;
		vector.fields = Fields(fields);
		vector.payload = FromHex(hex);
		vector.payload.shrink_to_fit();
		vectors.push_back(std::move(vector));
	}
	return vectors;
}

} // namespace rail
