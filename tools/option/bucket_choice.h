// Aspect buckets (pipeline/step_shapes.h) of a command: --buckets, --bucket-step, --bucket-ratio,
// --no-enlarge. A value that add_bucket_choice() binds to a parser.
#pragma once

#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/source.h"
#include "pipeline/step_shapes.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

// The stages of a command with buckets, unless it is given others.
inline constexpr const char* kBucketStages = "resize_cover | random_crop | flip";

// Returns the size with the most pixels, the first of several. REQUIRES: there is one.
Size largest_of(const std::vector<Size>& sizes);

struct BucketChoice {
  std::string buckets;  // "": none
  int step = 64;
  double ratio = 2;
  bool no_enlarge = false;
  bool is_step_given = false;

  bool is_wanted() const { return !buckets.empty(); }
  // Throws std::invalid_argument that names the option and the value.
  BucketOptions options() const;
  // Reads the sizes of the source's pictures, with a progress bar where that takes a second. Throws
  // as options(), and as AspectBuckets.
  SharedBuckets of(const Source& source, const DecodeOptions& decode) const;
};

void add_bucket_choice(CLI::App& app, BucketChoice& choice);
// After parsing: throws if an option would be ignored.
void check_bucket_choice(const CLI::App& app, BucketChoice& choice);

}  // namespace stoker
