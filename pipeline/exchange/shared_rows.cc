#include "pipeline/exchange/shared_rows.h"

#include <algorithm>
#include <cstring>

#include "pipeline/files/digest.h"
#include "staging/stage_stats.h"

namespace stoker {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// A word, from its highest bit: 36 of the step, 12 of the owner's serial, 14 of the generation, 2
// of the state. Every claim has another generation, so that a late owner's word never comes again.
enum State : uint64_t { kFree = 0, kTaken = 1, kDone = 2, kDeclined = 3 };
constexpr int kStateBits = 2, kGenerationBits = 14, kSerialBits = 12;
constexpr int kStepShift = kStateBits + kGenerationBits + kSerialBits;
constexpr Step kLastStep = (Step{1} << (64 - kStepShift)) - 1;
static_assert(ShareFile::kSerials <= 1 << kSerialBits);

// A member waits for others for this part of its time.
constexpr int64_t kShareOfTime = 10;
constexpr int kLookMs = 20;
// So many blocks in a row are one member's: their samples may lie beside each other.
constexpr int kDealt = 8;

Step step_in(uint64_t word) { return static_cast<Step>(word >> kStepShift); }
uint64_t state_in(uint64_t word) { return word & ((1 << kStateBits) - 1); }
uint32_t serial_in(uint64_t word) {
  return static_cast<uint32_t>(word >> (kStateBits + kGenerationBits)) & ((1 << kSerialBits) - 1);
}
uint64_t with_state(uint64_t word, uint64_t state) {
  return (word & ~uint64_t{(1 << kStateBits) - 1}) | state;
}
uint64_t claimed(uint64_t old, Step step, uint32_t serial) {
  const uint64_t generation = ((old >> kStateBits) + 1) & ((uint64_t{1} << kGenerationBits) - 1);
  return static_cast<uint64_t>(step) << kStepShift |
         uint64_t{serial} << (kStateBits + kGenerationBits) | generation << kStateBits | kTaken;
}

// Covers the rows and their owner: rows of another step, with a seal of their own, do not pass.
uint64_t seal_of_rows(std::span<const std::byte> rows, uint64_t word) {
  const uint64_t both[] = {
      pixel_digest({reinterpret_cast<const uint8_t*>(rows.data()), rows.size()}),
      with_state(word, kTaken)};
  return digest128(both).low;
}

constexpr size_t kControlBytes = 16;

size_t aligned(size_t bytes) {
  return (bytes + BatchLayout::kAlignment - 1) / BatchLayout::kAlignment * BatchLayout::kAlignment;
}

// A laggard may copy a block out while another member writes over it, and learns only afterwards
// that its copy is useless. So the words of a block are read and written by relaxed atomics: H.-J.
// Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?" (MSPC 2012).
using SharedWord = std::atomic_ref<uint64_t>;
static_assert(SharedWord::is_always_lock_free);

void copy_out(uint64_t* shared, std::span<std::byte> rows) {
  std::byte* to = rows.data();
  const auto copy = [&](size_t bytes) {
    const uint64_t word = SharedWord(*shared++).load(std::memory_order_relaxed);
    std::memcpy(to, &word, bytes);
    to += bytes;
  };
  for (size_t left = rows.size() / sizeof(uint64_t); left > 0; --left) copy(sizeof(uint64_t));
  if (rows.size() % sizeof(uint64_t) != 0) copy(rows.size() % sizeof(uint64_t));
}

void copy_in(uint64_t* shared, std::span<const std::byte> rows) {
  const std::byte* from = rows.data();
  const auto copy = [&](size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    SharedWord(*shared++).store(word, std::memory_order_relaxed);
    from += bytes;
  };
  for (size_t left = rows.size() / sizeof(uint64_t); left > 0; --left) copy(sizeof(uint64_t));
  if (rows.size() % sizeof(uint64_t) != 0) copy(rows.size() % sizeof(uint64_t));
}

BlockRing ring_of(const SharedRows::Options& options) {
  return {.steps = options.steps, .devices = options.devices, .blocks = options.blocks};
}

// The controls of all blocks, and behind them their rows.
size_t file_bytes(const SharedRows::Options& options) {
  const size_t blocks = ring_of(options).size();
  return aligned(blocks * kControlBytes) + blocks * aligned(options.block_bytes);
}

ShareFile::Options file_options(const SharedRows::Options& options) {
  return {.name = options.name,
          .folder = options.folder,
          .fingerprint = options.fingerprint,
          .facts = options.facts,
          .steps = options.steps,
          .bytes = file_bytes(options),
          .position = options.first_step};
}

}  // namespace

struct SharedRows::Control {
  std::atomic<uint64_t> word;
  std::atomic<uint64_t> seal;
};

int64_t SharedRows::bytes() const {
  return static_cast<int64_t>(ShareFile::head_bytes() + file_bytes(options_));
}

SharedRows::SharedRows(const Options& options)
    : options_(options),
      ring_(ring_of(options)),
      file_(file_options(options)),
      wait_left_ns_(static_cast<int64_t>(1e9 * options.wait_s)),
      at_ns_(steady_now_ns()) {}

void SharedRows::wait_for_others(Step step, const std::function<bool()>& ends) {
  const int64_t start = steady_now_ns();
  int64_t limit = 0, waited = 0;
  {
    MutexLock lock(mutex_);
    limit = wait_left_ns_ = std::min(static_cast<int64_t>(1e9 * options_.wait_s),
                                     wait_left_ns_ + (start - at_ns_) / kShareOfTime);
    at_ns_ = start;
  }
  // Who is further behind has been let go.
  const Step needed = step - options_.steps;
  for (;;) {
    const uint32_t seen = file_.changes();
    if (waited >= limit || !file_.has_member(needed, needed) || ends()) break;
    file_.wait(seen, kLookMs);
    waited = steady_now_ns() - start;
  }
  if (waited == 0) return;
  waited_ns_.fetch_add(waited, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  wait_left_ns_ = std::max<int64_t>(0, wait_left_ns_ - waited);
  at_ns_ = start + waited;
}

SharedRows::Control& SharedRows::control(const BlockPosition& position) const {
  static_assert(sizeof(Control) == kControlBytes);
  return reinterpret_cast<Control*>(file_.bytes())[ring_.index(position)];
}

uint64_t* SharedRows::rows_of(const BlockPosition& position) const {
  return reinterpret_cast<uint64_t*>(file_.bytes() + aligned(ring_.size() * kControlBytes) +
                                     ring_.index(position) * aligned(options_.block_bytes));
}

bool SharedRows::has_company(Step step) const {
  return step - options_.first_step < options_.steps || is_near(step);
}

// Chooses among the members that have yet to come to the step and are not far behind it. Not far is
// twice the ring's length: a member looks a ring ahead, and others are up to one behind it.
uint32_t SharedRows::owner_of(const BlockPosition& position) const {
  const auto number = static_cast<uint64_t>(position.step) +
                      static_cast<uint64_t>(position.device) +
                      static_cast<uint64_t>(position.number / kDealt);
  return file_.member_for(number, position.step - 2 * options_.steps + 1, position.step);
}

bool SharedRows::is_for_this(const BlockPosition& position) const {
  if (position.step > kLastStep) return true;
  const uint64_t word = control(position).word.load(std::memory_order_acquire);
  if (step_in(word) > position.step && is_near(step_in(word))) return true;
  if (step_in(word) == position.step) {
    switch (state_in(word)) {
      case kDone:
        return false;
      case kDeclined:
        return true;
      case kTaken:
        return serial_in(word) == file_.serial() || !file_.runs(serial_in(word));
      default:
        break;
    }
  }
  return owner_of(position) == file_.serial();
}

SharedRows::Look SharedRows::look(const BlockPosition& position, int64_t waited_ns,
                                  bool is_fetched) {
  if (position.step > kLastStep) return {};
  const bool may_yield = !is_fetched && waited_ns < options_.yield_ms * 1000000;
  std::atomic<uint64_t>& shared = control(position).word;
  uint64_t word = shared.load(std::memory_order_acquire);
  for (;;) {
    const Step step = step_in(word);
    bool is_taken_over = false;
    if (step > position.step && is_near(step)) return {};
    if (step == position.step) {
      switch (state_in(word)) {
        case kDone:
          return {Found::done, word};
        case kDeclined:
          return {};
        case kTaken:
          is_taken_over =
              waited_ns >= options_.patience_ms * 1000000 || !file_.runs(serial_in(word));
          if (!is_taken_over) return {Found::busy, word};
          break;
        default:
          break;
      }
    }
    if (!has_company(position.step)) return {};
    if (may_yield && !is_taken_over && owner_of(position) != file_.serial()) {
      return {Found::busy, word};
    }
    const uint64_t ours = claimed(word, position.step, file_.serial());
    if (!shared.compare_exchange_weak(word, ours, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      continue;
    }
    if (is_taken_over) taken_over_.fetch_add(1, std::memory_order_relaxed);
    return {Found::ours, ours};
  }
}

bool SharedRows::read(const BlockPosition& position, uint64_t word, std::span<std::byte> rows) {
  Control& shared = control(position);
  if (shared.word.load(std::memory_order_acquire) != word) return false;
  const uint64_t seal = shared.seal.load(std::memory_order_acquire);
  copy_out(rows_of(position), rows);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (shared.word.load(std::memory_order_relaxed) != word) return false;
  if (seal_of_rows(rows, word) == seal) return true;
  // A late owner has written into it.
  corrupt_.fetch_add(1, std::memory_order_relaxed);
  leave(position, word, kFree);
  return false;
}

bool SharedRows::give(const BlockPosition& position, uint64_t word,
                      std::span<const std::byte> rows) {
  Control& shared = control(position);
  if (shared.word.load(std::memory_order_acquire) != word) return false;
  std::atomic_thread_fence(std::memory_order_release);  // after the word by which it is ours
  copy_in(rows_of(position), rows);
  shared.seal.store(seal_of_rows(rows, word), std::memory_order_release);
  return leave(position, word, kDone);
}

bool SharedRows::decline(const BlockPosition& position, uint64_t word) {
  return leave(position, word, kDeclined);
}

void SharedRows::release(const BlockPosition& position, uint64_t word) {
  leave(position, word, kFree);
}

bool SharedRows::leave(const BlockPosition& position, uint64_t word, uint64_t state) {
  const bool is_ours = control(position).word.compare_exchange_strong(word, with_state(word, state),
                                                                      std::memory_order_acq_rel);
  if (is_ours) file_.notify();
  return is_ours;
}

}  // namespace stoker
