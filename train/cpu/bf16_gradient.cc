#include "train/cpu/bf16_gradient.h"

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {
namespace {

// A tile of the result stays in registers: kTileIn inputs by kTileOut outputs.
constexpr int kLanes = 16, kTileIn = 8, kTileOut = 2 * kLanes;
constexpr int kBlockPixels = 512;  // their outputs for a tile fill the first-level cache

int64_t pixels_of(const Bf16GradientShape& s) {
  return int64_t{s.rows} * s.out_height * s.out_width;
}
int64_t block_pairs(const Bf16GradientShape& s) {
  return (std::min<int64_t>(kBlockPixels, pixels_of(s)) + 1) / 2;
}

// The words of a panel of interleaved channels: pairs of pixels, and a cache line, so that panels
// do not begin in the same set of the cache.
int64_t panel_words(int64_t pairs, int channels) { return pairs * channels + kLanes; }

}  // namespace

int64_t bf16_gradient_scratch(const Bf16GradientShape& s) {  // a word is as large as a float
  const int64_t pairs = block_pairs(s);
  return s.in_channels / kTileIn * panel_words(pairs, kTileIn) +
         s.out_channels / kTileOut * panel_words(pairs, kTileOut);
}

#if defined(__x86_64__)

bool has_bf16_gradient(const Bf16GradientShape& s) {
  return s.in_channels % kLanes == 0 && s.out_channels % kTileOut == 0;
}

namespace {

#define STOKER_BF16_TARGET [[gnu::target("avx512f,avx512bf16")]]

// Where the channels of a block's pixels begin; null: the pixel is padding.
using PixelRows = std::vector<const uint16_t*>;

STOKER_BF16_TARGET inline __m512i words_of(const uint16_t* channels) {
  if (channels == nullptr) return _mm512_setzero_si512();
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(channels)));
}

// Interleaves pairs of pixels: for every `panel` channels, all pairs of them one after the other.
template <int kPanel>
STOKER_BF16_TARGET void interleave(const PixelRows& pixels, int channels, int64_t pairs,
                                   uint32_t* to) {
  const int64_t words = panel_words(pairs, kPanel);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const uint16_t *first = pixels[2 * pair], *second = pixels[2 * pair + 1];
    for (int c = 0; c < channels; c += kLanes) {
      const __m512i low = words_of(first != nullptr ? first + c : nullptr);
      const __m512i high = words_of(second != nullptr ? second + c : nullptr);
      const __m512i v = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
      uint32_t* const panel = to + c / kPanel * words + pair * kPanel + c % kPanel;
      if constexpr (kPanel >= kLanes) {
        _mm512_store_si512(panel, v);
      } else {
        static_assert(2 * kPanel == kLanes);
        _mm256_store_si256(reinterpret_cast<__m256i*>(panel), _mm512_castsi512_si256(v));
        _mm256_store_si256(reinterpret_cast<__m256i*>(panel + words),
                           _mm512_extracti64x4_epi64(v, 1));
      }
    }
  }
}

// Memory that the next block will read. A line of it is fetched into the second-level cache with
// each pair that is multiplied: interleaving waits for nothing else.
class Ahead {
 public:
  Ahead(const uint16_t* from, int64_t count)
      : at_(reinterpret_cast<const char*>(from)), end_(at_ + 2 * count) {}
  bool has_more() const { return at_ < end_; }
  const char* take(int64_t lines) {
    const char* const from = at_;
    at_ += kLine * lines;
    return from;
  }
  static constexpr int64_t kLine = 64;

 private:
  const char *at_, *end_;
};

// Adds the products of a panel of inputs and one of outputs to a tile of the result, or begins it.
// The tile is in two blocks of outputs, which are `apart`. Null: nothing is fetched `ahead`.
STOKER_BF16_TARGET void multiply(const uint32_t* in, const uint32_t* out, int64_t pairs,
                                 bool begins, float* tile, int64_t apart, const char* ahead) {
  __m512 sums[kTileIn][2];
#pragma GCC unroll 8
  for (int i = 0; i < kTileIn; ++i) {
    sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    _mm_prefetch(reinterpret_cast<const char*>(tile + i * kLanes), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(tile + i * kLanes + apart), _MM_HINT_T0);
  }
  const int64_t step = ahead != nullptr ? Ahead::kLine : 0;
  for (int64_t pair = 0; pair < pairs; ++pair, in += kTileIn, out += kTileOut, ahead += step) {
    _mm_prefetch(ahead, _MM_HINT_T1);
    const auto low = reinterpret_cast<__m512bh>(_mm512_load_si512(out));
    const auto high = reinterpret_cast<__m512bh>(_mm512_load_si512(out + kLanes));
#pragma GCC unroll 8
    for (int i = 0; i < kTileIn; ++i) {
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(in[i])));
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], low, value);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], high, value);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileIn; ++i) {
    float* const to = tile + i * kLanes;
    if (!begins) {
      sums[i][0] = _mm512_add_ps(sums[i][0], _mm512_loadu_ps(to));
      sums[i][1] = _mm512_add_ps(sums[i][1], _mm512_loadu_ps(to + apart));
    }
    _mm512_storeu_ps(to, sums[i][0]);
    _mm512_storeu_ps(to + apart, sums[i][1]);
  }
}

// Finds the input's pixels that pixel (y, x) of the kernel multiplies with pixels [first, first +
// count) of the output.
void find_inputs(const Bf16GradientShape& s, const uint16_t* input, int y, int x, int64_t first,
                 int64_t count, PixelRows& pixels) {
  const int64_t plane = int64_t{s.out_height} * s.out_width;
  int64_t row = first / plane;
  int line = static_cast<int>(first % plane / s.out_width);
  int column = static_cast<int>(first % s.out_width);
  for (int64_t i = 0; i < count; ++i) {
    const int from_y = line * s.stride + y - s.padding_height;
    const int from_x = column * s.stride + x - s.padding_width;
    const bool inside = from_y >= 0 && from_x >= 0 && from_y < s.in_height && from_x < s.in_width;
    const int64_t pixel = (row * s.in_height + from_y) * s.in_width + from_x;
    pixels[i] = inside ? input + pixel * s.in_channels : nullptr;
    if (++column < s.out_width) continue;
    column = 0;
    if (++line < s.out_height) continue;
    line = 0;
    ++row;
  }
}

}  // namespace

void bf16_gradient(const Bf16GradientShape& s, const uint16_t* input,
                   const uint16_t* output_gradient, float* gradient, float* scratch) {
  const int64_t in = s.in_channels, out = s.out_channels, all = pixels_of(s);
  const int64_t most = block_pairs(s), places = int64_t{s.kernel_height} * s.kernel_width;
  auto* const outputs = reinterpret_cast<uint32_t*>(scratch);
  uint32_t* const inputs = outputs + out / kTileOut * panel_words(most, kTileOut);
  const bool in_order = places == 1 && s.stride == 1 && s.padding_height + s.padding_width == 0;
  PixelRows pixels(static_cast<size_t>(2 * most));
  for (int64_t first = 0; first < all; first += 2 * most) {
    const int64_t count = std::min(2 * most, all - first), pairs = (count + 1) / 2;
    std::ranges::fill(pixels, nullptr);
    for (int64_t i = 0; i < count; ++i) pixels[i] = output_gradient + (first + i) * out;
    interleave<kTileOut>(pixels, s.out_channels, pairs, outputs);
    const int64_t next = std::min(2 * most, all - first - count);
    Ahead next_outputs(output_gradient + (first + count) * out, next * out);
    Ahead next_inputs(input + (first + count) * in, in_order ? next * in : 0);
    for (int place = 0; place < s.kernel_height * s.kernel_width; ++place) {
      find_inputs(s, input, place / s.kernel_width, place % s.kernel_width, first, count, pixels);
      interleave<kTileIn>(pixels, s.in_channels, pairs, inputs);
      for (int64_t o = 0; o < out; o += kTileOut) {
        for (int64_t i = 0; i < in; i += kTileIn) {
          const int64_t block = (o / kLanes * (in / kLanes) + i / kLanes) * places + place;
          Ahead& ahead = next_outputs.has_more() ? next_outputs : next_inputs;
          multiply(inputs + i / kTileIn * panel_words(pairs, kTileIn),
                   outputs + o / kTileOut * panel_words(pairs, kTileOut), pairs, first == 0,
                   gradient + (block * kLanes + i % kLanes) * kLanes,
                   in / kLanes * places * kLanes * kLanes,
                   ahead.has_more() ? ahead.take(pairs) : nullptr);
        }
      }
    }
  }
}

#else

bool has_bf16_gradient(const Bf16GradientShape&) { return false; }
void bf16_gradient(const Bf16GradientShape&, const uint16_t*, const uint16_t*, float*, float*) {}

#endif

}  // namespace stoker
