// Runs a NetSpec on one device: forward, backward, update. One engine per replica, used from the
// replica's thread.
//
// A batch is cut into micro-batches of a fixed number of rows. Each micro-batch has its own
// batch-norm statistics and produces one gradient buffer: [gradients | batch-norm moments | step
// metrics]. A Collective sums the buffers of all replicas in the order of the micro-batches;
// update() applies the sum, the reduced gradients. The weights therefore depend on the
// micro-batches only; any number of replicas and worker threads gives the same bits. (Where batch
// norms are synchronised, a micro-batch shares its statistics with those of the other replicas, so
// the weights also depend on the number of replicas.) The gradients in a buffer are those of
// sum_i(weight_i * loss_i) / nominal_rows; update() rescales them by the true weight sum in the
// reduced gradients, which excludes padded and bad rows exactly.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/image.h"
#include "staging/device.h"
#include "train/collective/collective.h"
#include "train/engine/precision.h"
#include "train/model/net_spec.h"

namespace stoker {

class DeviceNormExchange;
class NormExchange;

enum class OptimizerKind : uint8_t { sgd, lars, adam, adamw };

constexpr bool has_second_moments(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
}

struct EngineOptions {
  int rows = 0;              // of this replica's batches
  int micro_batch_size = 0;  // rows % micro_batch_size == 0
  int64_t nominal_rows = 0;  // of the global batch: replicas * rows
  Precision precision = Precision::fp32;
  int workers = 1;              // threads; at most one per micro-batch is used
  std::array<float, 3> mean{};  // of pixels / 255, RGB
  std::array<float, 3> stddev{};
  float label_smoothing = 0;
  uint64_t seed = 0;     // of dropout
  bool training = true;  // false: no backward pass, gradients or momenta are allocated
  // The update's formula: it decides which states and which scratch memory there are.
  OptimizerKind optimizer = OptimizerKind::sgd;
  bool clips = false;        // update() may get a clip_norm
  bool accumulates = false;  // a global batch may come in several BatchRows
  // No other replica's gradients join this one's, so that their sum may be computed here at once
  // (gradient_buffers()).
  bool alone = false;
  // The exchange of replicas whose batch norms are synchronised (train/collective/norm_exchange.h
  // and device_norm_exchange.h): where they meet, and which of them this one is. `norms` is for the
  // CPU engine and must outlive it; `device_norms` is for engines that queue their work, lives as
  // long as batches come, and goes before the engine. Null: each micro-batch has batch norms of its
  // own.
  NormExchange* norms = nullptr;
  DeviceNormExchange* device_norms = nullptr;
  int rank = 0;
  // False: no batch will come, as for the engine of a parameter server, which only updates. An
  // engine may then leave out what only batches need.
  bool batches = true;
};

// Returns the options of a parameter server's engine for replicas with these. An update depends on
// the micro-batches' size.
constexpr EngineOptions server_options(EngineOptions replica) {
  replica.rows = replica.micro_batch_size;
  replica.accumulates = replica.batches = false;
  return replica;
}

// A row in a training pass, as if its weight were 1; zeros for a row of weight 0.
struct RowResult {
  float loss = 0;
  float top1 = 0;  // as in StepMetrics
};

// The rows of a batch in device memory, as in DeviceBatch.
struct BatchRows {
  const uint8_t* images = nullptr;  // (rows, H, W, 3) u8
  const int32_t* labels = nullptr;
  const float* weights = nullptr;
  // For nets with a binary loss whose samples show any number of classes: (rows, classes), from 0
  // to 1. The labels do not count then. Null: each row has one label.
  const float* targets = nullptr;
  // For training on mixed pixels (pipeline/augment/mix.h): a second label, and the share of the
  // first one in the row's target. Both null: each row has one label.
  const int32_t* mix_labels = nullptr;
  const float* mix_weights = nullptr;
  // Place of the first row in the run, over all epochs and replicas: what dropout draws depends on
  // it (train/engine/dropout.h).
  int64_t position = 0;
  // A global batch that comes in parts: the gradients of all parts since the first are added up. An
  // update may follow the last one.
  bool first = true, last = true;
  // Where a training pass writes what became of each row, on the host; null: nobody asks.
  // REQUIRES: Engine::gives_row_results(), if not null.
  RowResult* results = nullptr;
};

// A view of the test images: shifted by whole pixels with reflected edges, then mirrored.
struct View {
  bool flip = false;
  int shift_x = 0, shift_y = 0;
};

struct StepMetrics {
  double loss_sum = 0;  // sum of weight * loss
  double weight_sum = 0;
  double top1 = 0, top5 = 0;  // weight of the rows whose (first) label is among the top 1 / 5
  bool finite = true;
  // The mean gradient's, over all tensors that are not frozen, before it is clipped. Not a number
  // where an engine does not know it.
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
};

enum class StateKind : uint8_t {
  parameters,  // parameter_table order
  momenta,     // Adam: the first moments
  average,     // EMA / lookahead copy of the parameters
  statistics,  // statistics_table order
  average_statistics,
  second_moments,  // Adam and AdamW only
};

// Update of one tensor of parameter_table in one step.
struct TensorUpdate {
  float learning_rate = 0;
  float weight_decay = 0;  // 0 for tensors that do not decay
  bool frozen = false;
  bool adapted = false;  // LARS: the gradient is scaled by the tensor's trust ratio
};

// The update of a step. g is the mean gradient of a tensor that is not frozen, w its weights, wd
// its decay, lr its rate. The norms are sums in double over one tensor, in an order that depends
// neither on threads nor on replicas.
//   clip_norm    before everything else, as torch.nn.utils.clip_grad_norm_: all g are multiplied by
//                min(1, clip_norm / (|all g| + 1e-6))
//   sgd          torch.optim.SGD: g += wd w; v = momentum v + g; w -= lr (nesterov ? g + momentum v
//                : v). `decoupled` instead decays with w *= 1 - lr wd, before the rest
//   lars         You, Gitman, Ginsburg 2017 ("Large batch training of convolutional networks",
//                algorithm 1), with the rate outside of the momentum, so that a change of the rate
//                needs no momentum correction: g = r (g + wd w), then as sgd. The trust ratio
//                r = trust |w| / (|g| + wd |w|); 1 if a norm is 0 or the tensor is not `adapted`
//   adam, adamw  torch.optim.Adam (g += wd w) and torch.optim.AdamW (w *= 1 - lr wd), with
//                beta1, beta2, epsilon and the bias corrections of update number `count`
struct UpdateArgs {
  std::span<const TensorUpdate> tensors;
  float momentum = 0.9f;
  bool nesterov = false;
  bool decoupled = false;
  OptimizerKind kind = OptimizerKind::sgd;  // REQUIRES: EngineOptions::optimizer
  double beta1 = 0.9, beta2 = 0.999;
  float epsilon = 1e-8f;
  float trust = 1e-3f;
  float clip_norm = 0;  // 0: no clipping. REQUIRES: EngineOptions::clips, if above 0
  int64_t count = 1;    // 1 in the first update
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const NetSpec& net() const = 0;
  virtual Precision precision() const = 0;

  // Announces the tensors that the next update() will freeze. From now on the engine may skip their
  // gradients and the backward steps that only they need; their values in the gradient buffer are
  // then either 0 or the real gradients. update() must get the same tensors as frozen.
  virtual void expect_frozen(std::span<const TensorUpdate> tensors) { (void)tensors; }

  // Returns the stream on which the calls below queue their work, in order. A batch must be leased
  // on it, and work that writes reduced_gradients() or reads gradient_buffers() must be ordered
  // with it. Null: every call blocks until its work is done.
  virtual Stream* stream() { return nullptr; }

  // Runs forward and backward for one batch, or for a part of it. After the last part there is one
  // gradient buffer per micro-batch, or their sum; the earlier parts are in one more buffer before
  // them, or in the sum. Blocks, or queues (see stream()).
  virtual void forward_backward(const BatchRows& batch) = 0;
  virtual bool gives_row_results() const { return false; }  // BatchRows::results
  // Makes forward_backward() divide the gradient buffer into ranges of about `bytes`. It calls
  // `ready` for each range as soon as the work that computes it is queued, before it queues the
  // rest of the backward pass. The ranges cover the whole buffer, from the last layer to the first.
  // Returns false if the engine cannot do this. Costs nothing if it is never called.
  virtual bool reduce_in_buckets(int64_t bytes, std::function<void(BufferRange)> ready) {
    (void)bytes, (void)ready;
    return false;
  }
  // Size of a gradient buffer. Its first gradient_floats() are the gradients, with the gaps of the
  // engine's alignment; the moments and metrics, which must keep their precision, follow.
  virtual int64_t gradient_buffer_floats() const = 0;
  virtual int64_t gradient_floats() const = 0;
  // Returns the gradient buffers in the order of the micro-batches, or their sum, in memory of the
  // engine's device. Gaps are 0: a wire that encodes blocks of numbers sees them, too.
  virtual std::span<const float* const> gradient_buffers() const = 0;
  // Returns the buffer for the reduced gradients: gradient_buffer_floats() floats on the engine's
  // device, owned by the engine. It may be the first gradient buffer.
  virtual std::span<float> reduced_gradients() = 0;
  // Applies reduced_gradients() to weights, momenta and running statistics. Does nothing if a total
  // is not finite.
  virtual void update(const UpdateArgs& args) = 0;

  // Returns the step metrics of the reduced gradients, over all replicas, of the last update or of
  // update number `update` (from 0 since construction). Blocks until that update is done on the
  // device and no longer: a caller that asks metrics_lag() updates late never stalls the device.
  // REQUIRES: the update was queued and is one of the last kMetricsKept. If metrics_lag() is 0: it
  // is the last one, and no forward_backward() has followed, whose gradients take their place.
  static constexpr int kMetricsKept = 8;
  virtual StepMetrics step_metrics() = 0;
  virtual StepMetrics step_metrics_of(int64_t update) {
    (void)update;
    return step_metrics();
  }
  virtual int metrics_lag() const { return 0; }

  // Computes average = decay * average + (1 - decay) * current for parameters and statistics; then,
  // if `pull`, current = average (lookahead). decay 0 copies.
  virtual void blend_average(float decay, bool pull) = 0;

  // Writes the logits, (rows, classes) f32 in host memory, of the current or averaged weights in
  // evaluation mode.
  virtual void forward(const BatchRows& batch, const View& view, bool averaged,
                       std::span<float> logits) = 0;

  virtual void read(StateKind kind, std::span<float> values) const = 0;
  virtual void write(StateKind kind, std::span<const float> values) = 0;

  // For engines that have a stream(): a state where it lies, in memory of the engine's device and
  // in the engine's order, as long as the engine lives (an average moves when it is first made).
  virtual std::span<const float> device_state(StateKind kind) const {
    (void)kind;
    return {};
  }
  // Makes a state a copy of another engine's device_state(). Both engines have the same net and
  // make. Queues: the caller orders it with the other engine's work, also between two devices.
  virtual void copy_state(StateKind kind, std::span<const float> values) {
    (void)kind, (void)values;
    throw std::logic_error("copy_state: this engine has no stream");
  }

  virtual int64_t planned_bytes() const = 0;        // weights, states, activations, workspaces
  virtual std::string describe_memory() const = 0;  // one line per kind of memory
  // Returns the names of the implementations in use ("brgconv:avx512_core"), for tests and reports.
  virtual std::vector<std::string> implementations() const = 0;
  // Returns why steps are slower than they should be ("no graphs: ..."), or "".
  virtual std::string warning() const { return ""; }
};

bool cpu_engine_available();             // built with oneDNN
bool cpu_supports(Precision precision);  // in hardware
// Throws std::invalid_argument (numbers), std::runtime_error (no oneDNN in this build).
std::unique_ptr<Engine> make_cpu_engine(const NetSpec& net, const EngineOptions& options);

}  // namespace stoker
