#include "pipeline/source/folder_source.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/printable_name.h"
#include "pipeline/source/known_names.h"
#include "pipeline/source/label_digest.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

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
            (is_shard_image_extension(remark.extension)
                 ? " from image folders, but from lists and shards"
                 : "") +
            "), as " + printable_name(remark.first));
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

uint64_t labels_digest_of(const FolderIndex& index) {
  LabelDigest digest;
  for (size_t i = 0; i < index.folders.size(); ++i) {
    const bool is_last = i + 1 == index.folders.size();
    const int64_t end = is_last ? index.size() : index.folders[i + 1].first_file;
    digest.add(static_cast<int32_t>(index.folders[i].label), end - index.folders[i].first_file);
  }
  return digest.value();
}

class FolderSource final : public Source {
 public:
  FolderSource(const std::string& root, FolderIndex index)
      : root_(root),
        index_(std::move(index)),
        root_descriptor_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        fingerprint_(index_.fingerprint()),
        labels_digest_(labels_digest_of(index_)) {
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
  std::vector<SourceNote> notes() const override { return notes_of(index_); }
  uint64_t fingerprint() const override { return fingerprint_; }
  uint64_t labels_digest() const override { return labels_digest_; }

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
  const uint64_t fingerprint_, labels_digest_;
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
  const auto find_part = [&](std::span<const std::string_view> names) -> std::string {
    for (const std::string_view name : names) {
      if (std::binary_search(folders.begin(), folders.end(), name)) return std::string(name);
    }
    return "";
  };
  const std::string train = find_part(kTrainNames), test = find_part(kTestNames);
  FolderQuery query{path, {}, {}};
  if (train.empty() && test.empty()) {
    const std::string own_name = fs::canonical(path).filename().string();
    const bool is_test =
        std::find(kTestNames.begin(), kTestNames.end(), own_name) != kTestNames.end();
    if (split == Split::test && !is_test) {
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
