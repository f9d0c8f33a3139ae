// The ways to sum gradients over replicas, and their names.
#pragma once

#include <cstdint>
#include <utility>

namespace stoker {

enum class ReduceKind : uint8_t {
  automatic,  // the best that the devices can
  nccl,       // between GPUs: NCCL wants a GPU of its own for every rank
  device,     // replicas on one GPU, in one process: a kernel of ours; to test, it brings no speed
  host,       // in the host's memory: the gradients go there, are summed, and come back
  none,       // left out, each replica for itself: the cost of communication is gone
};

inline constexpr std::pair<const char*, ReduceKind> kReduceKinds[] = {
    {"auto", ReduceKind::automatic}, {"nccl", ReduceKind::nccl}, {"device", ReduceKind::device},
    {"host", ReduceKind::host},      {"none", ReduceKind::none},
};

constexpr const char* to_string(ReduceKind kind) {
  for (const auto& [name, value] : kReduceKinds) {
    if (value == kind) return name;
  }
  return "";
}

}  // namespace stoker
