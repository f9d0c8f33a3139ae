// The strategies of data-parallel training: what replicas exchange in a step, through what, and the
// names of both.
#pragma once

#include <cstdint>
#include <utility>

namespace stoker {

enum class ReduceKind : uint8_t {
  automatic,      // all-reduce by the best that the devices support
  nccl,           // between GPUs: NCCL needs a separate GPU for every rank
  device,         // replicas on one GPU, in one process, with our kernel; for tests, no speed-up
  host,           // gradients are copied to host memory, summed there, and copied back
  server,         // the weights lie with a server: the one of the next two that replicas can have
  server_host,    // gradients go to host memory, and weights come back
  server_device,  // gradients go to the first replica's device, and weights come back
  independent,    // no sum: each replica trains a model of its own, which is evaluated and saved
  none,           // no sum and nothing saved: measures a step without communication
};

constexpr bool sends_gradients(ReduceKind kind) {
  return kind != ReduceKind::independent && kind != ReduceKind::none;
}

constexpr bool wants_server(ReduceKind kind) {
  return kind == ReduceKind::server || kind == ReduceKind::server_host ||
         kind == ReduceKind::server_device;
}

inline constexpr std::pair<const char*, ReduceKind> kReduceKinds[] = {
    {"all-reduce", ReduceKind::automatic},
    {"auto", ReduceKind::automatic},
    {"all-reduce:nccl", ReduceKind::nccl},
    {"all-reduce:device", ReduceKind::device},
    {"all-reduce:host", ReduceKind::host},
    {"parameter-server", ReduceKind::server},
    {"parameter-server:host", ReduceKind::server_host},
    {"parameter-server:device", ReduceKind::server_device},
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
