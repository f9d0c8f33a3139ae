// How many accelerators this machine feeds: one Loader with a host device for each, each consumed
// by an emulated accelerator (tools/emulate/accelerator.h has the rules) on a thread of its own.
// Needs no GPU, and leaves out what a GPU's copies would take of the memory's bandwidth
// (bench_links() measures that). Errors: std::invalid_argument, and what a Loader throws.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "pipeline/loader.h"
#include "tools/emulate/accelerator.h"

namespace stoker {

struct EmulateOptions {
  AcceleratorSpec accelerator;
  std::vector<int> counts = {1};  // ascending; ends early at the first that is not fed at 90 %
  AugmentSpec augment;
  DecodeOptions decode;
  int workers = 1;
  int io_threads = 2;
  int ring_depth = 4;
  int64_t steps = 30;  // per run, the first of them left out
  int repeats = 5;     // MLPerf Storage: the result is the mean of five
};

// report.results: {accelerator, images_per_second_each, fed_at_90, fed_at_99, measured_to}: the
// largest numbers of accelerators, of those measured, that were kept busy so much.
Report bench_emulate(const Source& source, const EmulateOptions& options);

// One run with `count` accelerators: one Utilisation each.
std::vector<Utilisation> emulate(const Source& source, const EmulateOptions& options, int count,
                                 int64_t steps);

}  // namespace stoker
