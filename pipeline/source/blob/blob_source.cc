#include "pipeline/source/blob/blob_source.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string_view>

#include "pipeline/files/digest.h"
#include "pipeline/files/durable_file.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/index_builder.h"
#include "pipeline/source/blob/stored_location.h"
#include "pipeline/source/format/formats.h"
#include "pipeline/source/format/tar_targets.h"
#include "pipeline/source/format/text_value.h"
#include "pipeline/source/growing_source.h"
#include "pipeline/source/label_image_source.h"
#include "pipeline/source/pair_pictures.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Smaller indexes of local files are made again: that takes milliseconds. From a store it may take
// a minute.
constexpr int64_t kMinSamplesToKeep = 10'000;

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

std::vector<std::string> class_names_beside(const BlobLocation& location) {
  const std::string file = "classes.txt";
  if (location.bytes_of(file) < 0) return {};
  std::vector<std::string> names(1);
  for (const char c : location.read_whole(file)) {
    if (c == '\n') {
      names.emplace_back();
    } else if (c == '\0') {
      throw std::runtime_error(location.path_of(file) +
                               ": it has a NUL byte, and should have a class name per line");
    } else if (c != '\r') {
      names.back() += c;
    }
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

std::string key_of_request(const BlobIndexRequest& request) {
  std::string key = request.set.location->identity();
  const auto add = [&key](const std::string& word) { key += '\0' + word; };
  add(to_string(request.set.format));
  if (const auto& targets = request.fields.targets; !targets.empty()) {
    key += " with " + std::to_string(targets.size()) + " targets";
    for (const TargetField& target : targets) {
      add(target.field);
      add(target.type ? std::string(name_of(*target.type)) + (target.varies ? "[]" : "") : "");
    }
  }
  if (const ObjectField& objects = request.fields.objects; objects.is_wanted()) {
    key += " with objects";
    add(objects.field);
    add(std::to_string(static_cast<int>(objects.boxes)));
  }
  if (const auto& others = request.fields.other_images; !others.empty()) {
    key += " without " + std::to_string(others.size());
    for (const std::string& other : others) add(other);
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
  const bool is_far = static_cast<bool>(request.set.location->read_at(request.set.blobs.front()));
  const bool is_worth_it = is_far || (index != nullptr && index->size() >= kMinSamplesToKeep);
  const bool keep = may_keep && index != nullptr && is_worth_it;
  if (!keep) unlink(path.c_str());  // it stays mapped
  if (index == nullptr) throw std::runtime_error(path + ": the new index cannot be read");
  return index;
}

std::unique_ptr<BlobIndex> load_or_make(const BlobIndexRequest& request,
                                        const std::string& cache_dir) {
  const int64_t now_ns = system_now_ns();
  const std::vector<FileStamp> stamps = stamps_of(request.set);
  const std::string key = key_of_request(request);
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
    return stamp.modified_ns <= now_ns - kSettleNs && !is_unversioned(stamp);
  });
  return make(request, stamps, key, path, settled);
}

TargetField read_field(const std::string& text, BlobFormat format) {
  TargetField target;
  target.field = text;
  for (const TargetType type :
       {TargetType::uint8, TargetType::int32, TargetType::int64, TargetType::float32,
        TargetType::float16, TargetType::bfloat16, TargetType::text}) {
    const std::string suffix = std::string(":") + name_of(type);
    const bool is_text = type == TargetType::text, is_list = text.ends_with(suffix + "[]");
    if (!text.ends_with(suffix) && (!is_list || is_text)) continue;
    target.type = type;
    target.varies = is_text || is_list;
    target.field.resize(text.size() - suffix.size() - (is_list ? 2 : 0));
  }
  constexpr std::string_view kJson = "json:";
  const bool is_json = format == BlobFormat::tar && target.field.starts_with(kJson);
  target.name = is_json ? target.field.substr(kJson.size()) : target.field;
  const size_t tensor = format == BlobFormat::tar && !is_json ? tensor_at(target.field) : 0;
  if (tensor > 0 && tensor != std::string::npos) target.name = target.field.substr(tensor);
  return target;
}

// Reads SourceOptions::targets_from. Each is a field, and perhaps a colon and the name of a type. A
// field that ends in such a name itself takes a second one. Throws std::invalid_argument for an
// empty field, a NUL, and a name that comes twice.
std::vector<TargetField> target_fields(const std::vector<std::string>& targets_from,
                                       BlobFormat format) {
  std::vector<TargetField> fields;
  std::set<std::string> names;
  for (const std::string& text : targets_from) {
    fields.push_back(read_field(text, format));
    const std::string& name = fields.back().name;
    const auto fail = [&](const char* what) {
      throw std::invalid_argument("targets_from has " + quoted_name(text) + ", " + what);
    };
    if (name.empty()) fail("which names no field");
    if (name.find('\0') != std::string::npos) fail("which has a NUL byte");
    if (!names.insert(name).second) fail("whose name comes twice");
  }
  return fields;
}

// Reads SourceOptions::objects_from: a field, and perhaps a colon and the name of a format of
// boxes.
ObjectField object_field(const std::string& text) {
  for (const auto& [suffix, boxes] :
       {std::pair(":xywh", BoxFormat::xywh), std::pair(":xyxy", BoxFormat::xyxy),
        std::pair(":cxcywh", BoxFormat::cxcywh)}) {
    if (!text.ends_with(suffix)) continue;
    return {text.substr(0, text.size() - std::string_view(suffix).size()), boxes};
  }
  return {text};
}

// Whether the pictures have more with them than a class.
bool is_rich(const SourceOptions& options) {
  return !options.objects_from.empty() || !options.label_image_from.empty() ||
         !options.pictures_from.empty();
}

// The fields of pictures that are not the samples' own.
std::vector<std::string> other_images(const SourceOptions& options) {
  std::vector<std::string> fields;
  if (!options.label_image_from.empty()) fields.push_back(options.label_image_from);
  for (const PictureField& picture : picture_fields(options)) fields.push_back(picture.field);
  return fields;
}

BlobIndexRequest request_of(const BlobSet& set, const SourceOptions& options) {
  const bool no_label = is_rich(options) && options.label_from.empty();
  return {.set = set,
          .fields = {options.image_from, no_label ? "none" : options.label_from,
                     target_fields(options.targets_from, set.format),
                     object_field(options.objects_from), other_images(options)},
          .class_names = class_names_beside(*set.location),
          .go_on = options.go_on};
}

std::string key_of_member(const std::string& name) {
  return name.substr(0, name.find('.', name.rfind('/') + 1));
}

// Throws if the members of a tar that are label images are not those of its pictures' keys.
void check_keys(const Source& pictures, const Source& images, const std::string& extension) {
  for (SampleId id = 0; id < pictures.size(); ++id) {
    const std::string name = pictures.name(id);
    if (id < images.size() && key_of_member(images.name(id)) == key_of_member(name)) continue;
    throw std::runtime_error(name + ": its key has no ." + extension + ", or a key before it has " +
                             "one and no picture");
  }
}

// Makes sources of the first samples while the index of all is made.
class OfferedParts final : public IndexParts {
 public:
  OfferedParts(GrowingSource& source, const BlobLocation& location)
      : source_(source), location_(location) {}

  bool wants(int64_t samples) override { return source_.wants(samples); }
  void none() override { source_.cannot_grow(); }
  std::string new_path() override { return temporary_path(); }
  void take(const std::string& path) override {
    std::unique_ptr<BlobIndex> index = BlobIndex::open(path);
    unlink(path.c_str());  // it stays mapped
    if (index == nullptr) throw std::runtime_error(path + ": the new index cannot be read");
    source_.grow(location_.make_source(std::move(index)));
  }

 private:
  GrowingSource& source_;
  const BlobLocation& location_;
};

std::unique_ptr<Source> open_blobs(const BlobSet& set, const SourceOptions& options) {
  return set.location->make_source(load_or_make(request_of(set, options), options.cache_dir));
}

// The images in another field, without anything else.
std::unique_ptr<Source> open_images(const BlobSet& set, SourceOptions options,
                                    const std::string& field) {
  options.image_from = field;
  options.label_from = "none";
  options.targets_from.clear();
  options.objects_from.clear();
  options.label_image_from.clear();
  options.pictures_from.clear();
  return open_blobs(set, options);
}

std::unique_ptr<Source> open_labelled(const BlobSet& set, const SourceOptions& options) {
  std::shared_ptr<const Source> pictures = open_blobs(set, options);
  std::shared_ptr<const Source> images = open_images(set, options, options.label_image_from);
  if (set.format == BlobFormat::tar) check_keys(*pictures, *images, options.label_image_from);
  return std::make_unique<LabelImageSource>(std::move(pictures), std::move(images));
}

}  // namespace

std::unique_ptr<Source> make_blob_source(const BlobSet& set, const SourceOptions& options) {
  const std::vector<PictureField> fields = picture_fields(options);
  std::unique_ptr<Source> own =
      options.label_image_from.empty() ? open_blobs(set, options) : open_labelled(set, options);
  if (fields.empty()) return own;
  const std::shared_ptr<const Source> samples = std::move(own);
  std::vector<NamedPictures> pictures;
  std::vector<SourceNote> notes;
  for (const auto& [name, field] : fields) {
    std::shared_ptr<const Source> images = open_images(set, options, field);
    // Where each record has all of its fields, its place says which sample it is.
    pictures.push_back(set.format == BlobFormat::tar
                           ? pair_by_key(*samples, name, std::move(images), key_of_member, notes)
                           : NamedPictures{name, std::move(images)});
  }
  return std::make_unique<PicturesSource>(samples, std::move(pictures), notes);
}

std::unique_ptr<Source> begin_blob_source(const BlobSet& set, const SourceOptions& options) {
  if (is_rich(options) || set.format != BlobFormat::tar ||
      !set.location->read_at(set.blobs.front())) {
    return make_blob_source(set, options);
  }
  BlobIndexRequest begun = request_of(set, options);
  // Where a sample is in a cache depends on the lengths of all.
  const bool has_parts = options.store.cache.empty();
  const auto make = [request = std::move(begun), cache_dir = options.cache_dir, has_parts](
                        GrowingSource& source, const std::function<bool()>& go_on) {
    if (!has_parts) source.cannot_grow();
    OfferedParts parts(source, *request.set.location);
    BlobIndexRequest with_parts = request;
    with_parts.parts = &parts;
    with_parts.go_on = [&](int64_t done, int64_t total) {
      return go_on() && (!request.go_on || request.go_on(done, total));
    };
    return request.set.location->make_source(load_or_make(with_parts, cache_dir));
  };
  return std::make_unique<GrowingSource>(set.location->root(), make,
                                         [location = set.location] { location->cancel(); });
}

std::vector<std::pair<std::string, std::string>> format_words() {
  std::vector<std::pair<std::string, std::string>> words;
  for (const FormatEntry& entry : all_formats()) words.emplace_back(entry.name, entry.words);
  return words;
}

}  // namespace stoker
