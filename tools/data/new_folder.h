// A folder that appears whole or not at all: files are written to a temporary folder beside it,
// which publish() renames. The destructor removes what was not published. Owner: the command.
// Threads: one at a time. Errors: std::runtime_error with the path and the reason.
#pragma once

#include <string>

namespace stoker {

class NewFolder {
 public:
  // `path` may be an empty folder; its parents are made. Throws std::invalid_argument if something
  // is there, and says what.
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& temporary() const { return temporary_; }  // where to write the files
  void publish();  // when this returns, the folder is at its path and on the disk

 private:
  const std::string path_;
  std::string temporary_;  // "" when published
};

}  // namespace stoker
