// The number formats in which gradients travel between replicas, and their names.
#pragma once

#include <cstdint>
#include <utility>

namespace stoker {

enum class GradWire : uint8_t {
  fp32,     // as computed; the sum has the same bits for any number of replicas
  bf16,     // rounded to the nearest, ties to even
  int8,     // a scale per block, rounded stochastically; error feedback
  one_bit,  // two means per block and a bit per value; error feedback
};

inline constexpr std::pair<const char*, GradWire> kGradWires[] = {
    {"fp32", GradWire::fp32},
    {"bf16", GradWire::bf16},
    {"int8", GradWire::int8},
    {"1bit", GradWire::one_bit},
};

constexpr const char* to_string(GradWire wire) {
  for (const auto& [name, value] : kGradWires) {
    if (value == wire) return name;
  }
  return "";
}

// Whether what is lost on the wire is kept, and added to what is sent in the next step.
constexpr bool feeds_back(GradWire wire) {
  return wire == GradWire::int8 || wire == GradWire::one_bit;
}

}  // namespace stoker
