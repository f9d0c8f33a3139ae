#include "pipeline/augment/mix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "decode/pixel_ops.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/random/random_key.h"
#include "pipeline/random/symmetric_beta.h"

namespace stoker {
namespace {

// Draw numbers of a key, far from those of augmentation, orders and substitutes: no row may change
// because the same key gets another use. Samples and steps have the same keys, so each has its own.
constexpr uint32_t kDrawOfSample = 0x4D495800, kDrawOfBatch = 0x4D424100;
enum MixDrawNumber : uint32_t { kWhether, kWhich, kBoxX, kBoxY, kLambda };

constexpr double kMinAlpha = 1e-3, kMaxAlpha = 1e3;

// mix_rows() works on whole lines, as many as fit beside their partners into a core's first cache.
constexpr int64_t kBlockBytes = int64_t{12} << 10;

// The shortest text that reads back as the same number.
std::string exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

void require_mix(bool holds, const char* field, double value, const char* rule) {
  if (!holds) throw InvalidField("MixSpec", field, " = " + exact(value) + ": " + rule);
}

void require_alpha(const char* field, double alpha) {
  require_mix(alpha == 0 || (alpha >= kMinAlpha && alpha <= kMaxAlpha), field, alpha,
              "must be 0 (off) or 0.001..1000");
}

void require_probability(const char* field, double value) {
  require_mix(value >= 0 && value <= 1, field, value, "must be 0..1");
}

Box box_of(const RandomKey& key, uint32_t first_draw, double lambda, Size size) {
  const double half = 0.5 * std::sqrt(1 - lambda);
  const int half_width = static_cast<int>(half * size.width);
  const int half_height = static_cast<int>(half * size.height);
  const int x = static_cast<int>(key.below(first_draw + kBoxX, size.width));
  const int y = static_cast<int>(key.below(first_draw + kBoxY, size.height));
  const int left = std::max(x - half_width, 0), right = std::min(x + half_width, size.width);
  const int top = std::max(y - half_height, 0), bottom = std::min(y + half_height, size.height);
  return {left, top, right - left, bottom - top};
}

// Exact: mixup's share is a multiple of 1 / kMixParts.
int own_parts(const MixDraw& draw) { return static_cast<int>(draw.own_share * kMixParts); }

// Lines [begin, end) of a row; `own` and `partner` begin with the first of them.
void mix_lines(const MixDraw& draw, int width, int begin, int end, const uint8_t* partner,
               uint8_t* own) {
  const size_t line = size_t{3} * static_cast<size_t>(width);
  if (draw.kind == MixKind::mixup) {
    mix_values(own_parts(draw), partner, line * static_cast<size_t>(end - begin), own);
  } else if (draw.kind == MixKind::cutmix) {
    const int first = std::max(begin, draw.box.y);
    const int last = std::min(end, draw.box.y + draw.box.height);
    for (int y = first; y < last; ++y) {
      const size_t at = line * static_cast<size_t>(y - begin) + size_t{3} * draw.box.x;
      std::memcpy(own + at, partner + at, size_t{3} * draw.box.width);
    }
  }
}

int lines_per_block(Size size) {
  const int64_t lines = kBlockBytes / (int64_t{3} * size.width);
  return static_cast<int>(std::clamp<int64_t>(lines, 1, size.height));
}

}  // namespace

void MixSpec::validate() const {
  require_alpha("mixup_alpha", mixup_alpha);
  require_alpha("cutmix_alpha", cutmix_alpha);
  require_probability("probability", probability);
  require_probability("switch_probability", switch_probability);
}

MixDraw draw_mix(const MixSpec& spec, Size output, uint64_t seed, int64_t epoch, int64_t number) {
  if (!spec.on()) return {};
  const RandomKey key(seed, epoch, number);
  const uint32_t first = spec.per_batch ? kDrawOfBatch : kDrawOfSample;
  if (spec.probability < 1 && key.uniform(first + kWhether) >= spec.probability) return {};
  const bool both = spec.mixup_alpha > 0 && spec.cutmix_alpha > 0;
  const bool cut =
      both ? key.uniform(first + kWhich) < spec.switch_probability : spec.cutmix_alpha > 0;
  MixDraw draw;
  draw.kind = cut ? MixKind::cutmix : MixKind::mixup;
  const double lambda =
      symmetric_beta(key, first + kLambda, cut ? spec.cutmix_alpha : spec.mixup_alpha);
  if (!cut) {
    draw.own_share = static_cast<float>(std::floor(lambda * kMixParts + 0.5) / kMixParts);
    return draw;
  }
  draw.box = box_of(key, first, lambda, output);
  const double area = static_cast<double>(draw.box.width) * draw.box.height;
  draw.own_share =
      static_cast<float>(1 - area / (static_cast<double>(output.width) * output.height));
  return draw;
}

void mix_rows(Size size, const MixRow& first, const MixRow& second, std::vector<uint8_t>& scratch) {
  if (first.draw.kind == MixKind::none && second.draw.kind == MixKind::none) return;
  const size_t line = size_t{3} * static_cast<size_t>(size.width);
  if (first.draw.kind == MixKind::mixup && second.draw.kind == MixKind::mixup) {
    return mix_each_other(own_parts(first.draw), first.pixels, own_parts(second.draw),
                          second.pixels, line * static_cast<size_t>(size.height));
  }
  scratch.resize(static_cast<size_t>(mix_scratch_bytes(size)));
  const int lines = lines_per_block(size);
  for (int begin = 0; begin < size.height; begin += lines) {
    const int end = std::min(begin + lines, size.height);
    uint8_t* const one = first.pixels + line * static_cast<size_t>(begin);
    uint8_t* const two = second.pixels + line * static_cast<size_t>(begin);
    std::memcpy(scratch.data(), one, line * static_cast<size_t>(end - begin));
    mix_lines(first.draw, size.width, begin, end, two, one);
    mix_lines(second.draw, size.width, begin, end, scratch.data(), two);
  }
}

int64_t mix_scratch_bytes(Size size) { return int64_t{3} * size.width * lines_per_block(size); }

std::span<const TargetColumn, kMixColumns> mix_columns() {
  static const std::array<TargetColumn, kMixColumns> columns = {
      {{"mix_label", TargetType::int32, {}}, {"mix_weight", TargetType::float32, {}}}};
  return columns;
}

}  // namespace stoker
