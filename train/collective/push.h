// Sums at a parameter server in host memory: gradients go to the server, which is in the first
// process, and the sum stays there. Threads and errors: see train/collective/collective.h.
#pragma once

#include <memory>

#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"

namespace stoker {

// For fp32: the sum, in the order of ranks and buffers, of `local` replicas of this process and as
// many of every other process of `group`. Replicas of the first process all pass the server's
// buffer as their result; the others' results have its size and are left alone. Every buffer
// travels, as the order of the sum needs it; the server keeps two of them. `group` is null for a
// single process; otherwise it must outlive the collective.
std::unique_ptr<Collective> make_push_collective(MessageGroup* group, int local);

}  // namespace stoker
