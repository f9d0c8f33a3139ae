// Compares cutting a batch for N replicas of one device on the host and on the device: bytes and
// milliseconds.
//
// On the host: every replica's samples are copied to it from pinned memory on its own stream, as
// each replica's ring and stager do. On the device: the whole batch crosses the bus in one copy and
// is then cut by copies on the device. With several devices, this second way also uses the links
// between them.
#pragma once

#include <string>

#include "bench/report/report.h"

namespace stoker {

struct SliceOptions {
  std::string device = "cpu:0";
  int replicas = 4;
  int rows = 1024;  // of the batch
  int size = 224;
  int repeats = 30;
};

// report.results: {device, batch, size, replicas, on_host_ms, on_host_bytes_over_bus,
// on_host_bytes_on_device, on_device_ms, on_device_bytes_over_bus, on_device_bytes_on_device}.
Report bench_slice(const SliceOptions& options);

}  // namespace stoker
