// Measures what this project promises to keep fast, so that a later build can be compared with it:
// decoding, recipes of augmentation, the feed and the training step, each as CPU time on one core
// beside libjpeg-turbo's for the same pictures.
//
// Every repeat measures each of them once, in turn, with the same pictures and the same crops. A
// figure is the work's CPU time divided by that of libjpeg-turbo in the same repeat: it says how
// much a change costs, whatever clock the cores have today. Errors: std::invalid_argument, what a
// Loader throws; std::runtime_error without oneDNN.
#pragma once

#include "bench/report/report.h"
#include "pipeline/source.h"

namespace stoker {

struct GuardBenchOptions {
  int repeats = 15;
  int passes = 4;  // over the pictures, of which the fastest counts
};

// `photos`: JPEG files; the first 64 are used, from memory. Figures of two kinds of processors say
// nothing about each other.
// report.results: {NAME: us per image or row}.
Report bench_guard(const Source& photos, const GuardBenchOptions& options);

}  // namespace stoker
