#include "python/core/read_stop.h"

#include <stdexcept>

#include "pipeline/source/forwarding_source.h"
#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

// The read that this thread does for a feed; null outside of one.
thread_local const std::atomic<bool>* reads_end = nullptr;

class ReadScope {
 public:
  explicit ReadScope(const std::atomic<bool>& stop) : before_(reads_end) { reads_end = &stop; }
  ~ReadScope() { reads_end = before_; }
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

class StoppableSource final : public ForwardingSource {
 public:
  StoppableSource(std::shared_ptr<const Source> source, const std::atomic<bool>& stop)
      : ForwardingSource(*source), kept_(std::move(source)), stop_(stop) {}

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    const ReadScope scope(stop_);
    return source_.read(id, buffer, bytes);
  }
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override {
    const ReadScope scope(stop_);
    return source_.read_picture(id, number, may_wait, buffer, bytes);
  }
  const SampleStorage& storage() const override { return source_.storage(); }

 private:
  const std::shared_ptr<const Source> kept_;
  const std::atomic<bool>& stop_;
};

}  // namespace

void check_read() {
  if (reads_end != nullptr) {
    if (*reads_end) throw std::runtime_error("the Loader was closed");
    return;
  }
  const Locked locked;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

bool reads_for_feed() { return reads_end != nullptr; }

std::shared_ptr<const Source> stoppable(std::shared_ptr<const Source> source,
                                        const std::atomic<bool>& stop) {
  return std::make_shared<StoppableSource>(std::move(source), stop);
}

}  // namespace stoker::python
