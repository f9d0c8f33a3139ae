// A new folder; the destructor removes it with everything in it. Owner: whoever makes it. Threads:
// any. Errors: std::runtime_error with the path.
#pragma once

#include <string>

namespace stoker {

class TemporaryFolder {
 public:
  // In `parent`; "": the system's folder for temporary files.
  explicit TemporaryFolder(const std::string& parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace stoker
