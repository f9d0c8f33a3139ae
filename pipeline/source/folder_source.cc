#include "pipeline/source/folder_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/folder_query.h"
#include "pipeline/source/indexed_folder.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestFileText = 1 << 20;  // as in shards

class FolderSource final : public IndexedFolder {
 public:
  FolderSource(const std::string& root, FolderIndex index, std::vector<std::string> texts)
      : IndexedFolder(root, std::move(index), texts),
        texts_(std::move(texts)),
        root_descriptor_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (root_descriptor_.get() < 0) throw std::runtime_error(root + ": " + std::strerror(errno));
  }

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    Path path;
    if (!path_of(id, path)) return {false, "the path is too long"};
    const Descriptor file(open_sample_file(root_descriptor_.get(), path));
    if (file.get() < 0) return system_failure("open");
    return read_sample_file(file.get(), buffer, bytes);
  }
  void read_targets(SampleId id, std::span<const uint8_t>, SampleTargets& out) const override {
    out.label = label(id);
    out.memory.resize(std::max(out.memory.size(), texts_.size()));
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::string problem = read_text(id, texts_[i], out.memory[i], out.varying[i]);
      if (problem.empty() || !out.problem.empty()) continue;
      out.problem = "target '" + printable_name(texts_[i]) + "' " + problem;
    }
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    Path path;
    if (!path_of(id, path)) return false;
    const Descriptor file(open_sample_file_cached(root_descriptor_.get(), path));
    return file.get() >= 0 && read_sample_file_cached(file.get(), buffer, bytes);
  }
  FileStamp stamp(SampleId id) const override {
    Path path;
    return path_of(id, path) ? sample_file_stamp(root_descriptor_.get(), path) : FileStamp{};
  }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    Path path;
    return path_of(id, path) &&
           read_file_pieces(root_descriptor_.get(), path, stamp, pieces, may_wait);
  }

 private:
  using Path = char[4096];  // the longest path that open() takes; no allocation per sample

  bool path_of(SampleId id, Path& path) const {  // false: the path is longer
    const std::string_view folder = index().folder_path(id), name = index().file_name(id);
    if (folder.size() + name.size() + 2 > sizeof(path)) return false;
    std::memcpy(path, folder.data(), folder.size());
    path[folder.size()] = '/';
    std::memcpy(path + folder.size() + 1, name.data(), name.size() + 1);
    return true;
  }

  // Reads the text beside an image. Returns "" or what is wrong.
  std::string read_text(SampleId id, const std::string& extension, std::vector<uint8_t>& memory,
                        std::span<const std::byte>& text) const {
    text = {};
    const std::string_view name = index().file_name(id);
    const std::string path = std::string(index().folder_path(id)) + "/" +
                             std::string(name.substr(0, name.rfind('.') + 1)) + extension;
    const auto too_long = [](size_t size) {
      return "has " + std::to_string(size) + " bytes; at most " + std::to_string(kLongestFileText);
    };
    const FileStamp stamp = sample_file_stamp(root_descriptor_.get(), path.c_str());
    if (stamp.bytes > int64_t{kLongestFileText}) return too_long(static_cast<size_t>(stamp.bytes));
    const Descriptor file(open_sample_file(root_descriptor_.get(), path.c_str()));
    std::span<const uint8_t> bytes;
    const ReadStatus read =
        file.get() < 0 ? system_failure("open") : read_sample_file(file.get(), memory, bytes);
    if (!read.ok) return "cannot be read: " + printable_name(path) + ": " + read.message;
    const size_t size = bytes.size();
    if (size > kLongestFileText) return too_long(size);
    if (std::ranges::count(bytes, 0) > 0) return "has a text with a NUL byte";
    memory.resize(std::max(memory.size(), size + 1));
    memory[size] = 0;
    text = std::as_bytes(std::span(memory).first(size + 1));
    return "";
  }

  const std::vector<std::string> texts_;  // extensions
  const Descriptor root_descriptor_;      // file paths are short and relative to it
};

FolderContent content_of(const std::string& path) {
  FolderContent content{path, "", list_subfolders(path), {}};
  content.own_name = fs::canonical(path).filename().string();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    content.names.push_back(entry.path().filename().string());
  }
  return content;
}

}  // namespace

std::unique_ptr<Source> make_folder_source(const std::string& path, const FolderOptions& options) {
  const FolderContent content = content_of(path);
  const FolderQuery query = folder_query(content, options.split);
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
  check_index(content, index);
  return std::make_unique<FolderSource>(path, std::move(index), options.texts);
}

}  // namespace stoker
