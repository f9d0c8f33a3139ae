#include "tools/option/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>

#include "tools/machine/build_info.h"
#include "tools/option/augment_choice.h"
#include "tools/option/parser.h"
#include "train/model/choices.h"
#include "train/model/models.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

// Before there were other strategies, all-reduce was named by its transport alone.
constexpr const char* kOldValues[] = {"nccl", "device", "host"};

const std::map<std::string, GradWire> kGradWireNames(std::begin(kGradWires), std::end(kGradWires));

std::string problem_of(const std::string& text) {
  for (const char* old : kOldValues) {
    if (text == old) return text + " is now all-reduce:" + text;
  }
  std::string names;
  for (const auto& [name, kind] : kReduceKinds) {
    if (text == name) return "";
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return text + " is none of " + names;
}

std::string value_names() {
  std::string names;
  for (const auto& [name, kind] : kReduceKinds)
    names += (names.empty() ? "" : ",") + std::string(name);
  return "{" + names + "}";
}

const std::map<std::string, std::optional<Precision>> kTrainPrecisions = {
    {"auto", std::nullopt}, {"fp32", Precision::fp32}, {"bf16", Precision::bf16}};
const std::map<std::string, FeedKind> kTrainFeeds(std::begin(kFeedKinds), std::end(kFeedKinds));

constexpr const char* kBatchAuto = "auto";
const char* const kRecipeGroup = "Recipe (default: the model's, see below)";
constexpr int kMaxBatch = 1 << 24;

int whole_batch(const std::string& text) {
  int rows = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, rows);
  if (error != std::errc() || stop != end || rows < 1 || rows > kMaxBatch) {
    throw std::invalid_argument(fmt::format(
        "--batch: '{}' is neither a number of samples from 1 to {} nor auto", text, kMaxBatch));
  }
  return rows;
}

void set_rate_factors(Recipe& recipe, const std::vector<std::string>& factors) {
  for (const std::string& text : factors) {
    const size_t at = text.rfind('=');
    const std::string key = text.substr(0, at);
    const char* begin = text.data() + std::min(text.size(), at + 1);
    const char* end = text.data() + text.size();
    double factor = 0;
    const auto [stop, error] = std::from_chars(begin, end, factor);
    if (at == std::string::npos || key.empty() || error != std::errc() || stop != end) {
      throw std::invalid_argument(
          fmt::format("--lr-factors: '{}' is not NAME=FACTOR, such as layer1=0.1", text));
    }
    recipe.optimizer.rate_factors[key] = factor;
  }
}

void set_betas(Recipe& recipe, const std::vector<double>& betas) {
  if (betas.size() != 2) {
    throw std::invalid_argument(
        fmt::format("--betas: {} are {} numbers, not 2", fmt::join(betas, ","), betas.size()));
  }
  recipe.optimizer.beta1 = betas[0];
  recipe.optimizer.beta2 = betas[1];
}

// Milestones are epochs, as in PyTorch's MultiStepLR; the recipe has them as shares of the run.
void set_milestones(Recipe& recipe, const std::vector<double>& epochs) {
  recipe.schedule.milestones.clear();
  double previous = 0;
  for (const double epoch : epochs) {
    if (epoch <= previous || epoch >= recipe.epochs) {
      throw std::invalid_argument(
          fmt::format("--milestones: {} must be epochs that ascend, within the {:g} of --epochs",
                      fmt::join(epochs, ","), recipe.epochs));
    }
    recipe.schedule.milestones.push_back(epoch / recipe.epochs);
    previous = epoch;
  }
}

void set_size(Recipe& recipe, int size) { recipe.set_input({size, size}); }

void set_average(Recipe& recipe, double decay) {
  recipe.average = {.kind = AverageKind::ema, .every = 1, .decay = decay};
}

void change_optimizer(Recipe& recipe, OptimizerKind kind, bool has_rate) {
  const OptimizerKind before = recipe.optimizer.kind;
  recipe.optimizer = with_optimizer(recipe.optimizer, kind);
  if (kind == before || has_second_moments(kind) || has_rate) return;
  throw std::invalid_argument(
      fmt::format("--optimizer: {} needs --lr, because the model's rate is for {}", to_string(kind),
                  to_string(before)));
}

void set_warmup_steps(Recipe& recipe, int64_t steps, bool has_epochs) {
  if (has_epochs) {
    throw std::invalid_argument(
        fmt::format("--warmup-steps: {} steps or --warmup-epochs {:g}, not both", steps,
                    recipe.schedule.warmup_epochs));
  }
  recipe.schedule.warmup_epochs = 0;
  recipe.schedule.warmup_steps = steps;
}

// A check whether an option fits into a recipe, of which `name` is the option's.
using Fits = std::function<void(const char* name, const Recipe&)>;

// The option is for optimizers of which `has` is true; the others have no `what`.
Fits only_for(bool (*has)(OptimizerKind), const char* what) {
  return [=](const char* name, const Recipe& recipe) {
    const OptimizerKind kind = recipe.optimizer.kind;
    if (has(kind)) return;
    throw std::invalid_argument(
        fmt::format("{}: the optimizer is {}, which has no {}", name, to_string(kind), what));
  };
}
bool has_momentum(OptimizerKind kind) { return !has_second_moments(kind); }
bool is_lars(OptimizerKind kind) { return kind == OptimizerKind::lars; }

void only_for_steps(const char* name, const Recipe& recipe) {
  if (recipe.schedule.kind == ScheduleKind::step) return;
  throw std::invalid_argument(fmt::format("{}: it needs --schedule step", name));
}

// Adds options to the parser, and to `changes` what each does to the recipe. They have the order of
// the help, whatever comes from the command line or from a config file, which is parsed first.
struct RecipeParser {
  CLI::App& app;
  std::vector<std::function<void(Recipe&)>>& changes;

  // An option whose value `set` puts into the recipe: a value, the name of a choice, several
  // values with commas between them, or a flag.
  template <class T>
  CLI::Option* add(const char* name, std::function<void(Recipe&, const T&)> set, const char* help,
                   Fits fits = {}) const {
    const size_t row = changes.size();
    changes.emplace_back();
    const auto keep = [=, &to = changes](const T& value) {
      to[row] = [=](Recipe& recipe) {
        if (fits) fits(name, recipe);
        set(recipe, value);
      };
    };
    CLI::Option* option = nullptr;
    if constexpr (std::is_enum_v<T>) {
      static const std::map<std::string, T> kValues = choices_by_name<T>();
      const auto keep_named = [keep](const std::string& value) { keep(kValues.at(value)); };
      option = app.add_option_function<std::string>(name, keep_named, help);
      option->check(CLI::IsMember(&kValues));
    } else if constexpr (std::is_same_v<T, bool>) {
      option = app.add_flag_callback(
          name, [keep] { keep(true); }, help);
    } else {
      option = app.add_option_function<T>(name, keep, help);
    }
    if (option->get_expected_max() > 1) {
      option->delimiter(',')->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    return option->group(kRecipeGroup);
  }
  // An option that is a field of the recipe, or of its optimizer or schedule.
  template <class S, class T>
  CLI::Option* add(const char* name, T S::*field, const char* help, const Fits& fits = {}) const {
    const auto set = [field](Recipe& recipe, const T& value) {
      std::get<S&>(std::tie(recipe, recipe.optimizer, recipe.schedule)).*field = value;
    };
    return add<T>(name, set, help, fits);
  }
};

int whole_batch_of(const TrainArguments& arguments, int64_t all_devices, int otherwise) {
  if (!arguments.batch_per_device) {
    return arguments.batch && *arguments.batch != kBatchAuto ? whole_batch(*arguments.batch)
                                                             : otherwise;
  }
  const int64_t each = *arguments.batch_per_device;
  if (arguments.batch) {
    throw std::invalid_argument(
        fmt::format("--batch-per-device: {} samples per device or --batch {}, not both", each,
                    *arguments.batch));
  }
  if (each * all_devices > kMaxBatch) {
    throw std::invalid_argument(
        fmt::format("--batch-per-device: {} samples on {} devices are more than {} per step", each,
                    all_devices, kMaxBatch));
  }
  return static_cast<int>(each * all_devices);
}

Recipe make_recipe(const TrainArguments& arguments, int64_t all_devices) {
  Recipe recipe = default_recipe(arguments.model);
  if (arguments.augment) {
    recipe.train.set_stages(*arguments.augment);
    recipe.set_input(own_size(recipe.train.stages).value_or(recipe.input));
  }
  recipe.batch = whole_batch_of(arguments, all_devices, recipe.batch);
  for (const auto& change : arguments.recipe_changes) {
    if (change) change(recipe);
  }
  if (const auto given = kTrainPrecisions.at(arguments.precision)) recipe.precision = given;
  recipe.validate();
  return recipe;
}

void add_recipe_options(CLI::App& app, TrainArguments& arguments) {
  using Optimizer = OptimizerSpec;
  using Schedule = ScheduleSpec;
  const RecipeParser parser{app, arguments.recipe_changes};
  parser.add<double>("--epochs", &Recipe::set_epochs,
                     "Length of the run in epochs, above 0. It may end inside an epoch: 9.9");
  app.add_option("--batch", arguments.batch,
                 "Samples per step of all devices together, 1 to 16777216. auto takes as many as "
                 "the memory holds")
      ->group(kRecipeGroup);
  app.add_option("--batch-per-device", arguments.batch_per_device,
                 "Samples per step of each device, instead of --batch, which is then this times "
                 "all devices of all processes; --lr-ref-batch scales the learning rate with it")
      ->check(CLI::Range(1, kMaxBatch))
      ->group(kRecipeGroup);
  app.add_option("--accumulate", arguments.run.accumulate,
                 "Parts in which each device takes its samples of a step. Their gradients are "
                 "added up before the one update, so a large batch needs the memory of a part; a "
                 "GPU's batch norm sees a part at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->group(kRecipeGroup);
  parser
      .add<int>("--size", set_size,
                "Width and height of the images that the model sees, in pixels (default: that of "
                "--augment, or the model's)")
      ->check(CLI::Range(1, 1 << 14));
  parser.add<OptimizerKind>(
      "--optimizer",
      [&app](Recipe& recipe, auto kind) { change_optimizer(recipe, kind, is_given(app, "--lr")); },
      "Optimizer: sgd, lars (layer-wise rates for large batches; needs --lr), adam or adamw (with "
      "PyTorch's rate and decay, unless they are given)");
  parser.add("--lr", &Optimizer::learning_rate,
             "Peak learning rate, 0 or more, at a batch of --lr-ref-batch samples");
  parser.add("--lr-ref-batch", &Optimizer::lr_ref_batch,
             "Samples for which --lr is meant: the rate is scaled by --batch divided by this. 0 "
             "leaves it unscaled");
  parser.add("--momentum", &Optimizer::momentum, "Momentum of sgd and lars, in [0, 1)",
             only_for(has_momentum, "momentum but --betas"));
  parser.add("--nesterov", &Optimizer::nesterov, "Nesterov momentum for sgd and lars",
             only_for(has_momentum, "Nesterov momentum"));
  parser.add<std::vector<double>>(
      "--betas", set_betas,
      "Decay of the first and second moment of adam and adamw, in [0, 1): 0.9,0.999",
      only_for(has_second_moments, "betas but --momentum"));
  parser.add("--epsilon", &Optimizer::epsilon, "What adam and adamw add to the divisor, above 0",
             only_for(has_second_moments, "epsilon"));
  parser.add("--trust", &Optimizer::trust,
             "Trust coefficient of lars, above 0: the share of its weights' norm by which a tensor "
             "may change per step at a rate of 1",
             only_for(is_lars, "trust ratio"));
  parser.add("--weight-decay", &Optimizer::weight_decay,
             "Weight decay, 0 or more; adamw's is decoupled. Batch norms and biases are left out");
  parser.add<std::vector<std::string>>(
      "--lr-factors", set_rate_factors,
      "Factors of the learning rate for parts of the model, by the beginning of their names: "
      "conv1=0,layer1=0.1. 0 freezes a part");
  parser.add("--clip-norm", &Optimizer::clip_norm,
             "Largest norm of all gradients together, 0 or more; larger ones are scaled down to "
             "it. 0 does not clip");
  parser.add("--label-smoothing", &Recipe::label_smoothing,
             "Share of the target that is spread over all classes, in [0, 1)");
  parser.add("--schedule", &Schedule::kind, "Shape of the learning rate over the whole run");
  parser.add<std::vector<double>>(
      "--milestones", set_milestones,
      "Epochs after which --schedule step multiplies the rate by --gamma, ascending: 30,60,80",
      only_for_steps);
  parser.add("--gamma", &Schedule::gamma,
             "Factor of the learning rate at each of the --milestones, in (0, 1]", only_for_steps);
  parser.add("--warmup-epochs", &Schedule::warmup_epochs,
             "Epochs in which the learning rate rises linearly, step by step; 0 or more");
  parser
      .add<int64_t>(
          "--warmup-steps",
          [&app](Recipe& recipe, int64_t steps) {
            set_warmup_steps(recipe, steps, is_given(app, "--warmup-epochs"));
          },
          "The same as a number of steps, instead of --warmup-epochs; 0 or more")
      ->check(CLI::NonNegativeNumber);
  parser.add("--warmup-start", &Schedule::warmup_start,
             "Share of the rate from which the warm-up rises, in [0, 1]");
  parser.add<double>("--ema", set_average,
                     "Decay per step of the averaged weights, in [0, 1). The averaged weights are "
                     "then evaluated and saved");
  parser.add(
      "--micro-batch", &Recipe::micro_batch_size,
      "Samples of a CPU replica that batch norm sees together (ghost batch norm), 1 or more. They "
      "must divide the samples of a device; a GPU takes all of its samples together");
  parser.add("--last-batch", &Recipe::last_batch,
             "What fills the last batch of an epoch. pad repeats samples with weight 0, drop "
             "leaves the rest of the epoch out, wrap takes the epoch's first samples again");
  parser
      .add("--views", &Recipe::eval_views,
           "Views of each image in the last evaluation: 1 (plain), 2 (also mirrored) or 6 (also "
           "shifted)")
      ->check(CLI::IsMember({1, 2, 6}));
  add_augment_option(app, arguments.augment, "the model's")->group(kRecipeGroup);
}

void add_run_options(CLI::App& app, TrainArguments& arguments) {
  TrainOptions& run = arguments.run;
  app.add_option("--devices", arguments.devices,
                 "Devices of each process. cpu:N makes N replicas that share the cores; cuda:all "
                 "and cuda:0,1 take GPUs; cuda:0*2 puts two replicas on one GPU");
  check_reduce(app.add_option(
      "--reduce", arguments.reduce,
      "What replicas exchange in a step. all-reduce (auto is the same) sums their gradients, in "
      "the way that suits the devices or the one that is named; parameter-server keeps the weights "
      "with a server, to which replicas push gradients and from which they pull weights: in host "
      "memory for CPU replicas (parameter-server:host), on the first GPU for GPUs "
      "(parameter-server:device); independent exchanges nothing: each replica trains a model of "
      "its own on its share of every batch, with the rate for that share, and has its checkpoints "
      "in --out/replica_I; none leaves the sum out to measure what it costs, and then nothing is "
      "saved"));
  check_grad_wire(
      app.add_option("--grad-wire", arguments.grad_wire,
                     "Number format in which gradients travel between replicas. int8 (a scale per "
                     "1024 values, stochastic rounding) and 1bit (two means per 256 values) add "
                     "what was lost to the next step's gradients"));
  app.add_flag("--sync-batch-norm", run.sync_batch_norm,
               "Let batch norm see a micro-batch of all replicas together (as PyTorch's "
               "SyncBatchNorm), not each replica its own: of CPU replicas or of GPUs, in one "
               "process. The weights then depend on the number of replicas");
  app.add_option("--bucket-mib", arguments.bucket_mib,
                 "Size in MiB of the buckets in which GPUs sum gradients while the backward pass "
                 "runs. 0 sums all of them after it")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--precision", arguments.precision,
                 "Number format of the computation. auto takes the model's, or bf16 where the "
                 "device has it")
      ->check(CLI::IsMember(&kTrainPrecisions));
  app.add_option(
      "--init", run.init,
      "Weights to begin with: a safetensors file with PyTorch's names of the model (torchvision's, "
      "or a checkpoint's), or a run's folder. A head for other classes begins anew");
  app.add_option("--seed", run.seed, "Seed of the first weights, the order and the augmentation");
  app.add_option("--out", arguments.out, "Folder of the results (default: runs/MODEL)");
  app.add_flag("--resume", run.resume, "Go on from the newest checkpoint in --out");
  app.add_option("--checkpoint-steps", run.checkpoint_steps,
                 "Steps between two checkpoints. 0 saves only at the end of an epoch")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--keep", run.keep_checkpoints,
                 "Number of checkpoints to keep; older ones are removed")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--eval-every", run.eval_every_epochs,
                 "Epochs between two evaluations. 0 evaluates only at the end")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--eval-data", arguments.eval_data,
                 "Folder to evaluate on: its test part, or all of it if it has no parts (default: "
                 "the test part of --data, if it has one)");
  app.add_option(
      "--eval-subset", arguments.eval_subset,
      "Which of the samples to evaluate on (default: all), in the forms of --subset. For data "
      "without a test part: --data X --subset part=0:0.9 --eval-data X --eval-subset part=0.9:1");
  app.add_option("--limit-train", run.limit_train,
                 "Approximate number of training samples, spread evenly over the data. 0 takes all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--limit-eval", run.limit_eval,
                 "Approximate number of test samples, spread evenly over the data. 0 takes all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-steps", run.max_steps,
                 "Step after which the run ends early; the schedule stays that of --epochs. 0 runs "
                 "to the end")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--log-interval", run.log_interval,
                 "Steps per row of the metrics. 0 writes about 20 rows per epoch")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", run.threads,
                 "Threads that compute on the CPU, of all replicas together. 0 takes one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--ring-depth", run.ring_depth, "Batches that are decoded ahead for each device")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option(
         "--slots", run.slots,
         "Batches that are staged on each device. -1 takes 2 on GPUs and none on host devices")
      ->check(CLI::Range(-1, 3));
  app.add_flag("--no-receipt", arguments.no_receipt,
               "Write no receipt.json, which takes a hash of every sample");
  app.add_flag("--row-losses", run.row_losses,
               "Keep the loss of every sample in every step, 2 bytes each, by which stoker rewind "
               "ranks the samples (on the CPU)");
  add_explain_option(app, arguments.explain_augment);
  app.add_flag("--verbose", arguments.verbose,
               "Print all of the plan before the run: the whole recipe, the memory by its parts");
  app.add_flag("--watch", arguments.watch,
               "Show the feed, the ring, the process and the GPUs while the run goes on (in "
               "another terminal: stoker top RUNDIR)");
  app.add_option("--metrics-port", arguments.metrics_port,
                 "Port of http://127.0.0.1:PORT/metrics, which serves Prometheus while the run "
                 "goes on. 0 takes a free port")
      ->check(CLI::Range(0, 65535));
}

// Last in the help: they serve measurements, not training.
void add_measure_options(CLI::App& app, TrainArguments& arguments) {
  const auto add = [&app](const std::string& name, auto& value, const std::string& text) {
    return app.add_option(name, value, text)
        ->group("Measuring (leaves a part of training out to see what it costs)");
  };
  add("--feed", arguments.feed,
      "Source of the batches. synthetic repeats the first batches; resident stages the first epoch "
      "on the device and repeats it. Nothing is saved with either")
      ->check(CLI::IsMember(&kTrainFeeds));
  add("--resident-mib", arguments.resident_mib,
      "Memory of a device in MiB for --feed resident, which repeats as many batches as fit. 0 "
      "requires that the whole epoch fits")
      ->check(CLI::Range(0.0, 1e9));
}

}  // namespace

ReduceKind parse_reduce(const std::string& text) {
  for (const auto& [name, kind] : kReduceKinds) {
    if (text == name) return kind;
  }
  throw std::invalid_argument("--reduce: " + problem_of(text));
}

CLI::Option* check_reduce(CLI::Option* option) {
  return option->check(CLI::Validator(problem_of, value_names()));
}

GradWire parse_grad_wire(const std::string& text) { return kGradWireNames.at(text); }

CLI::Option* check_grad_wire(CLI::Option* option) {
  return option->check(CLI::IsMember(&kGradWireNames));
}

TrainOptions TrainArguments::options(const Launch& launch) const {
  TrainOptions options = run;
  options.devices = parse_devices(devices, launch.local_rank, launch.local_world);
  options.recipe = make_recipe(*this, static_cast<int64_t>(options.devices.size()) * launch.world);
  options.batch_auto = batch == kBatchAuto;
  options.local_processes = launch.local_world;
  options.reduce = parse_reduce(reduce);
  options.grad_wire = parse_grad_wire(grad_wire);
  options.bucket_bytes = static_cast<int64_t>(bucket_mib * (1 << 20));
  options.out = out.empty() ? "runs/" + model : out;
  options.feed = data.feed();
  options.receipt = !no_receipt;
  options.version = kBuildVersion;
  for (const BuildLibrary& library : kBuildLibraries) {
    if (*library.version) options.libraries.emplace_back(library.name, library.version);
  }
  return options;
}

MeasureHooks TrainArguments::measure() const {
  MeasureHooks hooks;
  hooks.feed = kTrainFeeds.at(feed);
  hooks.resident_bytes = static_cast<int64_t>(resident_mib * (1 << 20));
  return hooks;
}

ChosenSamples TrainArguments::open_train_samples() const {
  return choose_samples(data, samples, Split::train);
}

ChosenSamples TrainArguments::open_eval_samples(std::vector<std::string>& notes) const {
  ChosenSamples chosen;
  if (eval_data.empty()) {
    chosen = open_test_samples(data, samples, notes);
  } else {
    chosen.sources.push_back(open_eval_data(data, eval_data, "--eval-data"));
  }
  if (eval_subset.empty()) return chosen;
  if (chosen.empty())
    throw std::invalid_argument("--eval-subset: it needs --eval-data, because " + notes.front());
  take_subset(chosen, eval_subset, "--eval-subset");
  return chosen;
}

void TrainArguments::set_samples(const ChosenSamples& chosen, TrainOptions& options) const {
  options.order = chosen.order;
  options.subset = chosen.subset;
  options.data_options = written_options(data, samples);
  if (!eval_data.empty()) {
    options.data_options.emplace_back("eval_data", written_path(eval_data));
  }
  if (!eval_subset.empty()) options.data_options.emplace_back("eval_subset", eval_subset);
}

void add_train_options(CLI::App& app, TrainArguments& arguments) {
  add_data_option(app, arguments.data);
  add_learned_target_option(app, arguments.data);
  add_sample_options(app, arguments.samples);
  add_shuffle_option(app, arguments.samples);
  app.add_option("--model", arguments.model, "Model to train, with its recipe (see below)")
      ->check(CLI::IsMember(list_models()));
  add_run_options(app, arguments);
  arguments.data.pixels = "fast";  // for training; evaluation is always exact
  add_decode_options(app, arguments.data);
  add_feed_options(app, arguments.data);
  add_recipe_options(app, arguments);
  add_measure_options(app, arguments);
}

void check_train_options(const CLI::App& app, const TrainArguments& arguments,
                         const TrainOptions& options, int world) {
  check_sample_options(app, arguments.samples, "--limit-train");
  if (!arguments.samples.blend.empty()) {
    if (arguments.eval_data.empty()) {
      refuse_if_given(app, {"--eval-subset"}, "it is of one data set: name it with --eval-data");
    }
  }
  std::vector<std::string> paths = paths_of(arguments.data, arguments.samples);
  if (!arguments.eval_data.empty()) paths.push_back(arguments.eval_data);
  check_feed_options(app, arguments.data, paths);
  check_seek_index(arguments.data);
  const Recipe& recipe = options.recipe;
  const int rows =
      recipe.batch / static_cast<int>(options.devices.size()) / world / options.accumulate;
  const bool fewer = recipe.micro_batch_size < rows;
  if (on_gpus(options.devices)) {
    refuse_if_given(app, {"--threads"}, "nothing computes on the CPU here; --workers decode");
    if (fewer && !options.batch_auto) {
      refuse_if_given(app, {"--micro-batch"}, "batch norm sees all samples of a GPU together");
    }
  } else {
    if (arguments.bucket_mib > 0) {  // all gradients are summed after the pass, as with 0
      refuse_if_given(app, {"--bucket-mib"}, "it is for gradients on GPUs");
    }
    if (fewer && rows % recipe.micro_batch_size != 0 && !options.batch_auto) {
      refuse_if_given(
          app, {"--micro-batch"},
          fmt::format("the {} samples of a device do not divide into micro-batches of {}", rows,
                      recipe.micro_batch_size));
    }
  }
  const MeasureHooks measured = arguments.measure();
  if (measured.feed != FeedKind::resident) {
    refuse_if_given(app, {"--resident-mib"}, "it needs --feed resident");
  }
  if (measured.feed != FeedKind::real || options.reduce == ReduceKind::none) {
    refuse_if_given(app, {"--resume"},
                    "runs that measure (--feed, --reduce none) have no checkpoints");
  }
}

std::string recipes_help() {
  std::string text = "Models and their recipes:\n";
  for (const std::string& name : list_models()) {
    text += "  " + name + "\n";
    for (const std::string& line : describe(default_recipe(name))) text += "    " + line + "\n";
  }
  return text;
}

}  // namespace stoker
