// Measures what feeding costs, by stage and as a whole, for several numbers of workers, batch sizes
// and ring depths.
//
// Every repeat measures each setting once, in turn: a Loader whose batches are dropped, and its
// parts alone (PartsAlone) on the same samples. A Loader is idle while others are measured. Seek
// indexes are not used (bench_emulate() uses them as training does). CPU time is that of the whole
// process, so that other programs on the machine hardly affect it. Errors: std::invalid_argument,
// and what a Loader throws.
#pragma once

#include <vector>

#include "bench/report/report.h"
#include "pipeline/loader.h"

namespace stoker {

struct FeedBenchOptions {
  AugmentSpec augment;
  DecodeOptions decode;
  int io_threads = 2;
  // Numbers of workers are measured with the first batch size and ring depth; the other batch sizes
  // and ring depths with the most workers.
  std::vector<int> workers = {1};
  std::vector<int> batches = {64};
  std::vector<int> ring_depths = {4};
  int repeats = 7;
  int cpu_ms = 150;  // approximate CPU time of one measurement
};

// report.results: {image_size: [w, h], cpu_ms_per_image, cpu_ms_per_image_low, ..._high, read_ms,
// decode_ms, images_per_second, workers, mean_sample_bytes,
// scratch_bytes_per_worker, energy (energy_json())}, with the largest number
// of workers. `stoker plan --feed` starts from these.
Report bench_feed(const Source& source, const FeedBenchOptions& options);

// Returns the mean size of a sample's file, of up to 200 that are spread over the source.
double mean_sample_bytes(const Source& source);

}  // namespace stoker
