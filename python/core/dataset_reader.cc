#include "python/core/dataset_reader.h"

#include <optional>

#include "python/core/unlocked.h"

namespace stoker::python {

ReaderUse::ReaderUse(std::shared_ptr<DatasetReader> reader) : reader_(std::move(reader)) {
  ++reader_->uses_;
}

ReaderUse::~ReaderUse() {
  if (--reader_->uses_ > 0) return;
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  reader_->end_idle();
}

}  // namespace stoker::python
