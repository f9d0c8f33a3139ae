// The samples that somebody will read next, from a SampleSequence: in their order, and by where
// they lie. SampleWindow announces them in their order, and before their turn where one lies beside
// another. Owner: SampleWindow. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <utility>

#include "pipeline/source.h"
#include "pipeline/source/blob/stored_samples.h"

namespace stoker {

class ComingSamples {
 public:
  struct Sample {
    SampleId id = 0;
    SampleAddress address{};
  };

  explicit ComingSamples(SampleSequence next) : next_(std::move(next)) {}

  // Asks for more until those that are known have so many bytes, or at least one is known. Samples
  // that are nowhere are left out: read() reports them.
  void look_further(int64_t bytes, const std::function<SampleAddress(SampleId id)>& locate);
  // The next one; nullptr: none is known.
  const Sample* front() const { return known_.empty() ? nullptr : &known_.front(); }
  // The first one of `object` that begins at `offset` or behind it, and the last one that begins
  // before it; nullptr: there is none.
  const Sample* first_from(const StoredObject* object, int64_t offset) const;
  const Sample* last_before(const StoredObject* object, int64_t offset) const;
  // Takes out what one of the above has returned.
  Sample take(const Sample& sample);

 private:
  using Offset = std::pair<const StoredObject*, int64_t>;
  static Offset offset_of(const Sample& sample) {
    return {sample.address.object.get(), sample.address.offset};
  }

  const SampleSequence next_;
  bool ended_ = false;
  std::list<Sample> known_;
  std::multimap<Offset, std::list<Sample>::iterator> by_offset_;
  int64_t bytes_ = 0;
};

}  // namespace stoker
