// A source of samples: how many there are, their labels and names, and the bytes of each. Owner:
// the user; outlives the Loader. Threads: all const functions may run on any threads at once.
// Errors: construction throws with the path; read() returns a status.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "staging/batch_layout.h"

namespace stoker {

enum class SampleEncoding : uint8_t {
  image_file,  // the bytes of a JPEG, PNG, ... file
  raw_planar,  // (3, height, width) u8, as CIFAR's binary files
  raw_rgb,     // (height, width, 3) u8
};

struct ReadStatus {
  bool ok = true;
  std::string message;  // errno text and numbers if not ok
};

// A note about something in a source that its user may not expect.
struct SourceNote {
  std::string reason;   // "left_out": files that are no samples; "two_labels": files with two
  int64_t files = 0;    // how many
  std::string name;     // the first of them, in the form of Source::name()
  std::string message;  // a sentence: "106 .gif files are left out (not read: GIF), as cat/1.gif"
};

class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;
  virtual int label(SampleId id) const = 0;
  // Unique, printable, stable between runs; for files: the path relative to root().
  virtual std::string name(SampleId id) const = 0;
  virtual const std::string& root() const = 0;  // "" if there is none
  virtual const std::vector<std::string>& class_names() const = 0;
  virtual SampleEncoding encoding() const = 0;
  virtual Size raw_size() const = 0;  // of every sample, if the encoding is raw
  // Sets `bytes` to the sample's bytes, either inside `buffer` (which is resized and reused) or in
  // memory that the source owns. `bytes` is valid until the next call with the same buffer.
  virtual ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const = 0;
  // As read(), but only for bytes that are in memory already, so that the call takes no longer than
  // a copy; it must not wait for storage. Returns false if they are not in memory, if that cannot
  // be known, or if something is wrong with the sample, which read() will report.
  virtual bool read_cached([[maybe_unused]] SampleId id,
                           [[maybe_unused]] std::vector<uint8_t>& buffer,
                           [[maybe_unused]] std::span<const uint8_t>& bytes) const {
    return false;
  }
  // Returns notes about files that are left out or listed under two labels, in a fixed order.
  virtual std::vector<SourceNote> notes() const { return {}; }
  // Changes when the list of samples or labels changes; not with the content of a file.
  virtual uint64_t fingerprint() const = 0;
};

enum class Split : uint8_t { all, train, test };

// Opens the data set at `path`: CIFAR-10/100 binary files, or an image folder. With train or test,
// it looks for a folder of that meaning (train; test, val, validation), or takes CIFAR's files for
// that split. Throws std::runtime_error with the path and what was found there.
std::unique_ptr<Source> open_source(const std::string& path, Split split);

}  // namespace stoker
