// Makes stoker keep what it caches in another folder, as long as this exists. Threads: one at a
// time.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace stoker {

class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path) {
    if (const char* const value = std::getenv(kName)) before_ = value;
    setenv(kName, path.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  static constexpr char kName[] = "XDG_CACHE_HOME";
  std::optional<std::string> before_;
};

}  // namespace stoker
