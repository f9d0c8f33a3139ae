// What feeding costs, by stage and as a whole, for several numbers of workers, batch sizes and ring
// depths.
//
// In every repeat each setting is measured once, in turn, on the same rows. What is measured is a
// Loader whose batches are taken and thrown away, and its parts alone (PartsAlone). Loaders stand
// still while others are measured. Seek indexes are not used (bench_emulate() takes them as
// training does). CPU time is of the whole process, so that other programs on the machine do little
// harm. Errors: std::invalid_argument, and what a Loader throws.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "pipeline/loader.h"

namespace stoker {

struct FeedBenchOptions {
  AugmentSpec augment;
  DecodeOptions decode;
  int io_threads = 2;
  // Workers are swept at the first batch size and ring depth; those two at the most workers.
  std::vector<int> workers = {1};
  std::vector<int> batches = {64};
  std::vector<int> ring_depths = {4};
  int repeats = 7;
  int cpu_ms = 150;  // CPU time of one measurement, about
};

// report.results: {image_size: [w, h], cpu_ms_per_image, cpu_ms_per_image_low, ..._high, read_ms,
// decode_ms, images_per_second, workers, mean_sample_bytes,
// scratch_bytes_per_worker}, with the largest number of workers. plan_machine() starts from these.
Report bench_feed(const Source& source, const FeedBenchOptions& options);

}  // namespace stoker
