// A user's own operation on pixels, as a stage of a list.
#pragma once

#include <functional>
#include <string>

#include "decode/image.h"
#include "pipeline/random/random_key.h"

namespace stoker {

// A user's own operation. `apply` may change the pixels of an image, (height, width, 3) u8, in any
// way; all its randomness must come from `random`, whose draws belong to this operation alone.
// Threads: called from all workers at once, so it keeps no state. An exception from it makes the
// row a bad sample. open_operation() (operation_plugin.h) loads one from a shared library.
struct PixelOperation {
  // Printable, without spaces, unique; part of the fingerprint and of the draws. It contains the
  // parameters too ("solarize,p=0.5"): change it whenever the pixels change.
  std::string name;
  std::function<void(MutableImageView image, const RandomKey& random)> apply;
  // Whether pixels may be elsewhere afterwards. Boxes and masks cannot follow: samples that carry
  // such are refused then.
  bool moves = true;
};

}  // namespace stoker
