// A GPU behind Device: each call maps to one CUDA call. Streams do not wait for the default stream;
// events have no time unless requested, and block instead of spinning. Stream priorities are not
// set, because they have no effect on copies.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "staging/cuda_context.h"
#include "staging/cuda_kernels.h"
#include "staging/cuda_memory.h"
#include "staging/cuda_plugin.h"

namespace stoker {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent(const CudaContext& context, bool timing) : context_(context), timing_(timing) {
    CudaContext::Current current(context_);
    const unsigned flags = cudaEventBlockingSync | (timing ? 0U : cudaEventDisableTiming);
    context_.check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
  }
  ~CudaEvent() override {
    const CudaContext::Current current(context_, std::nothrow);
    if (current.error() == cudaSuccess) cudaEventDestroy(event_);
  }

  bool query() const override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();  // clears it for the next call
      return false;
    }
    context_.check(error, "cudaEventQuery");
    return true;
  }

  void synchronize() const override {
    CudaContext::Current current(context_);
    context_.check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    context_.throw_if_failed();  // only after waiting for what a failed GPU still runs
  }

  double elapsed_ms(const Event& start) const override {
    const auto* first = dynamic_cast<const CudaEvent*>(&start);
    if (first == nullptr || !first->timing_ || !timing_ || !query() || !first->query()) {
      throw std::runtime_error(context_.name() +
                               ": elapsed_ms() needs events made with timing, recorded and "
                               "reached");
    }
    CudaContext::Current current(context_);
    float ms = 0;
    context_.check(cudaEventElapsedTime(&ms, first->event_, event_), "cudaEventElapsedTime");
    return ms;
  }

  void* native_handle() const override { return event_; }

 private:
  const CudaContext& context_;
  const bool timing_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(const CudaContext& context) : context_(context) {
    CudaContext::Current current(context_);
    context_.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags");
  }
  CudaStream(const CudaContext& context, cudaStream_t borrowed)
      : context_(context), owned_(false), stream_(borrowed) {}

  ~CudaStream() override {
    const CudaContext::Current current(context_, std::nothrow);
    // Others' work on a borrowed stream need not be waited for, and the stream may be gone.
    const bool wait = owned_ || !calls_.empty();
    if (wait && wait_for_work(current) != cudaSuccess) {
      for (auto& call : calls_) call.release();  // CUDA may still use their addresses
    }
    if (owned_ && current.error() == cudaSuccess) cudaStreamDestroy(stream_);
  }

  void copy(void* target, const void* source, size_t bytes, CopyKind kind) override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    check(cudaMemcpyAsync(target, source, bytes, kind_of(kind), stream_), "cudaMemcpyAsync");
  }

  void record(Event& event) override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    check(cudaEventRecord(handle_of(event), stream_), "cudaEventRecord");
  }

  void wait(const Event& event) override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    check(cudaStreamWaitEvent(stream_, handle_of(event), 0), "cudaStreamWaitEvent");
  }

  void call(std::function<void()> function) override {
    context_.throw_if_failed();
    Call& queued = next_call();
    queued.function = std::move(function);
    queued.state.store(CallState::waiting);
    CudaContext::Current current(context_);
    check(cudaLaunchHostFunc(stream_, &run, &queued), "cudaLaunchHostFunc");
  }

  void synchronize() override {
    const CudaContext::Current current(context_, std::nothrow);
    check(wait_for_work(current), "cudaStreamSynchronize");
    context_.throw_if_failed();
  }

  // Like CudaContext::check(), but an invalid borrowed stream is no failure of the GPU.
  void check(cudaError_t error, const char* call) const {
    if (owned_ || !is_of_the_stream(error)) return context_.check(error, call);
    cudaGetLastError();  // clears it for the next call
    char handle[32];
    std::snprintf(handle, sizeof handle, "%p", static_cast<void*>(stream_));
    throw BorrowedStreamError(context_.name() + ": " + call + " on the borrowed stream " + handle +
                              ": " + cuda_error_text(error) +
                              "; it must be a stream of this GPU that is neither destroyed nor "
                              "being captured");
  }

  void* native_handle() const override { return stream_; }
  const CudaContext& context() const { return context_; }

 private:
  // A GPU that fails may or may not drop what is queued: each function runs once or never.
  enum class CallState : uint8_t { waiting, running, over };
  struct Call {
    std::function<void()> function;
    std::atomic<CallState> state{CallState::over};
  };

  // Calls run in order, so the oldest is over first: its entry is used again, or one is added.
  Call& next_call() {
    if (calls_.empty() || calls_[oldest_]->state.load() != CallState::over) {
      calls_.insert(calls_.begin() + static_cast<std::ptrdiff_t>(oldest_),
                    std::make_unique<Call>());
    }
    Call& call = *calls_[oldest_];
    oldest_ = (oldest_ + 1) % calls_.size();
    return call;
  }

  static void run(void* queued) {
    Call& call = *static_cast<Call*>(queued);
    CallState state = CallState::waiting;
    if (!call.state.compare_exchange_strong(state, CallState::running)) return;
    call.function();
    call.function = nullptr;  // destroys what it holds before it counts as over
    call.state.store(CallState::over);
    call.state.notify_all();
  }

  // After this no call is running, and none will run.
  cudaError_t wait_for_work(const CudaContext::Current& current) {
    cudaError_t error = current.error();
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream_);
    if (error != cudaSuccess) cancel_calls();
    return error;
  }

  // The waiting ones first: else the next would begin when the running one ends.
  void cancel_calls() {
    for (auto& call : calls_) {
      CallState state = CallState::waiting;
      if (call->state.compare_exchange_strong(state, CallState::over)) call->function = nullptr;
    }
    for (auto& call : calls_) call->state.wait(CallState::running);
  }

  static bool is_of_the_stream(cudaError_t error) {
    return error == cudaErrorInvalidResourceHandle || error == cudaErrorContextIsDestroyed ||
           (error >= cudaErrorStreamCaptureUnsupported &&
            error <= cudaErrorStreamCaptureWrongThread);
  }

  static cudaMemcpyKind kind_of(CopyKind kind) {
    switch (kind) {
      case CopyKind::host_to_device:
        return cudaMemcpyHostToDevice;
      case CopyKind::device_to_host:
        return cudaMemcpyDeviceToHost;
      case CopyKind::device_to_device:
        return cudaMemcpyDeviceToDevice;
    }
    return cudaMemcpyDefault;
  }

  cudaEvent_t handle_of(const Event& event) const {
    const auto* cuda = dynamic_cast<const CudaEvent*>(&event);
    if (cuda == nullptr) throw std::runtime_error(context_.name() + ": an event of another device");
    return static_cast<cudaEvent_t>(cuda->native_handle());
  }

  const CudaContext& context_;
  const bool owned_ = true;
  cudaStream_t stream_ = nullptr;
  std::vector<std::unique_ptr<Call>> calls_;  // a ring; CUDA drops the calls when the GPU fails
  size_t oldest_ = 0;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, int numa_node) : context_(ordinal), numa_node_(numa_node) {
    CudaContext::Current current(context_);
    context_.check(load_normalise(), "the normalise kernels");
    context_.check(load_row_edits(), "the kernels that edit rows");
  }

  const std::string& name() const override { return context_.name(); }
  bool host_accessible() const override { return false; }
  int cuda_ordinal() const override { return context_.ordinal(); }

  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    if (kind == MemoryKind::device) return allocate_on_gpu(context_, bytes);
    return allocate_pinned(context_, bytes, numa_node_, warned_);
  }
  std::unique_ptr<Stream> make_stream() override {
    context_.throw_if_failed();
    return std::make_unique<CudaStream>(context_);
  }
  std::unique_ptr<Stream> borrow_stream(void* native_handle) override {
    context_.throw_if_failed();
    return std::make_unique<CudaStream>(context_, static_cast<cudaStream_t>(native_handle));
  }
  void wait_for_everyone() override {
    context_.throw_if_failed();
    CudaContext::Current current(context_);
    context_.check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::unique_ptr<Event> make_event(bool timing) override {
    context_.throw_if_failed();
    return std::make_unique<CudaEvent>(context_, timing);
  }

 private:
  const CudaContext context_;
  const int numa_node_;
  std::atomic<bool> warned_{false};
};

std::unique_ptr<Device> make(int ordinal, int numa_node) {
  return std::make_unique<CudaDevice>(ordinal, numa_node);
}

// Queues a kernel by `launch`, a function of a stream and the kernel's arguments.
template <typename Launch, typename Args>
void queue_kernel(Stream& stream, const char* name, Launch launch, const Args& args) {
  auto* cuda = dynamic_cast<CudaStream*>(&stream);
  if (cuda == nullptr) throw std::runtime_error(std::string(name) + ": a stream of another device");
  const CudaContext& context = cuda->context();
  context.throw_if_failed();
  CudaContext::Current current(context);
  cuda->check(launch(static_cast<cudaStream_t>(cuda->native_handle()), args), name);
}

void normalise(Stream& stream, const NormaliseArgs& args) {
  queue_kernel(stream, "normalise", launch_normalise, args);
}

void edit_rows(Stream& stream, const RowEditArgs& args) {
  queue_kernel(stream, "edit_rows", launch_row_edits, args);
}

constexpr CudaPlugin kPlugin = {kCudaPluginVersion, STOKER_BUILD_STAMP, CUDART_VERSION, make,
                                normalise,          edit_rows};

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CudaPlugin* stoker_cuda_plugin() {
  return &stoker::kPlugin;
}
