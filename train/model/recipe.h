// Everything that decides what a training run computes, apart from the data, the seed and the
// number of devices: model, batch, augmentation, optimiser, schedule. A value. default_recipe()
// gives the tuned one of a model; change fields, then validate(). The same recipe, data and seed
// give bitwise the same weights for any number of devices and threads, because the batch here is
// the global one and the rows per micro-batch are fixed here too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/sampler.h"
#include "train/engine/engine.h"
#include "train/model/schedule.h"

namespace stoker {

// SGD as torch.optim.SGD. Gradients are means over the rows that count of the global batch.
struct OptimizerSpec {
  double learning_rate = 0.1;  // at a global batch of lr_ref_batch (of any, if that is 0)
  int lr_ref_batch = 256;      // effective rate = learning_rate * batch / lr_ref_batch; 0: unscaled
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  bool decoupled = false;    // false: g += wd * w; true: w *= 1 - lr * wd
  bool decay_norms = false;  // batch-norm weights and all biases decay too
  // The rate of batch-norm biases is multiplied, and their weight decay divided, by this.
  double norm_bias_factor = 1;
  bool train_norm_weights = true;  // false: gamma stays 1 (airbench)

  double effective_learning_rate(int batch) const;
};

enum class AverageKind : uint8_t {
  none,
  ema,        // a running average is evaluated and saved; training does not see it
  lookahead,  // the weights jump to the average every `every` steps (airbench, Zhang et al. 2019)
};

// Averages of parameters and batch-norm statistics.
struct AverageSpec {
  AverageKind kind = AverageKind::none;
  int every = 1;         // steps
  double decay = 0.999;  // per step; of the blend: decay^every
  double ramp = 0;       // the blend is multiplied by (steps done / total steps)^ramp
};

struct MixSpec {            // one draw per step; rows are mixed within a micro-batch
  double mixup_alpha = 0;   // 0: off; lambda ~ Beta(alpha, alpha)
  double cutmix_alpha = 0;  // with both on, each step takes one of them with probability 1/2
  double probability = 1;   // of mixing at all
};

struct Recipe {
  std::string name;           // of the recipe, and the model's name for make_model()
  Size input;                 // pixels; equals train.output and eval.output
  double epochs = 10;         // may end inside an epoch
  int batch = 128;            // global: all devices together
  int micro_batch_rows = 32;  // batch-norm sees these; batch % (devices * micro_batch_rows) == 0
  LastBatch last_batch = LastBatch::pad;
  AugmentSpec train, eval;
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};  // of pixels / 255, RGB
  std::array<float, 3> stddev{0.229f, 0.224f, 0.225f};
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  double label_smoothing = 0;
  AverageSpec average;
  MixSpec mix;
  bool zero_gamma = false;             // the last batch norm of a residual block starts at 0
  bool whitening = false;              // the first conv is set from the data and frozen
  double whiten_bias_epochs = 3;       // its bias is trained so long
  int eval_views = 1;                  // 1: as is; 2: and mirrored; 6: and shifted by +-1 pixel
  std::optional<Precision> precision;  // empty: bf16 where the CPU has it, else fp32

  // Sets input, train.output and eval.output.
  void set_input(Size size);
  // Sets epochs, and shortens the warm-up to a tenth of them if it is longer.
  void set_epochs(double value);
  // Throws std::invalid_argument naming the field and its value.
  void validate() const;
  // The precision in use on this machine.
  Precision resolved_precision() const;
};

// The tuned recipe of a model: "airnet", "airnet-narrow", "resnet20" .. "resnet110", "resnet18",
// "resnet34", "resnet50". Throws std::invalid_argument that lists the names.
Recipe default_recipe(const std::string& model);
std::vector<std::string> recipe_names();
// "batch 1024, lr 1.5 (...), ...": a few lines for --help and the plan before a run.
std::vector<std::string> describe(const Recipe& recipe);

// What one update is given: effective rates, decay and frozen tensors of step `step`.
// `tensors` holds one entry per tensor of parameter_table(net).
struct StepRates {
  std::vector<TensorUpdate> tensors;
  UpdateArgs args;  // args.tensors refers to `tensors`: keep the struct in place
  double learning_rate = 0;
};
void set_rates(const Recipe& recipe, const std::vector<TensorInfo>& parameters, int64_t step,
               int64_t total_steps, int64_t steps_per_epoch, StepRates& rates);
// The blend of the average after `steps_done` steps; negative: none is due. An EMA is young at
// first: its decay is at most (1 + blends) / (10 + blends).
float average_decay(const AverageSpec& spec, int64_t steps_done, int64_t total_steps);
// The draw of a step: a pure function of (seed, step).
Mix draw_mix(const MixSpec& spec, Size input, uint64_t seed, int64_t step);
// The views of a test-time augmentation of 1, 2 or 6 and their weights (sum 1).
struct WeightedView {
  View view;
  float weight = 1;
};
std::vector<WeightedView> eval_views(int count);

}  // namespace stoker
