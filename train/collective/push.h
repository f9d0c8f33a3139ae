// Sums at a parameter server in host memory: gradients go to the server, and the sum stays there.
// Threads and errors: see train/collective/collective.h.
#pragma once

#include <memory>

#include "train/collective/collective.h"

namespace stoker {

// For fp32: the sum, in the order of ranks and buffers, of replicas of this process that all pass
// the server's buffer as their result. Every buffer travels, as the order of the sum needs it.
std::unique_ptr<Collective> make_push_collective(int size);

}  // namespace stoker
