// Compares how serial and parallel training converge, over several seeds: a model on one device, on
// N devices with the same global batch, and on N devices with N times the batch, with and without
// warm-up (the rate is scaled with the batch, as the recipe says). All runs of a seed begin with
// the same weights and take the same samples.
//
// With the same global batch and micro-batches the trainer promises the same bits for any number of
// devices (train/README.md), so the first comparison also checks that. Errors: as the Trainer's;
// std::invalid_argument for a batch that the devices cannot share.
#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "pipeline/source.h"

namespace stoker {

struct ConvergenceOptions {
  bool on_gpus = false;              // true: cuda:0 .. cuda:n-1; false: cpu:0 .. cpu:n-1
  std::vector<int> counts = {1, 2};  // ascending, from 1
  std::string model = "resnet20";
  const Source *train = nullptr, *test = nullptr;  // null: drawn pictures
  int batch = 0;             // global, of the runs with the same batch; 0: the recipe's
  double epochs = 0;         // 0: the recipe's
  double warmup_epochs = 1;  // of the runs with N times the batch that warm up
  int64_t limit_train = 0, limit_test = 0;  // samples, spread evenly; 0: all
  int workers = 1;
  int seeds = 5;
};

// report.results: {model, batch, epochs, runs: [{devices, batch, warmup, top1_error,
// loss, same_weights}]}; the error and the loss are medians over the seeds, of the test samples in
// one view. same_weights says for how many seeds the weights have the bits of the run on one
// device.
Report bench_convergence(const ConvergenceOptions& options);

}  // namespace stoker
