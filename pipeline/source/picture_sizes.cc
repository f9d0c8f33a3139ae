#include "pipeline/source/picture_sizes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/parallel.h"
#include "pipeline/files/record_bytes.h"
#include "pipeline/files/sealed_file.h"
#include "pipeline/source/look_ahead.h"
#include "staging/allowed_cores.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

constexpr SealedKind kSizesKind{"stokersz", 1, uint64_t{1} << 40};
constexpr int64_t kTogether = 64;  // samples that a thread takes at once
constexpr int64_t kComparedStamps = 1000;
constexpr int64_t kMinPicturesToKeep = 1000;  // fewer are read again in milliseconds

bool is_jpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8;
}

// Reads the size of one picture after the other. One per thread.
class HeaderReader {
 public:
  HeaderReader(const Source& source, const DecodeOptions& decode)
      : source_(source), exif_(decode.exif), decoder_(decode) {}

  Size read(SampleId id) {
    const Size of_head = read_head(id);
    if (of_head != Size{}) return of_head;
    std::span<const uint8_t> bytes;
    ImageInfo info;
    const bool is_read = source_.read(id, buffer_, bytes).ok && decoder_.info(bytes, info).ok();
    if (buffer_.capacity() > kKeptBytes) std::vector<uint8_t>().swap(buffer_);
    return is_read ? info.size : Size{};
  }

 private:
  static constexpr size_t kHeadBytes = 4096, kKeptBytes = size_t{1} << 20;

  // {}: the first bytes do not do.
  Size read_head(SampleId id) {
    const SampleStorage& storage = source_.storage();
    const FileStamp stamp = storage.stamp(id);
    if (!stamp.is_known()) return {};
    const std::array piece{BytePiece{0, head_}};
    if (!storage.read_pieces(id, stamp, piece, MayWait::yes)) return {};
    // In other formats the orientation may come at the end.
    if (exif_ != ExifPolicy::ignore && !is_jpeg(head_)) return {};
    ImageInfo info;
    return decoder_.info(head_, info).ok() ? info.size : Size{};
  }

  const Source& source_;
  const ExifPolicy exif_;
  ImageDecoder decoder_;
  std::array<uint8_t, kHeadBytes> head_;
  std::vector<uint8_t> buffer_;
};

// Shows how far a pass has come.
class Progress {
 public:
  Progress(const PictureSizeOptions& options, int64_t total)
      : go_on_(options.go_on), total_(total) {}
  void add(int64_t pictures) {
    if (!go_on_) return;
    const MutexLock lock(mutex_);
    done_ += pictures;
    if (!go_on_(done_, total_)) throw std::runtime_error("reading the sizes was stopped");
  }

 private:
  const std::function<bool(int64_t, int64_t)>& go_on_;
  const int64_t total_;
  Mutex mutex_;
  int64_t done_ GUARDED_BY(mutex_) = 0;
};

std::vector<Size> read_sizes(const Source& source, const PictureSizeOptions& options) {
  std::vector<Size> sizes(static_cast<size_t>(source.size()));
  Progress progress(options, source.size());
  const auto look_ahead = look_ahead_in_order(source);
  const int workers = options.workers < 0 ? usable_cores() : std::max(options.workers, 1);
  for_each_parallel((source.size() + kTogether - 1) / kTogether, workers,
                    [&] { return std::make_unique<HeaderReader>(source, options.decode); },
                    [&](std::unique_ptr<HeaderReader>& reader, int64_t part) {
                      const SampleId first = part * kTogether;
                      const SampleId end = std::min(first + kTogether, source.size());
                      for (SampleId id = first; id < end; ++id)
                        sizes[static_cast<size_t>(id)] = reader->read(id);
                      progress.add(end - first);
                    });
  return sizes;
}

// Stamps of samples that are spread evenly.
uint64_t stamps_digest(const Source& source) {
  const int64_t count = std::min(source.size(), kComparedStamps);
  std::vector<uint64_t> words;
  for (int64_t i = 0; i < count; ++i) {
    const FileStamp stamp = source.storage().stamp(i * source.size() / count);
    words.push_back(static_cast<uint64_t>(stamp.bytes));
    words.push_back(static_cast<uint64_t>(stamp.modified_ns));
  }
  return digest128(words).low;
}

std::string key_of_sizes(const Source& source, const DecodeOptions& decode) {
  return source.root() + '\0' + hex64(source.fingerprint()) + " exif " +
         std::to_string(static_cast<int>(decode.exif)) + " max_pixels " +
         std::to_string(decode.max_pixels);
}

bool load_sizes(const std::string& path, const std::string& key, int64_t count,
                std::vector<Size>& sizes) {
  std::string problem, kept_key;
  const auto file = SealedFile::open(path, kSizesKind, problem);
  if (!file) return false;
  RecordReader reader(file->table());
  return reader.get(kept_key) && kept_key == key && reader.get(sizes) && reader.at_end() &&
         std::ssize(sizes) == count;
}

void save_sizes(const std::string& path, const std::string& key, const std::vector<Size>& sizes) {
  RecordWriter writer;
  writer.put(key);
  writer.put(sizes);
  try {
    SealedWriter file(path, kSizesKind);
    file.finish(sizes.size(), {writer.bytes().data(), writer.bytes().size()});
  } catch (const std::runtime_error&) {
    // They are read again the next time.
  }
}

}  // namespace

std::vector<Size> picture_sizes(const Source& source, const PictureSizeOptions& options) {
  if (source.encoding() != SampleEncoding::image_file) {
    return std::vector<Size>(static_cast<size_t>(source.size()), source.raw_size());
  }
  if (options.cache_dir.empty() || source.size() < kMinPicturesToKeep) {
    return read_sizes(source, options);
  }
  // Files that changed take the place of those that they were.
  const std::string list = key_of_sizes(source, options.decode);
  const std::string path = options.cache_dir + "/sizes-" + hex64(text_digest(list)) + ".bin";
  const std::string key = list + " stamps " + hex64(stamps_digest(source));
  std::vector<Size> sizes;
  if (load_sizes(path, key, source.size(), sizes)) return sizes;
  sizes = read_sizes(source, options);
  save_sizes(path, key, sizes);
  return sizes;
}

}  // namespace stoker
