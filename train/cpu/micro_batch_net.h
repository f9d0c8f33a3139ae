// A single-threaded oneDNN net that runs one micro-batch (rows of a batch that share batch-norm
// statistics): an execution plan over one arena. All nets of an engine share the parameters. Owner:
// CpuEngine, one per worker and mode. Threads: built and run on its worker's thread only (oneDNN
// counts threads when a primitive is made). Shapes: activations (rows, C, H, W) in an
// ActivationLayout, fp32 or bf16; head and loss in fp32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/cpu/gradient_sum.h"
#include "train/cpu/onednn_compat.h"
#include "train/engine/engine.h"
#include "train/graph/plan_builder.h"

namespace stoker {

// Layout of the activations. The input's three channels are interleaved (NHWC) or planes (NCHW).
enum class ActivationLayout : uint8_t {
  nhwc,
  blocked,  // NCHW in blocks of kBlockChannels (padded with zeros); the input has planes
};

constexpr int kBlockChannels = 16;

// Returns the bf16 nearest to `value`, ties to even. NaN stays NaN.
uint16_t to_bf16(float value);

// Converts pixels to a micro-batch's first activation: u8 NHWC -> normalised fp32 or bf16, as they
// are (training) or through a View (evaluation). Pure; any thread.
class MicroBatchInput {
 public:
  // REQUIRES: deviations are positive.
  MicroBatchInput(Size size, int channels, Precision precision, ActivationLayout layout,
                  const std::array<float, 3>& mean, const std::array<float, 3>& stddev);

  // Converts images (rows, H, W, 3) u8 to out (rows, H, W, C) or (rows, C, H, W) in the net's
  // precision. C is `channels`: the first of the three, or all.
  void load(const uint8_t* images, int rows, void* out) const;
  // Pixel (y, x) of the view is the image's (reflected(y + shift_y), reflected(x' + shift_x)),
  // where x' = width - 1 - x if flipped: shifted first, then mirrored. REQUIRES: |shift| < size.
  void load(const uint8_t* images, int rows, const View& view, void* out) const;

 private:
  template <typename Number>
  void load_rows(const uint8_t* images, int rows, Number* out) const;
  template <typename Number>
  void load_view(const uint8_t* images, int rows, const View& view, Number* out) const;

  Size size_;
  int channels_;
  Precision precision_;
  int64_t pixel_stride_, channel_stride_;  // of `out`, in values
  std::array<std::array<float, 256>, 3> fp32_;
  std::array<std::array<uint16_t, 256>, 3> bf16_;
};

// Returns `blocked` for fp32 on AVX-512, the layout that oneDNN takes there. Not for nets that
// concatenate parts of blocks, as DenseNets with a growth of 12 do, or have convolutions of less
// than a block; and not for synchronised batch norms, because oneDNN's for blocks computes the sums
// of its backward pass and uses them in one call, so that replicas cannot add them up.
ActivationLayout activation_layout(const NetSpec& net, Precision precision, bool synchronised);

// The layouts of one convolution's weights: of the fp32 masters (and gradients, momenta, averages),
// and those that its primitives read. The masters have the gradients' layout if that has no
// padding, else OIHW.
struct ConvLayout {
  int node = 0;
  onednn::Desc canonical, master, forward, backward;  // backward: zero if there is none
};

// Inputs and outputs of one run. The engine or the caller owns the memory.
struct MicroBatchRun {
  const float* parameters = nullptr;  // masters (or averages)
  const float* statistics = nullptr;
  const std::vector<dnnl::memory>* forward_weights = nullptr;   // per node; convolutions only
  const std::vector<dnnl::memory>* backward_weights = nullptr;  // training
  BatchRows rows;                                               // training; without images
  int micro_batch = 0;                                          // training; of the batch
  // Training: a gradient buffer (GradientLayout). Micro-batches that share it have a `sum`, and a
  // `scratch` of scratch_floats() if they add to it: where the gradients of a layer are until then,
  // and at its end what follows all gradients in a buffer.
  float* gradients = nullptr;
  GradientSum* sum = nullptr;
  float* scratch = nullptr;
  float* rest = nullptr;    // training: where moments and metrics go, as GradientLayout has them
  float* logits = nullptr;  // evaluation: (rows, classes)
};

struct MicroBatchProgram;  // plan_builder.h

class MicroBatchNet {
 public:
  // `layout` must outlive it.
  MicroBatchNet(const NetSpec& net, const PlanOptions& options, const GradientLayout& layout,
                const dnnl::engine& engine);
  ~MicroBatchNet();
  MicroBatchNet(const MicroBatchNet&) = delete;
  MicroBatchNet& operator=(const MicroBatchNet&) = delete;

  int64_t arena_bytes() const;
  void place(std::byte* arena);  // REQUIRES: arena_bytes(), aligned to a page
  void* input() const;           // for MicroBatchInput to write before run()
  int64_t scratch_floats() const;
  // `run.rest` is chosen by run().
  void run(MicroBatchRun run);
  // See ExecutionPlan::leave_out().
  void leave_out(const std::vector<bool>& tensors);

  const ExecutionPlan& plan() const;
  const std::vector<ConvLayout>& conv_layouts() const;
  const std::vector<std::string>& implementations() const;

 private:
  const GradientLayout& layout_;
  std::unique_ptr<MicroBatchProgram> program_;
};

}  // namespace stoker
