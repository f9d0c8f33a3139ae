// The emulator's execution of a kernel: block after block in a shuffled order, with a block's
// threads as coroutines.
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
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

// A coroutine with its stack, which runs a block's thread after another's. Where it goes on is kept
// by _setjmp(), which asks nothing of the system, as swapcontext() does.
struct Fiber {
  std::unique_ptr<std::byte[]> stack;
  jmp_buf place{};
  bool started = false, done = false;  // in this block
};
thread_local std::vector<Fiber> fibers;

// The threads of one block, as coroutines of the calling thread.
class Block {
 public:
  explicit Block(const std::function<void()>& thread)
      : body_(thread), threads_(threads_of(blockDim)), order_(threads_) {
    if (fibers.size() < threads_) fibers.resize(threads_);
    for (unsigned i = 0; i < threads_; ++i) fibers[i].started = fibers[i].done = false;
    std::iota(order_.begin(), order_.end(), 0u);
  }

  void run() {
    current_ = this;
    resume(0);
    if (fibers[0].done) {  // then no thread may use a barrier, and plain calls suffice
      for (running_ = 1; running_ < threads_; ++running_) {
        threadIdx = place_of(running_);
        body_();
      }
    } else {
      for (unsigned thread = 1; thread < threads_; ++thread) {
        resume(thread);
        if (fibers[thread].done) broken("a thread ended while others wait for it");
      }
      while (!all_done()) take_turns();
    }
    current_ = nullptr;
  }

  // Ends a thread's turn; its next turn begins when all others have reached the barrier.
  void meet() {
    Fiber& fiber = fibers[running_];
    if (!fiber.started) broken("a thread waits for others that ended without waiting");
    if (_setjmp(fiber.place) == 0) _longjmp(main_, 1);
  }

  static Block& current() {
    if (current_ == nullptr) broken("not in a kernel");
    return *current_;
  }

  std::array<int64_t, 1024> said{};
  unsigned running() const { return running_; }
  unsigned threads() const { return threads_; }

 private:
  static constexpr size_t kStackBytes = 64 << 10;

  static void enter() {
    for (;;) {  // each time for another block
      Block& block = current();
      block.body_();
      Fiber& fiber = fibers[block.running_];
      fiber.done = true;
      if (_setjmp(fiber.place) == 0) _longjmp(block.main_, 1);
    }
  }

  void resume(unsigned thread) {
    running_ = thread;
    threadIdx = place_of(thread);
    Fiber& fiber = fibers[thread];
    fiber.started = true;
    if (_setjmp(main_) != 0) return;  // its turn is over
    if (fiber.stack) _longjmp(fiber.place, 1);
    fiber.stack.reset(new std::byte[kStackBytes]);
    ucontext_t context{};
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, &Block::enter, 0);
    setcontext(&context);
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
    for (unsigned i = 0; i < threads_; ++i) done += fibers[i].done ? 1 : 0;
    if (done != 0 && done != threads_) broken("a thread ended while others wait for it");
    return done != 0;
  }

  static thread_local Block* current_;
  const std::function<void()>& body_;
  const unsigned threads_;
  std::vector<unsigned> order_;
  jmp_buf main_{};
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
