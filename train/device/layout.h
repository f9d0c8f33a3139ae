// Where the numbers of a net lie on a device: flat fp32 buffers, tensors aligned, convolutions'
// weights as OHWI with the input's padding channels (which stay 0). Checkpoints and all that is
// read and written keep PyTorch's order (train/model/net_spec.h). Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "train/device/lowering.h"

namespace stoker {

struct DeviceTensor {
  int64_t offset = 0;  // in numbers, from the start of a flat buffer; aligned to kTensorAlignment
  int64_t count = 0;   // with padding channels
  ParameterKind kind = ParameterKind::conv_weight;
  int node = -1;
};

class DeviceLayout {
 public:
  static constexpr int64_t kTensorAlignment = 128;  // numbers: 256 bytes of bf16

  DeviceLayout(const NetSpec& net, int input_channels);

  // A flat buffer of parameters, gradients, momenta or averages has parameter_floats(); tensors in
  // parameter_table order.
  const std::vector<DeviceTensor>& tensors() const { return tensors_; }
  int tensor_of(int node, ParameterKind kind) const;  // -1: none
  int64_t statistics_of(int node) const;              // mean; the variance follows
  int64_t parameter_floats() const { return parameter_floats_; }
  int64_t statistics_floats() const { return statistics_floats_; }
  // A part: [gradients | moments, as the statistics | totals].
  int64_t moments() const { return parameter_floats_; }
  int64_t totals() const { return totals_; }
  int64_t part_floats() const { return part_floats_; }

  std::vector<TensorChunk> chunks(bool convolutions_only) const;
  std::vector<StatisticChannel> statistic_channels(int micro_batch_rows) const;

  // Between PyTorch's order (parameter_table) and a flat buffer; padding becomes 0.
  void to_device(std::span<const float> values, std::span<float> flat) const;
  void from_device(std::span<const float> flat, std::span<float> values) const;

 private:
  template <typename Visit>  // visit(index in PyTorch's order, index in the flat buffer)
  void for_each_number(Visit visit) const;

  const NetSpec net_;
  const std::vector<TensorInfo> parameters_, statistics_;
  const int input_channels_;
  std::vector<DeviceTensor> tensors_;
  int64_t parameter_floats_ = 0, statistics_floats_ = 0, totals_ = 0, part_floats_ = 0;
};

}  // namespace stoker
