// Gives the samples of a source the annotations of a set. Owner: the user; the other source
// outlives it. Threads: as every Source. Errors: std::invalid_argument with the numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/annotated/annotation_set.h"
#include "pipeline/source/forwarding_source.h"

namespace stoker {

struct SampleAnnotations {
  SharedAnnotations set;
  std::vector<int64_t> pictures{};  // for each sample its number in the set
  std::string origin{};             // where the set comes from, for messages: a path
  std::vector<SourceNote> notes{};  // besides those of the source
};

class AnnotatedSource final : public ForwardingSource {
 public:
  AnnotatedSource(const Source& source, SampleAnnotations annotations);
  // `source` lives as long as this.
  AnnotatedSource(std::shared_ptr<const Source> source, SampleAnnotations annotations);

  const SourceInfo& info() const override { return info_; }
  const SampleStorage& storage() const override { return source_.storage(); }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override;
  Size picture_size(SampleId id) const override {
    return annotations_.set->size(annotations_.pictures[static_cast<size_t>(id)]);
  }

 private:
  const std::shared_ptr<const Source> owned_;
  const SampleAnnotations annotations_;
  SourceInfo info_;
};

}  // namespace stoker
