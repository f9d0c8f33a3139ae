#include "pipeline/source/listed_source.h"

#include <fcntl.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

class ListedSource final : public Source, private SampleStorage {
 public:
  explicit ListedSource(ListedSamples samples)
      : samples_(std::move(samples)),
        folder_(open(samples_.root.empty() ? "." : samples_.root.c_str(),
                     O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_.get() < 0) throw std::runtime_error(samples_.root + ": " + std::strerror(errno));
    info_.size = std::ssize(samples_.labels);
    info_.root = std::move(samples_.root);
    info_.class_names = std::move(samples_.class_names);
    check();
    info_.fingerprint = make_fingerprint();
    labels_digest_ = Source::labels_digest();
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return samples_.labels[static_cast<size_t>(id)]; }
  std::string name(SampleId id) const override {
    const std::string* const path = path_of(id);
    return path == nullptr ? std::string("#").append(std::to_string(id)) : printable_name(*path);
  }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    bytes = bytes_of(id);
    if (bytes.data() != nullptr) return {};
    const Descriptor file(open_sample_file(folder_.get(), path_of(id)->c_str()));
    if (file.get() < 0) return system_failure("open");
    return read_sample_file(file.get(), buffer, bytes);
  }
  uint64_t labels_digest() const override { return labels_digest_; }
  const SampleStorage& storage() const override { return *this; }

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    bytes = bytes_of(id);
    if (bytes.data() != nullptr) return true;
    const Descriptor file(open_sample_file_cached(folder_.get(), path_of(id)->c_str()));
    return file.get() >= 0 && read_sample_file_cached(file.get(), buffer, bytes);
  }
  FileStamp stamp(SampleId id) const override {
    if (bytes_of(id).data() != nullptr) return {};
    return sample_file_stamp(folder_.get(), path_of(id)->c_str());
  }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return bytes_of(id).data() == nullptr &&
           read_file_pieces(folder_.get(), path_of(id)->c_str(), stamp, pieces, may_wait);
  }
  std::span<const uint8_t> bytes_of(SampleId id) const {
    if (samples_.bytes.empty()) return {};
    return samples_.bytes[static_cast<size_t>(id)];
  }
  const std::string* path_of(SampleId id) const {
    if (samples_.paths.empty() || samples_.paths[static_cast<size_t>(id)].empty()) return nullptr;
    return &samples_.paths[static_cast<size_t>(id)];
  }

  void check() const {
    const auto fail = [](const std::string& what) { throw std::invalid_argument(what); };
    if (size() == 0) fail("no samples are listed");
    for (const auto& [what, count] : {std::pair("paths", std::ssize(samples_.paths)),
                                      std::pair("images", std::ssize(samples_.bytes))}) {
      if (count == 0 || count == size()) continue;
      fail(std::to_string(count) + " " + what + " for " + std::to_string(size()) + " labels");
    }
    for (SampleId id = 0; id < size(); ++id) check_sample(id);
  }

  void check_sample(SampleId id) const {
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument("sample " + std::to_string(id) + " " + what);
    };
    const std::string* const path = path_of(id);
    if (bytes_of(id).data() == nullptr && path == nullptr) fail("has neither bytes nor a path");
    if (path != nullptr && path->find('\0') != std::string::npos) {
      fail("has a path with a NUL byte: " + printable_name(*path));
    }
    const auto classes = std::ssize(info_.class_names);
    if (label(id) >= 0 && (classes == 0 || label(id) < classes)) return;
    fail("has label " + std::to_string(label(id)) + ", must be 0 or more" +
         (classes == 0 ? ""
                       : " and less than the number of class names, " + std::to_string(classes)));
  }

  uint64_t make_fingerprint() const {
    const auto& labels = samples_.labels;
    uint64_t hash = XXH3_64bits(labels.data(), labels.size() * sizeof(labels[0]));
    const auto add = [&hash](const void* data, size_t bytes) {
      hash = XXH3_64bits_withSeed(data, bytes, hash);
    };
    for (const std::string& path : samples_.paths) add(path.c_str(), path.size() + 1);
    for (const auto& image : samples_.bytes) {
      const uint64_t bytes = image.size();
      add(&bytes, sizeof bytes);
    }
    for (const std::string& name : info_.class_names) add(name.c_str(), name.size() + 1);
    return hash;
  }

  ListedSamples samples_;  // without what info_ has
  const Descriptor folder_;
  SourceInfo info_;
  uint64_t labels_digest_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_listed_source(ListedSamples samples) {
  return std::make_unique<ListedSource>(std::move(samples));
}

}  // namespace stoker
