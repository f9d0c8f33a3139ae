// A parameter server: the weights, the optimiser's state and the running statistics of a run lie
// with the server, in host memory. In a step replicas push their gradients, the server sums them in
// the order of ranks and applies the update, and replicas pull the new weights and statistics; a
// replica's own momenta are not used. The server is a thread of this process and an engine like the
// replicas', so that with fp32 gradients the weights have the bits of an all-reduce.
//
// Owner: ReplicaSet. Threads: step() is called by every replica's thread; refresh() by one, while
// no step runs. Errors: those of the engine and the collective.
#pragma once

#include <memory>
#include <vector>

#include "train/collective/collective.h"
#include "train/engine/engine.h"

namespace stoker {

class ParameterServer {
 public:
  // `engine` has the weights and never a batch. `gradients` sums them in one place, is of
  // `replicas` ranks, and must outlive the server.
  ParameterServer(std::unique_ptr<Engine> engine, Collective& gradients, int replicas);

  Engine& engine() { return *engine_; }
  // Pushes a replica's gradients; the first one's thread then updates the weights as `args` say and
  // averages them if `decay` >= 0; then pulls the weights.
  void step(int rank, Engine& replica, const UpdateArgs& args, float decay, bool lookahead);
  // Copies what a replica needs to evaluate.
  void refresh(Engine& replica, bool averaged) const;
  // Of the weights that replicas pulled. Only for the thread of replica 0.
  const Traffic& traffic() const { return traffic_; }

 private:
  const std::unique_ptr<Engine> engine_;
  Collective& gradients_;
  const int replicas_;
  // After the last update. An engine may measure a batch's moments from the running statistics.
  std::vector<float> weights_, statistics_;
  Traffic traffic_;
};

}  // namespace stoker
