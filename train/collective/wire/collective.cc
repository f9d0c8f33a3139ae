#include "train/collective/wire/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/process/process_group.h"
#include "train/collective/wire/exchange.h"

namespace stoker {
namespace {

using BlockFloats = std::array<float, kMaxBlockFloats>;

// Adds to `values` what the residual holds, encodes the sum, and keeps what is lost. If a value is
// not finite the residual stays: the step is thrown away.
void encode_with_residual(GradWire wire, const WireKey& key, int64_t first, std::span<float> values,
                          std::span<float> residual, std::byte* bytes) {
  for (size_t i = 0; i < values.size(); ++i) values[i] += residual[i];
  encode_block(wire, key, first, values, bytes);
  BlockFloats decoded;
  decode_block(wire, bytes, std::span(decoded).first(values.size()));
  if (!std::isfinite(decoded[0])) return;
  for (size_t i = 0; i < values.size(); ++i) residual[i] = values[i] - decoded[i];
}

class WireCollective final : public Collective, public WireState {
 public:
  WireCollective(std::shared_ptr<Ranks> ranks, const SumOptions& options)
      : Collective(std::move(ranks)),
        options_(options),
        layout_(options.wire, options.gradient_floats, options.buffer_floats),
        group_(this->ranks()->group()),
        local_(this->ranks()->local()),
        first_rank_(this->ranks()->first()),
        size_(size()),
        ranks_(static_cast<size_t>(local_)),
        sum_(static_cast<size_t>(layout_.bytes())) {
    const int64_t kept = feeds_back(options.wire) ? options.gradient_floats : 0;
    for (Rank& rank : ranks_) {
      rank.bytes.resize(static_cast<size_t>(layout_.bytes()));
      rank.residual.resize(static_cast<size_t>(kept));
      buffers_.own.push_back(rank.bytes);
    }
    sum_residual_.resize(static_cast<size_t>(kept));
    buffers_.layout = &layout_;
    buffers_.sum = sum_;
    buffers_.first_sums_all = options.to_server;
    exchange_ = make_wire_exchange(buffers_, group_);
  }

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    if (buffers.empty() || static_cast<int64_t>(result.size()) != layout_.floats()) {
      throw std::logic_error("gradients on the wire: " + std::to_string(buffers.size()) +
                             " buffers of " + std::to_string(result.size()) + " floats");
    }
    write_own(rank, buffers);
    together(rank, [this] { exchange_->swap(); });
    write_share_of_sum(rank, result);
    if (options_.to_server) {
      ranks()->meet(rank);
    } else {
      together(rank, [this] { exchange_->spread(); });
      read_sum(result);
    }
    if (rank == 0) count();
    ++ranks_[static_cast<size_t>(rank)].step;
  }

  WireState* wire() override { return this; }

  int64_t residual_floats() const override {
    return static_cast<int64_t>(ranks_[0].residual.size());
  }

  std::vector<float> residuals() override {
    if (residual_floats() == 0) return {};
    std::vector<float> own;
    for (const Rank& rank : ranks_) {
      own.insert(own.end(), rank.residual.begin(), rank.residual.end());
    }
    const auto append = [](std::vector<float>& to, std::span<const float> more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    if (group_ == nullptr) {
      append(own, sum_residual_);
      return own;
    }
    const BufferRange mine = sum_range(first_rank_, first_rank_ + local_);
    append(own, std::span(sum_residual_)
                    .subspan(static_cast<size_t>(mine.begin),
                             static_cast<size_t>(mine.end - mine.begin)));
    std::vector<float> senders, sums;
    for (const auto& bytes : gather(*group_, std::as_bytes(std::span(own)))) {
      std::vector<float> theirs(bytes.size() / sizeof(float));
      std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(theirs)).begin());
      const auto split = static_cast<size_t>(residual_floats()) * ranks_.size();
      append(senders, std::span(theirs).first(split));
      append(sums, std::span(theirs).subspan(split));
    }
    append(senders, sums);
    return senders;
  }

  void restore(int64_t step, std::span<const float> all) override {
    const auto floats = static_cast<size_t>(residual_floats());
    const size_t wanted = floats * (static_cast<size_t>(size_) + 1);
    if (!all.empty() && all.size() != wanted) {
      throw std::logic_error("residuals: " + std::to_string(all.size()) + " floats instead of " +
                             std::to_string(wanted));
    }
    for (size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].step = step;
      if (all.empty()) continue;
      const auto own = all.subspan((static_cast<size_t>(first_rank_) + i) * floats, floats);
      std::copy(own.begin(), own.end(), ranks_[i].residual.begin());
    }
    if (all.empty()) return;
    const auto sum = all.last(floats);
    if (!options_.to_server) {
      std::copy(sum.begin(), sum.end(), sum_residual_.begin());
    } else if (first_rank_ == 0) {  // a server does not encode sums
      for (size_t i = 0; i < floats; ++i) ranks_[0].residual[i] += sum[i];
    }
  }

 private:
  struct Rank {
    std::vector<std::byte> bytes;  // what it sends, in layout_
    std::vector<float> residual;   // of its gradients; empty without error feedback
    int64_t step = 0;
  };

  // Runs `work` in the thread of rank 0 when all ranks are here, and holds them until it is done.
  template <typename Work>
  void together(int rank, Work work) {
    ranks()->meet(rank);
    if (group_ == nullptr) return;
    if (rank == 0) work();
    ranks()->meet(rank);
  }

  void write_own(int rank, std::span<const float* const> buffers) {
    Rank& own = ranks_[static_cast<size_t>(rank)];
    const WireKey key{options_.seed, own.step, first_rank_ + rank, false};
    BlockFloats floats;
    for (int64_t b = 0; b < layout_.blocks(); ++b) {
      const WireLayout::Block block = layout_.block(b);
      const auto values = std::span(floats).first(block.count());
      std::copy_n(buffers[0] + block.range.begin, block.count(), values.begin());
      for (size_t buffer = 1; buffer < buffers.size(); ++buffer) {
        const float* more = buffers[buffer] + block.range.begin;
        for (size_t i = 0; i < values.size(); ++i) values[i] += more[i];
      }
      encode(key, block, values, own.residual, own.bytes.data() + layout_.byte_of(b));
    }
  }

  void write_share_of_sum(int rank, std::span<float> result) {
    const int all = first_rank_ + rank;
    const WireKey key{options_.seed, ranks_[static_cast<size_t>(rank)].step, all, true};
    BlockFloats floats, more;
    const int summing = options_.to_server ? local_ : size_;
    if (all >= summing) return;
    const int64_t end = layout_.share_of(all + 1, summing);
    for (int64_t b = layout_.share_of(all, summing); b < end; ++b) {
      const WireLayout::Block block = layout_.block(b);
      const auto sum = std::span(floats).first(block.count());
      decode_block(block.wire, exchange_->at(0, b), sum);
      for (int sender = 1; sender < size_; ++sender) {
        decode_block(block.wire, exchange_->at(sender, b), std::span(more).first(block.count()));
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
      }
      if (options_.to_server) {
        std::copy(sum.begin(), sum.end(), result.begin() + block.range.begin);
      } else {
        encode(key, block, sum, sum_residual_, sum_.data() + layout_.byte_of(b));
      }
    }
  }

  static void encode(const WireKey& key, const WireLayout::Block& block, std::span<float> values,
                     std::span<float> residual, std::byte* bytes) {
    if (!feeds_back(block.wire)) {
      encode_block(block.wire, key, block.range.begin, values, bytes);
      return;
    }
    encode_with_residual(block.wire, key, block.range.begin, values,
                         residual.subspan(static_cast<size_t>(block.range.begin), block.count()),
                         bytes);
  }

  void read_sum(std::span<float> result) const {
    for (int64_t b = 0; b < layout_.blocks(); ++b) {
      const WireLayout::Block block = layout_.block(b);
      decode_block(block.wire, sum_.data() + layout_.byte_of(b),
                   result.subspan(static_cast<size_t>(block.range.begin), block.count()));
    }
  }

  // Returns the gradients whose sums are those of ranks [first, last).
  BufferRange sum_range(int first, int last) const {
    const auto float_of = [&](int rank) {
      const int64_t block = layout_.share_of(rank, size_);
      return block < layout_.gradient_blocks() ? layout_.block(block).range.begin
                                               : layout_.gradients();
    };
    return {float_of(first), float_of(last)};
  }

  void count() {
    const int64_t all = layout_.bytes();
    for (int rank = first_rank_; rank < first_rank_ + local_; ++rank) {
      if (options_.to_server) {
        traffic_.gradients_sent += all;
        continue;
      }
      const int64_t share = layout_.byte_of(layout_.share_of(rank + 1, size_)) -
                            layout_.byte_of(layout_.share_of(rank, size_));
      // To those who sum the rest, and of this share to all; and the same way back.
      const int64_t bytes = all - share + (size_ - 1) * share;
      traffic_.gradients_sent += bytes;
      traffic_.gradients_received += bytes;
    }
  }

  const SumOptions options_;
  const WireLayout layout_;
  ProcessGroup* const group_;  // null: a single process
  const int local_, first_rank_, size_;
  // Each rank writes its own element, and what it sums of sum_ and sum_residual_.
  std::vector<Rank> ranks_;
  std::vector<std::byte> sum_;
  std::vector<float> sum_residual_;
  WireBuffers buffers_;
  std::unique_ptr<WireExchange> exchange_;
};

}  // namespace

std::unique_ptr<Collective> make_wire_collective(std::shared_ptr<Ranks> ranks,
                                                 const SumOptions& options) {
  return std::make_unique<WireCollective>(std::move(ranks), options);
}

}  // namespace stoker
