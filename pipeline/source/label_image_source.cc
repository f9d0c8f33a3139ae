#include "pipeline/source/label_image_source.h"

#include <stdexcept>

#include "pipeline/files/digest.h"

namespace stoker {

LabelImageSource::LabelImageSource(const Source& source, const Source& label_images)
    : LabelImageSource(std::shared_ptr<const Source>(&source, [](const Source*) {}),
                       std::shared_ptr<const Source>(&label_images, [](const Source*) {})) {}

LabelImageSource::LabelImageSource(std::shared_ptr<const Source> source,
                                   std::shared_ptr<const Source> label_images)
    : ForwardingSource(*source),
      owned_(std::move(source)),
      label_images_(std::move(label_images)),
      info_(source_.info()) {
  if (label_images_->size() != source_.size()) {
    throw std::invalid_argument(std::to_string(label_images_->size()) + " label images for " +
                                std::to_string(source_.size()) + " samples");
  }
  if (info_.annotations.label_image) {
    throw std::invalid_argument("the samples have label images already");
  }
  info_.annotations.label_image = true;
  const std::string text = "; label images " + hex64(label_images_->fingerprint());
  info_.annotations.digest = text_digest(hex64(info_.annotations.digest) + text);
  info_.fingerprint = text_digest("source " + hex64(source_.fingerprint()) + text);
}

ReadStatus LabelImageSource::read_annotations(SampleId id, std::span<const uint8_t> bytes,
                                              Annotations& out) const {
  ReadStatus status = source_.read_annotations(id, bytes, out);
  if (!status.ok) return status;
  status = label_images_->read(id, out.label_buffer, out.label_file);
  if (!status.ok) status.message = "label image: " + status.message;
  return status;
}

}  // namespace stoker
