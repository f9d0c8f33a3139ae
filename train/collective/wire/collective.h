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

#include <memory>

#include "train/collective/collective.h"

namespace stoker {

std::unique_ptr<Collective> make_wire_collective(std::shared_ptr<Ranks> ranks,
                                                 const SumOptions& options);

}  // namespace stoker
