#include "python/core/order.h"

#include <stdexcept>
#include <unordered_map>

#include "pipeline/files/digest.h"
#include "pipeline/order/id_list.h"
#include "python/core/unknown_label.h"

namespace stoker::python {
namespace {

IdList checked_ids(int64_t samples, const std::vector<SampleId>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < samples) continue;
    throw std::invalid_argument("id " + std::to_string(ids[i]) + " at place " + std::to_string(i) +
                                " of " + std::to_string(ids.size()) +
                                ": the source has the samples 0 to " + std::to_string(samples - 1));
  }
  return IdList(ids);
}

// Returns how often each id was listed before its place.
IdList count_repeats(const std::vector<SampleId>& ids) {
  std::unordered_map<SampleId, int64_t> listed;
  std::vector<int64_t> repeat_indexes;
  repeat_indexes.reserve(ids.size());
  for (const SampleId id : ids) repeat_indexes.push_back(listed[id]++);
  return IdList(repeat_indexes);
}

class Listed final : public SampleOrder {
 public:
  Listed(int64_t samples, const std::vector<SampleId>& ids)
      : SampleOrder("listed", samples, static_cast<int64_t>(ids.size())),
        ids_(checked_ids(samples, ids)),
        repeats_(count_repeats(ids)) {}
  OrderedSample at(const EpochKey&, int64_t position) const override {
    return {ids_[position], static_cast<uint64_t>(repeats_[position])};
  }
  std::string describe() const override {
    return "listed, length " + std::to_string(length()) + ", ids " + hex64(ids_.digest());
  }

 private:
  const IdList ids_, repeats_;
};

}  // namespace

BoundOrder balance_classes(const Source& source, int64_t length) {
  return {class_balanced_order(known_labels(source), length)};
}

BoundOrder listed_order(int64_t samples, const std::vector<SampleId>& ids) {
  return {std::make_shared<Listed>(samples, ids)};
}

}  // namespace stoker::python
