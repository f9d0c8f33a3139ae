#include "pipeline/source/folder_index.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>

#include "pipeline/files/parallel.h"
#include "pipeline/source/format/known_names.h"

namespace stoker {
namespace {

// More than cores: on a cold disk or a network the threads wait for folders most of the time.
constexpr int kScanThreads = 8;

struct Identity {  // of a file or folder, by any path
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const Identity&) const = default;
};

struct FileIdentity {
  Identity identity;
  uint64_t name = 0;  // offset in Listing::text
};

struct Listing {  // of one folder
  std::string path;
  std::vector<char> text;                // file names, each ended by a NUL
  std::vector<uint64_t> names;           // offsets in `text`, sorted by the names
  std::vector<FileIdentity> identities;  // of each name, in any order
};

struct ClassListing {
  std::vector<Listing> folders;
  std::vector<FolderStamp> stamps;
  FolderRemarks left_out;
};

struct OpenFolder {
  std::unique_ptr<DIR, int (*)(DIR*)> stream;
  Identity identity;
  FolderStamp stamp;
};

std::string join_path(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + "/" + b;
}

[[noreturn]] void throw_errno(const std::string& path) {
  throw std::runtime_error(path + ": " + std::strerror(errno));
}

// The state is read before the entries: a change in between shows in the next state.
OpenFolder open_folder(const std::string& root, const std::string& path) {
  const std::string full = join_path(root, path);
  OpenFolder folder{{opendir(full.c_str()), closedir}, {}, {}};
  struct stat status;
  if (!folder.stream || fstat(dirfd(folder.stream.get()), &status) != 0) throw_errno(full);
  folder.identity = {status.st_dev, status.st_ino};
  folder.stamp = stamp_of(path, status);
  return folder;
}

enum class EntryKind { file, folder, other };

struct Entry {
  EntryKind kind = EntryKind::other;
  Identity identity;  // target of a link; {} if the link is broken
};

Entry entry_of(const OpenFolder& folder, const dirent& entry) {
  const Identity own{folder.identity.device, entry.d_ino};
  if (entry.d_type == DT_REG) return {EntryKind::file, own};
  if (entry.d_type == DT_DIR) return {EntryKind::folder, own};
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return {};
  struct stat status;
  if (fstatat(dirfd(folder.stream.get()), entry.d_name, &status, 0) != 0) {
    // A broken link: reading it reports an error.
    return {EntryKind::file, {}};
  }
  const Identity target{status.st_dev, status.st_ino};
  if (S_ISDIR(status.st_mode)) return {EntryKind::folder, target};
  return {S_ISREG(status.st_mode) ? EntryKind::file : EntryKind::other, target};
}

// Calls visit(name, entry) for each entry that is not hidden.
template <typename Visit>
void for_each_entry(const OpenFolder& folder, const std::string& full_path, Visit visit) {
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(folder.stream.get());
    if (!entry) break;
    if (entry->d_name[0] != '.') visit(entry->d_name, entry_of(folder, *entry));
  }
  if (errno != 0) throw_errno(full_path);
}

// `above` has the parent folders: a link back to one of them would never end.
void walk(const std::string& root, const std::string& path, std::vector<Identity>& above,
          ClassListing& out) {
  OpenFolder folder = open_folder(root, path);
  if (std::find(above.begin(), above.end(), folder.identity) != above.end()) return;
  Listing listing{path, {}, {}, {}};
  std::vector<std::string> subfolders;
  for_each_entry(folder, join_path(root, path), [&](const char* name, const Entry& entry) {
    if (entry.kind == EntryKind::folder) subfolders.push_back(name);
    if (entry.kind == EntryKind::other) {
      add_remark({kNoFile, 1, join_path(path, name), ""}, out.left_out);
    }
    if (entry.kind != EntryKind::file) return;
    if (const std::string extension = extension_of(name); !is_image_extension(extension)) {
      add_remark({extension, 1, join_path(path, name), ""}, out.left_out);
      return;
    }
    listing.identities.push_back({entry.identity, listing.text.size()});
    listing.names.push_back(listing.text.size());
    listing.text.insert(listing.text.end(), name, name + std::strlen(name) + 1);
  });
  std::sort(listing.names.begin(), listing.names.end(), [&](uint64_t a, uint64_t b) {
    return std::strcmp(listing.text.data() + a, listing.text.data() + b) < 0;
  });
  out.stamps.push_back(std::move(folder.stamp));
  if (!listing.names.empty()) out.folders.push_back(std::move(listing));
  folder.stream.reset();  // a deep tree must not hold a descriptor per level
  above.push_back(folder.identity);
  for (const std::string& name : subfolders) walk(root, join_path(path, name), above, out);
  above.pop_back();
}

struct Task {
  std::string path;  // a class folder, relative to the root
  int64_t label;
  std::vector<Identity> above;
  ClassListing result;
};

void run_all(const std::string& root, std::vector<Task>& tasks) {
  const auto count = static_cast<int64_t>(tasks.size());
  const auto none = [] { return 0; };
  for_each_parallel(count, static_cast<int>(std::min<int64_t>(kScanThreads, count)), none,
                    [&](int, int64_t i) {
                      Task& task = tasks[static_cast<size_t>(i)];
                      walk(root, task.path, task.above, task.result);
                    });
}

void append_listing(const Listing& listing, int64_t label, FolderIndex& index) {
  index.folders.push_back({index.text.size(), index.size(), label});
  index.text.insert(index.text.end(), listing.path.c_str(),
                    listing.path.c_str() + listing.path.size() + 1);
  for (uint64_t name : listing.names) {
    const char* text = listing.text.data() + name;
    index.names.push_back(index.text.size());
    index.text.insert(index.text.end(), text, text + std::strlen(text) + 1);
  }
}

struct LabelledFile {
  Identity identity;
  int64_t label = 0;
  const Listing* folder = nullptr;
  uint64_t name = 0;

  std::string path() const { return join_path(folder->path, folder->text.data() + name); }
};

// Some file systems report wrong identities in a folder's entries, so this asks for the files'
// status.
bool is_one_file(const std::string& root, const LabelledFile& a, const LabelledFile& b) {
  struct stat one, other;
  return stat(join_path(root, a.path()).c_str(), &one) == 0 &&
         stat(join_path(root, b.path()).c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

template <class Files>
std::string least_path(Files begin, Files end) {
  std::string least = begin->path();
  for (++begin; begin != end; ++begin) least = std::min(least, begin->path());
  return least;
}

// Finds files that are listed in two classes, under any names.
std::vector<FolderRemark> find_two_labels(const std::string& root, const std::vector<Task>& tasks) {
  std::vector<LabelledFile> files;
  for (const Task& task : tasks) {
    for (const Listing& folder : task.result.folders) {
      for (const FileIdentity& file : folder.identities) {
        if (file.identity == Identity{}) continue;
        files.push_back({file.identity, task.label, &folder, file.name});
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const LabelledFile& a, const LabelledFile& b) {
    return std::tie(a.identity, a.label) < std::tie(b.identity, b.label);
  });
  FolderRemark remark;
  for (auto begin = files.begin(), end = begin; begin != files.end(); begin = end) {
    end = std::find_if(begin, files.end(),
                       [&](const LabelledFile& file) { return file.identity != begin->identity; });
    const auto other = std::find_if(
        begin, end, [&](const LabelledFile& file) { return file.label != begin->label; });
    if (other == end || !is_one_file(root, *begin, *other)) continue;
    ++remark.files;
    const std::string first = least_path(begin, other), second = least_path(other, end);
    if (remark.first.empty() || first < remark.first) {
      remark.first = first;
      remark.second = second;
    }
  }
  if (remark.files == 0) return {};
  return {remark};
}

// Makes one task per part and class, in the order of the labels.
std::vector<Task> plan_tasks(const FolderQuery& query, ScannedFolder& scanned) {
  const Identity root = open_folder(query.root, "").identity;
  std::set<std::string> class_names;
  FolderRemarks beside;
  std::vector<Task> tasks;
  for (const std::string& part : query.class_parts) {
    OpenFolder folder = open_folder(query.root, part);
    const bool listed =
        std::find(query.parts.begin(), query.parts.end(), part) != query.parts.end();
    for_each_entry(folder, join_path(query.root, part), [&](const char* name, const Entry& entry) {
      if (const std::string extension = extension_of(name);
          entry.kind == EntryKind::file && is_image_extension(extension)) {
        add_remark({extension, 1, join_path(part, name), ""}, beside);
      }
      if (entry.kind != EntryKind::folder) return;
      class_names.insert(name);
      if (listed) tasks.push_back({join_path(part, name), 0, {root, folder.identity}, {}});
    });
    scanned.stamps.push_back(folder.stamp);
  }
  scanned.index.beside = remarks_of(beside);
  scanned.index.class_names.assign(class_names.begin(), class_names.end());
  for (Task& task : tasks) {
    const std::string name = task.path.substr(task.path.rfind('/') + 1);
    task.label = std::distance(class_names.begin(), class_names.find(name));
  }
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return std::tie(a.label, a.path) < std::tie(b.label, b.path);
  });
  return tasks;
}

}  // namespace

void add_remark(const FolderRemark& remark, FolderRemarks& remarks) {
  const auto [place, is_new] = remarks.try_emplace(remark.extension, remark);
  if (is_new) return;
  FolderRemark& known = place->second;
  known.files += remark.files;
  if (remark.first < known.first) known.first = remark.first;
}

std::vector<FolderRemark> remarks_of(const FolderRemarks& remarks) {
  std::vector<FolderRemark> values;
  for (const auto& [extension, remark] : remarks) values.push_back(remark);
  return values;
}

const FolderIndex::Folder& FolderIndex::folder_of(SampleId id) const {
  const auto next =
      std::upper_bound(folders.begin(), folders.end(), id,
                       [](SampleId i, const Folder& folder) { return i < folder.first_file; });
  return *(next - 1);
}

uint64_t FolderIndex::fingerprint() const {
  uint64_t hash = XXH3_64bits(text.data(), text.size());
  hash = XXH3_64bits_withSeed(folders.data(), folders.size() * sizeof(Folder), hash);
  for (const std::string& name : class_names) {
    hash = XXH3_64bits_withSeed(name.c_str(), name.size() + 1, hash);
  }
  return hash;
}

std::vector<std::string> list_subfolders(const std::string& path) {
  const OpenFolder folder = open_folder(path, "");
  std::vector<std::string> names;
  for_each_entry(folder, path, [&](const char* name, const Entry& entry) {
    if (entry.kind == EntryKind::folder) names.push_back(name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_image_files(const std::string& root) {
  ClassListing all;
  std::vector<Identity> above;
  walk(root, "", above, all);
  std::ranges::sort(all.folders, {}, &Listing::path);
  std::vector<std::string> files;
  for (const Listing& folder : all.folders) {
    for (const uint64_t name : folder.names) {
      files.push_back(join_path(folder.path, folder.text.data() + name));
    }
  }
  return files;
}

ScannedFolder scan_folder(const FolderQuery& query) {
  ScannedFolder scanned;
  scanned.started_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  std::vector<Task> tasks = plan_tasks(query, scanned);
  run_all(query.root, tasks);
  scanned.index.two_labels = find_two_labels(query.root, tasks);
  FolderRemarks left_out;
  for (const Task& task : tasks) {
    for (const auto& [extension, remark] : task.result.left_out) add_remark(remark, left_out);
  }
  scanned.index.left_out = remarks_of(left_out);
  for (Task& task : tasks) {
    std::vector<Listing>& folders = task.result.folders;
    std::sort(folders.begin(), folders.end(),
              [](const Listing& a, const Listing& b) { return a.path < b.path; });
    for (const Listing& listing : folders) append_listing(listing, task.label, scanned.index);
    std::move(task.result.stamps.begin(), task.result.stamps.end(),
              std::back_inserter(scanned.stamps));
    task.result = {};
  }
  return scanned;
}

}  // namespace stoker
