#include "train/device/tuning.h"

#include "pipeline/files/cache_folder.h"

namespace stoker {

std::string default_plan_cache() {
  const std::string folder = default_cache_folder();
  return folder.empty() ? "" : folder + "/conv-plans.bin";
}

}  // namespace stoker
