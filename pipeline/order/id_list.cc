#include "pipeline/order/id_list.h"

#include <algorithm>
#include <limits>

#include "pipeline/files/digest.h"

namespace stoker {

IdList::IdList(const std::vector<SampleId>& ids) {
  constexpr SampleId kLargest = std::numeric_limits<uint32_t>::max();
  if (std::all_of(ids.begin(), ids.end(), [](SampleId id) { return id <= kLargest; })) {
    narrow_.reserve(ids.size());
    for (const SampleId id : ids) narrow_.push_back(static_cast<uint32_t>(id));
  } else {
    wide_ = ids;
  }
}

int64_t IdList::size() const {
  return static_cast<int64_t>(wide_.empty() ? narrow_.size() : wide_.size());
}

uint64_t IdList::digest() const {
  std::vector<uint64_t> words;
  words.reserve(static_cast<size_t>(size()));
  for (int64_t at = 0; at < size(); ++at) words.push_back(static_cast<uint64_t>((*this)[at]));
  return digest128(words).low;
}

}  // namespace stoker
