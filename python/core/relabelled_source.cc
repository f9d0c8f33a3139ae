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
        info_(source_.info()) {
    info_.class_names = std::move(class_names);
    info_.knows_labels = true;
    std::string text = "relabelled " + std::to_string(source_.fingerprint());
    for (const std::string& name : info_.class_names) text += "\n" + name;
    text.append(reinterpret_cast<const char*>(labels_.data()), labels_.size() * sizeof(int32_t));
    info_.fingerprint = text_digest(text);
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return labels_[static_cast<size_t>(id)]; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
    out.label = label(id);
  }
  const SampleStorage& storage() const override { return source_.storage(); }
  uint64_t labels_digest() const override { return Source::labels_digest(); }

 private:
  const std::shared_ptr<const Source> kept_;
  const std::vector<int32_t> labels_;
  SourceInfo info_;
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
