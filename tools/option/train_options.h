// The options of `stoker train`: everything in a TrainOptions that a user may want to change; the
// model's recipe has the defaults. A value that add_train_options() binds to a parser, which
// outlives its use. Throws std::invalid_argument with the option and the value.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/measure_hooks.h"
#include "tools/option/feed_options.h"
#include "tools/option/sample_choice.h"
#include "train/collective/process/launch.h"
#include "train/collective/reduce_kind.h"
#include "train/collective/wire/grad_wire.h"
#include "train/trainer.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stoker {

struct TrainArguments {
  DataOptions data;
  SampleChoice samples;
  std::string eval_data, eval_subset;
  std::string model = "airnet";
  std::string devices = "cpu:1";
  std::string out;
  std::string precision = "auto";
  std::string feed = "real", reduce = "auto", grad_wire = "fp32";
  double bucket_mib = 25, resident_mib = 0;
  TrainOptions run;  // fields that map one to one
  bool no_receipt = false;
  bool explain_augment = false;
  bool verbose = false;             // print the whole plan
  bool watch = false;               // show the figures of the feed and the devices
  std::optional<int> metrics_port;  // on the loopback; 0: any free port

  // Changes of the recipe.
  std::vector<std::function<void(Recipe&)>> recipe_changes;  // by option; empty: not given
  std::optional<std::string> batch;                          // a number, or "auto"
  std::optional<int> batch_per_device;                       // instead
  std::optional<std::string> augment;  // the stages of the training's augmentation

  // Returns the options of a process that was started as `launch` says, checked as far as possible
  // without data. Its `measure` is null.
  TrainOptions options(const Launch& launch) const;
  MeasureHooks measure() const;

  // Open what is trained on, and what is evaluated: empty if there is nothing, and `notes` then say
  // why.
  ChosenSamples open_train_samples() const;
  ChosenSamples open_eval_samples(std::vector<std::string>& notes) const;
  // Puts into `options` what a training on these samples needs besides their source.
  void set_samples(const ChosenSamples& samples, TrainOptions& options) const;
};

void add_train_options(CLI::App& app, TrainArguments& arguments);

// Throws if an option was given that this run would ignore. `options` are those of the arguments,
// in one of `world` processes.
void check_train_options(const CLI::App& app, const TrainArguments& arguments,
                         const TrainOptions& options, int world);

// Returns every model with its recipe, for --help.
std::string recipes_help();

// --reduce, the strategy by which replicas train together; earlier values are refused with the
// present ones. REQUIRES: the text passed the check of check_reduce().
ReduceKind parse_reduce(const std::string& text);
// Makes the parser refuse what is no strategy. Returns the option.
CLI::Option* check_reduce(CLI::Option* option);

// The same for the number format of gradients between replicas.
GradWire parse_grad_wire(const std::string& text);
CLI::Option* check_grad_wire(CLI::Option* option);

}  // namespace stoker
