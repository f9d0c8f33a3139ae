// A new folder for one test; the destructor removes it with everything in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace stoker {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  // Makes parent folders; `name` is relative. Returns the full path.
  std::string write(const std::string& name, std::string_view content = "x") const;
  std::string make_folder(const std::string& name) const;
  void link(const std::string& target, const std::string& name) const;  // symbolic

 private:
  std::string path_;
};

// Flips bits of a byte of a file, as damage would.
void damage_byte(const std::string& path, int64_t offset);

// Sets the time of a file to some hours ago, so that its index may be kept.
void settle(const std::string& path);

}  // namespace stoker
