#include "tools/data/new_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot make the folder " + path + ": " + reason);
}

// Follows links and removes slashes at the end, so that the path can be renamed to.
std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) fail(path, error.message());
  return (absolute.has_filename() ? absolute : absolute.parent_path()).string();
}

void check_free(const std::string& path) {
  struct stat status, above;
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) throw std::invalid_argument(path + " is there, and is no folder");
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) fail(path, error.message());
  if (entries != fs::directory_iterator()) {
    throw std::invalid_argument(path + " is not empty: it has " +
                                printable_name(entries->path().filename().string()));
  }
  // Nothing can be renamed to a place where another disk is mounted.
  if (::stat((path + "/..").c_str(), &above) == 0 && above.st_dev != status.st_dev) {
    throw std::invalid_argument(path + " is a mount point: name a folder inside it");
  }
}

}  // namespace

NewFolder::NewFolder(const std::string& path) : path_(resolved(path)) {
  check_free(path_);
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  if (error) fail(path_, error.message());
  temporary_ = path_ + ".tmp.XXXXXX";
  if (::mkdtemp(temporary_.data()) == nullptr) fail(path_, std::strerror(errno));
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::publish() {
  flush_folder(temporary_);
  fs::permissions(temporary_, static_cast<fs::perms>(0755));
  stoker::publish(temporary_, path_);
  temporary_.clear();
}

}  // namespace stoker
