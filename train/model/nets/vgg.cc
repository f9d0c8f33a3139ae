// torchvision's VGG: Simonyan and Zisserman 2014, configurations D (16) and E (19), with and
// without batch norm.
#include <array>

#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr float kVggDropout = 0.5f;

using Convolutions = std::array<int, 5>;  // per stage; a pool ends each stage
constexpr Convolutions kVgg16{2, 2, 3, 3, 3};
constexpr Convolutions kVgg19{2, 2, 4, 4, 4};

// Widths: of the five stages and of the hidden linear layers.
NetSpec make_vgg(const NetRequest& request, const Convolutions& convolutions, bool norm) {
  NetBuilder net(request.name, request.input, request.classes);
  net.init(WeightInit::kaiming_out, 0, true);
  int x = 0;
  int module = 0;  // its index in torchvision's Sequential, where ReLUs and pools count
  for (size_t stage = 0; stage < convolutions.size(); ++stage) {
    for (int i = 0; i < convolutions[stage]; ++i) {
      x = net.conv("features." + std::to_string(module++), x, request.widths[stage], 3, 1, 1, true);
      if (norm) {
        x = net.batch_norm("features." + std::to_string(module++), x, kNormEps, kNormMomentum);
      }
      x = net.plain(OpKind::relu, x);
      ++module;
    }
    x = net.max_pool(x, 2, 2, 0);
    ++module;
  }
  x = net.adaptive_avg_pool(x, {7, 7});
  net.init(WeightInit::normal, 0.01f, true);
  for (const char* name : {"classifier.0", "classifier.3"}) {
    x = net.plain(OpKind::relu, net.fully_connected(name, x, request.widths[5]));
    x = net.dropout(x, kVggDropout);
  }
  net.linear("classifier.6", x, true, 1.0f);
  return net.finish();
}

// torchvision's reference: as AlexNet's. Batch norm bears the rate of a ResNet.
Recipe vgg_recipe(const std::string& name) {
  Recipe recipe = imagenet_recipe(name);
  recipe.optimizer.learning_rate = name.ends_with("_bn") ? 0.1 : 0.01;
  recipe.schedule.kind = ScheduleKind::step;
  recipe.schedule.milestones = {1.0 / 3, 2.0 / 3};
  recipe.label_smoothing = 0;
  return recipe;
}

}  // namespace

std::vector<Model> vgg_models() {
  std::vector<Model> models;
  const auto add = [&](const std::string& name, const Convolutions& convolutions, bool norm) {
    const auto make = [convolutions, norm](const NetRequest& request) {
      return make_vgg(request, convolutions, norm);
    };
    models.push_back({name, {64, 128, 256, 512, 512, 4096}, make, vgg_recipe});
  };
  add("vgg16", kVgg16, false);
  add("vgg19", kVgg19, false);
  add("vgg16_bn", kVgg16, true);
  add("vgg19_bn", kVgg19, true);
  return models;
}

}  // namespace stoker
