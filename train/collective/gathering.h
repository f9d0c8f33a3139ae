// Sums in host memory over processes that cannot send messages to one another: every process gets
// all buffers and adds them up in the order of host.cc. It is slower than a chain of messages, and
// used for sums in host memory of processes that communicate through NCCL. Threads and errors: see
// train/collective/collective.h.
#pragma once

#include <memory>

#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"

namespace stoker {

std::unique_ptr<Collective> make_gathering_collective(ProcessGroup& group, int local);

}  // namespace stoker
