#include "python/core/relabelled_source.h"

#include <stdexcept>

#include "pipeline/digest.h"

namespace stoker::python {
namespace {

class RelabelledSource final : public Source {
 public:
  RelabelledSource(std::shared_ptr<const Source> source, std::vector<int32_t> labels,
                   std::vector<std::string> class_names)
      : source_(std::move(source)),
        labels_(std::move(labels)),
        class_names_(std::move(class_names)) {
    std::string text = "relabelled " + std::to_string(source_->fingerprint());
    for (const std::string& name : class_names_) text += "\n" + name;
    text.append(reinterpret_cast<const char*>(labels_.data()), labels_.size() * sizeof(int32_t));
    fingerprint_ = text_digest(text);
  }

  int64_t size() const override { return source_->size(); }
  int label(SampleId id) const override { return labels_[static_cast<size_t>(id)]; }
  std::string name(SampleId id) const override { return source_->name(id); }
  const std::string& root() const override { return source_->root(); }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  SampleEncoding encoding() const override { return source_->encoding(); }
  Size raw_size() const override { return source_->raw_size(); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_->read(id, buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return source_->read_cached(id, buffer, bytes);
  }
  std::vector<SourceNote> notes() const override { return source_->notes(); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  const std::shared_ptr<const Source> source_;
  const std::vector<int32_t> labels_;
  const std::vector<std::string> class_names_;
  uint64_t fingerprint_ = 0;
};

}  // namespace

std::shared_ptr<const Source> relabel(std::shared_ptr<const Source> source,
                                      std::vector<int32_t> labels,
                                      std::vector<std::string> class_names) {
  if (static_cast<int64_t>(labels.size()) != source->size()) {
    throw std::invalid_argument(std::to_string(labels.size()) + " labels for " +
                                std::to_string(source->size()) + " samples");
  }
  return std::make_shared<RelabelledSource>(std::move(source), std::move(labels),
                                            std::move(class_names));
}

}  // namespace stoker::python
