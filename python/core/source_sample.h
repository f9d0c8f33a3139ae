// One sample of a source: its bytes, its pixels and its label. Threads: any; nothing here calls
// Python.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "pipeline/source.h"
#include "python/core/image_ops.h"

namespace stoker::python {

struct SourceSample {
  std::shared_ptr<const Source> source;
  SampleId id = 0;
};

// "NAME: REASON", for bytes that cannot be read. Becomes Python's OSError.
class UnreadableSample : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// As Source::read(). Throws UnreadableSample.
std::span<const uint8_t> read_sample(const SourceSample& sample, std::vector<uint8_t>& buffer);
// The same for a further picture, whose name stands in the message.
std::span<const uint8_t> read_picture_of(const SourceSample& sample, size_t number,
                                         std::vector<uint8_t>& buffer);
// Returns (height, width, 3) uint8, also for raw sources. Throws UnreadableSample, and DecodeError
// that begins with the sample's name.
Array decode_sample(const SourceSample& sample);
// Returns one array per column of Source::targets(), that of a text with its bytes. Throws
// UnreadableSample.
std::vector<Array> read_sample_targets(const SourceSample& sample);

// Returns what lies on the sample's picture, as dicts of lists; {}: nothing. Throws
// UnreadableSample.
nanobind::dict annotations_of_sample(const SourceSample& sample);
// Returns the kinds of annotations of a source; {}: none.
nanobind::dict annotations_of_source(const Source& source);

// Labels that are known only when their sample has been read (dataset_source.h): Source::label()
// gives 0 for such a label, and notes here, for its thread, that this is not the label. So a caller
// who needs the label itself learns that it is not known, also through views of the source.
void note_unknown_label();
// Returns whether a label that is not known was asked for on this thread since the last call.
bool take_unknown_label();

// Returns the label; one that is not known is read now, which may take long. Throws
// UnreadableSample.
int read_label(const std::shared_ptr<const Source>& source, SampleId id);
// Returns all labels. Throws std::invalid_argument if one is not known.
std::vector<int32_t> known_labels(const Source& source);

}  // namespace stoker::python
