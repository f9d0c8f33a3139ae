#include <algorithm>
#include <numeric>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/shares.h"
#include "pipeline/augment/stages.h"
#include "pipeline/augment/timm_policies.h"

namespace stoker {
namespace {

// Uses of the key's numbers: the first of each operation, those of a chain of AugMix, and
// those of its shares.
enum TimmDraw : uint32_t {
  kTimmChoice,
  kTimmApplied,
  kTimmOperation,
  kTimmSlot = kTimmOperation + kTimmDraws
};
constexpr uint32_t kTimmChain = 0x1000, kTimmShares = 0x100000;
constexpr double kMixTranslate = 0.3;  // what create_transform() sets for AugMix

constexpr const char* kInterpolations[] = {"nearest", "bilinear", "bicubic", "random"};

struct TimmStage {
  TimmConfig config;
  TimmOptions options;
};

uint32_t slot_of(int number) { return static_cast<uint32_t>(number) * kTimmSlot; }

// Returns the place of one of them by its weight, which becomes 0.
size_t take_by_weight(double uniform, std::span<double> weights) {
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t chosen = 0;
  while (chosen + 1 < weights.size() && left >= weights[chosen]) left -= weights[chosen++];
  // Rounding may end behind the last one that is left.
  while (weights[chosen] == 0) --chosen;
  weights[chosen] = 0;
  return chosen;
}

// Several operations of the set: with weights none twice, without weights any again.
void draw_random(const TimmStage& stage, const TimmSet& set, const RandomKey& key, Draws& draws) {
  std::array<double, kMaxTimmOperations> all;
  std::copy(set.weights.begin(), set.weights.end(), all.begin());
  const auto weights = std::span(all).first(set.weights.size());
  const auto count = static_cast<int64_t>(set.operations.size());
  for (int layer = 0; layer < stage.config.layers; ++layer) {
    const uint32_t slot = slot_of(layer);
    const size_t chosen = weights.empty()
                              ? static_cast<size_t>(key.below(slot + kTimmChoice, count))
                              : take_by_weight(key.uniform(slot + kTimmChoice), weights);
    if (key.uniform(slot + kTimmApplied) >= stage.config.probability) continue;
    draw_timm_op(draws, key, slot + kTimmOperation, set.operations[chosen], stage.config.magnitude,
                 stage.options);
  }
}

// One pair of a learned policy, each operation with its own probability and magnitude.
void draw_pair(const TimmStage& stage, const std::vector<TimmPair>& policy, const RandomKey& key,
               Draws& draws) {
  const auto chosen =
      static_cast<size_t>(key.below(kTimmChoice, static_cast<int64_t>(policy.size())));
  int number = 1;
  for (const TimmChoice& choice : policy[chosen]) {
    const uint32_t slot = slot_of(number++);
    if (key.uniform(slot + kTimmApplied) >= choice.probability) continue;
    TimmMagnitude magnitude = stage.config.magnitude;
    magnitude.mean = choice.magnitude;
    draw_timm_op(draws, key, slot + kTimmOperation, choice.op, magnitude, stage.options);
  }
}

// Chains of operations are added up by their shares, and their sum is put over the image with
// another share. Both are 32-bit floats.
void draw_mix(const TimmStage& stage, const RandomKey& key, Draws& draws) {
  const TimmConfig& config = stage.config;
  const std::span<const TimmOp> operations = timm_mix_operations();
  std::array<double, 2> over;
  std::array<double, kMaxTimmChains> shares;
  const auto chains = std::span(shares).first(static_cast<size_t>(config.width));
  draw_shares(key, kTimmShares, config.alpha, over);
  draw_shares(key, 2 * kTimmShares, config.alpha, chains);
  draws.add(kBlendBeginStep, {0});
  uint32_t first = kTimmChain;
  for (const double share : chains) {
    const int depth = config.depth ? *config.depth : 1 + static_cast<int>(key.below(first, 3));
    for (int i = 1; i <= depth; ++i) {
      const uint32_t slot = first + slot_of(i);
      const auto chosen = static_cast<size_t>(
          key.below(slot + kTimmChoice, static_cast<int64_t>(operations.size())));
      draw_timm_op(draws, key, slot + kTimmOperation, operations[chosen], config.magnitude,
                   stage.options);
    }
    draws.add(kBlendStep, {static_cast<float>(share)});
    first += kTimmChain;
  }
  draws.add(kBlendOverStep, {static_cast<float>(over[0])});
}

StageActions make_timm_auto_augment(const Arguments& arguments) {
  TimmStage stage{timm_config(arguments, "config"), {}};
  const uint8_t interpolation = arguments.choice("interpolation");
  stage.options.either = interpolation == std::size(kInterpolations) - 1;
  stage.options.warp.fill = arguments.colour("fill");
  if (!stage.options.either) {
    stage.options.warp.interpolation = static_cast<Interpolation>(interpolation);
  }
  if (stage.config.scheme == "augmix") {
    stage.options.translate = kMixTranslate;
    return {[=](const StageKey& key, Draws& draws) { draw_mix(stage, key.key, draws); }};
  }
  if (stage.config.scheme != "rand") {
    const std::vector<TimmPair> policy = timm_policy(stage.config.scheme);
    return {[=](const StageKey& key, Draws& draws) { draw_pair(stage, policy, key.key, draws); }};
  }
  const TimmSet set = timm_set(stage.config.set, stage.config.increasing);
  const auto most = static_cast<int>(set.weights.size());
  if (most > 0 && stage.config.layers > most) {
    arguments.refuse("config", "with at most " + std::to_string(most) + " behind n: a set with " +
                                   "weights gives no operation twice");
  }
  return {[=](const StageKey& key, Draws& draws) { draw_random(stage, set, key.key, draws); }};
}

}  // namespace

const StageType kTimmAutoAugment{
    .name = "timm_auto_augment",
    .help =
        "timm's auto_augment by its text: 'rand-m9-mstd0.5-inc1', 'original', '3a', 'augmix-m3'",
    .details =
        "A name, and sections of a key and a number:\n"
        "  rand-m9-mstd0.5-inc1    RandAugment\n"
        "      m: magnitude (10), n: operations of each image (2), p: probability of each (0.5),\n"
        "      mstd: deviation of the magnitude (0; above 100 evenly from 0),\n"
        "      mmax: its most (10),\n"
        "      inc1: operations that do more with a larger magnitude,\n"
        "      tweights, t3a, t3aw: another set of operations\n"
        "  original, originalr, v0, v0r, 3a    AutoAugment, DeiT III's 3-Augment\n"
        "      mstd\n"
        "  augmix-m3-w3    AugMix\n"
        "      m (3), mstd (evenly from 0), w: chains (3),\n"
        "      d: operations of each (1 to 3), a: alpha (1)\n"
        "interpolation: of what moves pixels; random: bilinear or bicubic, drawn for each\n"
        "operation, as create_transform(interpolation='random'). fill: its colour;\n"
        "create_transform() takes the mean's.",
    .parameters = {{"config", ArgumentKind::text, nullptr},
                   {"interpolation", ArgumentKind::choice, "random", 0, 0, kInterpolations},
                   {"fill", ArgumentKind::colour, "128", 0, 255},
                   kProbability},
    .make = make_timm_auto_augment};

}  // namespace stoker
