// Densely connected nets for CIFAR: Huang et al. 2016 (arXiv 1608.06993), table 2, growth rate 12,
// without bottlenecks and compression. Modules have torchvision's names.
#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr int kDenseBlocks = 3;

int norm_relu(NetBuilder& net, const std::string& name, int x) {
  return net.plain(OpKind::relu, net.batch_norm(name, x, kNormEps, kNormMomentum));
}

// Widths: of the first convolution, and the growth rate.
NetSpec make_densenet(const NetRequest& request, int depth) {
  NetBuilder net(request.name, request.input, request.classes);
  net.init(WeightInit::kaiming_in, 0, true);
  int x = net.conv("features.conv0", 0, request.widths[0], 3, 1, 1);
  for (int block = 1; block <= kDenseBlocks; ++block) {
    const std::string number = std::to_string(block);
    for (int layer = 1; layer <= (depth - kDenseBlocks - 1) / kDenseBlocks; ++layer) {
      const std::string name =
          "features.denseblock" + number + ".denselayer" + std::to_string(layer);
      const int made =
          net.conv(name + ".conv1", norm_relu(net, name + ".norm1", x), request.widths[1], 3, 1, 1);
      x = net.concat({x, made});
    }
    if (block == kDenseBlocks) break;
    const std::string name = "features.transition" + number;
    x = norm_relu(net, name + ".norm", x);
    x = net.avg_pool(net.conv(name + ".conv", x, net.shape(x).channels, 1, 1, 0), 2, 2, 0);
  }
  x = norm_relu(net, "features.norm" + std::to_string(kDenseBlocks + 1), x);
  net.init(WeightInit::uniform, 0, true);
  net.linear("classifier", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

// Section 4.2 of the paper.
Recipe densenet_recipe(const std::string& name) {
  Recipe recipe = cifar_recipe(name);
  recipe.epochs = 300;
  recipe.batch = 64;
  recipe.micro_batch_size = 32;
  recipe.optimizer.learning_rate = 0.1;
  recipe.optimizer.lr_ref_batch = 64;
  recipe.optimizer.nesterov = true;
  recipe.optimizer.decay_norms = true;
  recipe.schedule.kind = ScheduleKind::step;
  recipe.schedule.milestones = {0.5, 0.75};
  return recipe;
}

}  // namespace

std::vector<Model> densenet_models() {
  std::vector<Model> models;
  for (const int depth : {40, 100}) {
    const auto make = [depth](const NetRequest& r) { return make_densenet(r, depth); };
    models.push_back({"densenet" + std::to_string(depth), {16, 12}, make, densenet_recipe});
  }
  return models;
}

}  // namespace stoker
