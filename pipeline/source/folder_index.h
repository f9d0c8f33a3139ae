// The list of an image folder's files. It is made by walking the folder (in parallel, without
// reading each file's status), held compactly, and cached in one file that is valid as long as none
// of the folders has changed. For 1.3 million files: about 40 MB, and a start in tens of
// milliseconds. A value; threads: const calls from any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/file_time.h"
#include "staging/batch_layout.h"

namespace stoker {

// The folder to list, and where its class folders are.
struct FolderQuery {
  std::string root;
  std::vector<std::string> parts;        // folders in root that hold class folders; "" = root
  std::vector<std::string> class_parts;  // the class names come from these; includes `parts`
};

// A folder's state when it was listed: adding, removing or renaming an entry changes it.
struct FolderStamp {
  std::string path;  // relative to the root; "" = the root
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  bool operator==(const FolderStamp&) const = default;
};

inline FolderStamp stamp_of(const std::string& path, const struct stat& status) {
  return {path, static_cast<uint64_t>(status.st_ino), nanoseconds_of(status.st_mtim),
          nanoseconds_of(status.st_ctim)};
}

// The extension, in a FolderRemark, of what is no file that could be read: a pipe, a socket or a
// device, or a link to one.
inline constexpr char kNoFile[] = "/";

// Files that the user should know of, though they change no sample's name or label.
struct FolderRemark {
  std::string extension;  // of files that are left out: ".gif"; "" = none; or kNoFile
  int64_t files = 0;
  std::string first;   // path, relative to the root; the first in order
  std::string second;  // for files with two labels: the other path of `first`
  bool operator==(const FolderRemark&) const = default;
};

// By extension.
using FolderRemarks = std::map<std::string, FolderRemark>;
// Counts the remark's files in that of their extension.
void add_remark(const FolderRemark& remark, FolderRemarks& remarks);
std::vector<FolderRemark> remarks_of(const FolderRemarks& remarks);

struct FolderIndex {
  struct Folder {
    uint64_t path = 0;       // offset in `text`, relative to the root
    int64_t first_file = 0;  // its files are [first_file, the next folder's first_file)
    int64_t label = 0;
  };

  std::vector<std::string> class_names;
  std::vector<char> text;       // every folder's path and file's name, each ended by a NUL
  std::vector<Folder> folders;  // those with images, in the order of the samples
  std::vector<uint64_t> names;  // per file, offset in `text`
  // Files that are not hidden, but no samples. left_out: those in class folders, by extension.
  // beside: image files next to the class folders.
  std::vector<FolderRemark> left_out, beside;
  // Files listed under two labels or more, because a link leads from one class to another; at most
  // one remark.
  std::vector<FolderRemark> two_labels;

  int64_t size() const { return static_cast<int64_t>(names.size()); }
  const Folder& folder_of(SampleId id) const;
  std::string_view folder_path(SampleId id) const { return text.data() + folder_of(id).path; }
  std::string_view file_name(SampleId id) const {
    return text.data() + names[static_cast<size_t>(id)];
  }
  uint64_t fingerprint() const;  // of the samples and their labels
};

struct ScannedFolder {
  FolderIndex index;
  std::vector<FolderStamp> stamps;  // of every folder that was listed
  int64_t started_ns = 0;           // system clock
};

// Returns the names in `path` that are folders (or links to folders) and not hidden, sorted. Throws
// std::runtime_error.
std::vector<std::string> list_subfolders(const std::string& path);

// Lists the folder. Throws std::runtime_error with the path and the reason if a folder cannot be
// read.
ScannedFolder scan_folder(const FolderQuery& query);

// Returns the image files in `root` and in the folders in it, relative to it, folder by folder,
// sorted in each. Throws as scan_folder().
std::vector<std::string> list_image_files(const std::string& root);

std::string index_cache_path(const std::string& cache_dir, const FolderQuery& query);

// Returns false if there is no cached list, or it is damaged, or has another query, or a folder
// changed.
bool load_index(const std::string& cache_path, const FolderQuery& query, FolderIndex& index);

// Writes a temporary file and renames it. Returns false if that failed (an unwritable cache is no
// error), or if a folder changed so recently that a later change might leave the same time stamps.
bool save_index(const std::string& cache_path, const FolderQuery& query,
                const ScannedFolder& scanned);

}  // namespace stoker
