// Texts of run lengths: a reason, or runs; those of the picture's size draw as many pixels as they
// say, and nothing is drawn outside.
//
// Input: the width and the height, then the text.
#include <cstdlib>
#include <vector>

#include "pipeline/annotation/mask_mover.h"
#include "pipeline/annotation/run_lengths.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size < 2) return 0;
  Annotations annotations;
  annotations.size = {1 + data[0], 1 + data[1]};
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  if (!append_text_runs(text, annotations.runs).empty()) return 0;
  if (annotations.runs.size() > text.size()) std::abort();
  if (!check_runs(annotations.runs, annotations.size).empty()) return 0;
  size_t ones = 0;
  for (size_t i = 1; i < annotations.runs.size(); i += 2) ones += annotations.runs[i];
  MaskMover mover;
  mover.begin(annotations.size);
  std::vector<std::byte> mask(static_cast<size_t>(annotations.size.width) *
                              annotations.size.height);
  mover.make_mask(annotations, {MaskKind::runs, 0, static_cast<uint32_t>(annotations.runs.size())},
                  MaskForm::bytes, mask.data());
  for (const std::byte pixel : mask) ones -= static_cast<size_t>(pixel);
  if (ones != 0) std::abort();
  return 0;
}
