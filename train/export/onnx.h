// A trained model as an ONNX file, for inference elsewhere: opset 17, fp32.
//   input   (N, C, H, W) f32: RGB / 255, minus the mean, divided by the deviation, both of which
//   are
//           in the file's metadata ("mean", "stddev"). N is free. C is 3, or 1 for a net of gray
//           images.
//   logits  (N, outputs) f32, as Engine::forward() computes them with running statistics; dropout
//           and auxiliary heads are left out.
// Parameters keep their names. Metadata: "model", "classes" (their names, a JSON list), "mean",
// "stddev". Pure; any thread. Errors: std::runtime_error if the model is too large for the format
// (2 GiB).
#pragma once

#include <string>

#include "train/checkpoint/checkpoint.h"

namespace stoker {

// Returns the bytes of the file. REQUIRES: the values of `model` are those of `net`, usually
// model.info.net().
std::string onnx_bytes(const NetSpec& net, const LoadedModel& model);

}  // namespace stoker
