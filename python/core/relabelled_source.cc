#include "python/core/relabelled_source.h"

#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/source/forwarding_source.h"

namespace stoker::python {
namespace {

class RelabelledSource final : public ForwardingSource {
 public:
  RelabelledSource(std::shared_ptr<const Source> source, std::vector<int32_t> labels,
                   std::vector<std::string> class_names)
      : ForwardingSource(*source),
        kept_(std::move(source)),
        labels_(std::move(labels)),
        class_names_(std::move(class_names)) {
    std::string text = "relabelled " + std::to_string(source_.fingerprint());
    for (const std::string& name : class_names_) text += "\n" + name;
    text.append(reinterpret_cast<const char*>(labels_.data()), labels_.size() * sizeof(int32_t));
    fingerprint_ = text_digest(text);
  }

  int label(SampleId id) const override { return labels_[static_cast<size_t>(id)]; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
    out.label = label(id);
  }
  FileStamp stamp(SampleId id) const override { return source_.stamp(id); }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return source_.read_pieces(id, stamp, pieces, may_wait);
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  bool knows_labels() const override { return true; }
  uint64_t labels_digest() const override { return Source::labels_digest(); }

 private:
  const std::shared_ptr<const Source> kept_;
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
