// Measures how fast bytes move: in the host's memory by NUMA node, between the host and devices,
// and between devices. Calculates from that what moving a batch and a gradient costs.
//
// Memory is copied as STREAM's Copy does (McCalpin 1995): all CPUs of a node at once, and bytes
// read and bytes written both count. Everything else counts the bytes that move. On a host device
// the host copies, so those figures are the cost of staging there and not the speed of a bus.
// Errors: those of the devices.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"

namespace stoker {

struct LinksOptions {
  std::vector<std::string> devices = {"cpu:0"};
  int64_t bytes = int64_t{64} << 20;  // of one copy; far more than a cache holds
  int repeats = 9;
  int batch = 256, size = 224;                     // samples of a batch, pixels of a side
  std::vector<std::string> models = {"resnet50"};  // their gradients' costs are calculated
};

// report.results: {host: [{cpus, memory, gb_per_second}], devices: [{device, direction, memory,
// gb_per_second}], costs: [{payload, bytes, link, ms}]}.
Report bench_links(const LinksOptions& options);

}  // namespace stoker
