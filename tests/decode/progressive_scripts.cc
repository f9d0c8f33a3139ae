#include "tests/decode/progressive_scripts.h"

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

using Scans = std::vector<ScanOfBits>;

std::vector<int> all(int components) {
  std::vector<int> list(static_cast<size_t>(components));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// Adds a scan of the first bits, down to `low`, and one for each bit after it.
void add_bits(Scans& scans, const std::vector<int>& components, int first, int last, int low) {
  scans.push_back({components, first, last, 0, low});
  for (int bit = low; bit > 0; --bit) scans.push_back({components, first, last, bit, bit - 1});
}

// Spectral selection alone: two bands of each component.
Scans bands(int components) {
  Scans scans = {{all(components), 0, 0, 0, 0}};
  for (int c = 0; c < components; ++c) scans.push_back({{c}, 1, 5, 0, 0});
  for (int c = components - 1; c >= 0; --c) scans.push_back({{c}, 6, 63, 0, 0});
  return scans;
}

// The DC coefficients of each component in scans of their own.
Scans apart(int components) {
  Scans scans;
  for (int c = 0; c < components; ++c) add_bits(scans, {c}, 0, 0, 1);
  for (int c = 0; c < components; ++c) add_bits(scans, {c}, 1, 63, 1);
  return scans;
}

// Every bit below the fourth in a scan of its own.
Scans bit_by_bit(int components) {
  Scans scans;
  add_bits(scans, all(components), 0, 0, 4);
  for (int c = 0; c < components; ++c) add_bits(scans, {c}, 1, 63, 4);
  return scans;
}

// More scans than encoders write.
Scans many(int components) {
  Scans scans;
  add_bits(scans, all(components), 0, 0, 2);
  for (int c = 0; c < components; ++c) {
    for (int k = 1; k < 64; k += 7) add_bits(scans, {c}, k, k + 6, 3);
  }
  return scans;
}

// The DC coefficients of luma alone, those of chroma together.
Scans pairs(int components) {
  if (components == 1) return bands(1);
  Scans scans = {{{0}, 0, 0, 0, 2}, {{1, 2}, 0, 0, 0, 0}};
  for (int bit = 2; bit > 0; --bit) scans.push_back({{0}, 0, 0, bit, bit - 1});
  for (int c = 2; c >= 0; --c) add_bits(scans, {c}, 1, 63, c);
  return scans;
}

// As encoders that optimise scans write: luma in bands, chroma as a whole.
Scans optimised(int components) {
  Scans scans = {{all(components), 0, 0, 0, 0}};
  add_bits(scans, {0}, 1, 8, 2);
  add_bits(scans, {0}, 9, 63, 2);
  for (int c = 1; c < components; ++c) add_bits(scans, {c}, 1, 63, 0);
  return scans;
}

}  // namespace

std::vector<ScanOfBits> libjpegs_scans(int components) {
  Scans scans = {{all(components), 0, 0, 0, 1}, {{0}, 1, 5, 0, 2}};
  for (int c = components - 1; c > 0; --c) scans.push_back({{c}, 1, 63, 0, 1});
  scans.push_back({{0}, 6, 63, 0, 2});
  scans.push_back({{0}, 1, 63, 2, 1});
  scans.push_back({all(components), 0, 0, 1, 0});
  for (int c = components - 1; c >= 0; --c) scans.push_back({{c}, 1, 63, 1, 0});
  return scans;
}

std::vector<ScanScript> usual_scripts(int components) {
  return {{"libjpegs", libjpegs_scans(components)},
          {"bands", bands(components)},
          {"apart", apart(components)},
          {"bit_by_bit", bit_by_bit(components)},
          {"many", many(components)},
          {"pairs", pairs(components)},
          {"optimised", optimised(components)}};
}

ScanScript random_script(int components, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  // Sequences of scans that must stay in their order; they are shuffled into each other.
  std::vector<Scans> sequences;
  const bool together = below(3) > 0;
  Scans script;
  for (int c = 0; c < (together ? 1 : components); ++c) {
    Scans dc;
    add_bits(dc, together ? all(components) : std::vector<int>{c}, 0, 0, below(4));
    script.push_back(dc[0]);
    dc.erase(dc.begin());
    sequences.push_back(dc);
  }
  for (int c = 0; c < components; ++c) {
    for (int first = 1; first < 64;) {
      const int last = below(3) == 0 ? 63 : std::min(63, first + below(40));
      add_bits(sequences.emplace_back(), {c}, first, last, below(5));
      first = last + 1;
    }
  }
  for (;;) {
    std::erase_if(sequences, [](const Scans& scans) { return scans.empty(); });
    if (sequences.empty()) break;
    Scans& next = sequences[static_cast<size_t>(below(static_cast<int>(sequences.size())))];
    script.push_back(next[0]);
    next.erase(next.begin());
  }
  return {"random", script};
}

}  // namespace stoker
