#include "python/core/unknown_label.h"

#include <stdexcept>
#include <utility>

#include "python/core/source_sample.h"

namespace stoker::python {
namespace {

thread_local bool unknown_label = false;

}  // namespace

void note_unknown_label() { unknown_label = true; }

bool take_unknown_label() { return std::exchange(unknown_label, false); }

int read_label(const std::shared_ptr<const Source>& source, SampleId id) {
  take_unknown_label();
  const int label = source->label(id);
  if (!take_unknown_label()) return label;
  std::vector<uint8_t> buffer;
  read_sample({source, id}, buffer);
  return source->label(id);
}

std::vector<int32_t> known_labels(const Source& source) {
  take_unknown_label();
  std::vector<int32_t> labels(static_cast<size_t>(source.size()));
  for (size_t id = 0; id < labels.size(); ++id) {
    labels[id] = source.label(static_cast<SampleId>(id));
    if (!take_unknown_label()) continue;
    throw std::invalid_argument("the label of " + source.name(static_cast<SampleId>(id)) +
                                " is not known before the sample is read: give all labels to "
                                "stoker.dataset(labels=)");
  }
  return labels;
}

}  // namespace stoker::python
