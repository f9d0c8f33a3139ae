#include "train/collective/gathering.h"

#include <algorithm>
#include <vector>

#include "train/collective/joined.h"

namespace stoker {
namespace {

class GatheringCollective final : public JoinedCollective {
 public:
  GatheringCollective(ProcessGroup& group, int local)
      : JoinedCollective(group, local), group_(group) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    begin(rank, buffers, result);
    if (rank == 0) {
      sum(result);
      // Every buffer of a replica goes to all other replicas.
      const auto bytes = static_cast<int64_t>(own_.size() * sizeof(float)) * (size() - 1);
      count({bytes, bytes, 0, 0});
    }
    share_result(rank);
  }

 private:
  // Sums all buffers of all processes.
  void sum(std::span<float> result) {
    const size_t count = result.size();
    own_.clear();
    for (const Call& call : calls()) {
      for (const float* buffer : call.buffers) own_.insert(own_.end(), buffer, buffer + count);
    }
    all_.resize(own_.size() * static_cast<size_t>(group_.size()));
    group_.end_all_gather(group_.start_all_gather(std::as_bytes(std::span(own_)),
                                                  std::as_writable_bytes(std::span(all_))));
    std::copy_n(all_.begin(), count, result.begin());
    for (size_t begin = count; begin < all_.size(); begin += count) {
      for (size_t i = 0; i < count; ++i) result[i] += all_[begin + i];
    }
  }

  ProcessGroup& group_;
  std::vector<float> own_, all_;  // rank 0's
};

}  // namespace

std::unique_ptr<Collective> make_gathering_collective(ProcessGroup& group, int local) {
  return std::make_unique<GatheringCollective>(group, local);
}

}  // namespace stoker
