// One sample of a source: its bytes and its pixels. Threads: any; nothing here calls Python.
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
// Returns (height, width, 3) uint8, also for raw sources. Throws UnreadableSample, and DecodeError
// that begins with the sample's name.
Array decode_sample(const SourceSample& sample);
// Returns one array per column of Source::targets(). Throws UnreadableSample.
std::vector<Array> read_sample_targets(const SourceSample& sample);

}  // namespace stoker::python
