// Where the samples of a data set lie in a store. Values. Threads: the functions are called from
// any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pipeline/store/object_store.h"
#include "staging/batch_layout.h"

namespace stoker {

// Where a sample's bytes are. Samples in one object share it.
struct SampleAddress {
  std::shared_ptr<const StoredObject> object;  // null: nowhere, which the reader reports
  int64_t offset = 0, length = 0;
};

struct StoredSamples {
  std::string root;       // for messages
  std::string queries{};  // ObjectStore::digest_of_queries()
  int64_t count = 0;
  std::function<SampleAddress(SampleId)> locate;
  // The length of its place, for less work than locate(); 0 if it is nowhere.
  std::function<int64_t(SampleId)> bytes_of;
};

}  // namespace stoker
