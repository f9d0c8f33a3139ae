#include "train/collective/norm_exchange.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "train/collective/barrier.h"

namespace stoker {
namespace {

[[noreturn]] void broken_norms(const char* what, const NormExchange::Place& at) {
  std::fprintf(stderr, "stoker: batch norms of replicas: %s (rank %d, micro-batch %d, step %d)\n",
               what, at.rank, at.micro_batch, at.step);
  std::abort();
}

}  // namespace

// The ranks' meetings for one micro-batch. Rounds use two memories in turn: a rank that writes its
// part of a round has read the round before, and nobody can write the round after the next one
// before every rank has come to the next one. So one wait per round is enough.
class NormExchange::Meeting {
 public:
  Meeting(int ranks, size_t most) : barrier_(ranks), calls_(static_cast<size_t>(ranks)) {
    for (Round& round : rounds_) {
      round.floats.resize(static_cast<size_t>(ranks) * most);
      round.parts.resize(static_cast<size_t>(ranks));
    }
  }

  std::span<const float> gather(const Place& place,
                                std::initializer_list<std::span<const float>> own) {
    const auto rank = static_cast<size_t>(place.rank);
    Round& round = rounds_[calls_[rank]++ % rounds_.size()];
    Part& part = round.parts[rank];
    part = {place.step, 0};
    for (const std::span<const float>& each : own) part.count += each.size();
    const size_t ranks = round.parts.size();
    if (ranks * part.count > round.floats.size()) broken_norms("too many numbers", place);
    float* to = round.floats.data() + rank * part.count;
    for (const std::span<const float>& each : own) to = std::ranges::copy(each, to).out;
    barrier_.wait();
    if (std::ranges::count(round.parts, part) != static_cast<std::ptrdiff_t>(ranks)) {
      broken_norms("another replica is in another step", place);
    }
    return {round.floats.data(), ranks * part.count};
  }

  void abort(const std::string& reason) noexcept { barrier_.abort(reason); }

 private:
  struct Part {
    int step = 0;
    size_t count = 0;
    bool operator==(const Part&) const = default;
  };
  struct Round {
    std::vector<float> floats;
    std::vector<Part> parts;  // by rank; each writes its own
  };

  Barrier barrier_;
  std::array<Round, 2> rounds_;
  std::vector<uint64_t> calls_;  // by rank; each counts its own
};

NormExchange::NormExchange(int ranks, int micro_batches, size_t most) : ranks_(ranks) {
  for (int i = 0; i < micro_batches; ++i) {
    meetings_.push_back(std::make_unique<Meeting>(ranks, most));
  }
}

NormExchange::~NormExchange() = default;

std::span<const float> NormExchange::gather(const Place& place,
                                            std::initializer_list<std::span<const float>> own) {
  if (place.rank < 0 || place.rank >= ranks_) broken_norms("there is no such rank", place);
  if (place.micro_batch < 0 || place.micro_batch >= static_cast<int>(meetings_.size())) {
    broken_norms("there is no such micro-batch", place);
  }
  return meetings_[static_cast<size_t>(place.micro_batch)]->gather(place, own);
}

void NormExchange::abort(const std::string& reason) noexcept {
  for (const auto& meeting : meetings_) meeting->abort(reason);
}

void unite_statistics(std::span<const float> gathered, int ranks, std::span<float> mean,
                      std::span<float> variance) {
  const size_t channels = mean.size();
  for (size_t c = 0; c < channels; ++c) {
    const auto mean_of = [&](int rank) -> double {
      return gathered[2 * channels * static_cast<size_t>(rank) + c];
    };
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += mean_of(rank);
    const double united = sum / ranks;
    double squares = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double distance = mean_of(rank) - united;
      squares +=
          gathered[2 * channels * static_cast<size_t>(rank) + channels + c] + distance * distance;
    }
    mean[c] = static_cast<float>(united);
    variance[c] = static_cast<float>(squares / ranks);
  }
}

void add_up(std::span<const float> gathered, int ranks,
            std::initializer_list<std::span<float>> to) {
  const size_t own = gathered.size() / static_cast<size_t>(ranks);
  size_t at = 0;
  for (const std::span<float>& sums : to) {
    for (float& sum : sums) {
      sum = gathered[at];
      for (size_t next = at + own; next < gathered.size(); next += own) sum += gathered[next];
      ++at;
    }
  }
}

}  // namespace stoker
