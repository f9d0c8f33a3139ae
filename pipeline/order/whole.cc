// Orders of all samples: shuffled, sequential, and shuffled with repetitions.
#include <stdexcept>

#include "pipeline/sample_order.h"

namespace stoker {
namespace {

class Shuffled final : public SampleOrder {
 public:
  explicit Shuffled(int64_t samples) : SampleOrder("shuffled", samples, samples) {}
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    return {Permutation(samples(), epoch.shuffle).at(position), 0};
  }
  std::string describe() const override { return "shuffled"; }
};

class Sequential final : public SampleOrder {
 public:
  explicit Sequential(int64_t samples) : SampleOrder("sequential", samples, samples) {}
  OrderedSample at(const EpochKey&, int64_t position) const override { return {position, 0}; }
  std::string describe() const override { return "sequential"; }
};

class Repeated final : public SampleOrder {
 public:
  explicit Repeated(const RepeatedOptions& options)
      : SampleOrder("repeated", options.samples,
                    options.length == 0 ? options.samples : options.length),
        repeats_(options.repeats) {
    if (repeats_ < 1) {
      throw std::invalid_argument("repeated order: repeats is " + std::to_string(repeats_) +
                                  ", must be at least 1");
    }
    if ((length() - 1) / repeats_ >= samples()) {
      throw std::invalid_argument("repeated order: length is " + std::to_string(length()) +
                                  ", more than " + std::to_string(samples()) + " samples x " +
                                  std::to_string(repeats_) + " repeats");
    }
  }
  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    return {Permutation(samples(), epoch.shuffle).at(position / repeats_),
            static_cast<uint64_t>(position % repeats_)};
  }
  std::string describe() const override {
    return "repeated " + std::to_string(repeats_) + " times, length " + std::to_string(length());
  }

 private:
  const int repeats_;
};

}  // namespace

SharedOrder shuffled_order(int64_t samples) { return std::make_shared<Shuffled>(samples); }

SharedOrder sequential_order(int64_t samples) { return std::make_shared<Sequential>(samples); }

SharedOrder repeated_order(const RepeatedOptions& options) {
  return std::make_shared<Repeated>(options);
}

}  // namespace stoker
