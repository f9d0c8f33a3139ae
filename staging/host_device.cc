// The host device: a stream is a worker thread with a fixed ring of commands, an event is a
// position in a stream. It is the reference for all devices and follows CUDA's rules: wait() means
// the last record at the time of the call, an event that was never recorded counts as reached, and
// an event may be destroyed while queued work refers to it.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "staging/device.h"
#include "staging/error_text.h"
#include "staging/mutex.h"
#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr size_t kPageBytes = 4096, kHugePageBytes = size_t{2} << 20;

// How many commands of a stream have finished. Shared by the stream and the events recorded on it,
// so it outlives the stream as long as such an event exists.
class Timeline {
 public:
  bool reached(int64_t position) const { return done_.load(std::memory_order_acquire) >= position; }

  void wait(int64_t position) {
    if (reached(position)) return;
    MutexLock lock(mutex_);
    while (!reached(position)) {
      wake_at_ = std::min(wake_at_, position);
      changed_.wait(lock);
    }
  }

  void advance() {
    {
      MutexLock lock(mutex_);
      int64_t done = done_.load(std::memory_order_relaxed) + 1;
      done_.store(done, std::memory_order_release);
      if (done < wake_at_) return;
      wake_at_ = kNobody;  // threads that wait for a later position set it again
    }
    changed_.notify_all();
  }

 private:
  static constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();

  Mutex mutex_;
  CondVar changed_;
  std::atomic<int64_t> done_{0};                  // written under mutex_
  int64_t wake_at_ GUARDED_BY(mutex_) = kNobody;  // the earliest position that a thread waits for
};

// A position in a stream; without a timeline it counts as reached.
struct Mark {
  std::shared_ptr<Timeline> timeline;
  int64_t position = 0;

  bool reached() const { return timeline == nullptr || timeline->reached(position); }
  void wait() const {
    if (timeline != nullptr) timeline->wait(position);
  }
};

// State that an event shares with the queued command that writes its time.
struct EventState {
  Mutex mutex;
  Mark mark GUARDED_BY(mutex);
  int64_t records GUARDED_BY(mutex) = 0;
  int64_t time_ns GUARDED_BY(mutex) = 0;  // when the last record was reached
};

class HostEvent;
const HostEvent& host_event(const Event& event, const std::string& device_name);

class HostEvent final : public Event {
 public:
  HostEvent(std::string device_name, bool timing)
      : device_name_(std::move(device_name)),
        timing_(timing),
        state_(std::make_shared<EventState>()) {}

  bool query() const override { return mark().reached(); }
  void synchronize() const override { mark().wait(); }

  double elapsed_ms(const Event& start) const override {
    int64_t start_ns = host_event(start, device_name_).reached_time_ns();
    return static_cast<double>(reached_time_ns() - start_ns) * 1e-6;
  }

  bool timing() const { return timing_; }
  const std::shared_ptr<EventState>& state() const { return state_; }
  Mark mark() const {
    MutexLock lock(state_->mutex);
    return state_->mark;
  }

 private:
  int64_t reached_time_ns() const {
    MutexLock lock(state_->mutex);
    if (!timing_ || state_->records == 0 || !state_->mark.reached()) {
      throw std::runtime_error(device_name_ +
                               ": elapsed_ms() needs events made with timing, "
                               "recorded and reached");
    }
    return state_->time_ns;
  }

  const std::string device_name_;
  const bool timing_;
  const std::shared_ptr<EventState> state_;
};

const HostEvent& host_event(const Event& event, const std::string& device_name) {
  const auto* host = dynamic_cast<const HostEvent*>(&event);
  if (host == nullptr) throw std::runtime_error(device_name + ": an event of another device");
  return *host;
}

class HostStream final : public Stream {
 public:
  explicit HostStream(std::string device_name)
      : device_name_(std::move(device_name)),
        worker_(start_thread("a stream", [this] { work(); })) {}

  ~HostStream() override {
    {
      MutexLock lock(mutex_);
      closing_ = true;
    }
    pushed_changed_.notify_one();
    worker_.join();
  }

  void copy(void* target, const void* source, size_t bytes, CopyKind) override {
    push(Copy{target, source, bytes});
  }

  void record(Event& event) override {
    const HostEvent& host = host_event(event, device_name_);
    EventState& state = *host.state();
    int64_t record = 0;
    {
      MutexLock lock(state.mutex);
      record = ++state.records;
    }
    // A mark covers the work queued so far and needs no command; only a time needs one.
    if (host.timing()) push(Stamp{host.state(), record});
    MutexLock lock(state.mutex);
    state.mark = Mark{timeline_, pushed_};
  }

  void wait(const Event& event) override {
    Mark mark = host_event(event, device_name_).mark();
    if (!mark.reached()) push(std::move(mark));
  }

  void call(std::function<void()> function) override { push(std::move(function)); }

  void synchronize() override { timeline_->wait(pushed_); }

 private:
  struct Copy {
    void* target;
    const void* source;
    size_t bytes;
  };
  struct Stamp {
    std::shared_ptr<EventState> state;
    int64_t record;
  };
  using Command = std::variant<std::monostate, Copy, Mark, Stamp, std::function<void()>>;

  static constexpr int64_t kCommands = 1024;  // a full queue blocks the caller, as CUDA's does

  void push(Command command) {
    timeline_->wait(pushed_ - kCommands + 1);
    {
      MutexLock lock(mutex_);
      commands_[static_cast<size_t>(pushed_ % kCommands)] = std::move(command);
      ++pushed_;
    }
    pushed_changed_.notify_one();
  }

  void work() noexcept {
    for (int64_t next = 0;; ++next) {
      {
        MutexLock lock(mutex_);
        while (pushed_ == next && !closing_) pushed_changed_.wait(lock);
        if (pushed_ == next) return;
      }
      Command& command = commands_[static_cast<size_t>(next % kCommands)];
      run(command);
      // Destroys a closure's captures before the command counts as done.
      command = std::monostate{};
      timeline_->advance();
    }
  }

  static void run(Command& command) {
    if (const auto* copy = std::get_if<Copy>(&command)) {
      if (copy->bytes > 0) std::memcpy(copy->target, copy->source, copy->bytes);
    } else if (const auto* mark = std::get_if<Mark>(&command)) {
      mark->wait();
    } else if (const auto* stamp = std::get_if<Stamp>(&command)) {
      MutexLock lock(stamp->state->mutex);
      if (stamp->record == stamp->state->records) stamp->state->time_ns = steady_now_ns();
    } else if (const auto* function = std::get_if<std::function<void()>>(&command)) {
      (*function)();
    }
  }

  const std::string device_name_;
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();
  Mutex mutex_;
  CondVar pushed_changed_;
  std::vector<Command> commands_{static_cast<size_t>(kCommands)};
  int64_t pushed_ = 0;  // written only by the caller, under mutex_
  bool closing_ GUARDED_BY(mutex_) = false;
  std::jthread worker_;  // last: it uses all of the above
};

// Zeros. Large memory uses huge pages if the kernel has them: rows are read and written all over
// it, and small pages would each need a lookup. Only whole huge pages are requested, so that no
// more memory is resident than was asked for. It comes from the kernel, which makes its pages at
// their first use: that takes longer than everything else that a feed's construction does.
class HostMemory final : public Memory {
 public:
  explicit HostMemory(size_t bytes)
      : mapped_bytes_(bytes >= kHugePageBytes ? bytes + kHugePageBytes : 0), size_bytes_(bytes) {
    if (mapped_bytes_ == 0) {
      try {
        allocation_ = ::operator new (std::max<size_t>(bytes, 1), std::align_val_t{kPageBytes});
      } catch (const std::bad_alloc&) {
        throw OutOfMemory("rows in host memory", bytes);
      }
      data_ = static_cast<std::byte*>(allocation_);
      std::memset(data_, 0, bytes);
      return;
    }
    allocation_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (allocation_ == MAP_FAILED) throw OutOfMemory("rows in host memory", bytes);
    const size_t over = reinterpret_cast<uintptr_t>(allocation_) % kHugePageBytes;
    data_ = static_cast<std::byte*>(allocation_) + (over > 0 ? kHugePageBytes - over : 0);
    madvise(data_, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);  // only a hint
  }
  ~HostMemory() override {
    if (mapped_bytes_ > 0) {
      munmap(allocation_, mapped_bytes_);
    } else {
      ::operator delete (allocation_, std::align_val_t{kPageBytes});
    }
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::byte* data() override { return data_; }
  size_t size_bytes() const override { return size_bytes_; }

 private:
  const size_t mapped_bytes_;  // 0: it is malloc's
  void* allocation_ = nullptr;
  std::byte* data_ = nullptr;
  const size_t size_bytes_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(int index) : name_("cpu:" + std::to_string(index)) {}

  const std::string& name() const override { return name_; }
  bool host_accessible() const override { return true; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind) override {
    return std::make_unique<HostMemory>(bytes);
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<HostStream>(name_); }
  std::unique_ptr<Event> make_event(bool timing) override {
    return std::make_unique<HostEvent>(name_, timing);
  }

 private:
  const std::string name_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int index) { return std::make_unique<HostDevice>(index); }

}  // namespace stoker
