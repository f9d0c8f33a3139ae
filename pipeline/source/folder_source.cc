#include "pipeline/source/folder_source.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/source/folder_query.h"
#include "pipeline/source/indexed_folder.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class FolderSource final : public IndexedFolder {
 public:
  FolderSource(const std::string& root, FolderIndex index)
      : IndexedFolder(root, std::move(index)),
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

  const Descriptor root_descriptor_;  // file paths are short and relative to it
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
  return std::make_unique<FolderSource>(path, std::move(index));
}

}  // namespace stoker
