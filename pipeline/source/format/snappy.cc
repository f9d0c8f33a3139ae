#include "pipeline/source/format/snappy.h"

#include <algorithm>
#include <cstring>

#include "pipeline/source/format/little_endian.h"

namespace stoker {
namespace {

// Among places to begin that lie closer together than this, the first is enough.
constexpr int64_t kPlacesApart = 1 << 10;

struct SnappyElement {
  size_t head = 0;      // bytes of it that are not a literal's content; 0: the input ends here
  uint64_t length = 0;  // unpacked bytes
  uint64_t back = 0;    // how far back it copies from
  bool is_literal = false;
};

inline SnappyElement read_snappy_element(std::span<const uint8_t> packed, size_t at) {
  SnappyElement element;
  if (at >= packed.size()) return element;
  const size_t left = packed.size() - at;
  const uint8_t* const head = packed.data() + at;
  const size_t upper = head[0] >> 2;
  // How many bytes the length of a literal or the distance of a copy takes.
  size_t more;
  switch (head[0] & 3) {
    case 0:
      more = upper < 60 ? 0 : upper - 59;
      if (left <= more) return element;
      element.length = 1 + (more == 0 ? upper : read_little_endian({head + 1, more}));
      element.is_literal = true;
      break;
    case 1:
      more = 1;
      if (left <= more) return element;
      element.length = 4 + (upper & 7);
      element.back = (upper >> 3) << 8 | head[1];
      break;
    default:
      more = (head[0] & 3) == 2 ? 2 : 4;
      if (left <= more) return element;
      element.length = 1 + upper;
      element.back = read_little_endian({head + 1, more});
      break;
  }
  element.head = 1 + more;
  return element;
}

// Copies what lies `back` bytes before `to`. What is copied may itself be part of the copy.
inline void copy_back(uint8_t* to, size_t back, size_t length) {
  const uint8_t* const from = to - back;
  if (back >= length) {
    std::memcpy(to, from, length);
  } else {
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

std::string at_byte(size_t at) { return "at byte " + std::to_string(at) + " of Snappy's: "; }

// The elements at which unpacking can begin, of those that have been walked over.
class SnappyEntries {
 public:
  struct Entry {
    int64_t packed, unpacked;
  };

  // An element begins here.
  void begin(Entry element) {
    if (entries_.empty() || element.unpacked - entries_.back().unpacked >= kPlacesApart) {
      entries_.push_back(element);
    }
  }
  // A copy takes bytes from there on: nobody can begin behind that, and come to the copy.
  void reach(int64_t unpacked) {
    while (entries_.size() > 1 && entries_.back().unpacked > unpacked) entries_.pop_back();
  }
  const std::vector<Entry>& all() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // ascending; the first is the stream's first element
};

}  // namespace

size_t read_snappy_length(std::span<const uint8_t> packed, uint64_t& length) {
  length = 0;
  for (size_t i = 0; i < std::min<size_t>(packed.size(), 5); ++i) {
    length |= uint64_t{packed[i] & 0x7fu} << (7 * i);
    if (packed[i] < 0x80) return i + 1;
  }
  return 0;
}

std::string unpack_snappy(std::span<const uint8_t> packed, std::span<uint8_t> out) {
  size_t at = 0, done = 0;
  while (done < out.size()) {
    const SnappyElement element = read_snappy_element(packed, at);
    if (element.head == 0) {
      return at_byte(at) + "the packed bytes end after " + std::to_string(done) + " of " +
             std::to_string(out.size()) + " unpacked ones";
    }
    const size_t wanted = std::min<uint64_t>(element.length, out.size() - done);
    if (element.is_literal) {
      if (wanted > packed.size() - at - element.head) {
        return at_byte(at) + "a literal of " + std::to_string(element.length) +
               " bytes does not fit into the packed bytes";
      }
      std::memcpy(out.data() + done, packed.data() + at + element.head, wanted);
      at += wanted;
    } else {
      if (element.back == 0 || element.back > done) {
        return at_byte(at) + "a copy from " + std::to_string(element.back) +
               " bytes back, and there are " + std::to_string(done);
      }
      copy_back(out.data() + done, element.back, wanted);
    }
    at += element.head;
    done += wanted;
  }
  return "";
}

std::vector<SnappyPart> find_in_snappy(std::span<const uint8_t> packed,
                                       std::span<const SnappyRange> ranges) {
  std::vector<SnappyPart> places(ranges.size());
  SnappyEntries entries;
  int64_t at = 0, done = 0;
  size_t ended = 0;  // so many ranges end before `done`
  while (true) {
    // Only ranges without bytes can end where no element has been seen yet.
    for (; ended < ranges.size() && ranges[ended].end <= done; ++ended) {
      places[ended].as_it_is = true;
    }
    if (ended == ranges.size()) break;
    const SnappyElement element = read_snappy_element(packed, static_cast<size_t>(at));
    if (element.head == 0) return {};
    const int64_t content = at + static_cast<int64_t>(element.head);
    const auto length = static_cast<int64_t>(element.length);
    const int64_t wanted = std::min(length, ranges.back().end - done);
    if (element.is_literal && wanted > std::ssize(packed) - content) return {};
    entries.begin({at, done});
    if (!element.is_literal) entries.reach(done - static_cast<int64_t>(element.back));
    for (; ended < ranges.size() && ranges[ended].end <= done + length; ++ended) {
      const SnappyRange& range = ranges[ended];
      SnappyPart& place = places[ended];
      place.as_it_is = range.begin == range.end || (element.is_literal && range.begin >= done);
      if (place.as_it_is) {
        place.offset = element.is_literal ? content + range.begin - done : 0;
        place.length = range.end - range.begin;
      } else {
        // For now, where the packed bytes end: of a literal, no more than what is wanted of it.
        place.length = content + (element.is_literal ? range.end - done : 0);
      }
    }
    at = content + (element.is_literal ? length : 0);
    done += length;
  }
  // Where to begin is known only now: the copies that follow take places away.
  size_t next = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (places[i].as_it_is) continue;
    const std::vector<SnappyEntries::Entry>& all = entries.all();
    while (next + 1 < all.size() && all[next + 1].unpacked <= ranges[i].begin) ++next;
    places[i].offset = all[next].packed;
    places[i].length -= all[next].packed;
    places[i].skip = ranges[i].begin - all[next].unpacked;
  }
  return places;
}

}  // namespace stoker
