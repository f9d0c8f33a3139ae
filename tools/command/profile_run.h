// The runs of `stoker profile`: a feed against an emulated device, or a training. Throws
// std::invalid_argument with the option and the value, and what `stoker train` throws.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/option/augment_choice.h"
#include "tools/option/feed_options.h"
#include "tools/option/sample_choice.h"
#include "tools/profile/emulated.h"
#include "tools/profile/trace_file.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct ProfileFeedArguments {
  DataOptions data;
  SampleChoice samples;  // the order
  AugmentChoice augment;
  double demand = 0;
  int batch = 256;
  int devices = 1;
  int ring_depth = LoaderOptions{}.ring_depth;
  int slots = -1;
  uint64_t seed = 0;
  bool cold = false;
};

struct ProfileOutcome {
  Profile profile;
  ProfiledRun run;
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Source> cold;            // wraps `source` where files are read cold
  std::function<std::string(SampleId)> name_of;  // lives as long as `source`
};

void add_profile_feed_options(CLI::App& app, ProfileFeedArguments& arguments);
// `out`: the folder of the results, which is made before the run.
ProfileOutcome profile_feed(const ProfileFeedArguments& arguments, double seconds,
                            const std::string& out);

// The training of `stoker profile -- train ...`, in this process; argv[0] is "train". It saves one
// checkpoint to a folder in `out`, to time it, and removes it.
ProfileOutcome profile_train(int argc, char** argv, double seconds, const std::string& out);

}  // namespace stoker
