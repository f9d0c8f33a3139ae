#include "train/model/nets/model_table.h"

namespace stoker {

// The lists of stages below have no sizes, so that images become as large as set_input() says. The
// `resize` before a random_crop is for data of another size; it changes nothing of the others.

Recipe cifar_recipe(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  // Mean and deviation of CIFAR-10's training images, as every recipe for it uses them.
  recipe.mean = {0.4914f, 0.4822f, 0.4465f};
  recipe.stddev = {0.2470f, 0.2435f, 0.2616f};
  recipe.train.stages = StageList("resize | random_crop(padding=4) | flip");
  recipe.eval.stages = StageList("resize");
  recipe.set_input({32, 32});
  return recipe;
}

Recipe imagenet_recipe(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  recipe.epochs = 90;
  recipe.batch = 256;
  recipe.micro_batch_size = 32;
  recipe.train.stages = StageList("random_resized_crop | flip");
  recipe.eval.stages = StageList("resize_center_crop");
  recipe.set_input({224, 224});
  recipe.optimizer.learning_rate = 0.1;
  recipe.optimizer.lr_ref_batch = 256;
  recipe.schedule.kind = ScheduleKind::cosine;
  recipe.schedule.warmup_epochs = 5;
  recipe.label_smoothing = 0.1;
  return recipe;
}

}  // namespace stoker
