// Predicts for a machine's links what `stoker bench scaling`, `depth` and `slice` would measure
// there: images/s and efficiency over GPUs, batches that are fed or resident, gaps between steps
// with 0 to 3 staging slots, and a batch that is cut on the host or on GPUs, with the bytes over
// each link and the largest batch. Nothing is measured here. Pure functions; any thread. Errors:
// std::invalid_argument with the numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/report/report.h"
#include "bench/suite/schedule_simulation.h"
#include "train/model/net_spec.h"

namespace stoker {

struct LinkPlanDemand {
  std::vector<int> counts;  // numbers of GPUs, ascending; the last one is that of most tables
  double rate = 0;          // images/s that one GPU trains if nothing waits
  int batch = 256;          // of each GPU in weak scaling, of all together in strong scaling
  double row_bytes = 0;     // of a sample on the bus
  std::vector<ReduceKind> reductions = {ReduceKind::nccl};
  std::vector<GradWire> wires = {GradWire::fp32};
  std::vector<BackwardPart> parts;
  const NetSpec* net = nullptr;  // for the largest batch; null: it is left out
  // Slots, ring and decoder; what else it has is set here.
  ScheduleOptions schedule;
};

// Adds tables, plots and notes, and results: {machine, scaling: [{mode, reduction, grad_wire,
// devices, batch_each, images_per_second, efficiency, step_ms, gap_ms, exchange_ms, busiest_link,
// busiest_share}], input: [{devices, resident_images_per_second, fed_images_per_second}], slots:
// [{slots, images_per_second, gap_ms}], slices: [{place, images_per_second, gap_ms, largest_batch,
// links: [{name, down_bytes, up_bytes, busy}]}]}; bytes are of a step.
void add_link_plan(const LinkMachine& machine, const LinkPlanDemand& demand, Report& report);

// Returns the parts of the backward pass that complete a bucket, from the net's end to its begin,
// with buckets of the sizes of plan_buckets(). A node's time is taken to be in proportion to its
// multiply-adds, so batch norms and other operations take none. bucket_bytes 0: one bucket.
std::vector<BackwardPart> model_parts(const NetSpec& net, int64_t bucket_bytes);

// Returns the largest batch of a GPU that trains in bf16 with `memory_bytes`, of which the feed's
// slots take `slot_bytes_per_row` for each of its rows. 0 if not even one row fits.
int64_t largest_gpu_batch(const NetSpec& net, int64_t memory_bytes, double slot_bytes_per_row);

}  // namespace stoker
