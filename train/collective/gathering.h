// Sums over processes that cannot send messages to one another, in host memory: every process gets
// all parts, and adds them up in the order of host.cc. Slower than a chain of messages:
// what NCCL does not sum on the GPUs themselves. Threads and errors: see
// train/collective/collective.h.
#pragma once

#include <memory>

#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"

namespace stoker {

std::unique_ptr<Collective> make_gathering_collective(ProcessGroup& group, int local);

}  // namespace stoker
