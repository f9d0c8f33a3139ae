// The two kinds of DecodedSlots.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "pipeline/cache/decoded_samples.h"
#include "pipeline/files/file_buffer.h"
#include "pipeline/files/sealed_pieces.h"

namespace stoker {
namespace {

constexpr int64_t kPlaceSealsAtOnce = 8 << 10;

class MemorySlots final : public DecodedSlots {
 public:
  MemorySlots(int64_t places, int64_t place_bytes)
      : place_bytes_(static_cast<size_t>(place_bytes)),
        bytes_(static_cast<size_t>(places) * place_bytes_),
        states_(static_cast<size_t>(places)) {
    if (bytes_ == 0) return;
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("cache: " + std::to_string(bytes_) +
                               " bytes of memory: " + std::strerror(errno));
    }
    memory_ = static_cast<uint8_t*>(memory);
  }
  ~MemorySlots() override {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  std::span<const uint8_t> read(int64_t number, MayWait, std::vector<uint8_t>&) const override {
    if (!holds(number)) return {};
    return {place(number), place_bytes_};
  }
  bool holds(int64_t number) const override {
    return state(number).load(std::memory_order_acquire) == kReady;
  }
  // A picture that is there may be read at any time, and stays as it is.
  bool wants(int64_t number) const override {
    return state(number).load(std::memory_order_relaxed) == kEmpty;
  }
  bool keep(int64_t number, std::span<const uint8_t> bytes) override {
    uint8_t empty = kEmpty;
    std::atomic<uint8_t>& state = states_[static_cast<size_t>(number)];
    if (!state.compare_exchange_strong(empty, kWritten, std::memory_order_acquire)) return false;
    std::ranges::copy(bytes, place(number));
    state.store(kReady, std::memory_order_release);
    return true;
  }
  int64_t found() const override { return 0; }
  int64_t memory_bytes() const override {
    return static_cast<int64_t>(bytes_ + states_.size() * sizeof(states_[0]));
  }
  std::string folder() const override { return ""; }
  std::string problem() const override { return ""; }

 private:
  enum : uint8_t { kEmpty, kWritten, kReady };

  uint8_t* place(int64_t number) const {
    return memory_ + static_cast<size_t>(number) * place_bytes_;
  }
  const std::atomic<uint8_t>& state(int64_t number) const {
    return states_[static_cast<size_t>(number)];
  }

  const size_t place_bytes_, bytes_;
  uint8_t* memory_ = nullptr;
  std::vector<std::atomic<uint8_t>> states_;
};

class DiskSlots final : public DecodedSlots {
 public:
  DiskSlots(const std::string& folder, const std::string& about, int64_t places,
            int64_t place_bytes)
      : files_(folder, about), place_bytes_(place_bytes) {
    std::vector<uint64_t> seals(kPlaceSealsAtOnce);
    for (int64_t first = 0; first < places; first += kPlaceSealsAtOnce) {
      files_.read_seals(first, seals);
      const auto end = seals.begin() + std::min(kPlaceSealsAtOnce, places - first);
      found_ += end - seals.begin() - std::count(seals.begin(), end, 0);
    }
    // The rest of a larger cache goes: the size is what the disk shall hold.
    files_.cut(places, places * place_bytes);
  }

  std::span<const uint8_t> read(int64_t number, MayWait may_wait,
                                std::vector<uint8_t>& buffer) const override {
    const uint64_t seal = files_.seal(number, may_wait);
    if (seal == 0) return {};
    const auto bytes = static_cast<size_t>(place_bytes_);
    grow_file_buffer(buffer, bytes);
    const std::span out(buffer.data(), bytes);
    return files_.read(number, seal, number * place_bytes_, may_wait, out)
               ? std::span<const uint8_t>(out)
               : std::span<const uint8_t>{};
  }
  bool holds(int64_t number) const override { return files_.seal(number, MayWait::yes) != 0; }
  bool wants(int64_t) const override { return files_.keeps(); }
  bool keep(int64_t number, std::span<const uint8_t> bytes) override {
    return files_.keep(number, number * place_bytes_, bytes);
  }
  int64_t found() const override { return found_; }
  int64_t memory_bytes() const override { return 0; }
  std::string folder() const override { return files_.folder(); }
  std::string problem() const override { return files_.problem(); }

 private:
  SealedPieces files_;
  const int64_t place_bytes_;
  int64_t found_ = 0;
};

}  // namespace

std::unique_ptr<DecodedSlots> slots_in_memory(int64_t places, int64_t bytes) {
  return std::make_unique<MemorySlots>(places, bytes);
}

std::unique_ptr<DecodedSlots> slots_on_disk(const std::string& folder, const std::string& about,
                                            int64_t places, int64_t bytes) {
  return std::make_unique<DiskSlots>(folder, about, places, bytes);
}

}  // namespace stoker
