// Compares where a batch for the replicas of one or more devices is cut: milliseconds, the bytes
// that reach each device, and the largest batch.
//
// On the host: every replica's part is copied to it from pinned memory on its own stream, as each
// replica's ring and stager do. On each device: the whole batch is copied to every device, which
// then cuts the parts of its replicas by copies of its own. On the first device: it alone gets the
// whole batch, and other devices fetch their parts from it. These two do not differ if there is one
// device. Errors: std::invalid_argument with the numbers, and those of the devices.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/suite/link_machine.h"

namespace stoker {

struct SliceOptions {
  std::vector<std::string> devices = {"cpu:0"};
  // If it has GPUs, `devices` is not used: as many host devices are, with its links throttled, and
  // predictions stand beside what is measured.
  LinkMachine machine;
  int replicas = 4;       // on each device
  int rows = 1024;        // of the whole batch
  int size = 224;         // pixels of a side
  double memory_gib = 1;  // of each device, for batches: the largest batch follows from it
  int repeats = 30;
};

// report.results: {devices, batch, size, replicas, memory_gib, places: [{place, ms, largest_batch,
// devices: [{device, from_host_bytes, from_device_bytes, inside_bytes}]}]}. With a machine it also
// has `machine`, and places have predicted_ms and links: [{name, down_bytes, up_bytes}], which were
// counted.
Report bench_slice(const SliceOptions& options);

}  // namespace stoker
