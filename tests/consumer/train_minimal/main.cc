// train_minimal DATA [EPOCHS]: trains a small CNN on CIFAR-10 (or any folder of class/*.jpg,
// resized to 32 x 32 pixels) and evaluates it after every epoch. This file is the whole trainer, on
// stoker's public headers: feeder, net, engine, loop, evaluation.
//
// It trains on this machine's cores with one replica. `stoker train` adds what a long run needs:
// several devices, checkpoints and resuming, receipts, live metrics.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "stoker/pipeline/loader.h"
#include "stoker/staging/allowed_cores.h"
#include "stoker/train/collective/collective.h"
#include "stoker/train/engine/engine.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/model/initialise.h"
#include "stoker/train/model/net_builder.h"
#include "stoker/train/model/schedule.h"

namespace {

constexpr stoker::Size kInput{32, 32};
constexpr int kBatch = 128;
constexpr int kMicroBatch = 64;  // rows that share batch-norm statistics, run by one thread
constexpr float kPeakRate = 0.2f, kMomentum = 0.9f, kDecay = 5e-4f;
constexpr uint64_t kSeed = 1;

// Returns a net of three stages of two convolutions, with a residual around the second one.
stoker::NetSpec small_net(int classes) {
  stoker::NetBuilder net("small", kInput, classes);
  net.init(stoker::WeightInit::kaiming_out);
  int x = 0;  // the input
  int stage = 0;
  const auto conv_block = [&](const std::string& name, int channels) {
    x = net.conv(name, x, channels, 3, 1, 1);
    x = net.batch_norm(name + "_norm", x, 1e-5f, 0.1f);
    x = net.plain(stoker::OpKind::relu, x);
  };
  for (const int channels : {32, 64, 128}) {
    const std::string name = "stage" + std::to_string(++stage);
    conv_block(name + ".first", channels);
    x = net.max_pool(x, 2, 2, 0);
    const int around = x;
    conv_block(name + ".second", channels);
    x = net.add(x, around);
  }
  x = net.adaptive_avg_pool(x, {1, 1});
  net.init(stoker::WeightInit::uniform);
  net.linear("head", x, true, 1.0f);
  return net.finish();
}

stoker::AugmentSpec training_augmentation() {
  return stoker::AugmentSpec("resize | random_crop(padding=4, mode='reflect') | flip", kInput);
}

std::unique_ptr<stoker::Engine> make_engine(const stoker::NetSpec& net, int threads) {
  stoker::EngineOptions options;
  options.rows = kBatch;
  options.micro_batch_size = kMicroBatch;
  options.nominal_rows = kBatch;
  options.workers = threads;
  options.mean = {0.4914f, 0.4822f, 0.4465f};  // of CIFAR-10's pixels
  options.stddev = {0.2470f, 0.2435f, 0.2616f};
  auto engine = stoker::make_cpu_engine(net, options);
  const stoker::InitOptions first{.seed = kSeed, .zero_gamma = true};
  engine->write(stoker::StateKind::parameters, stoker::initial_parameters(net, first));
  engine->write(stoker::StateKind::statistics, stoker::initial_statistics(net));
  return engine;
}

// Returns the arguments of SGD for this step: one learning rate for all tensors; biases and norms
// do not decay.
std::vector<stoker::TensorUpdate> tensor_updates(const stoker::NetSpec& net, int64_t step,
                                                 int64_t steps, int64_t steps_per_epoch) {
  stoker::ScheduleSpec schedule;
  schedule.kind = stoker::ScheduleKind::triangle;
  const double factor = stoker::schedule_factor(schedule, step, steps, steps_per_epoch);
  std::vector<stoker::TensorUpdate> updates;
  for (const stoker::TensorInfo& tensor : stoker::parameter_table(net)) {
    const bool decays = tensor.kind == stoker::ParameterKind::conv_weight ||
                        tensor.kind == stoker::ParameterKind::linear_weight;
    updates.push_back({.learning_rate = kPeakRate * static_cast<float>(factor),
                       .weight_decay = decays ? kDecay : 0.0f});
  }
  return updates;
}

void print_epoch(int64_t epoch, double loss, const stoker::EvalResult& result) {
  std::printf("epoch %2ld  loss %.4f  top-1 %.2f%% of %ld test images\n", static_cast<long>(epoch),
              loss, 100 * result.top1, static_cast<long>(result.samples));
  std::fflush(stdout);
}

void train(const std::string& data, int epochs) {
  const auto train_data = stoker::open_source(data, stoker::Split::train);
  const auto test_data = stoker::open_source(data, stoker::Split::test);
  const stoker::NetSpec net = small_net(static_cast<int>(train_data->class_names().size()));
  const int threads = stoker::usable_cores();
  const auto engine = make_engine(net, threads);
  // The engine writes one gradient buffer per micro-batch; this sums them in a fixed order.
  const auto collective = stoker::make_host_collective(1);

  const auto device = stoker::make_host_device();
  const auto stream = device->make_stream();
  stoker::Loader loader(*train_data, training_augmentation(), {device.get()},
                        {.batch_size = kBatch, .seed = kSeed, .epochs = double(epochs)});
  const int64_t per_epoch = loader.steps_per_epoch(), steps = loader.end_step();
  double loss = 0, weight = 0;
  while (const stoker::DeviceBatch batch = loader.next(0, *stream)) {
    batch.synchronize();  // this engine reads on its own threads, not on the stream
    const int64_t step = batch.header().step;
    engine->forward_backward({batch.images(), batch.labels(), batch.weights()});
    collective->all_reduce(0, engine->gradient_buffers(), engine->reduced_gradients());
    const auto updates = tensor_updates(net, step, steps, per_epoch);
    engine->update({.tensors = updates, .momentum = kMomentum, .nesterov = true});

    const stoker::StepMetrics metrics = engine->step_metrics();
    if (!metrics.finite) throw std::runtime_error("the loss is not finite");
    loss += metrics.loss_sum;
    weight += metrics.weight_sum;
    if ((step + 1) % per_epoch != 0) continue;
    stoker::EvalOptions plain;
    plain.augment = stoker::AugmentSpec("resize", kInput);
    stoker::Engine* const engines[] = {engine.get()};
    stoker::Device* const devices[] = {device.get()};
    print_epoch(batch.header().epoch + 1, loss / weight,
                stoker::evaluate(*test_data, engines, devices, kBatch, plain));
    loss = weight = 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: train_minimal DATA [EPOCHS]\n");
    return 2;
  }
  try {
    train(argv[1], argc == 3 ? std::atoi(argv[2]) : 8);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_minimal: %s\n", error.what());
    return 3;
  }
}
