// torchvision's AlexNet: "One weird trick for parallelizing convolutional neural networks"
// (Krizhevsky 2014), which has no local response normalisation.
#include "train/model/net_builder.h"
#include "train/model/nets/model_table.h"

namespace stoker {
namespace {

constexpr float kAlexNetDropout = 0.5f;

// Widths: of the five convolutions and of the hidden linear layers.
NetSpec make_alexnet(const NetRequest& request) {
  const std::vector<int>& widths = request.widths;
  NetBuilder net(request.name, request.input, request.classes);
  const auto conv = [&](const char* name, int x, int width, int kernel, int stride, int padding) {
    return net.plain(OpKind::relu, net.conv(name, x, width, kernel, stride, padding, true));
  };
  int x = conv("features.0", 0, widths[0], 11, 4, 2);
  x = net.max_pool(x, 3, 2, 0);
  x = conv("features.3", x, widths[1], 5, 1, 2);
  x = net.max_pool(x, 3, 2, 0);
  x = conv("features.6", x, widths[2], 3, 1, 1);
  x = conv("features.8", x, widths[3], 3, 1, 1);
  x = conv("features.10", x, widths[4], 3, 1, 1);
  x = net.max_pool(x, 3, 2, 0);
  x = net.adaptive_avg_pool(x, {6, 6});
  x = net.fully_connected("classifier.1", net.dropout(x, kAlexNetDropout), widths[5]);
  x = net.dropout(net.plain(OpKind::relu, x), kAlexNetDropout);
  x = net.plain(OpKind::relu, net.fully_connected("classifier.4", x, widths[5]));
  net.linear("classifier.6", x, true, 1.0f);
  return net.finish();
}

// torchvision's reference: a rate of 0.01 at 256, divided by 10 every 30 epochs.
Recipe alexnet_recipe(const std::string& name) {
  Recipe recipe = imagenet_recipe(name);
  recipe.optimizer.learning_rate = 0.01;
  recipe.schedule.kind = ScheduleKind::step;
  recipe.schedule.milestones = {1.0 / 3, 2.0 / 3};
  recipe.schedule.warmup_epochs = 0;
  recipe.label_smoothing = 0;
  return recipe;
}

}  // namespace

std::vector<Model> alexnet_models() {
  return {{"alexnet", {64, 192, 384, 256, 256, 4096}, make_alexnet, alexnet_recipe}};
}

}  // namespace stoker
