#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/record_bytes.h"
#include "pipeline/files/sealed_file.h"
#include "pipeline/source/folder_index.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr SealedKind kFolderIndexKind{"stokerix", 5, uint64_t{1} << 40};

std::vector<std::string> remark_words(const std::vector<FolderRemark>& remarks) {
  std::vector<std::string> words;
  for (const FolderRemark& remark : remarks) {
    words.insert(words.end(), {remark.extension, remark.first, remark.second});
  }
  return words;
}

void put_remarks(const std::vector<FolderRemark>& remarks, RecordWriter& out) {
  std::vector<int64_t> counts;
  for (const FolderRemark& remark : remarks) counts.push_back(remark.files);
  out.put(remark_words(remarks));
  out.put(counts);
}

bool get_remarks(RecordReader& in, std::vector<FolderRemark>& remarks) {
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  if (!in.get(words) || !in.get(counts) || words.size() != 3 * counts.size()) return false;
  for (size_t i = 0; i < counts.size(); ++i) {
    remarks.push_back({words[3 * i], counts[i], words[3 * i + 1], words[3 * i + 2]});
  }
  return true;
}

std::string key_of_query(const FolderQuery& query) {
  std::error_code ignored;
  const fs::path root = fs::canonical(query.root, ignored);
  std::string key = root.string();
  for (const auto* parts : {&query.parts, &query.class_parts}) {
    key += '\0';
    for (const std::string& part : *parts) key += part + '\0';
  }
  return key;
}

bool is_unchanged(const FolderQuery& query, const std::vector<std::string>& paths,
                  const std::vector<uint64_t>& inodes, const std::vector<int64_t>& times) {
  if (inodes.size() != paths.size() || times.size() != 2 * paths.size()) return false;
  for (size_t i = 0; i < paths.size(); ++i) {
    struct stat status;
    if (stat((query.root + "/" + paths[i]).c_str(), &status) != 0) return false;
    const FolderStamp expected{paths[i], inodes[i], times[2 * i], times[2 * i + 1]};
    if (stamp_of(paths[i], status) != expected) return false;
  }
  return true;
}

// The checksum finds accidents; a forged list must be safe to use, too.
bool is_sound(const FolderIndex& index) {
  const auto is_text = [&](uint64_t at) { return at < index.text.size(); };
  if (!index.text.empty() && index.text.back() != '\0') return false;
  if (index.folders.empty() != index.names.empty()) return false;
  int64_t last_first = 0;
  for (const FolderIndex::Folder& folder : index.folders) {
    const bool is_first = &folder == &index.folders.front();
    if (!is_text(folder.path) || folder.label < 0 ||
        folder.label >= std::ssize(index.class_names) || folder.first_file >= index.size() ||
        (is_first ? folder.first_file != 0 : folder.first_file <= last_first)) {
      return false;
    }
    last_first = folder.first_file;
  }
  return std::all_of(index.names.begin(), index.names.end(), is_text);
}

}  // namespace

std::string index_cache_path(const std::string& cache_dir, const FolderQuery& query) {
  const std::string key = key_of_query(query);
  return cache_dir + "/index-" + hex64(text_digest(key)) + ".bin";
}

bool load_index(const std::string& cache_path, const FolderQuery& query, FolderIndex& index) {
  std::string problem;
  const auto file = SealedFile::open(cache_path, kFolderIndexKind, problem);
  if (!file) return false;
  RecordReader reader(file->table());
  std::string key;
  std::vector<std::string> stamp_paths;
  std::vector<uint64_t> inodes;
  std::vector<int64_t> times;
  FolderIndex loaded;
  const bool read = reader.get(key) && reader.get(stamp_paths) && reader.get(inodes) &&
                    reader.get(times) && reader.get(loaded.class_names) &&
                    reader.get(loaded.text) && reader.get(loaded.folders) &&
                    reader.get(loaded.names) && get_remarks(reader, loaded.left_out) &&
                    get_remarks(reader, loaded.beside) && get_remarks(reader, loaded.two_labels) &&
                    reader.at_end();
  if (!read || key != key_of_query(query)) return false;
  if (!is_unchanged(query, stamp_paths, inodes, times)) return false;
  if (!is_sound(loaded)) return false;
  index = std::move(loaded);
  return true;
}

bool save_index(const std::string& cache_path, const FolderQuery& query,
                const ScannedFolder& scanned) {
  std::vector<std::string> paths;
  std::vector<uint64_t> inodes;
  std::vector<int64_t> times;
  for (const FolderStamp& stamp : scanned.stamps) {
    if (stamp.changed_ns > scanned.started_ns - kSettleNs) return false;
    paths.push_back(stamp.path);
    inodes.push_back(stamp.inode);
    times.insert(times.end(), {stamp.modified_ns, stamp.changed_ns});
  }
  RecordWriter writer;
  writer.put(key_of_query(query));
  writer.put(paths);
  writer.put(inodes);
  writer.put(times);
  writer.put(scanned.index.class_names);
  writer.put(scanned.index.text);
  writer.put(scanned.index.folders);
  writer.put(scanned.index.names);
  put_remarks(scanned.index.left_out, writer);
  put_remarks(scanned.index.beside, writer);
  put_remarks(scanned.index.two_labels, writer);
  try {
    SealedWriter file(cache_path, kFolderIndexKind);
    file.finish(scanned.index.names.size(), {writer.bytes().data(), writer.bytes().size()});
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace stoker
