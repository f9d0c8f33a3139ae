// Numbers as the CPU engine keeps activations: fp32 or bf16. For the tests of its kernels. A value;
// one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "train/cpu/micro_batch_net.h"
#include "train/engine/precision.h"

namespace stoker {

class StoredValues {
 public:
  // Rounds `values` too.
  StoredValues(Precision precision, std::vector<double>& values)
      : half_(precision == Precision::bf16) {
    for (double& value : values) {
      fp32_.push_back(static_cast<float>(value));
      bf16_.push_back(to_bf16(fp32_.back()));
      value = at(fp32_.size() - 1);
    }
  }

  size_t size() const { return fp32_.size(); }
  void* data() { return half_ ? static_cast<void*>(bf16_.data()) : fp32_.data(); }
  double at(size_t i) const {
    if (!half_) return fp32_[i];
    const uint32_t bits = static_cast<uint32_t>(bf16_[i]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  bool half_;
  std::vector<float> fp32_;
  std::vector<uint16_t> bf16_;
};

}  // namespace stoker
