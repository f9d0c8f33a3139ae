// Everything that determines what a training run computes, apart from the data, the seed and the
// number of devices: model, batch, augmentation, optimiser, schedule. A value. default_recipe()
// returns the tuned recipe of a model; change its fields, then call validate(). The same recipe,
// data and seed give bitwise the same weights for any number of devices and threads, because the
// recipe fixes the global batch and the rows per micro-batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/order/sampler.h"
#include "train/engine/engine.h"
#include "train/model/optimizer_spec.h"
#include "train/model/schedule.h"

namespace stoker {

enum class AverageKind : uint8_t {
  none,
  ema,        // a running average is evaluated and saved; training does not use it
  lookahead,  // the weights jump to the average every `every` steps (airbench, Zhang et al. 2019)
};

// Averages of parameters and batch-norm statistics.
struct AverageSpec {
  AverageKind kind = AverageKind::none;
  int every = 1;         // steps between two blends
  double decay = 0.999;  // per step; a blend uses decay^every
  double ramp = 0;       // the blend is multiplied by (steps done / total steps)^ramp
};

struct Recipe {
  std::string name;    // of the recipe and of the model (make_net())
  Size input;          // pixels; equal to train.output and eval.output
  double epochs = 10;  // may end inside an epoch
  int batch = 128;     // global: all devices together
  // Batch norm computes its statistics over these; batch % (devices * micro_batch_size) == 0.
  int micro_batch_size = 32;
  LastBatch last_batch = LastBatch::pad;
  AugmentSpec train, eval;
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};  // of pixels / 255, RGB
  std::array<float, 3> stddev{0.229f, 0.224f, 0.225f};
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  double label_smoothing = 0;
  AverageSpec average;
  bool zero_gamma = false;        // the last batch norm of a residual block starts at 0
  bool whitening = false;         // the first convolution is computed from the data and frozen
  double whiten_bias_epochs = 3;  // how long its bias is trained
  int eval_views = 1;             // 1: unchanged; 2: also mirrored; 6: also shifted by +-1 pixel
  std::optional<Precision> precision;  // empty: bf16 where the CPU has it, else fp32

  // Sets input, train.output and eval.output.
  void set_input(Size size);
  // Sets epochs, and shortens the warm-up to a tenth of them if it is longer.
  void set_epochs(double value);
  // Throws std::invalid_argument naming the field and its value.
  void validate() const;
  // Returns the precision that this machine uses.
  Precision resolved_precision() const;
};

// Returns the recipe of a model (models.h). Throws std::invalid_argument, which lists the names.
Recipe default_recipe(const std::string& model);
// Returns a few lines for --help and for the plan before a run: "batch 1024, lr 1.5 (...), ...".
// The learning rate is that of an update with `update_batch` samples; 0: with the recipe's batch.
std::vector<std::string> describe(const Recipe& recipe, int update_batch = 0);

// The arguments of one update: the effective rates, the decay and the frozen tensors of a step.
// `tensors` holds one entry per tensor of parameter_table(net).
struct StepRates {
  // Updates of the run beside its steps, which were counted anew when a run went on with another
  // batch.
  int64_t more_updates = 0;
  int update_batch = 0;  // samples of an update, for which the rate is; 0: the recipe's batch
  std::vector<TensorUpdate> tensors;
  UpdateArgs args;  // args.tensors points into `tensors`: do not copy the struct
  double learning_rate = 0;
};
void set_rates(const Recipe& recipe, const std::vector<TensorInfo>& parameters, int64_t step,
               int64_t total_steps, int64_t steps_per_epoch, StepRates& rates);
// Returns the decay of the blend after `steps_done` steps; negative if no blend is due. The decay
// of an EMA is at most (1 + blends) / (10 + blends), so that it follows the weights at first.
float average_decay(const AverageSpec& spec, int64_t steps_done, int64_t total_steps);
// A view of the test-time augmentation (1, 2 or 6 views) and its weight; weights sum to 1.
struct WeightedView {
  View view;
  float weight = 1;
};
std::vector<WeightedView> eval_views(int count);

}  // namespace stoker
