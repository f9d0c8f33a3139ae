// Calculates from the cost of an image, and with the profiler's model of the feed, which machine
// feeds a given number of GPUs. Nothing is measured here. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "bench/report/report.h"
#include "decode/image.h"
#include "tools/profile/measured_feed.h"

namespace stoker {

// The cost of one image, as bench_feed() or measure_full_feed() measures it.
struct FeedCost {
  double cpu_ms = 0;  // CPU time of one core, for the whole feeder
  double cpu_ms_low = 0, cpu_ms_high = 0;
  double sample_bytes = 0;   // mean size of a file
  int64_t worker_bytes = 0;  // MemoryPlan::scratch_bytes (loader.h), per worker
  Size size;                 // of a sample, pixels
};

// Reads report.results of bench_feed()'s JSON. Throws std::invalid_argument that names what is
// missing.
FeedCost feed_cost(const nlohmann::ordered_json& feed_report);
FeedCost feed_cost(const MeasuredFeed& feed, double sample_bytes, Size size);

struct PlanDemand {
  int gpus = 1;
  double rate = 0;  // images/s of each
  int batch = 256;  // samples of each
  int ring_depth = 4;
  int slots = 2;
  double headroom = 0.2;  // share of the cores left for the trainer, the system and peaks
};

// The feed of which only the mean cost is known: all rows take the same time, and nothing else
// does.
FeedWhatIf even_feed(const FeedCost& cost, const PlanDemand& demand);

// The demanded devices instead of the measured one. Beyond 16 GPUs, and batches of 1,024, a machine
// is modelled as several of that size.
FeedChange demanded_devices(const PlanDemand& demand);

struct MachinePlan {
  double busy_cores = 0;  // cores that feeding keeps busy
  double busy_cores_low = 0, busy_cores_high = 0;
  double wanted_cores = 0;  // with headroom
  int cores = 0;            // the same, whole: what the machine needs
  int workers = 0;          // the fewest with which the modelled feed delivers as much as it can
  double images_per_second = 0, waiting_share = 0;  // modelled, with these workers
  int64_t ring_bytes = 0, worker_bytes = 0;         // on the host
  int64_t slot_bytes = 0;                           // on every GPU
  double bus_bytes_per_second = 0;                  // to one GPU
  double storage_bytes_per_second = 0;              // of all GPUs, if the page cache holds no file
  // Bandwidth of the host's memory: a file and a sample are each written once and read once.
  double memory_bytes_per_second = 0;

  bool feeds(const PlanDemand& demand) const;  // false: no number of workers does, with such a ring
};

// Throws std::invalid_argument that lists the numbers if they make no sense.
MachinePlan plan_machine(const FeedCost& cost, const FeedWhatIf& feed, const PlanDemand& demand);

Table plan_table(const MachinePlan& plan, const PlanDemand& demand);

// Machines without GPUs that fill rows for the one with them (stoker.ray).
struct NodeDemand {
  double local_cores =
      0;               // of the machine with the GPUs, >= 0; PlanDemand::headroom is left of them
  int node_cores = 1;  // of each other machine; the same share is left
  double link_gbit = 25;  // of each machine's network
};

struct NodePlan {
  double local_rate = 0;   // images/s that the machine's own cores make
  double remote_rate = 0;  // images/s that others are to make
  double node_rate = 0;    // images/s of one of them: its cores or its link
  bool link_limits_node = false;
  int nodes = 0;
  double bytes_per_second = 0;  // into the machine with the GPUs
  double link_rate = 0;         // images/s that its link carries
  bool link_suffices() const { return remote_rate <= link_rate; }
};

// Throws std::invalid_argument that lists the numbers if they make no sense.
NodePlan plan_nodes(const FeedCost& cost, const PlanDemand& demand, const NodeDemand& nodes);

Table node_table(const NodePlan& plan, const NodeDemand& nodes);

}  // namespace stoker
