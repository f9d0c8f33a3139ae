#include "train/cuda/conv_trial.h"

#include <limits>

#include "train/cuda/kernels.h"
#include "train/cuda/plan_trial.h"

namespace stoker {
namespace {

constexpr int64_t kTicketBytes = (cuda::kTickets * int64_t{sizeof(unsigned)} + 255) / 256 * 256;

}  // namespace

std::vector<int64_t> operand_bytes(const ConvShape& s, ConvPass pass) {
  const int64_t number = s.type == Precision::bf16 ? 2 : 4;
  const int64_t x = number * s.rows * s.in_height * s.in_width * s.in_channels;
  const int64_t y = number * s.rows * s.out_height * s.out_width * s.out_channels;
  const int64_t w = number * s.out_channels * s.kernel.height * s.kernel.width * s.in_channels;
  const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
  return {data ? y : x, forward || data ? w : y, forward ? y : data ? x : w};
}

int64_t sum_pass_scratch_bytes(const ConvShape& s) {
  return kTicketBytes + channel_scratch_bytes(s.out_channels) +
         s.out_channels * static_cast<int64_t>(sizeof(float));
}

void queue_sum_pass(cudaStream_t stream, const ConvShape& s, const void* y, std::byte* scratch) {
  std::byte* const partial = scratch + kTicketBytes;
  std::byte* const sums = partial + channel_scratch_bytes(s.out_channels);
  cuda::sum_pixels(stream, static_cast<int64_t>(s.rows) * s.out_height * s.out_width,
                   s.out_channels, s.type, y, reinterpret_cast<float*>(sums), partial,
                   reinterpret_cast<unsigned*>(scratch));
}

float sum_pass_ms(cudaStream_t stream, const ConvShape& s) {
  const PlanTrial memory(stream,
                         {operand_bytes(s, ConvPass::forward)[2], sum_pass_scratch_bytes(s)});
  if (!memory.has_room()) return 0;
  return trial_ms(
      stream, [&] { queue_sum_pass(stream, s, memory.at(0), memory.at(1)); },
      std::numeric_limits<float>::infinity());
}

}  // namespace stoker
