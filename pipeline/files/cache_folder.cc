#include "pipeline/files/cache_folder.h"

#include <cstdlib>

namespace stoker {

std::string default_cache_folder() {
  // The XDG specification accepts only absolute paths.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') return std::string(cache) + "/stoker";
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/stoker" : "";
}

}  // namespace stoker
