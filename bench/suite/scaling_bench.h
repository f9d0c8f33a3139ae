// Measures how training scales over devices: images/s, speed-up and efficiency, defined as in the
// usual tables (tf_cnn_benchmarks, Keras): speed-up(n) = rate(n) / rate(1), efficiency = speed-up /
// n; and how long a run warms up, in steps and in seconds.
//
// Weak scaling keeps the batch of each device, strong scaling the batch of all devices together;
// the two are never mixed in one table. Each replica on host devices has one thread, so that n
// replicas have n threads. Input is synthetic unless other feeds are named: a resident one has
// other samples in every step, a real one decodes and stages them, too. In every repeat all
// settings run once, in turn. Errors: as the Trainer's.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "pipeline/measure_hooks.h"
#include "train/trainer.h"

namespace stoker {

struct ScalingOptions {
  bool on_gpus = false;  // true: cuda:0 .. cuda:n-1; false: cpu:0 .. cpu:n-1
  std::vector<int> counts = {1};
  std::vector<std::string> models = {"resnet20"};
  std::vector<int> sizes = {0};  // pixels of a side, each with each model; 0: the recipe's
  // Samples of the data set. Whole epochs are timed, without the first: images/s count every sample
  // once, and an epoch that does not divide into batches is slower. 0: a step's time alone counts.
  std::vector<int64_t> samples = {0};
  std::vector<FeedKind> feeds = {FeedKind::synthetic};
  const Source* data = nullptr;  // for feeds that are not synthetic; null: drawn pictures
  int workers = 1;               // that decode for such feeds
  std::vector<ReduceKind> reductions = {ReduceKind::automatic};
  std::vector<GradWire> wires = {GradWire::fp32};  // each with each reduction that sends gradients
  bool weak = true, strong = true;
  int batch = 64;  // of each device in weak scaling, of all devices in strong scaling
  int steps = 10;  // per run, after the warm-up; of whole epochs at least so many
  int repeats = 5;
};

// report.results: {"weak": [{model, parameters, size, samples, feed, reduction, grad_wire, devices,
// images_per_second, speed_up, efficiency, warmup_steps, warmup_seconds, gradient_bytes_sent,
// gradient_bytes_received, weight_bytes_sent, weight_bytes_received}, ...], "strong": [...]}; bytes
// are of a replica in a step. A run warms up until three steps in a row take at most 1.1 times the
// median of the second half of its steps.
Report bench_scaling(const ScalingOptions& options);

}  // namespace stoker
