#include "pipeline/order/passes.h"

#include "pipeline/sample_order.h"

namespace stoker {
namespace {

Permutation order_of_pass(uint64_t pass, uint64_t seed, int64_t members) {
  return {members, EpochKey(seed, static_cast<int64_t>(pass)).shuffle};
}

}  // namespace

PassMember Passes::at(uint64_t index, uint64_t mark) const {
  const auto members = static_cast<uint64_t>(members_);
  const uint64_t pass = index / members, first_pass = mark / members;
  const int64_t member =
      order_of_pass(pass, seed_, members_).at(static_cast<int64_t>(index % members));
  if (pass == first_pass) return {member, 0};
  // It came in every pass in between, and in the first one unless that was before the mark.
  const int64_t place_then = order_of_pass(first_pass, seed_, members_).position_of(member);
  const bool came_before = static_cast<uint64_t>(place_then) < mark % members;
  return {member, pass - first_pass - (came_before ? 1 : 0)};
}

}  // namespace stoker
