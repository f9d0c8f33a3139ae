#include "pipeline/source/blob/local_location.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/source/blob/local_source.h"
#include "pipeline/source/file_stamp.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// More than cores: a cold disk or a network file system lets the threads wait.
constexpr int kLocalScans = 8;

class LocalLocation final : public BlobLocation {
 public:
  explicit LocalLocation(const std::string& root) : root_(root) {}

  const std::string& root() const override { return root_; }

  BlobListing list(const std::string& folder) const override {
    BlobListing listing;
    each_entry(folder, [&](const fs::directory_entry& entry, const std::string& name) {
      std::error_code ignored;
      const auto status = entry.status(ignored);
      if (fs::is_directory(status)) listing.folders.push_back(name);
      if (fs::is_regular_file(status)) listing.files.push_back(name);
      return true;
    });
    std::sort(listing.files.begin(), listing.files.end());
    std::sort(listing.folders.begin(), listing.folders.end());
    return listing;
  }

  bool has_file(const std::string& folder,
                const std::function<bool(const std::string& name)>& wanted) const override {
    bool found = false;
    each_entry(folder, [&](const fs::directory_entry&, const std::string& name) {
      found = wanted(name);
      return !found;
    });
    return found;
  }

  std::vector<std::string> missing(const std::vector<std::string>& names) const override {
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      if (bytes_of(name) < 0) missing.push_back(name);
    }
    return missing;
  }

  std::vector<FileStamp> stamps(const std::vector<std::string>& names) const override {
    std::vector<FileStamp> stamps;
    for (const std::string& name : names) {
      const std::string path = path_of(name);
      struct stat status;
      if (::stat(path.c_str(), &status) != 0) {
        throw std::runtime_error(path + ": " + std::strerror(errno));
      }
      if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + ": not a regular file");
      stamps.push_back(file_stamp_of(status));
    }
    return stamps;
  }

  int64_t bytes_of(const std::string& name) const override {
    std::error_code error;
    const std::string path = path_of(name);
    return fs::is_regular_file(path, error) ? static_cast<int64_t>(fs::file_size(path)) : -1;
  }

  std::unique_ptr<BlobReader> open(const std::string& name) const override {
    return std::make_unique<BlobReader>(path_of(name));
  }

  int scans_at_once() const override { return kLocalScans; }

  std::string identity() const override {
    std::error_code ignored;
    return fs::canonical(root_, ignored).string();
  }

  std::unique_ptr<Source> make_source(std::unique_ptr<BlobIndex> index) const override {
    return std::make_unique<LocalBlobSource>(root_, std::move(index));
  }

 private:
  // Calls `take` until it returns false.
  template <typename Take>
  void each_entry(const std::string& folder, const Take& take) const {
    const std::string path = path_of(folder);
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with('.') && !take(*entry, name)) return;
    }
    if (error) throw std::runtime_error(path + ": " + error.message());
  }

  const std::string root_;
};

}  // namespace

std::shared_ptr<const BlobLocation> local_location(const std::string& root) {
  return std::make_shared<LocalLocation>(root);
}

}  // namespace stoker
