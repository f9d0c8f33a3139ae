#include "pipeline/source/annotated_source.h"

#include <stdexcept>

#include "pipeline/files/digest.h"

namespace stoker {

AnnotatedSource::AnnotatedSource(std::shared_ptr<const Source> source,
                                 SampleAnnotations annotations)
    : ForwardingSource(*source),
      owned_(std::move(source)),
      annotations_(std::move(annotations)),
      info_(source_.info()) {
  const auto& pictures = annotations_.pictures;
  if (std::ssize(pictures) != info_.size) {
    throw std::invalid_argument(std::to_string(pictures.size()) + " pictures for " +
                                std::to_string(info_.size) + " samples");
  }
  for (const int64_t picture : pictures) {
    if (picture >= 0 && picture < annotations_.set->pictures()) continue;
    throw std::invalid_argument("picture " + std::to_string(picture) + ", must be 0 to " +
                                std::to_string(annotations_.set->pictures() - 1));
  }
  info_.annotations = annotations_.set->info();
  info_.notes.insert(info_.notes.end(), annotations_.notes.begin(), annotations_.notes.end());
  const std::string_view numbers(reinterpret_cast<const char*>(pictures.data()),
                                 pictures.size() * sizeof pictures[0]);
  info_.fingerprint =
      text_digest("stoker annotations; source " + hex64(source_.fingerprint()) + "; " +
                  hex64(info_.annotations.digest) + "; pictures " + hex64(text_digest(numbers)));
}

AnnotatedSource::AnnotatedSource(const Source& source, SampleAnnotations annotations)
    : AnnotatedSource(std::shared_ptr<const Source>(&source, [](const Source*) {}),
                      std::move(annotations)) {}

ReadStatus AnnotatedSource::read_annotations(SampleId id, std::span<const uint8_t>,
                                             Annotations& out) const {
  const int64_t picture = annotations_.pictures[static_cast<size_t>(id)];
  const std::string problem = annotations_.set->read(picture, out);
  if (problem.empty()) return {};
  return {false, annotations_.origin.empty() ? problem : annotations_.origin + ": " + problem};
}

}  // namespace stoker
