// Measures how many accelerators this machine feeds. One Loader has a host device for each; each
// emulated accelerator (tools/emulate/accelerator.h has the rules) consumes its batches on its own
// thread. The bench needs no GPU. It leaves out the memory bandwidth that a GPU's copies would
// take; bench_links() measures that. Errors: std::invalid_argument, and what a Loader throws.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "pipeline/loader.h"
#include "tools/emulate/accelerator.h"

namespace stoker {

struct EmulateOptions {
  AcceleratorSpec accelerator;
  std::vector<int> counts = {1};  // ascending; the bench ends at the first that is not fed
  AugmentSpec augment;
  DecodeOptions decode;
  int workers = 1;
  int io_threads = 2;
  int ring_depth = 4;
  int64_t steps = 30;  // per run; the first one does not count
  int repeats = 5;     // as in MLPerf Storage, whose result is the mean of five
};

// report.results: {accelerator, images_per_second_each, fed_at_90, fed_at_99, measured_to}.
// fed_at_90 (fed_at_85 of RetinaNet: AcceleratorSpec::pass) and fed_at_99 are the largest measured
// numbers of accelerators that the feed kept busy for at least 90 % and 99 % of the time.
Report bench_emulate(const Source& source, const EmulateOptions& options);

// Runs `count` accelerators once and returns a Utilisation for each.
std::vector<Utilisation> emulate(const Source& source, const EmulateOptions& options, int count,
                                 int64_t steps);

}  // namespace stoker
