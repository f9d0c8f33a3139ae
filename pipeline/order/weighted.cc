// Orders by weight, with and without replacement.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/order/alias_table.h"
#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

std::string describe_weighted(const char* kind, const SampleOrder& order, uint64_t weights) {
  return std::string(kind) + ", length " + std::to_string(order.length()) + ", weights " +
         hex64(weights);
}

class WithReplacement final : public SampleOrder {
 public:
  WithReplacement(std::span<const double> weights, int64_t length)
      : SampleOrder("weighted", static_cast<int64_t>(weights.size()), length),
        digest_(weights_digest(weights)),
        table_(weights) {}
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const RandomKey random(epoch.seed, epoch.epoch, position);
    return {table_.pick(random.below(kColumn, table_.columns()), random.bits(kSide)),
            static_cast<uint64_t>(position)};
  }
  std::string describe() const override {
    return describe_weighted("weighted with replacement", *this, digest_);
  }

 private:
  const uint64_t digest_;
  const AliasTable table_;
};

// A sample of weight w arrives after an exponential time of rate w; the first ones to arrive, in
// their order, are draws by weight without replacement (Efraimidis and Spirakis 2006: the largest
// u^(1/w), whose order is that of the smallest -log(u) / w).
class WithoutReplacement final : public SampleOrder {
 public:
  WithoutReplacement(std::span<const double> weights, int64_t length)
      : SampleOrder("weighted", static_cast<int64_t>(weights.size()), length),
        digest_(weights_digest(weights)),
        largest_(*std::max_element(weights.begin(), weights.end())),
        weights_(weights.begin(), weights.end()) {
    const int64_t possible =
        std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
    if (length > possible) {
      throw std::invalid_argument("weighted order: length is " + std::to_string(length) +
                                  ", but only " + std::to_string(possible) + " of " +
                                  std::to_string(samples()) +
                                  " weights are above 0, and without replacement none comes twice");
    }
  }
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const MutexLock lock(mutex_);
    return {ids_of(epoch)[position], 0};
  }
  std::string describe() const override {
    return describe_weighted("weighted without replacement", *this, digest_);
  }

 private:
  struct Table {
    uint64_t seed = 0;
    int64_t epoch = -1;
    IdList ids;
  };
  struct Arrival {
    double time;
    SampleId id;
    bool operator<(const Arrival& other) const {
      return time != other.time ? time < other.time : id < other.id;
    }
  };

  const IdList& ids_of(const EpochKey& epoch) const REQUIRES(mutex_) {
    for (size_t i = 0; i < tables_.size(); ++i) {
      const Table& table = tables_[i];
      if (table.ids.size() == 0 || table.epoch != epoch.epoch || table.seed != epoch.seed) continue;
      last_used_ = i;
      return table.ids;
    }
    last_used_ = 1 - last_used_;
    Table& table = tables_[last_used_];
    table = {};  // frees its memory before the next one is made
    table = {epoch.seed, epoch.epoch, draw(epoch)};
    return table.ids;
  }

  IdList draw(const EpochKey& epoch) const {
    std::vector<Arrival> arrivals;
    arrivals.reserve(weights_.size());
    for (SampleId id = 0; id < samples(); ++id) {
      const double weight = weights_[static_cast<size_t>(id)] / largest_;
      if (weight <= 0) continue;
      const double uniform =
          1 - RandomKey(epoch.seed, epoch.epoch, id).uniform(kArrival);  // (0, 1]
      arrivals.push_back({-std::log(uniform) / weight, id});
    }
    const auto end = arrivals.begin() + length();
    std::nth_element(arrivals.begin(), end - 1, arrivals.end());
    std::sort(arrivals.begin(), end);
    std::vector<SampleId> ids;
    ids.reserve(static_cast<size_t>(length()));
    for (auto each = arrivals.begin(); each != end; ++each) ids.push_back(each->id);
    return IdList(ids);
  }

  const uint64_t digest_;
  const double largest_;
  const std::vector<double> weights_;
  mutable Mutex mutex_;
  mutable std::array<Table, 2> tables_ GUARDED_BY(mutex_);
  mutable size_t last_used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

SharedOrder weighted_order(std::span<const double> weights, const WeightedOptions& options) {
  check_weights("weighted order", weights);
  if (options.replacement) return std::make_shared<WithReplacement>(weights, options.length);
  return std::make_shared<WithoutReplacement>(weights, options.length);
}

}  // namespace stoker
