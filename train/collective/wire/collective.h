// Sums of gradients that travel in fewer bits, in host memory, over threads and processes.
//
// A replica adds up its own gradient buffers in fp32, adds what was lost when it last sent, and
// encodes the result; what is lost now is kept (error feedback: Seide et al., Interspeech 2014;
// Karimireddy et al., "Error feedback fixes SignSGD", 2019). Every replica decodes a share of the
// blocks from all replicas, sums them in fp32 in the order of ranks, and encodes the sum in the
// same way, with a residual of its own, as in Seide et al.: so both directions carry few bits, and
// every replica decodes the same bytes. Moments and step metrics travel in fp32 both ways.
//
// The result depends on the number of replicas, because each of them rounds; it does not depend on
// how they are divided over processes, nor on timing. Threads and errors: see
// train/collective/collective.h.
#pragma once

#include <cstdint>
#include <memory>

#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

struct WireOptions {
  GradWire wire = GradWire::bf16;
  int64_t gradient_floats = 0;  // of a buffer: what follows travels in fp32
  int64_t buffer_floats = 0;    // size of every buffer and result
  uint64_t seed = 0;            // of the stochastic rounding
  // The replicas of the first process sum all blocks, and the sum stays there (a parameter server):
  // it is not encoded. They all pass one result; those of other processes are left alone.
  bool to_server = false;
};

// `group`, which may be null for a single process, must outlive the collective.
std::unique_ptr<Collective> make_wire_collective(ProcessGroup* group, int local,
                                                 const WireOptions& options);

}  // namespace stoker
