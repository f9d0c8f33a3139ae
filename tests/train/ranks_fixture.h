// Ranks that are threads here, and what they computed. Values.
#pragma once

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace stoker {

inline void run_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

}  // namespace stoker
