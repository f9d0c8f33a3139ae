// Snappy's streams: refused, or every range of what comes out of the whole can also be had by
// itself. Input: how long the ranges are (one byte), the stream.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "pipeline/source/format/snappy.h"

namespace stoker {
namespace {

constexpr uint64_t kMaxUnpacked = 1 << 18;
constexpr int64_t kMaxRanges = 200;

void check_range(std::span<const uint8_t> elements, std::span<const uint8_t> whole,
                 const SnappyRange& range, const SnappyPart& place) {
  const auto length = static_cast<size_t>(range.end - range.begin);
  if (place.offset < 0 || place.length < 0 || place.skip < 0) std::abort();
  if (place.offset + place.length > std::ssize(elements)) std::abort();
  std::span<const uint8_t> found =
      elements.subspan(static_cast<size_t>(place.offset), static_cast<size_t>(place.length));
  std::vector<uint8_t> out;
  if (!place.as_it_is) {
    out.resize(static_cast<size_t>(place.skip) + length);
    if (!unpack_snappy(found, out).empty()) std::abort();
    found = std::span<const uint8_t>(out).subspan(static_cast<size_t>(place.skip));
  }
  if (!std::ranges::equal(found, whole.subspan(static_cast<size_t>(range.begin), length))) {
    std::abort();
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size == 0) return 0;
  const std::span<const uint8_t> packed(data + 1, size - 1);
  uint64_t length = 0;
  const size_t head = read_snappy_length(packed, length);
  if (head == 0 || length > kMaxUnpacked) return 0;
  const std::span<const uint8_t> elements = packed.subspan(head);
  std::vector<uint8_t> whole(length);
  if (!unpack_snappy(elements, whole).empty()) return 0;
  if (static_cast<int64_t>(length) > most_from_snappy(std::ssize(elements))) std::abort();
  const auto end = static_cast<int64_t>(length);
  const int64_t step = std::max<int64_t>(1 + 3 * data[0], end / kMaxRanges + 1);
  std::vector<SnappyRange> ranges;
  for (int64_t at = 0; at < end; at += step) ranges.push_back({at, std::min(end, at + step)});
  const std::vector<SnappyPart> places = find_in_snappy(elements, ranges);
  if (places.size() != ranges.size()) std::abort();
  for (size_t i = 0; i < ranges.size(); ++i) check_range(elements, whole, ranges[i], places[i]);
  return 0;
}
