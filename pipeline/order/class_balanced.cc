// The order that shows every class equally often.
#include <algorithm>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/order/id_list.h"
#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"

namespace stoker {
namespace {

class ClassBalanced final : public SampleOrder {
 public:
  ClassBalanced(std::span<const int32_t> labels, int64_t length)
      : SampleOrder("class_balanced", static_cast<int64_t>(labels.size()), length) {
    sort_by_class(labels);
  }

  // Positions count over all epochs, so that neither a round nor a pass ends with the epoch.
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const uint64_t first = static_cast<uint64_t>(epoch.epoch) * static_cast<uint64_t>(length());
    const uint64_t place = first + static_cast<uint64_t>(position), classes = begins_.size() - 1;
    const uint64_t round = place / classes, first_round = first / classes;
    const uint64_t round_seed = RandomKey(epoch.seed, 0, 0).bits(kRoundSeed);
    const int64_t chosen = round_order(round, round_seed).at(static_cast<int64_t>(place % classes));
    const int64_t begin = begins_[static_cast<size_t>(chosen)];
    const int64_t members = begins_[static_cast<size_t>(chosen) + 1] - begin;
    // How many turns the class had before the epoch. In the epoch's first pass over the class the
    // repeat index is 0 anyhow, so there it does not matter whether its turn in that round was
    // before.
    uint64_t mark = first_round;
    if (round / static_cast<uint64_t>(members) != mark / static_cast<uint64_t>(members)) {
      const int64_t turn = round_order(first_round, round_seed).position_of(chosen);
      if (static_cast<uint64_t>(turn) < first % classes) ++mark;
    }
    const Passes passes(RandomKey(epoch.seed, 0, chosen).bits(kPartSeed), members);
    const PassMember found = passes.at(round, mark);
    return {members_[begin + found.member], found.repeat_index};
  }

  std::string describe() const override {
    return "class balanced, length " + std::to_string(length()) + ", " +
           std::to_string(begins_.size() - 1) + " classes " + hex64(IdList(begins_).digest()) +
           ", members " + hex64(members_.digest());
  }

 private:
  Permutation round_order(uint64_t round, uint64_t seed) const {
    return {static_cast<int64_t>(begins_.size()) - 1,
            EpochKey(seed, static_cast<int64_t>(round)).shuffle};
  }

  void sort_by_class(std::span<const int32_t> labels) {
    std::vector<SampleId> ids(labels.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      ids[i] = static_cast<SampleId>(i);
      if (labels[i] >= 0) continue;
      throw std::invalid_argument("class_balanced order: the label of sample " + std::to_string(i) +
                                  " is " + std::to_string(labels[i]) + ", must be 0 or more");
    }
    const auto label = [&](SampleId id) { return labels[static_cast<size_t>(id)]; };
    std::stable_sort(ids.begin(), ids.end(),
                     [&](SampleId a, SampleId b) { return label(a) < label(b); });
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i == 0 || label(ids[i]) != label(ids[i - 1])) begins_.push_back(static_cast<int64_t>(i));
    }
    begins_.push_back(static_cast<int64_t>(ids.size()));
    members_ = IdList(ids);
  }

  IdList members_;               // class by class
  std::vector<int64_t> begins_;  // of each class that has members; its end is the next one's begin
};

}  // namespace

SharedOrder class_balanced_order(std::span<const int32_t> labels, int64_t length) {
  return std::make_shared<ClassBalanced>(labels, length);
}

}  // namespace stoker
