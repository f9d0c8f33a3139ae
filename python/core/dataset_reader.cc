#include "python/core/dataset_reader.h"

#include <unistd.h>

#include <optional>

#include "python/core/unlocked.h"

namespace stoker::python {

ReaderUse::ReaderUse(std::shared_ptr<DatasetReader> reader)
    : reader_(std::move(reader)), process_(getpid()) {
  if (reader_->used_by_.exchange(process_) != process_) reader_->uses_ = 0;
  ++reader_->uses_;
}

ReaderUse::~ReaderUse() {
  if (getpid() != process_ || --reader_->uses_ > 0) return;
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  reader_->end_idle();
}

}  // namespace stoker::python
