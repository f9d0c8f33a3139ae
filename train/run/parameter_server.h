// A parameter server: the weights, the optimiser's state and the running statistics of a run lie
// with the server. In a step replicas push their gradients, which a collective sums in the order of
// ranks where the server has its reduced gradients; the server applies the update, and replicas
// pull the new weights and statistics; a replica's own momenta are not used. The server is an
// engine like the replicas', without batches, so that with fp32 gradients the weights have the bits
// of an all-reduce. There are two:
//   in host memory  of process 0, for replicas that compute there, in any process. Every process
//                   has an object of this class; in the others it is the way to the server. A step
//                   waits for all of it.
//   on a device     for replicas on devices, in one process: updates and copies between devices are
//                   queued on the engines' streams, and no thread waits for a device.
//
// Owner: ReplicaSet. Threads: step() is called by every replica's thread, abort() by any; the other
// functions by replica 0's, refresh() while no step runs. Processes make the same calls in the same
// order. Errors: those of the engine, the devices and the processes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "train/collective/barrier.h"
#include "train/collective/traffic.h"
#include "train/engine/engine.h"

namespace stoker {

class ParameterServer {
 public:
  virtual ~ParameterServer() = default;
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  Engine* engine() const { return engine_.get(); }  // null where the server is not
  // When all gradients are pushed: the first replica's thread updates the weights as `args` say and
  // averages them if `decay` >= 0; then pulls the weights.
  void step(int rank, Engine& replica, const UpdateArgs& args, float decay, bool lookahead);
  // As Engine has them, in every process.
  virtual StepMetrics metrics_of(int64_t update) const = 0;
  virtual int metrics_lag() const = 0;
  // Copies to this process's replicas what they need to evaluate.
  virtual void refresh(std::span<Engine* const> replicas, bool averaged) const = 0;
  virtual int64_t pulled_bytes() const = 0;  // by a replica in a step
  virtual std::string place() const = 0;     // "in host memory", "on cuda:0"
  void abort() noexcept {
    here_.abort("collective: aborted, because another replica failed");
  }  // makes waiting replicas fail, now or later
  // The weights that this process's replicas pulled. Only for the thread of replica 0.
  const Traffic& traffic() const { return traffic_; }

 protected:
  // `replicas` of this process.
  ParameterServer(std::unique_ptr<Engine> engine, int replicas);

 private:
  virtual void update(const UpdateArgs& args, float decay, bool lookahead) = 0;
  virtual void pull(Engine& replica) = 0;

  const std::unique_ptr<Engine> engine_;
  const int replicas_;
  Barrier here_;  // of this process's replicas
  Traffic traffic_;
};

struct HostServerOptions {
  NetSpec net;
  int replicas = 1;               // of this process
  ProcessGroup* group = nullptr;  // null: a single process; must outlive the server
};

// `engine` has the weights; null in all processes but the first.
std::unique_ptr<ParameterServer> make_host_server(std::unique_ptr<Engine> engine,
                                                  const HostServerOptions& options);

// `engine` has the weights, on `device`, and a stream. All must outlive the server.
std::unique_ptr<ParameterServer> make_device_server(std::unique_ptr<Engine> engine, Device& device,
                                                    std::span<Engine* const> replicas);

}  // namespace stoker
