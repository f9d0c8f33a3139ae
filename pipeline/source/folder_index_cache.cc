#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>

#include "pipeline/durable_file.h"
#include "pipeline/source/folder_index.h"
#include "pipeline/source/folder_stamp.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A folder that changed within this time before it was listed may change again with the same time
// stamps: file systems keep time in steps of up to two seconds.
constexpr int64_t kSettleNs = 2'000'000'000;

struct Header {
  char magic[8] = {'s', 't', 'o', 'k', 'e', 'r', 'i', 'x'};
  uint32_t version = 2;
  uint32_t byte_order = 0x01020304;
  uint64_t payload_bytes = 0;
  uint64_t checksum = 0;
};

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\0';
  return text;
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size(); at += names.back().size() + 1) {
    names.emplace_back(text.c_str() + at);
  }
  return names;
}

class Writer {
 public:
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T>);
    const uint64_t count = values.size();
    put_bytes(&count, sizeof(count));
    put_bytes(values.data(), count * sizeof(T));
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }
  void put(const std::vector<FolderRemark>& remarks) {
    std::vector<std::string> words;
    std::vector<int64_t> counts;
    for (const FolderRemark& remark : remarks) {
      words.insert(words.end(), {remark.extension, remark.first, remark.second});
      counts.push_back(remark.files);
    }
    put(join_names(words));
    put(counts);
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  void put_bytes(const void* data, size_t count) {
    const char* first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  std::vector<char> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<char>& bytes) : bytes_(bytes) {}
  template <typename T>
  bool get(std::vector<T>& values) {
    uint64_t count = 0;
    if (bytes_.size() - at_ < sizeof(count)) return false;
    std::memcpy(&count, bytes_.data() + at_, sizeof(count));
    at_ += sizeof(count);
    if ((bytes_.size() - at_) / sizeof(T) < count) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return true;
  }
  bool get(std::vector<FolderRemark>& remarks) {
    std::string words;
    std::vector<int64_t> counts;
    if (!get(words) || !get(counts)) return false;
    const std::vector<std::string> parts = split_names(words);
    if (parts.size() != 3 * counts.size()) return false;
    for (size_t i = 0; i < counts.size(); ++i) {
      remarks.push_back({parts[3 * i], counts[i], parts[3 * i + 1], parts[3 * i + 2]});
    }
    return true;
  }
  bool get(std::string& text) {
    std::vector<char> values;
    if (!get(values)) return false;
    text.assign(values.begin(), values.end());
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::vector<char>& bytes_;
  size_t at_ = 0;
};

std::string key_of(const FolderQuery& query) {
  std::error_code ignored;
  const fs::path root = fs::canonical(query.root, ignored);
  return root.string() + '\0' + join_names(query.parts) + '\0' + join_names(query.class_parts);
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

bool read_payload(const std::string& path, std::vector<char>& payload) {
  std::ifstream file(path, std::ios::binary);
  Header header;
  const Header expected;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return false;
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 ||
      header.version != expected.version || header.byte_order != expected.byte_order) {
    return false;
  }
  std::error_code error;
  if (fs::file_size(path, error) != sizeof(header) + header.payload_bytes || error) return false;
  payload.resize(header.payload_bytes);
  if (!file.read(payload.data(), static_cast<std::streamsize>(payload.size()))) return false;
  return XXH3_64bits(payload.data(), payload.size()) == header.checksum;
}

bool write_cache(const std::string& path, const Header& header, const std::vector<char>& payload) {
  try {
    ReplacedFile file(path);
    file.write_at(0, {reinterpret_cast<const char*>(&header), sizeof header});
    file.write_at(sizeof header, {payload.data(), payload.size()});
    file.finish();
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

std::string index_cache_path(const std::string& cache_dir, const FolderQuery& query) {
  const std::string key = key_of(query);
  char name[40];
  std::snprintf(name, sizeof(name), "index-%016llx.bin",
                static_cast<unsigned long long>(XXH3_64bits(key.data(), key.size())));
  return cache_dir + "/" + name;
}

bool load_index(const std::string& cache_path, const FolderQuery& query, FolderIndex& index) {
  std::vector<char> payload;
  if (!read_payload(cache_path, payload)) return false;
  Reader reader(payload);
  std::string key, stamp_paths, class_names;
  std::vector<uint64_t> inodes;
  std::vector<int64_t> times;
  FolderIndex loaded;
  const bool read = reader.get(key) && reader.get(stamp_paths) && reader.get(inodes) &&
                    reader.get(times) && reader.get(class_names) && reader.get(loaded.text) &&
                    reader.get(loaded.folders) && reader.get(loaded.names) &&
                    reader.get(loaded.left_out) && reader.get(loaded.beside) &&
                    reader.get(loaded.two_labels) && reader.at_end();
  if (!read || key != key_of(query)) return false;
  if (!is_unchanged(query, split_names(stamp_paths), inodes, times)) return false;
  loaded.class_names = split_names(class_names);
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
  Writer writer;
  writer.put(key_of(query));
  writer.put(join_names(paths));
  writer.put(inodes);
  writer.put(times);
  writer.put(join_names(scanned.index.class_names));
  writer.put(scanned.index.text);
  writer.put(scanned.index.folders);
  writer.put(scanned.index.names);
  writer.put(scanned.index.left_out);
  writer.put(scanned.index.beside);
  writer.put(scanned.index.two_labels);
  Header header;
  header.payload_bytes = writer.bytes().size();
  header.checksum = XXH3_64bits(writer.bytes().data(), writer.bytes().size());
  return write_cache(cache_path, header, writer.bytes());
}

}  // namespace stoker
