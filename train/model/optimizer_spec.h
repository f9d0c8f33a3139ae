// The optimizer of a recipe. UpdateArgs (train/engine/engine.h) has the formulas. A value. Threads:
// any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

// Gradients are means over the rows of the global batch that count.
struct OptimizerSpec {
  double learning_rate = 0.1;  // at a global batch of lr_ref_batch (any batch, if that is 0)
  int lr_ref_batch = 256;      // effective rate = learning_rate * batch / lr_ref_batch; 0: unscaled
  double momentum = 0.9;       // SGD and LARS
  bool nesterov = false;       // SGD and LARS
  double weight_decay = 1e-4;
  bool decoupled = false;    // SGD: false: g += wd * w; true: w *= 1 - lr * wd
  bool decay_norms = false;  // batch-norm weights and all biases decay too; never with LARS
  // Multiplies the learning rate of batch-norm biases and divides their weight decay.
  double norm_bias_factor = 1;
  bool train_norm_weights = true;  // false: gamma stays 1 (airbench)
  OptimizerKind kind = OptimizerKind::sgd;
  double beta1 = 0.9, beta2 = 0.999;  // Adam and AdamW
  double epsilon = 1e-8;              // Adam and AdamW
  double trust = 1e-3;                // LARS
  // Factors of the learning rate of the parameters whose names are, or begin with, a key and a dot:
  // {"layer1", 0.1}. The longest key counts. 0 freezes them; a batch norm's running statistics go
  // on.
  std::map<std::string, double> rate_factors{};
  double clip_norm = 0;  // largest norm of all gradients together; 0: no clipping

  double effective_learning_rate(int batch) const;
  double rate_factor(const std::string& parameter) const;  // 1 if no key matches
  // Throws std::invalid_argument naming the field and its value.
  void validate() const;
  // Returns one line; `schedule` is its schedule's.
  std::string describe(int batch, const std::string& schedule) const;
};

// Returns `spec` with another optimizer. Adam and AdamW get the rate, unscaled, and the decay of
// torch.optim's; all else that the optimizers share stays. The rates of SGD and LARS are those of
// `spec`, and of another size: set learning_rate.
OptimizerSpec with_optimizer(const OptimizerSpec& spec, OptimizerKind kind);

// Throws std::invalid_argument if a key of rate_factors matches none of the parameters, or if all
// of them are frozen.
void require_rate_factors(const OptimizerSpec& spec, const std::vector<TensorInfo>& parameters);

const char* to_string(OptimizerKind kind);  // "sgd"

}  // namespace stoker
