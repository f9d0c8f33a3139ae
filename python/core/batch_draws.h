// The draws of a batch's rows, as text. It is drawn again when somebody asks: a batch
// keeps only the notes of its rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"

namespace stoker::python {

// A value that is never changed. Threads: any.
struct BatchDraws {
  std::shared_ptr<const AugmentSpec> augment;
  std::shared_ptr<const Source> source;  // null: its samples carry nothing
  uint64_t seed = 0;
  DecodeOptions decode;
  int64_t epoch = 0;
  std::vector<RowNote> notes;

  // One text for each row: its steps in the grammar of augmentations, then how it was mixed. With
  // several views a line for each; of several samples a line for each of their pictures. "" for a
  // row without a picture.
  std::vector<std::string> texts() const;
};

// Copies the notes of a batch.
std::shared_ptr<const BatchDraws> draws_of(std::shared_ptr<const AugmentSpec> augment,
                                           std::shared_ptr<const Source> source, uint64_t seed,
                                           const DecodeOptions& decode, const DeviceBatch& batch);

}  // namespace stoker::python
