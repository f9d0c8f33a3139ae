#include <stdexcept>

#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_mix(const Arguments&) {
  throw std::invalid_argument("augment: mix must be the last stage: it mixes finished rows");
}

}  // namespace

const StageType kMix{
    .name = "mix",
    .help = "Mixup and CutMix with the neighbour in the epoch; alpha of each, 0: off. Last",
    .details =
        "mixup, cutmix: alpha of the distribution Beta(alpha, alpha) of the shares. switch_p:\n"
        "the probability of CutMix where both are on. per_batch: one draw for all rows of a\n"
        "batch, whose size must be even. In Python, Batch.targets then has mix_label, the\n"
        "partner's label, and mix_weight, the share of the row's own: loss = mix_weight *\n"
        "loss(label) + (1 - mix_weight) * loss(mix_label). Other targets are not mixed: a row\n"
        "has its own sample's.",
    .parameters = {{"mixup", ArgumentKind::real, "0", 0, 1e3},
                   {"cutmix", ArgumentKind::real, "0", 0, 1e3},
                   {"p", ArgumentKind::real, "1", 0, 1},
                   {"switch_p", ArgumentKind::real, "0.5", 0, 1},
                   {"per_batch", ArgumentKind::flag, "False"}},
    .make = make_mix};

MixSpec mix_of(const StageText& text) {
  const Arguments arguments = read_arguments(kMix, text);
  const MixSpec mix{.mixup_alpha = arguments.real("mixup"),
                    .cutmix_alpha = arguments.real("cutmix"),
                    .probability = arguments.real("p"),
                    .switch_probability = arguments.real("switch_p"),
                    .per_batch = arguments.flag("per_batch")};
  if (!mix.on()) arguments.refuse("mixup", "above 0, or cutmix must be");
  mix.validate();
  return mix;
}

std::string mix_text(const MixSpec& mix) {
  const std::string text =
      "mix(mixup=" + number_text(mix.mixup_alpha) + ", cutmix=" + number_text(mix.cutmix_alpha) +
      ", p=" + number_text(mix.probability) + ", switch_p=" + number_text(mix.switch_probability) +
      ", per_batch=" + (mix.per_batch ? "True)" : "False)");
  return read_arguments(kMix, parse_stages(text)[0]).describe();
}

}  // namespace stoker
