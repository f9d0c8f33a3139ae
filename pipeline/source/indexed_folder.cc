#include "pipeline/source/indexed_folder.h"

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/source_digests.h"

namespace stoker {
namespace {

std::string files_in_words(const FolderRemark& remark) {
  const std::string extension =
      remark.extension.empty() ? "" : printable_name(remark.extension) + " ";
  return std::to_string(remark.files) + " " + extension + (remark.files == 1 ? "file" : "files") +
         (remark.extension.empty() ? " without an extension" : "");
}

std::vector<TargetColumn> text_columns(const std::vector<std::string>& extensions) {
  std::vector<TargetColumn> columns;
  for (const std::string& name : extensions) columns.push_back({name, TargetType::text, {}, true});
  return columns;
}

// `texts`: extensions of files that are read.
std::vector<SourceNote> notes_of(const FolderIndex& index, const std::vector<std::string>& texts) {
  std::vector<SourceNote> notes;
  const auto add = [&](const char* reason, const FolderRemark& remark, const std::string& text) {
    notes.push_back({reason, remark.files, printable_name(remark.first), text});
  };
  const auto is_or_are = [](const FolderRemark& remark) {
    return remark.files == 1 ? " is" : " are";
  };
  for (const FolderRemark& remark : index.left_out) {
    if (std::ranges::any_of(texts, [&](auto& text) { return "." + text == remark.extension; })) {
      continue;
    }
    if (remark.extension == kNoFile) {
      const bool one = remark.files == 1;
      add("left_out", remark,
          std::to_string(remark.files) + (one ? " entry is" : " entries are") +
              " left out (no file, but a pipe, a socket or a device), as " +
              printable_name(remark.first));
      continue;
    }
    add("left_out", remark,
        files_in_words(remark) + is_or_are(remark) + " left out (not read" +
            (is_shard_image_extension(remark.extension)
                 ? " from image folders, but from lists and shards"
                 : "") +
            "), as " + printable_name(remark.first));
  }
  for (const FolderRemark& remark : index.beside) {
    add("left_out", remark,
        files_in_words(remark) + is_or_are(remark) + " left out (in no class folder), as " +
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

// Folders may have any bytes as their names; classes are named in JSON, in Python and on a
// terminal.
std::vector<std::string> names_of_classes(const std::string& root, const FolderIndex& index) {
  std::vector<std::string> names;
  for (const std::string& name : index.class_names) names.push_back(valid_text(name));
  if (names == index.class_names) return names;
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw std::runtime_error(printable_name(root) + ": two class folders would be called " +
                             *twice + ", because the name of one is no UTF-8: rename it");
  }
  return names;
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

}  // namespace

IndexedFolder::IndexedFolder(const std::string& root, FolderIndex index,
                             const std::vector<std::string>& texts)
    : index_(std::move(index)),
      labels_digest_(labels_digest_of(index_)),
      info_{.size = index_.size(),
            .root = root,
            .class_names = names_of_classes(root, index_),
            .targets = text_columns(texts),
            .notes = notes_of(index_, texts),
            .fingerprint = index_.fingerprint(),
            .targets_digest = texts.empty() ? 0 : TargetDigest(text_columns(texts)).value()} {}

std::string IndexedFolder::name(SampleId id) const {
  return printable_name(std::string(index_.folder_path(id)) + "/" +
                        std::string(index_.file_name(id)));
}

}  // namespace stoker
