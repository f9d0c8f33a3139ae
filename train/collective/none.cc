// No communication: for a single replica, or to measure the cost of communication.
#include <vector>

#include "train/collective/collective.h"

namespace stoker {
namespace {

class NoCollective final : public Collective {
 public:
  explicit NoCollective(int size) : size_(size), here_(make_host_collective(size)) {}

  int size() const override { return size_; }

  void all_reduce(int, std::span<const float* const> parts, std::span<float> result) override {
    if (parts.size() == 1 && parts[0] == result.data()) return;
    for (size_t i = 0; i < result.size(); ++i) {
      float sum = parts[0][i];
      for (size_t part = 1; part < parts.size(); ++part) sum += parts[part][i];
      result[i] = sum;
    }
  }
  void broadcast(int rank, std::span<float> values, int root) override {
    here_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { here_->barrier(rank); }
  void abort() noexcept override { here_->abort(); }

 private:
  const int size_;
  const std::unique_ptr<Collective> here_;
};

}  // namespace

std::unique_ptr<Collective> make_no_collective(int size) {
  return std::make_unique<NoCollective>(size);
}

}  // namespace stoker
