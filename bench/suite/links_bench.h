// How fast bytes move: in the host's memory, by NUMA node, and between the host and devices, and
// between devices; and what a batch and a gradient cost at that.
//
// Memory is copied as STREAM's Copy does (McCalpin 1995): bytes read and bytes written both count,
// all CPUs of a node at once. Everything else counts the bytes that move. On a host device copies
// are the host's: they say what staging there costs, not what a bus does.
// Errors: as the devices'.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"

namespace stoker {

struct LinksOptions {
  std::vector<std::string> devices = {"cpu:0"};
  int64_t bytes = int64_t{64} << 20;  // of one copy; far more than a cache holds
  int repeats = 9;
  int batch = 256, size = 224;                     // rows and pixels of the batch that is priced
  std::vector<std::string> models = {"resnet50"};  // whose gradients are
};

// report.results: {host: [{cpus, memory, gb_per_second}], devices: [{device, direction, memory,
// gb_per_second}], costs: [{payload, bytes, link, ms}]}.
Report bench_links(const LinksOptions& options);

}  // namespace stoker
