#include "pipeline/source/cifar_source.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "pipeline/source/blob/blob_location.h"

namespace stoker {
namespace {

constexpr int kSide = 32;
constexpr int kPixelBytes = 3 * kSide * kSide;

struct Variant {
  const char* folder;  // the folder that the archive unpacks to
  std::vector<std::string> train_files, test_files;
  const char* names_file;
  int classes;
  int label_bytes;  // the last one is the label
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> kVariants = {
      {"cifar-10-batches-bin",
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin"},
       {"test_batch.bin"},
       "batches.meta.txt",
       10,
       1},
      {"cifar-100-binary", {"train.bin"}, {"test.bin"}, "fine_label_names.txt", 100, 2},
  };
  return kVariants;
}

struct CifarFiles {
  const Variant* variant;
  std::string prefix;  // before a file's name, relative to the given path: "" or "<folder>/"
};

std::optional<CifarFiles> locate(const BlobLocation& location) {
  std::vector<std::string> names;
  std::vector<CifarFiles> locations;  // of each name
  for (const Variant& variant : variants()) {
    for (const std::string& prefix : {std::string(), std::string(variant.folder) + "/"}) {
      for (const auto* files : {&variant.train_files, &variant.test_files}) {
        for (const std::string& file : *files) {
          names.push_back(prefix + file);
          locations.push_back({&variant, prefix});
        }
      }
    }
  }
  const std::vector<std::string> missing = location.missing(names);  // in the order of the names
  const auto [name, absent] =
      std::mismatch(names.begin(), names.end(), missing.begin(), missing.end());
  if (name == names.end()) return std::nullopt;
  return locations[static_cast<size_t>(name - names.begin())];
}

struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using RecordMemory = std::unique_ptr<uint8_t[], FreeMemory>;

// Allocates huge pages if the kernel has them: a shuffled epoch accesses this memory at random, and
// with small pages the address translation of a record costs up to a third of reading it.
RecordMemory allocate_records(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  RecordMemory memory(static_cast<uint8_t*>(std::aligned_alloc(kHugePage, whole)));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory.get(), whole, MADV_HUGEPAGE);  // only a request: everything works without it
  return memory;
}

std::vector<std::string> cifar_class_names(const BlobLocation& location, const std::string& name,
                                           int classes) {
  std::vector<std::string> names;
  if (location.bytes_of(name) < 0) {
    for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
    return names;
  }
  std::istringstream lines(location.read_whole(name));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (std::ssize(names) != classes) {
    throw std::runtime_error(location.path_of(name) + ": " + std::to_string(names.size()) +
                             " class names, expected " + std::to_string(classes));
  }
  return names;
}

class CifarSource final : public Source {
 public:
  CifarSource(const BlobLocation& location, const CifarFiles& found, Split split)
      : variant_(*found.variant),
        record_bytes_(variant_.label_bytes + kPixelBytes),
        info_{.encoding = SampleEncoding::raw_planar,
              .raw_size = {kSide, kSide},
              .root = location.root(),
              .class_names = cifar_class_names(location, found.prefix + variant_.names_file,
                                               variant_.classes)} {
    const auto add = [&](const std::vector<std::string>& files) {
      for (const std::string& file : files) files_.push_back({found.prefix + file, 0, 0});
    };
    if (split != Split::test) add(variant_.train_files);
    if (split != Split::train) add(variant_.test_files);
    measure(location);
    load(location);
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return record(id)[variant_.label_bytes - 1]; }
  std::string name(SampleId id) const override {
    const auto next = std::upper_bound(files_.begin(), files_.end(), id,
                                       [](SampleId i, const File& file) { return i < file.first; });
    const File& file = *(next - 1);
    return file.name + ":" + std::to_string(id - file.first);
  }
  ReadStatus read(SampleId id, std::vector<uint8_t>&,
                  std::span<const uint8_t>& bytes) const override {
    bytes = {record(id) + variant_.label_bytes, kPixelBytes};
    return {};
  }

 private:
  struct File {
    std::string name;  // relative to the root
    int64_t first;     // id of its first record
    int64_t records;
  };

  const uint8_t* record(SampleId id) const { return data_.get() + id * record_bytes_; }

  void measure(const BlobLocation& location) {
    for (File& file : files_) {
      const std::string path = location.path_of(file.name);
      const int64_t bytes = location.stamp(file.name).bytes;
      if (bytes == 0 || bytes % record_bytes_ != 0) {
        throw std::runtime_error(path + ": " + std::to_string(bytes) +
                                 " bytes is not a whole number of records of " +
                                 std::to_string(record_bytes_) + " bytes");
      }
      file.first = info_.size;
      file.records = bytes / record_bytes_;
      info_.size += file.records;
    }
  }

  void load(const BlobLocation& location) {
    data_ = allocate_records(static_cast<size_t>(info_.size * record_bytes_));
    std::vector<uint8_t> labels;
    labels.reserve(static_cast<size_t>(info_.size));
    for (const File& file : files_) {
      const std::string path = location.path_of(file.name);
      const std::unique_ptr<BlobReader> blob = location.open(file.name);
      const auto records = blob->read(0, file.records * record_bytes_, "the records");
      std::memcpy(data_.get() + file.first * record_bytes_, records.data(), records.size());
      for (int64_t i = 0; i < file.records; ++i) {
        const int value = label(file.first + i);
        if (value >= variant_.classes) {
          throw std::runtime_error(path + ": record " + std::to_string(i) + " has label " +
                                   std::to_string(value) + ", there are " +
                                   std::to_string(variant_.classes) + " classes");
        }
        labels.push_back(static_cast<uint8_t>(value));
      }
    }
    info_.fingerprint = XXH3_64bits_withSeed(labels.data(), labels.size(),
                                             static_cast<XXH64_hash_t>(variant_.classes));
    for (const File& file : files_) {
      info_.fingerprint =
          XXH3_64bits_withSeed(file.name.data(), file.name.size(),
                               info_.fingerprint + static_cast<uint64_t>(file.records));
    }
    for (const std::string& name : info_.class_names) {
      info_.fingerprint = XXH3_64bits_withSeed(name.data(), name.size(), info_.fingerprint);
    }
  }

  const Variant& variant_;
  const int64_t record_bytes_;
  SourceInfo info_;
  std::vector<File> files_;
  RecordMemory data_;  // (size, record_bytes_) u8
};

}  // namespace

bool is_cifar_folder(const BlobLocation& location) { return locate(location).has_value(); }

std::unique_ptr<Source> make_cifar_source(const BlobLocation& location, Split split) {
  const auto found = locate(location);
  if (!found) {
    throw std::runtime_error(location.root() +
                             ": no CIFAR binary files (data_batch_1.bin ..., test_batch.bin, "
                             "train.bin or test.bin) there");
  }
  return std::make_unique<CifarSource>(location, *found, split);
}

bool is_cifar_folder(const std::string& path) { return is_cifar_folder(*local_location(path)); }

std::unique_ptr<Source> make_cifar_source(const std::string& path, Split split) {
  return make_cifar_source(*local_location(path), split);
}

}  // namespace stoker
