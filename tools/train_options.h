// The options of `stoker train`: everything in a TrainOptions that a user may want to change, the
// recipe of the model giving the defaults. A value that add_train_options() ties to a parser.
// Errors: std::invalid_argument with the option and the value.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/feed_options.h"
#include "train/trainer.h"

namespace stoker {

struct TrainArguments {
  DataOptions data;
  std::string eval_data;
  std::string model = "airnet";
  std::string devices = "cpu:1";
  std::string out;
  std::string precision = "auto";
  TrainOptions run;  // fields that map one to one
  bool no_receipt = false;

  // Changes of the recipe.
  std::optional<double> epochs, learning_rate, momentum, weight_decay, label_smoothing;
  std::optional<double> warmup_epochs, mixup, cutmix, ema;
  std::optional<int> batch, size, lr_ref_batch, rows_per_shard, views;
  std::optional<std::string> schedule, last_batch;
  AugmentOptions augment;

  TrainOptions options() const;  // checked as far as no data are needed
};

void add_train_options(CLI::App& app, TrainArguments& arguments);

// "cpu:4" -> 4, "cpu" -> 1.
int parse_devices(const std::string& devices);

// Every model with its recipe, for --help.
std::string recipes_help();

}  // namespace stoker
