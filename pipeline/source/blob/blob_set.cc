#include "pipeline/source/blob/blob_set.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/blob/blob_location.h"
#include "pipeline/source/blob/stored_location.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/format/mds.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

using FileNames = std::vector<std::string>;
using SharedLocation = std::shared_ptr<const BlobLocation>;

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The name of what is in a folder of a location.
std::string inside(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

bool has(const FileNames& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Blobs of one folder. Several formats: shards come before lists, which often lie beside them.
struct FolderBlobs {
  BlobFormat format = BlobFormat::list;
  FileNames names;  // empty: there are none
};

FolderBlobs blobs_in(const BlobLocation& location, const std::string& folder,
                     const BlobListing& listing) {
  const std::string path = location.path_of(folder);
  std::map<BlobFormat, FileNames> by_format;
  for (const std::string& name : listing.files) {
    if (const auto format = blob_format(name)) by_format[*format].push_back(name);
  }
  if (has(listing.files, "index.json") && by_format.contains(BlobFormat::mds)) {
    by_format[BlobFormat::mds] = mds_shards(
        path, location.read_whole(inside(folder, "index.json")),
        [&](const std::string& name) { return location.bytes_of(inside(folder, name)); });
  }
  if (by_format.size() > 1) by_format.erase(BlobFormat::list);
  if (by_format.empty()) return {};
  if (by_format.size() > 1) {
    std::string text = path + ": it has shards of several formats:";
    for (const auto& [format, names] : by_format) {
      text += std::string(" ") + std::to_string(names.size()) + " " + to_string(format) + " (as " +
              printable_name(names.front()) + ")";
    }
    throw std::runtime_error(text + "; name those to take, as \"" + path + "/*.tar\"");
  }
  auto& [format, names] = *by_format.begin();
  if (format == BlobFormat::list && names.size() > 1) {
    throw std::runtime_error(path + ": it has " + std::to_string(names.size()) + " lists (as " +
                             printable_name(names[0]) + ", " + printable_name(names[1]) +
                             "); name one");
  }
  return {format, std::move(names)};
}

// Archives often lie beside the class folders that they were unpacked to.
bool has_class_folders(const BlobLocation& location, const std::string& folder,
                       const BlobListing& listing) {
  return std::any_of(listing.folders.begin(), listing.folders.end(), [&](const auto& name) {
    return location.has_file(inside(folder, name), [](const std::string& file) {
      return is_image_extension(extension_of(file));
    });
  });
}

// An address of a web server may end with one, as a signed one does. It is a secret then.
std::string without_query(const std::string& path) {
  return path.starts_with("http") && is_store_address(path) ? path.substr(0, path.find('?')) : path;
}

// Returns the files whose names begin with the first of `words` that any of them begins with:
// "train-1.tar", not "trainer.tar".
FileNames beginning_with(const FileNames& files, std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    FileNames found;
    for (const std::string& file : files) {
      const std::string name = fs::path(without_query(file)).filename().string();
      const bool goes_on = name.size() > word.size() &&
                           std::isalpha(static_cast<unsigned char>(name[word.size()])) != 0;
      if (name.starts_with(word) && !goes_on) found.push_back(file);
    }
    if (!found.empty()) return found;
  }
  return {};
}

struct Parts {
  FileNames train, test;
  bool several() const { return !train.empty() && !test.empty(); }
};

Parts split_parts(const FileNames& files) {
  return {beginning_with(files, kTrainNames), beginning_with(files, kTestNames)};
}

[[noreturn]] void throw_no_test_part(const std::string& path, const FileNames& files) {
  throw std::runtime_error(path + ": no part test, val or validation there; found " +
                           std::to_string(files.size()) + " files, as " +
                           printable_name(without_query(files.front())));
}

// Returns a folder's own name, which may say what part it is.
std::string folder_name(const std::string& path) {
  const fs::path folder = is_store_address(path) ? fs::path(path) : fs::weakly_canonical(path);
  return folder.filename().string();
}

// `own_name`: of the folder that the files are in.
FileNames choose_part(const std::string& path, const std::string& own_name, const FileNames& files,
                      Split split) {
  const Parts parts = split_parts(files);
  if (split == Split::all) return files;
  if (parts.several()) return split == Split::train ? parts.train : parts.test;
  if (split == Split::train) return files;
  const bool is_test =
      std::find(kTestNames.begin(), kTestNames.end(), own_name) != kTestNames.end();
  if (parts.test.empty() && !is_test) throw_no_test_part(path, files);
  return files;
}

FileNames with_prefix(const std::string& prefix, FileNames names) {
  for (std::string& name : names) name = prefix + "/" + name;
  return names;
}

// The folders of parts at a location: the first of each kind that has blobs.
std::optional<BlobSet> find_in_parts(const SharedLocation& location, const BlobListing& listing,
                                     Split split) {
  const std::string& path = location->root();
  BlobSet set{{}, location, {}};
  bool found = false;
  const auto add = [&](std::span<const std::string_view> words, bool wanted) {
    for (const std::string_view name : words) {
      const std::string word(name);
      if (!has(listing.folders, word)) continue;
      const FolderBlobs blobs = blobs_in(*location, word, location->list(word));
      if (blobs.names.empty() || blobs.format == BlobFormat::list) continue;
      found = true;
      if (!wanted) return;
      if (!set.blobs.empty() && set.format != blobs.format) {
        throw std::runtime_error(path + ": its parts are of two formats: " + to_string(set.format) +
                                 " and " + to_string(blobs.format));
      }
      set.format = blobs.format;
      const FileNames names = with_prefix(word, blobs.names);
      set.blobs.insert(set.blobs.end(), names.begin(), names.end());
      return;
    }
  };
  add(kTrainNames, split != Split::test);
  add(kTestNames, split != Split::train);
  if (found && set.blobs.empty()) {
    throw std::runtime_error(path + ": no folder " +
                             (split == Split::train ? "train" : "test, val or validation") +
                             " with shards there, but one of the other part");
  }
  return found ? std::optional(set) : std::nullopt;
}

std::optional<BlobSet> find_at(const SharedLocation& location, Split split) {
  const std::string& path = location->root();
  const BlobListing listing = location->list("");
  FolderBlobs blobs = blobs_in(*location, "", listing);
  if (!blobs.names.empty()) {
    // A list beside folders describes them; they are opened without it.
    const bool lies_beside = blobs.format == BlobFormat::list
                                 ? !listing.folders.empty()
                                 : has_class_folders(*location, "", listing);
    if (lies_beside) return std::nullopt;
    return BlobSet{blobs.format, location,
                   choose_part(path, folder_name(path), blobs.names, split)};
  }
  if (auto set = find_in_parts(location, listing, split)) return set;
  // As in repositories of the Hugging Face Hub.
  const std::string folder = "data";
  if (!has(listing.folders, folder)) return std::nullopt;
  const BlobListing inner = location->list(folder);
  blobs = blobs_in(*location, folder, inner);
  if (blobs.names.empty() || blobs.format == BlobFormat::list ||
      has_class_folders(*location, folder, inner)) {
    return std::nullopt;
  }
  return BlobSet{blobs.format, location,
                 choose_part(path, folder, with_prefix(folder, blobs.names), split)};
}

// Expands the first group in braces, and what follows by a call for each.
void expand_braces(const std::string& prefix, const std::string& rest, const std::string& pattern,
                   FileNames& out) {
  constexpr size_t kMaxPaths = 1'000'000;
  const size_t open = rest.find('{'), close = rest.find('}', open);
  if (open == std::string::npos || close == std::string::npos) {
    out.push_back(prefix + rest);
    if (out.size() > kMaxPaths) {
      throw std::runtime_error(shown_path(pattern) + ": its braces stand for more than " +
                               std::to_string(kMaxPaths) + " paths");
    }
    return;
  }
  const std::string group = rest.substr(open + 1, close - open - 1), after = rest.substr(close + 1);
  const std::string before = prefix + rest.substr(0, open);
  const size_t dots = group.find("..");
  if (dots == std::string::npos) {
    for (size_t begin = 0; begin <= group.size();) {
      const size_t comma = std::min(group.find(',', begin), group.size());
      expand_braces(before + group.substr(begin, comma - begin), after, pattern, out);
      begin = comma + 1;
    }
    return;
  }
  const std::string first = group.substr(0, dots), last = group.substr(dots + 2);
  if (!all_digits(first) || !all_digits(last) || first.size() > 9 || last.size() > 9 ||
      std::stoll(first) > std::stoll(last)) {
    const bool is_secret = without_query(before) != before;
    throw std::runtime_error(shown_path(pattern) + ": {" + (is_secret ? "..." : group) +
                             "} is no range of numbers, as {000..127} is one");
  }
  for (int64_t i = std::stoll(first); i <= std::stoll(last); ++i) {
    std::string number = std::to_string(i);
    if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
    expand_braces(before + number, after, pattern, out);
  }
}

FileNames local_matches(const std::string& pattern) {
  glob_t found{};
  const int code = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  FileNames paths;
  for (size_t i = 0; code == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  if (code != 0 && code != GLOB_NOMATCH) {
    throw std::runtime_error(pattern + ": a folder of it cannot be read");
  }
  std::sort(paths.begin(), paths.end());  // glob() follows the locale
  return paths;
}

bool is_glob(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

FileNames matches_of(const std::string& pattern, const StoreOptions& options) {
  FileNames paths =
      is_store_address(pattern) ? stored_matches(pattern, options) : local_matches(pattern);
  if (paths.empty()) throw std::runtime_error(shown_path(pattern) + ": no file is named like that");
  return paths;
}

// Returns the paths of the files that a pattern stands for; nullopt if it is no pattern.
std::optional<FileNames> expand(const std::string& path, const StoreOptions& options) {
  FileNames paths;
  if (path.find('{') != std::string::npos) {
    expand_braces("", path, path, paths);
  } else if (is_glob(without_query(path))) {
    paths = {path};
  } else {
    return std::nullopt;
  }
  FileNames files;
  for (const std::string& each : paths) {
    std::error_code ignored;
    if (!is_glob(without_query(each)) || (!is_store_address(each) && fs::exists(each, ignored))) {
      files.push_back(each);
    } else {
      const FileNames found = matches_of(each, options);
      files.insert(files.end(), found.begin(), found.end());
    }
  }
  return files;
}

std::string containing_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Returns the longest folder that all paths are in.
std::string common_folder(const FileNames& paths) {
  std::string common = containing_folder(paths.front());
  for (const std::string& path : paths) {
    while (common != "." && common != "/" && !path.starts_with(common + "/")) {
      common = containing_folder(common);
    }
  }
  return common;
}

std::optional<FileNames> local_files_of(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::is_directory(status)) return std::nullopt;
  if (fs::exists(status)) return FileNames{path};
  if (auto files = expand(path, {})) return files;
  throw std::runtime_error(path + ": " +
                           (error && error != std::errc::no_such_file_or_directory
                                ? error.message()
                                : "no such file or folder"));
}

std::optional<FileNames> stored_files_of(const std::string& address, const StoreOptions& options) {
  if (auto files = expand(address, options)) return files;
  return names_objects(address) ? std::optional(FileNames{address}) : std::nullopt;
}

// Returns the files at a path; nullopt if it is a folder.
std::optional<FileNames> expanded_files(const std::string& path, const StoreOptions& options) {
  return is_store_address(path) ? stored_files_of(path, options) : local_files_of(path);
}

SharedLocation place_at(const std::string& folder, const StoreOptions& options,
                        const ObjectTargets& targets = {}) {
  return is_store_address(folder) ? stored_location(folder, options, targets)
                                  : local_location(folder);
}

// Files as they are called everywhere, and where those of a web server are.
struct NamedFiles {
  FileNames paths;
  ObjectTargets targets;  // by path
};

// This is where an address becomes a name. Those that differ in their queries alone are numbered.
NamedFiles named(const FileNames& given) {
  NamedFiles files;
  std::map<std::string, std::string> names;  // by what was given
  std::map<std::string, int> numbers;        // by name without a number
  std::set<std::string> taken;
  for (const std::string& path : given) {
    if (!is_store_address(path) || path.starts_with("s3://")) {
      files.paths.push_back(path);
      continue;
    }
    const std::string base = without_query(path);
    std::string& name = names[path];
    if (name.empty()) {
      int& number = numbers[base];
      do {
        name = ++number == 1 ? base : base + "~" + std::to_string(number);
      } while (!taken.insert(name).second);
      files.targets[name] = target_of(parse_address(path));
    }
    files.paths.push_back(name);
  }
  return files;
}

std::string files_of(bool lists) {
  std::string files;
  for (const FormatEntry& entry : all_formats()) {
    if ((entry.format == BlobFormat::list) != lists) continue;
    files += (files.empty() ? "" : ", ") + std::string(entry.files);
  }
  return files;
}

}  // namespace

std::string shard_files() { return files_of(false); }
std::string list_files() { return files_of(true); }

bool names_objects(const std::string& address) {
  return address.find('{') != std::string::npos || is_glob(without_query(address)) ||
         blob_format(without_query(address)).has_value();
}

BlobSet blob_set_of(const std::vector<std::string>& given, const StoreOptions& options) {
  if (given.empty()) throw std::runtime_error("no files are named");
  const NamedFiles files = named(given);
  const FileNames& paths = files.paths;
  const std::string root = common_folder(paths);
  BlobSet set{{}, place_at(root, options, files.targets), {}};
  for (const std::string& path : paths) {
    set.blobs.push_back(root == "." && !path.starts_with("./")
                            ? path
                            : path.substr(root == "/" ? 1 : root.size() + 1));
  }
  if (const FileNames missing = set.location->missing(set.blobs); !missing.empty()) {
    const auto first = std::ranges::find(set.blobs, missing.front()) - set.blobs.begin();
    throw std::runtime_error(paths[static_cast<size_t>(first)] + ": no such file" +
                             (paths.size() == 1
                                  ? ""
                                  : "; " + std::to_string(missing.size()) + " of " +
                                        std::to_string(paths.size()) + " are missing"));
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    const auto format = blob_format(without_query(given[i]));
    if (!format) {
      throw std::runtime_error(path + ": its name says no format that is read (" + shard_files() +
                               ", " + list_files() + ", NAME-00000-of-00128)");
    }
    if (i > 0 && *format != set.format) {
      throw std::runtime_error(path + " is " + to_string(*format) + ", and " + paths.front() +
                               " is " + to_string(set.format) + "; take files of one format");
    }
    set.format = *format;
  }
  if (set.format == BlobFormat::list && set.blobs.size() > 1) {
    throw std::runtime_error(paths[0] + " and " + paths[1] +
                             ": several lists cannot be one data set; join them");
  }
  return set;
}

std::optional<BlobSet> find_blobs(const std::string& path, Split split,
                                  const StoreOptions& options) {
  const auto files = expanded_files(path, options);
  if (!files) return find_at(place_at(path, options), split);
  const std::string own_name = folder_name(containing_folder(without_query(files->front())));
  return blob_set_of(choose_part(shown_path(path), own_name, *files, split), options);
}

bool has_blob_parts(const std::string& path, const StoreOptions& options) {
  if (const auto files = expanded_files(path, options)) return split_parts(*files).several();
  const auto set = find_at(place_at(path, options), Split::all);
  if (!set) return false;
  if (split_parts(set->blobs).several()) return true;
  return set->blobs.front().starts_with("train/") ||
         std::any_of(kTestNames.begin(), kTestNames.end(), [&](std::string_view word) {
           return set->blobs.front().starts_with(std::string(word) + "/");
         });
}

}  // namespace stoker
