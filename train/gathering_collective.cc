#include "train/gathering_collective.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace stoker {
namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "stoker: gathering collective: %s\n", what);
  std::abort();
}

class GatheringCollective final : public Collective {
 public:
  GatheringCollective(ProcessGroup& group, int local)
      : group_(group),
        local_(local),
        here_(make_host_collective(local)),
        calls_(static_cast<size_t>(local)) {}

  int size() const override { return group_.size() * local_; }

  void all_reduce(int rank, std::span<const float* const> parts, std::span<float> result) override {
    if (parts.empty()) broken("all_reduce without parts");
    calls_[rank] = {parts, result};
    here_->barrier(rank);
    if (rank == 0) sum();
    here_->barrier(rank);
    if (result.size() != sum_.size()) broken("all_reduce of different sizes");
    std::copy(sum_.begin(), sum_.end(), result.begin());
    here_->barrier(rank);
  }

  void broadcast(int rank, std::span<float> values, int root) override {
    if (root < 0 || root >= size()) broken("broadcast from a root that does not exist");
    calls_[rank].result = values;
    here_->barrier(rank);
    const std::span<float> from = calls_[root / local_ == group_.rank() ? root % local_ : 0].result;
    if (from.size() != values.size()) broken("broadcast of different sizes");
    if (rank == 0) stoker::broadcast(group_, std::as_writable_bytes(from), root / local_);
    here_->barrier(rank);
    if (from.data() != values.data()) std::copy(from.begin(), from.end(), values.begin());
    here_->barrier(rank);
  }

  void barrier(int rank) override {
    here_->barrier(rank);
    if (rank == 0) all_max(group_, 0);
    here_->barrier(rank);
  }

  void abort() noexcept override {
    group_.abort("a replica failed");
    here_->abort();
  }

 private:
  struct Call {
    std::span<const float* const> parts;
    std::span<float> result;
  };

  // Into sum_, of all parts of all processes.
  void sum() {
    const size_t count = calls_[0].result.size();
    own_.clear();
    for (const Call& call : calls_) {
      for (const float* part : call.parts) own_.insert(own_.end(), part, part + count);
    }
    all_.resize(own_.size() * static_cast<size_t>(group_.size()));
    group_.end_all_gather(group_.start_all_gather(std::as_bytes(std::span(own_)),
                                                  std::as_writable_bytes(std::span(all_))));
    sum_.assign(all_.begin(), all_.begin() + static_cast<int64_t>(count));
    for (size_t part = count; part < all_.size(); part += count) {
      for (size_t i = 0; i < count; ++i) sum_[i] += all_[part + i];
    }
  }

  ProcessGroup& group_;
  const int local_;
  const std::unique_ptr<Collective> here_;
  std::vector<Call> calls_;  // each rank writes its own before a barrier and reads all after it
  std::vector<float> own_, all_, sum_;  // rank 0's between the barriers
};

}  // namespace

std::unique_ptr<Collective> make_gathering_collective(ProcessGroup& group, int local) {
  return std::make_unique<GatheringCollective>(group, local);
}

}  // namespace stoker
