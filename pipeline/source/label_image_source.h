// Gives the samples of a source label images, which are the samples of another source, in the same
// order. Owner: the user; both sources outlive it. Threads: as every Source. Errors:
// std::invalid_argument with the numbers.
#pragma once

#include <memory>

#include "pipeline/source/forwarding_source.h"

namespace stoker {

class LabelImageSource final : public ForwardingSource {
 public:
  // `label_images`: files of PNG, with a class for each pixel.
  LabelImageSource(const Source& source, const Source& label_images);
  // Both live as long as this.
  LabelImageSource(std::shared_ptr<const Source> source,
                   std::shared_ptr<const Source> label_images);

  const SourceInfo& info() const override { return info_; }
  const SampleStorage& storage() const override { return source_.storage(); }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override;

 private:
  const std::shared_ptr<const Source> owned_, label_images_;
  SourceInfo info_;
};

}  // namespace stoker
