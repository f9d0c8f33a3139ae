// The dense net of kuza55's multi-GPU experiment ("make_parallel", 2016): 8000-4000-2000-500-300-1,
// tanh and a sigmoid, with binary cross-entropy. Its 41 million weights are exchanged in every step
// and do little work, so it shows what the exchange of gradients costs.
#include <stdexcept>

#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr Size kInput{100, 80};  // 8000 values

// Widths: of the hidden layers.
NetSpec make_mlp(const NetRequest& request) {
  if (request.classes != 2) {
    throw std::invalid_argument("it tells 2 classes apart, not " + std::to_string(request.classes));
  }
  if (request.input != kInput) throw std::invalid_argument("it is made for 100x80");
  NetBuilder net(request.name, request.input, 1);
  net.gray_input();
  net.loss(LossKind::binary);
  net.init(WeightInit::glorot_uniform, 0, true);
  int x = 0;
  for (size_t i = 0; i < request.widths.size(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    x = net.plain(OpKind::tanh, net.fully_connected(name, x, request.widths[i]));
  }
  net.linear("head", x, true, 1.0f);
  return net.finish();
}

Recipe mlp_recipe(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  recipe.epochs = 4;
  recipe.batch = 2048;
  recipe.micro_batch_size = 256;
  recipe.mean = {0, 0, 0};
  recipe.stddev = {1, 1, 1};
  recipe.train.stages = StageList("resize");
  recipe.eval.stages = StageList("resize");
  recipe.set_input(kInput);
  recipe.optimizer.learning_rate = 0.01;
  recipe.optimizer.lr_ref_batch = 0;
  recipe.optimizer.weight_decay = 0;
  return recipe;
}

}  // namespace

std::vector<Model> mlp_models() {
  return {{"mlp41m", {4000, 2000, 500, 300}, make_mlp, mlp_recipe}};
}

}  // namespace stoker
