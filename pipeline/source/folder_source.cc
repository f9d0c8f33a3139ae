#include "pipeline/source/folder_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/printable_name.h"
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Without O_NONBLOCK, a pipe that has replaced a file would block the reader.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;  // exceeds any photograph; bounds buffers

const std::vector<std::string>& names_of(Split split) {
  static const std::vector<std::string> kTrain = {"train"};
  static const std::vector<std::string> kTest = {"test", "val", "validation"};
  return split == Split::train ? kTrain : kTest;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

ReadStatus failure(const char* what) {
  return {false, std::string(what) + ": " + std::strerror(errno)};
}

ReadStatus read_whole_file(int descriptor, std::vector<uint8_t>& buffer,
                           std::span<const uint8_t>& bytes) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return failure("stat");
  if (!S_ISREG(status.st_mode)) return {false, "not a regular file"};
  if (status.st_size > kMaxFileBytes) {
    return {false, "the file has " + std::to_string(status.st_size) + " bytes, the limit is " +
                       std::to_string(kMaxFileBytes)};
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (buffer.size() < size) buffer.resize(size);  // never shrinks: growing again would clear it
  size_t done = 0;
  while (done < size) {
    const ssize_t count = read(descriptor, buffer.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("read");
    if (count == 0) break;  // cut short since the stat: the decoder checks what is there
    done += static_cast<size_t>(count);
  }
  bytes = {buffer.data(), done};
  return {};
}

// Fails instead of waiting for storage: openat2(2) with RESOLVE_CACHED, Linux 5.12. It also fails
// if the kernel, now or at build time, is older, or if a container forbids the call.
int open_cached([[maybe_unused]] int folder, [[maybe_unused]] const char* path) {
#ifdef RESOLVE_CACHED
  const open_how how{.flags = kOpenFlags, .mode = 0, .resolve = RESOLVE_CACHED};
  return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
#else
  return -1;
#endif
}

// Does the same for the bytes, with preadv2(2) and RWF_NOWAIT. Also returns false for files whose
// error read_whole_file() has to report.
bool read_cached_file(int descriptor, std::vector<uint8_t>& buffer,
                      std::span<const uint8_t>& bytes) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kMaxFileBytes) {
    return false;
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (buffer.size() < size) buffer.resize(size);
  const iovec whole{buffer.data(), size};
  if (preadv2(descriptor, &whole, 1, 0, RWF_NOWAIT) != status.st_size) return false;
  bytes = {buffer.data(), size};
  return true;
}

std::string files_of(const FolderRemark& remark) {
  const std::string extension =
      remark.extension.empty() ? "" : printable_name(remark.extension) + " ";
  return std::to_string(remark.files) + " " + extension + (remark.files == 1 ? "file" : "files") +
         (remark.extension.empty() ? " without an extension" : "");
}

std::vector<SourceNote> notes_of(const FolderIndex& index) {
  std::vector<SourceNote> notes;
  const auto add = [&](const char* reason, const FolderRemark& remark, const std::string& text) {
    notes.push_back({reason, remark.files, printable_name(remark.first), text});
  };
  const auto is_or_are = [](const FolderRemark& remark) {
    return remark.files == 1 ? " is" : " are";
  };
  for (const FolderRemark& remark : index.left_out) {
    add("left_out", remark,
        files_of(remark) + is_or_are(remark) + " left out (not read" +
            (remark.extension == ".gif" ? ": GIF" : "") + "), as " + printable_name(remark.first));
  }
  for (const FolderRemark& remark : index.beside) {
    add("left_out", remark,
        files_of(remark) + is_or_are(remark) + " left out (in no class folder), as " +
            printable_name(remark.first));
  }
  for (const FolderRemark& remark : index.two_labels) {
    add("two_labels", remark,
        std::to_string(remark.files) + (remark.files == 1 ? " file has" : " files have") +
            " two labels, as " + printable_name(remark.first) + ", which is " +
            printable_name(remark.second));
  }
  return notes;
}

class FolderSource final : public Source {
 public:
  FolderSource(const std::string& root, FolderIndex index)
      : root_(root),
        index_(std::move(index)),
        root_descriptor_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        fingerprint_(index_.fingerprint()) {
    if (root_descriptor_.get() < 0) throw std::runtime_error(root + ": " + std::strerror(errno));
  }

  int64_t size() const override { return index_.size(); }
  int label(SampleId id) const override { return static_cast<int>(index_.folder_of(id).label); }
  std::string name(SampleId id) const override {
    return printable_name(std::string(index_.folder_path(id)) + "/" +
                          std::string(index_.file_name(id)));
  }
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return index_.class_names; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    Path path;
    if (!path_of(id, path)) return {false, "the path is too long"};
    const Descriptor file(openat(root_descriptor_.get(), path, kOpenFlags));
    if (file.get() < 0) return failure("open");
    return read_whole_file(file.get(), buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    Path path;
    if (!path_of(id, path)) return false;
    const Descriptor file(open_cached(root_descriptor_.get(), path));
    return file.get() >= 0 && read_cached_file(file.get(), buffer, bytes);
  }
  std::vector<SourceNote> notes() const override { return notes_of(index_); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  using Path = char[4096];  // the longest path that open() takes; no allocation per sample

  bool path_of(SampleId id, Path& path) const {  // false: the path is longer
    const std::string_view folder = index_.folder_path(id), name = index_.file_name(id);
    if (folder.size() + name.size() + 2 > sizeof(path)) return false;
    std::memcpy(path, folder.data(), folder.size());
    path[folder.size()] = '/';
    std::memcpy(path + folder.size() + 1, name.data(), name.size() + 1);
    return true;
  }

  const std::string root_;
  const FolderIndex index_;
  const Descriptor root_descriptor_;  // file paths are short and relative to it
  const uint64_t fingerprint_;
};

// Returns text for messages: "found 3 entries: a.txt, b.txt, ...".
std::string what_is_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  if (names.empty()) return "it is empty";
  std::sort(names.begin(), names.end());
  std::string text = "found " + std::to_string(names.size()) + " entries: ";
  for (size_t i = 0; i < std::min<size_t>(5, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + printable_name(names[i]);
  }
  return text + (names.size() > 5 ? ", ..." : "");
}

FolderQuery query_for(const std::string& path, Split split) {
  const std::vector<std::string> folders = list_subfolders(path);
  const auto find_part = [&](Split wanted) -> std::string {
    for (const std::string& name : names_of(wanted)) {
      if (std::binary_search(folders.begin(), folders.end(), name)) return name;
    }
    return "";
  };
  const std::string train = find_part(Split::train), test = find_part(Split::test);
  FolderQuery query{path, {}, {}};
  if (train.empty() && test.empty()) {
    const auto& names = names_of(Split::test);
    const std::string own_name = fs::canonical(path).filename().string();
    if (split == Split::test && std::find(names.begin(), names.end(), own_name) == names.end()) {
      throw std::runtime_error(path + ": no folder test, val or validation there; " +
                               what_is_in(path));
    }
    query.parts = query.class_parts = {""};
    return query;
  }
  for (const std::string& part : {train, test}) {
    if (!part.empty()) query.class_parts.push_back(part);
  }
  query.parts =
      split == Split::all ? query.class_parts : std::vector{split == Split::train ? train : test};
  if (query.parts[0].empty()) {
    throw std::runtime_error(path + ": no folder " + (split == Split::train ? "train" : "test") +
                             " there, but " + query.class_parts[0] + "; " + what_is_in(path));
  }
  return query;
}

void check(const std::string& path, const FolderIndex& index) {
  if (index.class_names.empty()) {
    throw std::runtime_error(path + ": no class folders there (expected <class>/<image>); " +
                             what_is_in(path));
  }
  if (index.size() == 0) {
    throw std::runtime_error(path + ": no images (jpg, jpeg, png, bmp, webp, tif, tiff) in " +
                             std::to_string(index.class_names.size()) + " class folders; " +
                             what_is_in(path));
  }
}

}  // namespace

std::unique_ptr<Source> make_folder_source(const std::string& path, const FolderOptions& options) {
  const FolderQuery query = query_for(path, options.split);
  const std::string cache =
      options.cache_dir.empty() ? "" : index_cache_path(options.cache_dir, query);
  FolderIndex index;
  if (cache.empty() || !load_index(cache, query, index)) {
    ScannedFolder scanned = scan_folder(query);
    if (!cache.empty() && scanned.index.size() >= options.min_files_to_cache) {
      save_index(cache, query, scanned);  // a failure is no error
    }
    index = std::move(scanned.index);
  }
  check(path, index);
  return std::make_unique<FolderSource>(path, std::move(index));
}

}  // namespace stoker
