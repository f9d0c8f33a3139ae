// Inverts every value that is not below a random threshold, in half of the samples.
#include "stoker/pipeline/augment/operation_plugin.h"

static void solarize(stoker::MutableImageView row, const stoker::RandomKey& random) {
  if (random.uniform(0) < 0.5) return;
  const auto threshold = static_cast<uint8_t>(random.below(1, 256));
  for (int y = 0; y < row.height; ++y) {
    uint8_t* values = row.data + y * row.stride_bytes;
    for (int i = 0; i < 3 * row.width; ++i) {
      if (values[i] >= threshold) values[i] = static_cast<uint8_t>(255 - values[i]);
    }
  }
}

STOKER_PIXEL_OPERATION("solarize,p=0.5", solarize)
