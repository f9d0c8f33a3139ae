// Runs a NetSpec on one device: forward, backward, update. One per replica, used from the replica's
// thread.
//
// A batch is cut into micro-batches of a fixed number of rows. Each runs as a net of its own (the
// batch-norm statistics are the micro-batch's) and leaves one gradient buffer: [gradients |
// batch-norm moments | step metrics]. A Collective sums the buffers of all replicas, in the order
// of the micro-batches; update() applies the sum, the reduced gradients. So the weights depend on
// the micro-batches only, not on how many replicas or worker threads computed them: the same bits.
// Gradients in a buffer are of sum_i(weight_i * loss_i) / nominal_rows; update() rescales by the
// true weight sum of the reduced gradients, so padded and bad rows are left out exactly, without
// asking anyone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "staging/device.h"
#include "train/collective/collective.h"
#include "train/engine/precision.h"
#include "train/model/net_spec.h"

namespace stoker {

struct EngineOptions {
  int rows = 0;              // of this replica's batches
  int micro_batch_rows = 0;  // rows % micro_batch_rows == 0
  int64_t nominal_rows = 0;  // of the global batch: replicas * rows
  Precision precision = Precision::fp32;
  int workers = 1;              // threads; more than micro-batches are not used
  std::array<float, 3> mean{};  // of pixels / 255, RGB
  std::array<float, 3> stddev{};
  float label_smoothing = 0;
  bool training = true;  // false: no backward pass, gradients or momenta are allocated
};

// Rows as a DeviceBatch holds them: device memory.
struct BatchRows {
  const uint8_t* images = nullptr;  // (rows, H, W, 3) u8
  const int32_t* labels = nullptr;
  const float* weights = nullptr;
};

// Mixing rows of the same micro-batch: row i with row (micro_batch_rows - 1 - i).
struct Mix {
  enum class Kind : uint8_t { none, mixup, cutmix } kind = Kind::none;
  float lambda = 1.0f;  // the share of row i
  Box box;              // cutmix: pixels taken from the partner
};

// What the eye sees at test time: shifted by whole pixels with reflected edges, then mirrored.
struct View {
  bool flip = false;
  int shift_x = 0, shift_y = 0;
};

struct StepTotals {
  double loss_sum = 0;  // sum of weight * loss
  double weight_sum = 0;
  double top1 = 0, top5 = 0;  // weight of the rows whose label is among the first 1 / 5
  bool finite = true;
};

enum class StateKind : uint8_t {
  parameters,  // parameter_table order
  momenta,
  average,     // EMA / lookahead copy of the parameters
  statistics,  // statistics_table order
  average_statistics,
};

struct TensorUpdate {  // per tensor of parameter_table, this step
  float learning_rate = 0;
  float weight_decay = 0;  // 0 for tensors that do not decay
  bool frozen = false;
};

struct UpdateArgs {
  std::span<const TensorUpdate> tensors;
  float momentum = 0.9f;   // v = momentum * v + g
  bool nesterov = false;   // w -= lr * (nesterov ? g + momentum * v : v), as torch.optim.SGD
  bool decoupled = false;  // weight decay wd: false: g += wd * w; true: w *= 1 - lr * wd, before
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const NetSpec& net() const = 0;
  virtual Precision precision() const = 0;

  // Says what the next update() will hold still, where that is known before: the gradients of these
  // tensors, and all of the backward pass that only they need, may be left out from now on (their
  // parts are then 0 or what they would be). update() must be given the same tensors as frozen.
  virtual void expect_frozen(std::span<const TensorUpdate> tensors) { (void)tensors; }

  // The stream that the calls below queue their work on, in order: a batch must be leased on it,
  // and what writes reduced() or reads parts() must be ordered with it. Null: every call blocks
  // until its work is done.
  virtual Stream* stream() { return nullptr; }

  // Forward and backward of one batch; leaves one gradient buffer per micro-batch, or their sum.
  // Blocks, or queues (see stream()).
  virtual void forward_backward(const BatchRows& batch, const Mix& mix) = 0;
  // From now on forward_backward() cuts the gradient buffer into ranges of about `bytes` and calls
  // `ready` for each when what computes it is queued and the rest of the backward pass is not: the
  // last layers' first, together all of the buffer. False where the engine leaves a buffer as a
  // whole only. Costs nothing where it is not called.
  virtual bool reduce_in_buckets(int64_t bytes, std::function<void(PartRange)> ready) {
    (void)bytes, (void)ready;
    return false;
  }
  virtual int64_t part_floats() const = 0;
  // Gradient buffers in the order of the micro-batches; memory of the engine's device, as
  // reduced().
  virtual std::span<const float* const> parts() const = 0;
  // Where the reduced gradients go: part_floats() floats owned by the engine. With one gradient
  // buffer it may be the buffer itself.
  virtual std::span<float> reduced() = 0;
  // Applies reduced(): weights, momenta, running statistics. Skips everything if a total is not
  // finite.
  virtual void update(const UpdateArgs& args) = 0;

  // Step metrics of the reduced gradients, over all replicas: of the last update, or of an earlier
  // one, counted from 0 since construction. Blocks until that update is done on the device, no
  // longer: whoever asks totals_lag() updates late never holds the device up. REQUIRES: an update
  // that was given, among the last kTotalsKept (the last alone where totals_lag() is 0).
  static constexpr int kTotalsKept = 8;
  virtual StepTotals totals() = 0;
  virtual StepTotals totals_of(int64_t update) {
    (void)update;
    return totals();
  }
  virtual int totals_lag() const { return 0; }

  // average = decay * average + (1 - decay) * current, parameters and statistics; then, if `pull`,
  // current = average (lookahead). decay 0 copies.
  virtual void blend_average(float decay, bool pull) = 0;

  // logits (rows, classes) f32 of the current or averaged weights in evaluation mode. Host memory.
  virtual void forward(const BatchRows& batch, const View& view, bool averaged,
                       std::span<float> logits) = 0;

  virtual void read(StateKind kind, std::span<float> values) const = 0;
  virtual void write(StateKind kind, std::span<const float> values) = 0;

  virtual int64_t planned_bytes() const = 0;        // weights, states, activations, workspaces
  virtual std::string describe_memory() const = 0;  // one line per part of it
  // Names of the implementations in use ("brgconv:avx512_core"), for tests and reports.
  virtual std::vector<std::string> implementations() const = 0;
  // What makes steps slower than they should be, once that is known ("no graphs: ..."); "".
  virtual std::string warning() const { return ""; }
};

bool cpu_engine_available();             // built with oneDNN
bool cpu_supports(Precision precision);  // in hardware
// Throws std::invalid_argument (numbers), std::runtime_error (no oneDNN in this build).
std::unique_ptr<Engine> make_cpu_engine(const NetSpec& net, const EngineOptions& options);

}  // namespace stoker
