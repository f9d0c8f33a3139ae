// Predicts the steps of data-parallel training on a machine's links, by simulating the schedule of
// the feed and the trainer:
//
//   decode ─▶ pinned slab ─▶ copy to a slot ─▶ forward ─▶ backward, bucket by bucket ─▶ update
//                                                             └─▶ sum over the GPUs ───┘
//
// A slab is free again when its copy is done, a slot when the backward pass that reads it is; with
// 0 slots a copy runs on the stream of the steps (staging/stager.h). A bucket's sum may run while
// the rest of the backward pass does, in the order of the buckets (train/device/buckets.h).
//
// Left out: kernels' start, the host's work for a step but decoding and sums, moments of batch
// norms and step metrics, NUMA nodes. A step is as long as its rows by the rate of one GPU. Pure
// functions; any thread. Errors: std::invalid_argument with the numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/suite/link_machine.h"
#include "train/collective/reduce_kind.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

// Where a global batch is cut into the parts of the GPUs.
enum class CutOn : uint8_t {
  host,          // each GPU gets its own part
  each_device,   // each GPU gets the whole batch and takes its part
  first_device,  // the first GPU gets the whole batch and copies the others' parts to them
};

inline constexpr std::pair<const char*, CutOn> kCutOn[] = {{"host", CutOn::host},
                                                           {"each device", CutOn::each_device},
                                                           {"first device", CutOn::first_device}};
const char* to_string(CutOn cut);

// Gradients that a part of the backward pass completes.
struct BackwardPart {
  double share = 1;    // of the backward pass's time
  int64_t floats = 0;  // of its bucket
};

struct TrainingWork {
  int64_t rows = 0;                 // of each GPU's batch
  double row_bytes = 0;             // that cross the bus
  double step_seconds = 0;          // of forward, backward and update of `rows`, if nothing waits
  double forward_share = 1.0 / 3;   // of it: a backward pass computes twice as much
  std::vector<BackwardPart> parts;  // in the order of the backward pass; shares add up to 1
};

struct ScheduleOptions {
  int gpus = 1;  // the first of the machine
  int slots = 2;
  int ring_depth = 4;
  ReduceKind reduce = ReduceKind::nccl;  // nccl, host, a server, independent or none
  GradWire wire = GradWire::fp32;
  CutOn slice = CutOn::host;
  bool resident = false;  // batches lie on the GPUs already: nothing is decoded or copied
  // The decoder: seconds of a core and bytes of the host's memory per row, besides the pixels that
  // it writes. 0 cores: batches are there as soon as the memory's bandwidth allows.
  double cores = 0, core_seconds_per_row = 0, file_bytes_per_row = 0;
  int steps = 16, warmup = 16;  // that count, and before them
};

struct LinkLoad {
  std::string name;
  double down_bytes = 0, up_bytes = 0;  // per step
  double busy = 0;                      // share of the time, of the busier direction
};

struct SchedulePrediction {
  double images_per_second = 0;  // of all GPUs
  double step_seconds = 0;
  double gap_seconds = 0;       // idle time of a GPU before a step, mean over GPUs and steps
  double exchange_seconds = 0;  // from the end of the backward pass to the weights' update, mean
  std::vector<LinkLoad> links;  // all of the machine, and the host's memory, whose bytes are `down`
};

// Sums are those of the trainer (train/README.md, "How gradients are summed"):
//
//   nccl    a ring: every GPU sends and receives 2 (n - 1) / n of a bucket (Patarasuk and Yuan,
//           Bandwidth optimal all-reduce algorithms, 2009)
//   host    every GPU's bucket goes to host memory in pieces, fp32 on any wire; a piece is summed
//           when all GPUs' has come; sums go back behind the last bucket's copy
//   server  after the backward pass gradients go to a server in host memory, in the wire's format;
//           it updates the weights, which come back in fp32
//   independent, none: no sum
SchedulePrediction predict_schedule(const LinkMachine& machine, const TrainingWork& work,
                                    const ScheduleOptions& options);

// Returns the seconds until every GPU of the machine has its part of one batch of `bytes`, if
// nothing else crosses the links.
double predict_slice(const LinkMachine& machine, double bytes, CutOn cut);

// Returns `floats` gradients, spread evenly over the backward pass, in buckets of `bucket_bytes` of
// fp32 with a smaller first one, as plan_buckets() makes them; bucket_bytes 0: one bucket. Throws
// for more than a thousand buckets.
std::vector<BackwardPart> even_parts(int64_t floats, int64_t bucket_bytes);

}  // namespace stoker
