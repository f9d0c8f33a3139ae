// The samples of an object of Python (stoker.dataset()). Its __getitem__ runs behind DatasetReader,
// in worker processes (worker_pool.h) or on the calling thread (bind_dataset.cc); the source makes
// samples of what it answers. Owner: whoever holds the source; it keeps the reader, and its end,
// which may wait, releases Python's lock. Threads: any, several at once.
//
// A sample's name is "dataset/17". Without labels in the options the labels come with the samples:
// until a sample has been read, its label is unknown (source_sample.h).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker::python {

// The numbers are those of python/stoker/_dataset_worker.py.
enum class AnswerKind : uint32_t {
  bytes = 0,  // of an image file
  path = 1,   // of an image file
  bad = 2,    // a message: why there is no sample
  ready = 3,  // a worker process has started
};

inline constexpr int32_t kNoLabel = -1;

struct DatasetAnswer {
  AnswerKind kind = AnswerKind::bad;
  int32_t label = kNoLabel;
  size_t size = 0;  // of what is in the buffer
};

class DatasetReader {
 public:
  virtual ~DatasetReader() = default;
  // Puts the bytes, the path or the message at the beginning of `buffer`, which grows and never
  // shrinks. Waits for as long as __getitem__ takes; read_stop.h says what ends it before. Throws
  // std::runtime_error if no sample can be read at all.
  virtual DatasetAnswer read(SampleId id, std::vector<uint8_t>& buffer) = 0;

 private:
  friend class ReaderUse;
  // Ends what was started for reading and is not in use; the next read() starts it again. May wait
  // for a second.
  virtual void end_idle() noexcept {}
  // How often it is used, and in which process: a child made by fork() counts its own uses. One
  // atomic, and not a mutex, which another thread of the parent may have had at the fork().
  struct Uses {
    pid_t process = 0;
    int32_t count = 0;
  };
  std::atomic<Uses> uses_{Uses{}};
};

// A Loader's use of a reader. With the end of the last one, the reader's processes end. The end may
// wait; it releases Python's lock if it holds it.
class ReaderUse {
 public:
  explicit ReaderUse(std::shared_ptr<DatasetReader> reader);
  ~ReaderUse();
  ReaderUse(const ReaderUse&) = delete;
  ReaderUse& operator=(const ReaderUse&) = delete;

 private:
  const std::shared_ptr<DatasetReader> reader_;
  const pid_t process_;
};

struct DatasetOptions {
  int64_t samples = 0;
  std::optional<std::vector<int32_t>> labels{};  // one for each sample
  std::vector<std::string> class_names{};
  std::string root{};  // paths are relative to it
  // The reader gives the values of each, one after the other, in front of the bytes or the path. In
  // front of these are those of columns that vary, each behind its number of bytes (uint64_t), all
  // of them between two numbers of how many bytes they are: one for who comes from either side.
  std::vector<TargetColumn> targets{};
  // Their bytes (pipeline/source/annotated/picture_code.h) come in front of all that, between two
  // such numbers.
  AnnotationInfo annotations{};
};

// Throws std::invalid_argument with the numbers; std::runtime_error if the root cannot be opened.
std::shared_ptr<const Source> make_dataset_source(std::shared_ptr<DatasetReader> reader,
                                                  DatasetOptions options);

}  // namespace stoker::python
