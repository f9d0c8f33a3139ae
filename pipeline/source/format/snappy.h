// Unpacks Snappy (google/snappy: format_description.txt), from the middle of a stream as well: a
// page of Parquet may hold a thousand images, and whoever wants one of them need not unpack the
// others. libsnappy unpacks whole streams only, which is why it is not used here.
//
// A stream is its unpacked length (a varint), then elements: a literal (bytes as they are) or a
// copy of what came out before. Unpacking can begin at an element if no copy that follows reaches
// back over it. The usual encoders give such places at least every 64 KiB, because they pack each
// 64 KiB by themselves; find_in_snappy() takes nothing for granted and looks. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Reads the stream's length. Returns how many bytes it takes, or 0 if it is not one.
size_t read_snappy_length(std::span<const uint8_t> packed, uint64_t& length);

// No stream of `packed_bytes` holds more: an element of three bytes gives at most 64.
inline int64_t most_from_snappy(int64_t packed_bytes) { return 64 * (packed_bytes / 3 + 1); }

// Fills `out` with what comes out first of the elements that `packed` begins with. Returns "" or
// what is wrong with them. Nothing outside the two spans is read or written.
std::string unpack_snappy(std::span<const uint8_t> packed, std::span<uint8_t> out);

// A part of what comes out of a stream: [begin, end).
struct SnappyRange {
  int64_t begin, end;
};

// How to get a part of the stream.
struct SnappyPart {
  bool as_it_is = false;  // `length` bytes at `offset` of the packed bytes: nothing to unpack
  int64_t offset = 0;     // where to begin
  int64_t length = 0;     // packed bytes to take
  int64_t skip = 0;       // unpacked bytes that come out before the part
};

// Returns the place of each of the ranges, which ascend and do not overlap. `packed` are all
// elements of a stream from which unpack_snappy() can unpack up to the last range's end; returns
// nothing if they end before it.
std::vector<SnappyPart> find_in_snappy(std::span<const uint8_t> packed,
                                       std::span<const SnappyRange> ranges);

}  // namespace stoker
