#include "train/cpu/winograd.h"

#include <algorithm>

#include "train/cpu/kernel_targets.h"
#include "train/cpu/winograd_views.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/cpu/winograd.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "train/cpu/winograd_kernels_inl.h"
#include "train/cpu/winograd_transforms_inl.h"

#ifndef STOKER_TRAIN_WINOGRAD_COMMON
#define STOKER_TRAIN_WINOGRAD_COMMON
namespace stoker {
namespace {

constexpr int kPlaces = 36;

int panels_of(int channels) { return (channels + 15) / 16; }

WinogradTiles tiles_of(const WinogradShape& s) {
  return {s.rows, (s.out_height() + 3) / 4, (s.out_width() + 3) / 4};
}

// How a call is cut, so that what lies between transforms and products is still in a cache near the
// core: into blocks of tiles, and each of these into blocks of panels of output channels.
struct Blocks {
  int tiles = 0, panels = 0;
  int weight_panels = 0;  // of weights, or their gradients, that are kept transformed
};

// If all inputs take a quarter of the bytes of the transformed weights, or less, all tiles are one
// block, and the weights of a few panels are transformed where they are used: of so many that the
// inputs, which are read for each block of panels, are no more bytes than the weights. If not, all
// weights are kept, and read again for every block of tiles: half as many bytes of tiles, but no
// more than kMaxBytes, pay for that even if they do not fit the cache.
Blocks panel_blocks(const WinogradShape& s) {
  constexpr int64_t kStep = 24;  // a multiple of the rows of every kernel
  constexpr int64_t kFewPanels = 4, kPanelBytes = kPlaces * 64;
  constexpr int64_t kCacheBytes = 1 << 20, kMaxBytes = 4 << 20;
  const int64_t in = panels_of(s.in_channels), out = panels_of(s.out_channels);
  const int64_t weights = kPanelBytes * 16 * in * out, all = tiles_of(s).count();
  const bool whole = 4 * all * kPanelBytes * in <= weights;
  const int64_t few = std::min(kFewPanels, out);
  const int64_t panels = whole ? std::clamp(all / 16, few, out) : few;
  const int64_t fits = std::clamp(weights / 2, kCacheBytes, kMaxBytes) /
                       (kPanelBytes * (in + panels)) / kStep * kStep;
  const int64_t tiles = whole ? all : std::min(std::max(fits, 2 * kStep), all);
  return {static_cast<int>(tiles), static_cast<int>(panels),
          static_cast<int>(tiles == all ? panels : out)};
}

// The floats from one matrix of `panels` panels of `rows` rows to the next. The line between them
// keeps their elements from falling into the same few sets of a cache.
int64_t matrix_step(int panels, int rows) { return int64_t{panels} * rows * 16 + 16; }

// The matrices of one call: of the weights or their gradients, and of one block of tiles.
struct Scratch {
  WinogradMatrices weights, inputs, outputs;
  int64_t floats = 0;
};

// Without memory it only counts.
Scratch scratch_of(const WinogradShape& s, const Blocks& blocks, float* memory) {
  const int in = panels_of(s.in_channels);
  Scratch made{};
  const auto take = [&](int panels, int rows) {
    float* const at = memory == nullptr ? nullptr : memory + made.floats;
    const WinogradMatrices matrices{at, matrix_step(panels, rows), int64_t{rows} * 16};
    made.floats += kPlaces * matrices.matrix_step;
    return matrices;
  };
  made.weights = take(blocks.weight_panels, in * 16);
  made.inputs = take(in, blocks.tiles);
  made.outputs = take(blocks.panels, blocks.tiles);
  return made;
}

int64_t scratch_floats(const WinogradShape& s) {
  return scratch_of(s, panel_blocks(s), nullptr).floats;
}

// Calls per_tiles(first tile, tiles) for each block of tiles, and then for each block of panels
// per_block(first tile, tiles, panels, their part of the transformed weights).
template <class PerTiles, class PerBlock>
void for_blocks(const WinogradShape& s, const Blocks& blocks, const WinogradMatrices& weights,
                const PerTiles& per_tiles, const PerBlock& per_block) {
  const int tiles = tiles_of(s).count(), panels = panels_of(s.out_channels);
  for (int first = 0; first < tiles; first += blocks.tiles) {
    const int count = std::min(blocks.tiles, tiles - first);
    per_tiles(first, count);
    for (int panel = 0; panel < panels; panel += blocks.panels) {
      WinogradMatrices own = weights;
      if (blocks.weight_panels == panels) own.data += panel * own.panel_step;
      per_block(first, count, PanelRange{panel, std::min(blocks.panels, panels - panel)}, own);
    }
  }
}

template <class Number>
ActivationView<Number> view_of(Number* data, int channels, int height, int width,
                               WinogradLayout layout) {
  const bool blocked = layout == WinogradLayout::blocked;
  ActivationView<Number> view{data, channels, height, width};
  const int64_t pixels = int64_t{height} * width;
  view.padded = blocked;
  view.pixel_step = blocked ? 16 : channels;
  view.line_step = width * view.pixel_step;
  view.panel_step = blocked ? pixels * 16 : 16;
  view.row_step = pixels * view.stored_channels();
  return view;
}

template <class Number>
ActivationView<Number> input_view(const WinogradShape& s, Number* data) {
  return view_of(data, s.in_channels, s.height, s.width, s.layout);
}

template <class Number>
ActivationView<Number> output_view(const WinogradShape& s, Number* data) {
  return view_of(data, s.out_channels, s.out_height(), s.out_width(), s.layout);
}

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

template <class Number>
void convolve(const WinogradShape& s, const WinogradForward& call, bool turned, float* memory) {
  const ActivationView input = input_view(s, static_cast<const Number*>(call.input));
  const ActivationView output = output_view(s, static_cast<Number*>(call.output));
  const WinogradTiles tiles = tiles_of(s);
  const Blocks blocks = panel_blocks(s);
  const Scratch scratch = scratch_of(s, blocks, memory);
  const auto transform = turned ? transform_turned_weights : transform_weights;
  for_blocks(
      s, blocks, scratch.weights,
      [&](int first, int count) {
        transform_tiles<InputTransform>(input, tiles, first, count, -s.padding, scratch.inputs);
      },
      [&](int first, int count, const PanelRange& some, const WinogradMatrices& weights) {
        if (first == 0) transform(call.weights, s.in_channels, s.out_channels, some, weights);
        for (int place = 0; place < kPlaces; ++place) {
          multiply<16, 1>(
              count, some.count,
              {scratch.inputs.data + place * scratch.inputs.matrix_step, scratch.inputs.panel_step},
              s.in_channels, weights.data + place * weights.matrix_step, weights.panel_step, false,
              scratch.outputs.data + place * scratch.outputs.matrix_step,
              scratch.outputs.panel_step);
        }
        transform_outputs(scratch.outputs, tiles, first, count,
                          call.bias == nullptr ? nullptr : call.bias + some.first * 16, call.relu,
                          output.of(some));
      });
}

// The place where both transforms of a tile of gradients add up all of its pixels.
constexpr int kPlaceOfSums = 7;

void add_bias_gradients(const WinogradMatrices& outputs, int count, int channels,
                        float* gradients) {
  const float* sums = outputs.data + kPlaceOfSums * outputs.matrix_step;
  for_vectors(channels, [&](int panel, int lane, int lanes) {
    float* at = gradients + panel * 16 + lane;
    Vector sum = load_first(lanes, at);
    for (int t = 0; t < count; ++t) {
      sum = hn::Add(sum, hn::Load(Tag(), sums + panel * outputs.panel_step + t * 16 + lane));
    }
    store_first(lanes, sum, at);
  });
}

template <class Number>
void convolve_weights(const WinogradShape& s, const WinogradBackwardWeights& call, float* memory) {
  const ActivationView input = input_view(s, static_cast<const Number*>(call.input));
  const ActivationView gradient = output_view(s, static_cast<const Number*>(call.output_gradient));
  const WinogradTiles tiles = tiles_of(s);
  const Blocks blocks = panel_blocks(s);
  const Scratch scratch = scratch_of(s, blocks, memory);
  if (call.bias_gradient != nullptr) std::fill_n(call.bias_gradient, s.out_channels, 0.0f);
  for_blocks(
      s, blocks, scratch.weights,
      [&](int first, int count) {
        transform_tiles<InputTransform>(input, tiles, first, count, -s.padding, scratch.inputs);
      },
      [&](int first, int count, const PanelRange& some, const WinogradMatrices& weights) {
        transform_tiles<OutputGradientTransform>(gradient.of(some), tiles, first, count, 0,
                                                 scratch.outputs);
        for (int place = 0; place < kPlaces; ++place) {
          for (int panel = 0; panel < panels_of(s.in_channels); ++panel) {
            // Its rows are channels, its columns tiles.
            const LeftFactor inputs{scratch.inputs.data + place * scratch.inputs.matrix_step +
                                        panel * scratch.inputs.panel_step,
                                    256};
            multiply<1, 16>(16, some.count, inputs, count,
                            scratch.outputs.data + place * scratch.outputs.matrix_step,
                            scratch.outputs.panel_step, first > 0,
                            weights.data + place * weights.matrix_step + panel * 256,
                            weights.panel_step);
          }
        }
        if (call.bias_gradient != nullptr) {
          add_bias_gradients(scratch.outputs, count, some.channels_of(s.out_channels),
                             call.bias_gradient + some.first * 16);
        }
        if (first + count < tiles.count()) return;
        transform_weight_gradients(weights, s.in_channels, s.out_channels, some,
                                   call.weight_gradient);
      });
}

void convolve_any(const WinogradShape& s, const WinogradForward& call, bool turned, float* memory) {
  if (s.precision == Precision::bf16) {
    convolve<uint16_t>(s, call, turned, memory);
  } else {
    convolve<float>(s, call, turned, memory);
  }
}

void convolve_weights_any(const WinogradShape& s, const WinogradBackwardWeights& call,
                          float* memory) {
  if (s.precision == Precision::bf16) {
    convolve_weights<uint16_t>(s, call, memory);
  } else {
    convolve_weights<float>(s, call, memory);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(convolve_any);
HWY_EXPORT(convolve_weights_any);

WinogradShape WinogradShape::backward() const {
  return {rows,        out_channels, in_channels, out_height(),
          out_width(), 2 - padding,  layout,      precision};
}

namespace {

// In multiplications and additions of a direct convolution in fp32.
struct Costs {
  double direct;     // of one product of a pixel by a direct convolution
  bool direct_pads;  // to whole panels of output channels
  double weights;    // tiles whose products cost as much as the transform of the weights
  double transform;  // of a tile, for each of its channels
};

// Fitted to shapes of our nets, all three passes together, on one core with AVX-512: fp32 to 56
// shapes, with AVX2 too, against oneDNN 2.6 and 3.2; bf16 to 30 shapes against oneDNN 2.6, which
// multiplies them by instructions for bf16.
Costs costs_of(Precision precision) {
  if (precision == Precision::bf16) return {0.6, true, 35, 300};
  return {1, false, 17, 520};
}

}  // namespace

bool winograd_pays(const WinogradShape& shape) {
  constexpr double kProduct = 50;  // of one tile and one pair of channels
  const Costs costs = costs_of(shape.precision);
  const double in = shape.in_channels, out = shape.out_channels;
  const double tiles = tiles_of(shape).count();
  const double pixels = double{1} * shape.rows * shape.out_height() * shape.out_width();
  const double padded = 16.0 * panels_of(shape.out_channels);
  return 9 * costs.direct * pixels * in * (costs.direct_pads ? padded : out) >
         kProduct * (tiles + costs.weights) * in * padded + costs.transform * tiles * (in + out);
}

int64_t winograd_forward_scratch(const WinogradShape& shape) { return scratch_floats(shape); }

void winograd_forward(const WinogradShape& shape, const WinogradForward& call, float* scratch) {
  HWY_DYNAMIC_DISPATCH(convolve_any)(shape, call, false, scratch);
}

int64_t winograd_backward_data_scratch(const WinogradShape& shape) {
  return scratch_floats(shape.backward());
}

void winograd_backward_data(const WinogradShape& shape, const WinogradBackwardData& call,
                            float* scratch) {
  const WinogradForward turned{call.output_gradient, call.weights, nullptr, false,
                               call.input_gradient};
  HWY_DYNAMIC_DISPATCH(convolve_any)(shape.backward(), turned, true, scratch);
}

int64_t winograd_backward_weights_scratch(const WinogradShape& shape) {
  return scratch_floats(shape);
}

void winograd_backward_weights(const WinogradShape& shape, const WinogradBackwardWeights& call,
                               float* scratch) {
  HWY_DYNAMIC_DISPATCH(convolve_weights_any)(shape, call, scratch);
}

}  // namespace stoker
#endif
