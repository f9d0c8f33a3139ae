// A profile for people and for programs: the verdict as lines of text, and everything as JSON
// (profile.json; tools/profile/README.md documents its fields).
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/profile/diagnosis.h"
#include "tools/profile/run_timeline.h"

namespace stoker {

// The cost of a checkpoint for a training; its devices wait while it is written.
struct CheckpointCost {
  double seconds = -1;  // -1: not measured
  int64_t bytes = 0;
  int64_t every_steps = 0;  // steps from one to the next
};

struct Profile {
  std::string command;  // the command line
  std::string version;
  std::string device;  // "1 emulated, of 1786 images/s", "cpu:0"
  ProfileMeasurements measurements;
  WarmUp warm_up;
  Verdict verdict;
  std::vector<TimelineSlice> timeline;
  std::vector<std::string> slow_names;  // the names of measurements.measured.slowest
  CheckpointCost checkpoint;
  std::vector<std::string> left_out;  // options of the training that the profile had no use for
  int64_t planned_bytes = 0;          // planned memory; 0: unknown
  int64_t scratch_bytes = 0;          // that of a feed's workers
  int64_t resident_bytes = 0;
};

// Measures `run` and diagnoses it. `store`: what the requests to a store came to, if the samples
// are in one. `name_of` gives the name of a sample's file.
Profile make_profile(const ProfiledRun& run, const FeedShape& shape, const StorageRates& storage,
                     const std::optional<StoreStats>& store,
                     const std::function<std::string(SampleId)>& name_of);

std::string headline(const Verdict& verdict);  // one sentence
std::vector<std::string> verdict_lines(const Profile& profile);
nlohmann::ordered_json profile_json(const Profile& profile);

// Returns profile.html: one self-contained page, for a browser without a network. Its template is
// profile_page.html, which draws from the JSON in it; the Python package fills the same template.
// `profile` is from profile_json(); parts that it lacks are left out of the page. Its text is
// escaped so that it cannot end the <script> element. Names that are not UTF-8 show U+FFFD.
std::string profile_page(const nlohmann::ordered_json& profile);

}  // namespace stoker
