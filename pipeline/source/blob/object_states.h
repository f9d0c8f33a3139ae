// Sizes and versions of the objects of samples that are whole objects; about 50 bytes each. A
// value; threads: const calls from any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/store/object_store.h"

namespace stoker {

class ObjectStates {
 public:
  // Adds that of the next sample. The object's key is not kept.
  void add(const StoredObject& object) {
    bytes_.push_back(object.bytes);
    version_at_.push_back(versions_.size());
    versions_.insert(versions_.end(), object.version.c_str(),
                     object.version.c_str() + object.version.size() + 1);
  }
  bool empty() const { return bytes_.empty(); }
  int64_t bytes(SampleId id) const { return bytes_[static_cast<size_t>(id)]; }
  StoredObject object(SampleId id, std::string key) const {
    const auto place = static_cast<size_t>(id);
    return {std::move(key), bytes_[place], versions_.data() + version_at_[place]};
  }

 private:
  std::vector<int64_t> bytes_;
  std::vector<char> versions_;        // each ended by a NUL
  std::vector<uint64_t> version_at_;  // in versions_
};

}  // namespace stoker
