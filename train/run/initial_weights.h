// The weights with which a run begins, from another training: fine-tuning. Owner: TrainSetup. One
// thread.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"

namespace stoker {

class InitialWeights {
 public:
  // `path`: a safetensors file whose tensors have the names of `net` (torchvision's state_dict, or
  // a checkpoint's model.safetensors), or a folder as load_model() takes. Checks names and shapes,
  // but reads no values. If the file's heads have another number of outputs, all heads of the run
  // are new. Tensors "*.num_batches_tracked" are left aside.
  // Throws std::invalid_argument, with the path, if it is not of this net: a tensor is missing, one
  // has another shape, or one is left over.
  InitialWeights(const std::string& path, const NetSpec& net);

  // Overwrites parameters and statistics, but for those of new heads. Throws std::runtime_error if
  // the file cannot be read or a value is not finite.
  void read(TrainState& state) const;

  std::string describe() const;  // one line for the user

 private:
  void find_tensors(const std::vector<TensorInfo>& table, bool parameters);
  void check_left_over() const;

  struct Target {
    TensorInfo info;
    bool parameter = true;  // else a statistic
  };

  const NetSpec net_;
  const SafetensorsFile file_;
  const std::string path_;
  std::vector<Target> targets_;
  std::vector<std::string> new_tensors_;
  int64_t outputs_in_file_ = 0;  // of a head that is replaced
};

}  // namespace stoker
