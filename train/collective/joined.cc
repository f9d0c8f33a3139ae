#include "train/collective/joined.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker {
namespace {

[[noreturn]] void broken_joined(const char* what) {
  std::fprintf(stderr, "stoker: collective over processes: %s\n", what);
  std::abort();
}

}  // namespace

JoinedCollective::JoinedCollective(ProcessGroup& group, int local)
    : group_(group),
      local_(local),
      here_(make_host_collective(local)),
      calls_(static_cast<size_t>(local)) {}

void JoinedCollective::broadcast(int rank, std::span<float> values, int root) {
  if (root < 0 || root >= size()) broken_joined("broadcast from a root that does not exist");
  calls_[rank].result = values;
  meet(rank);
  const bool own = root / local_ == group_.rank();
  const std::span<float> from = calls_[own ? root % local_ : 0].result;
  if (from.size() != values.size()) broken_joined("broadcast of different sizes");
  if (rank == 0) stoker::broadcast(group_, std::as_writable_bytes(from), root / local_);
  share(rank, from, values);
}

void JoinedCollective::barrier(int rank) {
  meet(rank);
  if (rank == 0) all_reduce_max(group_, 0);
  meet(rank);
}

void JoinedCollective::abort() noexcept {
  group_.abort("a replica failed");
  here_->abort();
}

void JoinedCollective::begin(int rank, std::span<const float* const> buffers,
                             std::span<float> result) {
  if (buffers.empty()) broken_joined("all_reduce without buffers");
  calls_[rank] = {buffers, result};
  meet(rank);
  for (const Call& call : calls_) {
    if (call.result.size() != result.size()) broken_joined("all_reduce of different sizes");
  }
}

void JoinedCollective::share(int rank, std::span<const float> from, std::span<float> to) {
  meet(rank);
  if (from.data() != to.data()) std::copy(from.begin(), from.end(), to.begin());
  meet(rank);
}

}  // namespace stoker
