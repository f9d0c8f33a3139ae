// Writes TFRecord files and the protobuf messages in them, piece by piece, so that each piece can
// also be wrong. It shares no code with what reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

// The checksum, bit by bit, and as TFRecord files store it.
uint32_t plain_crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// Protobuf: one field of a message, as its tag and value.
std::string wire_varint(uint64_t value);
std::string wire_number(uint32_t field, uint64_t value);
std::string wire_bytes(uint32_t field, std::string_view bytes);

// A Feature of a tf.train.Example.
std::string bytes_feature(const std::vector<std::string>& values);
std::string float_feature(const std::vector<float>& values);
std::string int64_feature(const std::vector<int64_t>& values, bool packed = true);

// An Example with these keys, in this order.
std::string make_example(const std::vector<std::pair<std::string, std::string>>& features);

// A record: length, its checksum, data, its checksum.
std::string make_record(std::string_view data);

// Gives every record, as far as the lengths in `file` lead to whole ones, its right checksums.
void repair_checksums(std::string& file);

}  // namespace stoker
