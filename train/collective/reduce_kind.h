// The strategies of data-parallel training: what replicas exchange in a step, through what, and the
// names of both.
#pragma once

#include <cstdint>
#include <utility>

namespace stoker {

enum class ReduceKind : uint8_t {
  automatic,  // all-reduce by the best that the devices support
  nccl,       // between GPUs: NCCL needs a separate GPU for every rank
  device,     // replicas on one GPU, in one process, with our kernel; for tests, no speed-up
  host,       // gradients are copied to host memory, summed there, and copied back
  server,     // the weights lie with a server in host memory: gradients go there, weights come back
  independent,  // no sum: each replica trains a model of its own, which is evaluated and saved
  none,         // no sum and nothing saved: measures a step without communication
};

constexpr bool sends_gradients(ReduceKind kind) {
  return kind != ReduceKind::independent && kind != ReduceKind::none;
}

inline constexpr std::pair<const char*, ReduceKind> kReduceKinds[] = {
    {"all-reduce", ReduceKind::automatic},
    {"auto", ReduceKind::automatic},
    {"all-reduce:nccl", ReduceKind::nccl},
    {"all-reduce:device", ReduceKind::device},
    {"all-reduce:host", ReduceKind::host},
    {"parameter-server", ReduceKind::server},
    {"parameter-server:host", ReduceKind::server},
    {"independent", ReduceKind::independent},
    {"none", ReduceKind::none},
};

// Returns the first name of the kind.
constexpr const char* to_string(ReduceKind kind) {
  for (const auto& [name, value] : kReduceKinds) {
    if (value == kind) return name;
  }
  return "";
}

}  // namespace stoker
