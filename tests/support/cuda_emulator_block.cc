// The emulator's execution of a kernel: block after block in a shuffled order, with a block's
// threads as coroutines.
#include <cuda_runtime_api.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

using Work = std::function<void()>;

namespace cuda_emulator {
namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "CUDA emulator: %s (block %u, %u)\n", what, blockIdx.x, blockIdx.y);
  std::abort();
}

unsigned threads_of(const dim3& block) { return block.x * block.y * block.z; }

uint3 place_of(unsigned thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

// The threads of one block, as coroutines of the calling thread.
class Block {
 public:
  explicit Block(const std::function<void()>& thread)
      : body_(thread), threads_(threads_of(blockDim)), fibers_(threads_), order_(threads_) {
    std::iota(order_.begin(), order_.end(), 0u);
  }

  void run() {
    current_ = this;
    start(0);
    resume(0);
    if (fibers_[0].done) {  // then no thread may use a barrier, and plain calls suffice
      for (running_ = 1; running_ < threads_; ++running_) {
        threadIdx = place_of(running_);
        body_();
      }
    } else {
      for (unsigned thread = 1; thread < threads_; ++thread) {
        start(thread);
        resume(thread);
        if (fibers_[thread].done) broken("a thread ended while others wait for it");
      }
      while (!all_done()) take_turns();
    }
    current_ = nullptr;
  }

  // Ends a thread's turn; its next turn begins when all others have reached the barrier.
  void meet() {
    Fiber& fiber = fibers_[running_];
    if (!fiber.started) broken("a thread waits for others that ended without waiting");
    swapcontext(&fiber.context, &main_);
  }

  static Block& current() {
    if (current_ == nullptr) broken("not in a kernel");
    return *current_;
  }

  std::vector<int64_t> said = std::vector<int64_t>(1024);
  unsigned running() const { return running_; }
  unsigned threads() const { return threads_; }

 private:
  static constexpr size_t kStackBytes = 64 << 10;
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
    bool started = false, done = false;
  };

  static void enter() {
    Block& block = current();
    block.body_();
    Fiber& fiber = block.fibers_[block.running_];
    fiber.done = true;
    swapcontext(&fiber.context, &block.main_);
  }

  void start(unsigned thread) {
    Fiber& fiber = fibers_[thread];
    fiber.stack.reset(new std::byte[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Block::enter, 0);
    fiber.started = true;
  }

  void resume(unsigned thread) {
    running_ = thread;
    threadIdx = place_of(thread);
    swapcontext(&main_, &fibers_[thread].context);
  }

  void take_turns() {
    for (size_t i = order_.size(); i > 1; --i) {
      seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(order_[i - 1], order_[(seed_ >> 33) % i]);
    }
    for (const unsigned thread : order_) resume(thread);
  }

  bool all_done() const {
    size_t done = 0;
    for (const Fiber& fiber : fibers_) done += fiber.done ? 1 : 0;
    if (done != 0 && done != fibers_.size()) broken("a thread ended while others wait for it");
    return done != 0;
  }

  static thread_local Block* current_;
  const std::function<void()>& body_;
  const unsigned threads_;
  std::vector<Fiber> fibers_;
  std::vector<unsigned> order_;
  ucontext_t main_{};
  unsigned running_ = 0;
  uint64_t seed_ = 1;
};

thread_local Block* Block::current_ = nullptr;

}  // namespace

void meet() { Block::current().meet(); }
unsigned thread_number() { return Block::current().running(); }

int64_t said_by(unsigned thread, int64_t own) {
  Block& block = Block::current();
  if (thread >= block.threads()) broken("a shuffle reaches beyond the block");
  block.said[block.running()] = own;
  block.meet();
  const int64_t said = block.said[thread];
  block.meet();
  return said;
}

bool all_say(bool own) {
  Block& block = Block::current();
  block.said[block.running()] = own ? 1 : 0;
  block.meet();
  bool all = true;
  for (unsigned t = 0; t < block.threads(); ++t) all = all && block.said[t] != 0;
  block.meet();
  return all;
}

void run(dim3 grid, dim3 block, const Work& thread) {
  gridDim = grid;
  blockDim = block;
  std::vector<unsigned> order(grid.x * grid.y);
  std::iota(order.begin(), order.end(), 0u);
  static thread_local std::mt19937 shuffler;  // a different order in every kernel
  std::shuffle(order.begin(), order.end(), shuffler);
  for (const unsigned each : order) {
    blockIdx = {each % grid.x, each / grid.x, 0};
    Block(thread).run();
  }
}

}  // namespace cuda_emulator
