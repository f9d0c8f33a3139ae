#include "tests/support/plain_steps.h"

#include <algorithm>
#include <string_view>

#include "pipeline/augment/pixel_steps.h"
#include "tests/support/pillow_reference.h"

namespace stoker {
namespace {

struct Picture {
  Size size;
  std::vector<uint8_t> bytes;

  explicit Picture(Size of) : size(of), bytes(3 * static_cast<size_t>(of.width) * of.height) {}
  uint8_t* at(int x, int y) { return bytes.data() + 3 * (static_cast<size_t>(y) * size.width + x); }
  MutableImageView view() {
    return {bytes.data(), size.width, size.height, ptrdiff_t{3} * size.width};
  }
};

void copy_pixel(const uint8_t* from, uint8_t* to) {
  for (int c = 0; c < 3; ++c) to[c] = from[c];
}

// Walks from the edge one pixel at a time.
int mirrored(int at, int size, bool repeats_edge) {
  while (at < 0 || at >= size) {
    if (at < 0) at = repeats_edge ? -1 - at : -at;
    if (at >= size) at = repeats_edge ? 2 * size - 1 - at : 2 * size - 2 - at;
  }
  return at;
}

void run_step(const PixelStep& step, PixelPolicy policy, PixelScratch& scratch, Picture& picture) {
  if (is_of_objects(step.kind->motion)) return;
  Picture out(step.size);
  const std::string_view name = step.kind->name;
  const auto value = [&](size_t i) { return static_cast<int>(step.values[i]); };
  if (name == "resize") {
    const Box all{0, 0, picture.size.width, picture.size.height};
    pillow_resize_reference(picture.view(),
                            {all,
                             step.size,
                             {0, 0, step.size.width, step.size.height},
                             false,
                             static_cast<Filter>(step.choice)},
                            out.view(), policy);
  } else if (name == "crop" || name == "flip" || name == "pad") {
    for (int y = 0; y < step.size.height; ++y) {
      for (int x = 0; x < step.size.width; ++x) {
        int from_x = x, from_y = y;
        if (name == "crop") from_x += value(0), from_y += value(1);
        if (name == "flip") from_x = picture.size.width - 1 - x;
        if (name == "pad") from_x -= value(0), from_y -= value(1);
        const auto padding = static_cast<Padding>(step.choice);
        const bool inside = from_x >= 0 && from_x < picture.size.width && from_y >= 0 &&
                            from_y < picture.size.height;
        if (!inside && padding == Padding::constant) {
          copy_pixel(step.fill.data(), out.at(x, y));
          continue;
        }
        if (padding == Padding::edge) {
          from_x = std::min(std::max(from_x, 0), picture.size.width - 1);
          from_y = std::min(std::max(from_y, 0), picture.size.height - 1);
        }
        from_x = mirrored(from_x, picture.size.width, padding == Padding::symmetric);
        from_y = mirrored(from_y, picture.size.height, padding == Padding::symmetric);
        copy_pixel(picture.at(from_x, from_y), out.at(x, y));
      }
    }
  } else if (step.kind->table) {
    ByteTable table;
    step.kind->table(step, table);
    for (uint8_t& byte : picture.bytes) byte = table[byte];
    return;
  } else if (step.kind->change) {
    step.kind->change(step, picture.view(), scratch);
    return;
  } else {
    step.kind->make(step, picture.view(), out.view(), scratch);
  }
  picture = std::move(out);
}

}  // namespace

std::vector<uint8_t> plain_steps(const Draws& draws, const std::vector<uint8_t>& rgb,
                                 PixelPolicy policy) {
  Picture picture(draws.source());
  picture.bytes = rgb;
  PixelScratch scratch;
  std::vector<uint8_t> kept;
  std::vector<float> sum;
  for (const PixelStep& step : draws.steps()) {
    const std::string_view name = step.kind->name;
    const auto weight = static_cast<float>(step.values[0]);
    if (name == "blend_begin") kept = picture.bytes, sum.assign(kept.size(), 0);
    if (name == "blend_begin" || name == "blend") {
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += weight * static_cast<float>(picture.bytes[i]);
      picture.bytes = kept;
    } else if (name == "blend_end") {
      for (size_t i = 0; i < sum.size(); ++i) {
        picture.bytes[i] = static_cast<uint8_t>(std::min(sum[i], 255.0f));
      }
    } else if (name == "blend_over") {
      for (size_t i = 0; i < sum.size(); ++i) {
        const int own = kept[i], other = static_cast<uint8_t>(std::min(sum[i], 255.0f));
        picture.bytes[i] = static_cast<uint8_t>(static_cast<float>(own) +
                                                weight * static_cast<float>(other - own));
      }
    } else {
      run_step(step, policy, scratch, picture);
    }
  }
  return picture.bytes;
}

}  // namespace stoker
