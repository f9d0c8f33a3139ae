// How encoded gradients get to the replicas that sum them, and encoded sums to all replicas. Every
// process sums a share of the blocks: it gets this share of all replicas' buffers, and gives its
// share of the sum to the others. With a parameter server the first process sums all. Owner: a wire
// collective. Threads: one at a time, while the buffers are not written. Errors: those of the
// ProcessGroup.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "train/collective/process/process_group.h"
#include "train/collective/wire/codec.h"

namespace stoker {

class WireExchange {
 public:
  virtual ~WireExchange() = default;
  // Sends what other processes sum of this process's buffers, and gets what this one sums.
  virtual void swap() = 0;
  // Returns the bytes of a block that this process sums, as rank `sender` of all wrote it.
  virtual const std::byte* at(int sender, int64_t block) const = 0;
  // Gives this process's share of the sum to the others, and gets theirs.
  virtual void spread() = 0;
};

struct WireBuffers {
  const WireLayout* layout = nullptr;
  std::vector<std::span<std::byte>> own;  // one per replica of this process, in layout
  std::span<std::byte> sum;               // in layout
  bool first_sums_all = false;            // there is no spread() then
};

// `buffers` and `group` must outlive the exchange. Without a group all replicas are in this
// process, and nothing moves.
std::unique_ptr<WireExchange> make_wire_exchange(const WireBuffers& buffers, ProcessGroup* group);

}  // namespace stoker
