#include "train/collective/push.h"

namespace stoker {
namespace {

class PushCollective final : public Collective {
 public:
  explicit PushCollective(int size) : host_(make_host_collective(size)) {}

  int size() const override { return host_->size(); }
  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    host_->all_reduce(rank, buffers, result);
    if (rank != 0) return;
    const auto buffer_bytes = static_cast<int64_t>(result.size_bytes());
    traffic_.gradients_sent += size() * static_cast<int64_t>(buffers.size()) * buffer_bytes;
  }
  void broadcast(int rank, std::span<float> values, int root) override {
    host_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { host_->barrier(rank); }
  void abort() noexcept override { host_->abort(); }
  Traffic traffic() const override { return traffic_; }

 private:
  const std::unique_ptr<Collective> host_;
  Traffic traffic_;  // rank 0's
};

}  // namespace

std::unique_ptr<Collective> make_push_collective(int size) {
  return std::make_unique<PushCollective>(size);
}

}  // namespace stoker
