// Measures how training scales over devices: images/s, speed-up and efficiency, defined as in the
// usual tables (tf_cnn_benchmarks, Keras): speed-up(n) = rate(n) / rate(1), efficiency = speed-up /
// n.
//
// Weak scaling keeps the batch of each device, strong scaling the batch of all devices together;
// the two are never mixed in one table. Each replica on host devices has one thread, so that n
// replicas have n threads. Input is synthetic, because the feed is not measured here. In every
// repeat all settings run once, in turn. Errors: as the Trainer's.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "train/trainer.h"

namespace stoker {

struct ScalingOptions {
  bool on_gpus = false;  // true: cuda:0 .. cuda:n-1; false: cpu:0 .. cpu:n-1
  std::vector<int> counts = {1};
  std::vector<std::string> models = {"resnet20"};
  std::vector<ReduceKind> reductions = {ReduceKind::automatic};
  std::vector<GradWire> wires = {GradWire::fp32};  // each with each reduction that sends gradients
  bool weak = true, strong = true;
  int batch = 64;  // of each device in weak scaling, of all devices in strong scaling
  int steps = 10;  // per run, after the warm-up
  int repeats = 5;
};

// report.results: {"weak": [{model, parameters, reduction, grad_wire, devices, images_per_second,
// speed_up, efficiency, gradient_bytes_sent, gradient_bytes_received, weight_bytes_sent,
// weight_bytes_received}, ...], "strong": [...]}; bytes are of a replica in a step.
Report bench_scaling(const ScalingOptions& options);

}  // namespace stoker
