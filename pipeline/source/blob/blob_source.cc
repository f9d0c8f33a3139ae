#include "pipeline/source/blob/blob_source.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/digest.h"
#include "pipeline/durable_file.h"
#include "pipeline/printable_name.h"
#include "pipeline/source/blob/blob_files.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/index_builder.h"
#include "pipeline/source/blob/target_fields.h"
#include "pipeline/source/format/unpack.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Smaller indexes are made again: that takes milliseconds.
constexpr int64_t kLeastSamplesToKeep = 10'000;
const char kDamaged[] = "the index of the samples is damaged; delete ";

class BlobSource final : public Source {
 public:
  BlobSource(const std::string& root, std::unique_ptr<BlobIndex> index)
      : root_(root),
        index_(std::move(index)),
        table_(index_->table()),
        files_(root, table_.blobs, table_.stamps) {}

  int64_t size() const override { return index_->size(); }
  int label(SampleId id) const override { return label_of(index_->find(id)); }
  std::string name(SampleId id) const override {
    const BlobIndex::Found found = index_->find(id);
    if (found.segment == nullptr) return std::string("#").append(std::to_string(id));
    const std::string name(index_->name(found));
    if (found.entry.storage() == BlobStorage::file) return printable_name(name);
    const std::string& blob = table_.blobs[static_cast<size_t>(found.segment->blob)];
    if (!name.empty()) return printable_name(blob + "/" + name);
    const int64_t row = found.segment->first_row + id - found.segment->first_id;
    return printable_name(blob) + "#" + std::to_string(row);
  }
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return table_.class_names; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    const BlobIndex::Found found = index_->find(id);
    if (found.segment == nullptr) return {false, kDamaged + index_->path()};
    if (found.entry.storage() == BlobStorage::file) {
      const Descriptor file(open_sample_file(files_.root(), index_->name(found).data()));
      if (file.get() < 0) return system_failure("open");
      return read_sample_file(file.get(), buffer, bytes);
    }
    const Place place = place_of(found);
    if (!place.ok) return {false, kDamaged + index_->path()};
    if (buffer.size() < place.stored + place.unpacked) buffer.resize(place.stored + place.unpacked);
    const std::span stored(buffer.data(), place.stored);
    const ReadStatus status = files_.read(found.segment->blob, found.entry.offset(), stored);
    return status.ok ? finish(found.entry, place, buffer, bytes) : status;
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    const BlobIndex::Found found = index_->find(id);
    if (found.segment == nullptr) return false;
    if (found.entry.storage() == BlobStorage::file) {
      const Descriptor file(open_sample_file_cached(files_.root(), index_->name(found).data()));
      return file.get() >= 0 && read_sample_file_cached(file.get(), buffer, bytes);
    }
    const Place place = place_of(found);
    if (!place.ok) return false;
    if (buffer.size() < place.stored + place.unpacked) buffer.resize(place.stored + place.unpacked);
    const std::span stored(buffer.data(), place.stored);
    return files_.read_cached(found.segment->blob, found.entry.offset(), stored) &&
           finish(found.entry, place, buffer, bytes).ok;
  }
  // Samples in a shard have the shard's stamp.
  FileStamp stamp(SampleId id) const override {
    const BlobIndex::Found found = index_->find(id);
    if (found.segment == nullptr) return {};
    if (found.entry.storage() == BlobStorage::file) {
      return sample_file_stamp(files_.root(), index_->name(found).data());
    }
    const bool is_stored = found.entry.storage() == BlobStorage::bytes;
    return is_stored ? table_.stamps[static_cast<size_t>(found.segment->blob)] : FileStamp{};
  }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    const BlobIndex::Found found = index_->find(id);
    if (found.segment == nullptr) return false;
    if (found.entry.storage() == BlobStorage::file) {
      return read_file_pieces(files_.root(), index_->name(found).data(), stamp, pieces, may_wait);
    }
    const Place place = place_of(found);
    const int64_t blob = found.segment->blob;
    if (!place.ok || found.entry.is_packed() || table_.stamps[static_cast<size_t>(blob)] != stamp) {
      return false;
    }
    return std::all_of(pieces.begin(), pieces.end(), [&](const BytePiece& piece) {
      const int64_t behind = static_cast<int64_t>(place.stored) - piece.offset;
      const int64_t offset = found.entry.offset() + piece.offset;
      if (std::ssize(piece.out) > behind) return false;
      return may_wait == MayWait::yes ? files_.read(blob, offset, piece.out).ok
                                      : files_.read_cached(blob, offset, piece.out);
    });
  }
  std::vector<SourceNote> notes() const override { return table_.notes; }
  uint64_t fingerprint() const override { return table_.fingerprint; }
  uint64_t labels_digest() const override { return table_.labels_digest; }
  std::span<const TargetColumn> targets() const override { return table_.targets; }
  void read_targets(SampleId id, std::span<const uint8_t>, SampleTargets& out) const override {
    const BlobIndex::Found found = index_->find(id);
    out.label = label_of(found);
    // read() reports a damaged index.
    const char* from = found.segment == nullptr ? nullptr : found.targets.data();
    for (size_t i = 0; i < out.columns.size(); ++i) {
      const auto bytes = static_cast<size_t>(table_.targets[i].bytes());
      if (from == nullptr) {
        std::memset(out.columns[i], 0, bytes);
      } else {
        std::memcpy(out.columns[i], from, bytes);
        from += bytes;
      }
    }
  }
  uint64_t targets_digest() const override { return table_.targets_digest; }

 private:
  int label_of(const BlobIndex::Found& found) const {
    const int label = found.entry.label;
    // read() reports what a damaged index says.
    return label < 0 || label >= std::ssize(table_.class_names) ? 0 : label;
  }

  // How many bytes of a sample are in the blob, and how many come out of them (0: not packed).
  struct Place {
    bool ok = false;  // false: no blob can hold that
    size_t stored = 0, unpacked = 0;
  };

  Place place_of(const BlobIndex::Found& found) const {
    const BlobEntry& entry = found.entry;
    const int64_t blob_bytes = table_.stamps[static_cast<size_t>(found.segment->blob)].bytes;
    const bool packed = entry.is_packed();
    const int64_t stored = packed ? entry.first : entry.length;
    const int64_t unpacked = packed ? int64_t{entry.second} + entry.length : 0;
    const bool known = packed || entry.storage() == BlobStorage::bytes;
    return {known && entry.offset() <= blob_bytes && stored <= blob_bytes - entry.offset() &&
                unpacked <= 2 * kMaxSampleBytes,
            static_cast<size_t>(stored), static_cast<size_t>(unpacked)};
  }

  // Unpacks behind what was read.
  static ReadStatus finish(const BlobEntry& entry, const Place& place, std::vector<uint8_t>& buffer,
                           std::span<const uint8_t>& bytes) {
    bytes = {buffer.data(), place.stored};
    if (!entry.is_packed()) return {};
    const std::span out(buffer.data() + place.stored, place.unpacked);
    const std::string problem = unpack(entry.storage(), bytes, out);
    bytes = out.subspan(entry.second);
    return {problem.empty(), problem};
  }

  const std::string root_;
  const std::unique_ptr<const BlobIndex> index_;
  const BlobTable& table_;
  const BlobFiles files_;
};

// A lock between processes, so that one of them makes an index that all need. Where there can be no
// lock, each makes its own, and the last one stays: that costs time only.
class IndexLock {
 public:
  explicit IndexLock(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~IndexLock() {
    if (descriptor_ < 0) return;
    unlink(path_.c_str());
    close(descriptor_);
  }
  IndexLock(const IndexLock&) = delete;
  IndexLock& operator=(const IndexLock&) = delete;

 private:
  const std::string path_;
  const int descriptor_;
};

std::vector<std::string> read_class_names(const std::string& root) {
  const std::string path = root + "/classes.txt";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  std::vector<std::string> names(1);
  for (const char c : read_whole_file(path)) {
    if (c == '\n') {
      names.emplace_back();
    } else if (c == '\0') {
      throw std::runtime_error(path + ": it has a NUL byte, and should have a class name per line");
    } else if (c != '\r') {
      names.back() += c;
    }
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

std::string key_of(const BlobIndexRequest& request) {
  std::error_code ignored;
  std::string key = fs::canonical(request.set.root, ignored).string();
  const auto add = [&key](const std::string& word) { key += '\0' + word; };
  add(to_string(request.set.format));
  if (const auto& targets = request.fields.targets; !targets.empty()) {
    key += " with " + std::to_string(targets.size()) + " targets";
    for (const TargetField& target : targets) {
      add(target.field);
      add(target.type ? name_of(*target.type) : "");
    }
  }
  add(request.fields.image);
  add(request.fields.label);
  for (const std::string& blob : request.set.blobs) add(blob);
  key += '\0';
  for (const std::string& name : request.class_names) add(name);
  return key;
}

std::unique_ptr<BlobIndex> load(const std::string& path, const std::string& key,
                                const std::vector<FileStamp>& stamps) {
  std::unique_ptr<BlobIndex> index = BlobIndex::open(path);
  if (index == nullptr || index->table().key != key || index->table().stamps != stamps) {
    return nullptr;
  }
  return index;
}

// Returns a new path in the folder for temporary files, for an index that is not kept.
std::string temporary_path() {
  static std::atomic<int> count{0};
  return (fs::temp_directory_path() /
          ("stoker-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".index"))
      .string();
}

std::unique_ptr<BlobIndex> make(const BlobIndexRequest& request,
                                const std::vector<FileStamp>& stamps, const std::string& key,
                                const std::string& path, bool may_keep) {
  build_index(request, stamps, key, path);
  std::unique_ptr<BlobIndex> index = BlobIndex::open(path);
  const bool keep = may_keep && index != nullptr && index->size() >= kLeastSamplesToKeep;
  if (!keep) unlink(path.c_str());  // it stays mapped
  if (index == nullptr) throw std::runtime_error(path + ": the new index cannot be read");
  return index;
}

std::unique_ptr<BlobIndex> load_or_make(const BlobIndexRequest& request,
                                        const std::string& cache_dir) {
  const int64_t now_ns = system_now_ns();
  const std::vector<FileStamp> stamps = stamps_of(request.set);
  const std::string key = key_of(request);
  const std::string path = cache_dir + "/blobs-" + hex64(text_digest(key)) + ".bin";
  if (auto index = load(path, key, stamps)) return index;
  std::error_code error;
  if (!cache_dir.empty()) fs::create_directories(cache_dir, error);
  if (cache_dir.empty() || access(cache_dir.c_str(), W_OK) != 0) {
    return make(request, stamps, key, temporary_path(), false);
  }
  const IndexLock lock(path + ".lock");
  if (auto index = load(path, key, stamps)) return index;
  const bool settled = std::all_of(stamps.begin(), stamps.end(), [&](const FileStamp& stamp) {
    return stamp.modified_ns <= now_ns - kSettleNs;
  });
  return make(request, stamps, key, path, settled);
}

}  // namespace

std::unique_ptr<Source> make_blob_source(const BlobSet& set, const SourceOptions& options) {
  const BlobIndexRequest request{.set = set,
                                 .fields = {options.image_from, options.label_from,
                                            target_fields(options.targets_from, set.format)},
                                 .class_names = read_class_names(set.root),
                                 .go_on = options.go_on};
  return std::make_unique<BlobSource>(set.root, load_or_make(request, options.cache_dir));
}

}  // namespace stoker
