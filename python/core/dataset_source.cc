#include "python/core/dataset_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/file_buffer.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/picture_code.h"
#include "pipeline/source/sample_file.h"
#include "python/core/python_lock.h"
#include "python/core/source_sample.h"

namespace stoker::python {
namespace {

constexpr int32_t kUnknown = std::numeric_limits<int32_t>::min();
constexpr int32_t kLargestLabel = (1 << 24) - 1;  // as in shards and lists

std::string text_of_span(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string text_of_kinds(const AnnotationInfo& info) {
  std::string text = describe(info);
  for (const auto* names : {&info.class_names, &info.keypoint_names}) {
    text.append("\n").append(std::to_string(names->size()));
    for (const std::string& name : *names) text.append("\n").append(name);
  }
  return text;
}

class DatasetSource final : public Source {
 public:
  DatasetSource(std::shared_ptr<DatasetReader> reader, DatasetOptions options)
      : reader_(std::move(reader)),
        options_(std::move(options)),
        folder_(open(options_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        labels_(static_cast<size_t>(options_.samples)),
        info_{.size = options_.samples,
              .class_names = options_.class_names,
              .targets = options_.targets,
              .annotations = options_.annotations,
              .knows_labels = options_.labels.has_value()} {
    if (folder_.get() < 0) throw std::runtime_error(options_.root + ": " + std::strerror(errno));
    for (auto& label : labels_) label = kUnknown;
    if (options_.labels) take_labels(*options_.labels);
    std::string text = "dataset of " + std::to_string(size()) + " samples, labels " +
                       (options_.labels ? hex64(Source::labels_digest()) : "unknown");
    for (const std::string& name : class_names()) text.append("\n").append(name);
    check_targets(options_.targets);
    for (const TargetColumn& column : options_.targets) {
      text.append("\n").append(column.describe());
      targets_bytes_ += static_cast<size_t>(column.bytes());
      has_varying_ = has_varying_ || column.varies;
    }
    if (annotations().any()) text.append("\n").append(text_of_kinds(annotations()));
    info_.fingerprint = text_digest(text);
    if (annotations().any()) info_.annotations.digest = info_.fingerprint;
    if (!options_.targets.empty()) info_.targets_digest = info_.fingerprint;
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override {
    const int32_t label = labels_[static_cast<size_t>(id)].load(std::memory_order_relaxed);
    if (label != kUnknown) return label;
    note_unknown_label();
    return 0;
  }
  std::string name(SampleId id) const override { return "dataset/" + std::to_string(id); }

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    const DatasetAnswer answer = reader_->read(id, buffer);
    bytes = std::span(buffer).first(answer.size);
    if (answer.kind == AnswerKind::bad) return {false, text_of_span(bytes)};
    if (!options_.labels) {
      const ReadStatus status = check(answer.label);
      if (!status.ok) return status;
      const int32_t label = answer.label == kNoLabel ? 0 : answer.label;
      labels_[static_cast<size_t>(id)].store(label, std::memory_order_relaxed);
    }
    const size_t front = front_bytes(bytes);
    if (bytes.size() < front) return {false, "its targets or annotations are missing"};
    bytes = bytes.subspan(front);
    if (answer.kind == AnswerKind::path) return read_file(front, buffer, bytes);
    return {};
  }
  // The values stand in the buffer of read(), in front of the image.
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    out.label = label(id);
    const uint8_t* values = bytes.data() - (bytes.empty() ? 0 : targets_bytes_);
    std::span<const uint8_t> varying =
        has_varying_ && !bytes.empty() ? block_before(values) : bytes;
    for (size_t i = 0; i < options_.targets.size(); ++i) {
      if (options_.targets[i].varies) {
        out.varying[i] = bytes.empty() ? std::span<const std::byte>{} : take_piece(varying);
        continue;
      }
      const auto size = static_cast<size_t>(options_.targets[i].bytes());
      if (bytes.empty()) {
        std::memset(out.columns[i], 0, size);
      } else {
        std::memcpy(out.columns[i], values, size);
        values += size;
      }
    }
  }

  // They stand in front of the values.
  ReadStatus read_annotations(SampleId, std::span<const uint8_t> bytes,
                              Annotations& out) const override {
    out.clear();
    if (!annotations().any()) return {};
    if (bytes.empty()) return {false, "it comes with the bytes of the sample, and there are none"};
    const uint8_t* before = bytes.data() - targets_bytes_;
    if (has_varying_) before = block_before(before).data() - sizeof(uint64_t);
    const auto block = block_before(before);
    const std::string_view picture(reinterpret_cast<const char*>(block.data()), block.size());
    const auto problem = stoker::read_picture(annotations(), picture, "", out);
    return {problem == "", problem.value_or("its bytes are damaged")};
  }

  uint64_t labels_digest() const override { return info_.fingerprint; }

 private:
  static size_t size_at(const uint8_t* bytes) {
    uint64_t size = 0;
    std::memcpy(&size, bytes, sizeof size);
    return size;
  }

  // Returns the block of bytes, between its two numbers, that ends there.
  static std::span<const uint8_t> block_before(const uint8_t* end) {
    const size_t size = size_at(end - sizeof(uint64_t));
    return {end - sizeof(uint64_t) - size, size};
  }

  // Takes the values of the next column that varies; nothing if the block ends before.
  static std::span<const std::byte> take_piece(std::span<const uint8_t>& block) {
    constexpr size_t kNumber = sizeof(uint64_t);
    const size_t size = block.size() < kNumber ? 0 : size_at(block.data());
    if (block.size() < kNumber || size > block.size() - kNumber) return {};
    const auto piece = block.subspan(kNumber, size);
    block = block.subspan(kNumber + size);
    return std::as_bytes(piece);
  }

  // Returns how many bytes come in front of the image or the path; if that is more than there are,
  // they are not what this source takes.
  size_t front_bytes(std::span<const uint8_t> bytes) const {
    constexpr size_t kMissing = std::numeric_limits<size_t>::max();
    constexpr size_t kNumber = sizeof(uint64_t);
    size_t front = 0;
    for (int blocks = annotations().any() + has_varying_; blocks > 0; --blocks) {
      const auto rest = bytes.subspan(front);
      if (rest.size() < 2 * kNumber) return kMissing;
      const size_t size = size_at(rest.data());
      if (size > rest.size() - 2 * kNumber || size_at(rest.data() + kNumber + size) != size) {
        return kMissing;
      }
      front += 2 * kNumber + size;
    }
    return front + targets_bytes_;
  }

  void take_labels(const std::vector<int32_t>& labels) {
    if (std::ssize(labels) != size()) {
      throw std::invalid_argument(std::to_string(labels.size()) + " labels for " +
                                  std::to_string(size()) + " samples");
    }
    for (size_t id = 0; id < labels.size(); ++id) {
      const ReadStatus status = check(labels[id]);
      if (!status.ok) {
        throw std::invalid_argument("sample " + std::to_string(id) + ": " + status.message);
      }
      labels_[id] = labels[id];
    }
  }

  ReadStatus check(int32_t label) const {
    if (label == kNoLabel && !options_.labels) return {};
    const int64_t classes = std::ssize(options_.class_names);
    if (label >= 0 && label <= kLargestLabel && (classes == 0 || label < classes)) return {};
    return {false, "the label is " + std::to_string(label) + ", must be 0 to " +
                       std::to_string(classes == 0 ? kLargestLabel : classes - 1)};
  }

  // `bytes` is the file's path before, with `front` bytes in front of it, and the file's bytes
  // after, with the same in front.
  ReadStatus read_file(size_t front, std::vector<uint8_t>& buffer,
                       std::span<const uint8_t>& bytes) const {
    const std::string path = text_of_span(bytes);
    const std::vector<uint8_t> values(bytes.data() - front, bytes.data());
    const Descriptor file(open_sample_file(folder_.get(), path.c_str()));
    ReadStatus status =
        file.get() < 0 ? system_failure("open") : read_sample_file(file.get(), buffer, bytes);
    if (!status.ok) {
      status.message = printable_name(path) + ": " + status.message;
    } else if (!values.empty()) {
      put_in_front(values, buffer, bytes);
    }
    return status;
  }

  // `bytes` is at the beginning of `buffer`, whose rest is left over from earlier samples.
  static void put_in_front(std::span<const uint8_t> values, std::vector<uint8_t>& buffer,
                           std::span<const uint8_t>& bytes) {
    const size_t size = bytes.size();
    extend_file_buffer(buffer, values.size() + size);
    std::memmove(buffer.data() + values.size(), buffer.data(), size);
    std::memcpy(buffer.data(), values.data(), values.size());
    bytes = std::span(buffer).subspan(values.size(), size);
  }

  const std::shared_ptr<DatasetReader> reader_;
  const DatasetOptions options_;
  const Descriptor folder_;
  mutable std::vector<std::atomic<int32_t>> labels_;
  SourceInfo info_;
  size_t targets_bytes_ = 0;  // of all columns
  bool has_varying_ = false;
};

// The end of the reader's processes takes a while; Python's other threads go on meanwhile.
void end_source(const DatasetSource* source) {
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  delete source;
}

}  // namespace

ReaderUse::ReaderUse(std::shared_ptr<DatasetReader> reader)
    : reader_(std::move(reader)), process_(getpid()) {
  DatasetReader::Uses uses = reader_->uses_, more;
  do {
    more = {process_, uses.process == process_ ? uses.count + 1 : 1};
  } while (!reader_->uses_.compare_exchange_weak(uses, more));
}

ReaderUse::~ReaderUse() {
  if (getpid() != process_) return;
  DatasetReader::Uses uses = reader_->uses_, less;
  do {
    less = {process_, uses.count - 1};
  } while (!reader_->uses_.compare_exchange_weak(uses, less));
  if (less.count > 0) return;
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  reader_->end_idle();
}

std::shared_ptr<const Source> make_dataset_source(std::shared_ptr<DatasetReader> reader,
                                                  DatasetOptions options) {
  return {new DatasetSource(std::move(reader), std::move(options)), end_source};
}

}  // namespace stoker::python
