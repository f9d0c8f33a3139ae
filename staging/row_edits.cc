#include "staging/row_edits.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "staging/cuda_plugin.h"
#include "staging/row_edits_body.h"

namespace stoker {
namespace {

static_assert(std::is_trivially_copyable_v<RowEdit> && std::is_trivially_copyable_v<RowEditArgs>);

template <int kCount>
void run_row_edits_twin(const RowEditArgs& args) {
  const int groups = 3 * args.width / kCount;
  for (int64_t number = 0; 2 * number < args.rows; ++number) {
    const EditPair pair = pair_of(args, number);
    if (pair.first_edit.none() && pair.second_edit.none()) continue;
    for (int line = 0; line < args.height; ++line) {
      for (int group = 0; group < groups; ++group) {
        edit_values<kCount>(pair, args.width, line, group, args.noise);
      }
    }
  }
}

void edit_rows_in_stream(Stream& stream, const RowEditArgs& args) {
  stream.call([args] { edit_rows_on_host(args); });
}

}  // namespace

void edit_rows_on_host(const RowEditArgs& args) {
  if (values_at_once(args) == 4) {
    run_row_edits_twin<4>(args);
  } else {
    run_row_edits_twin<1>(args);
  }
}

RowEditor::RowEditor(Device& device, const NoiseBytes* noise) : kernel_(edit_rows_in_stream) {
  if (device.cuda_ordinal() >= 0) {
    std::string problem;
    const CudaPlugin* plugin = open_cuda_plugin(problem);
    if (plugin == nullptr) throw std::runtime_error(device.name() + ": " + problem);
    kernel_ = plugin->edit_rows;
  }
  if (noise == nullptr) return;
  noise_ = device.allocate(sizeof *noise, MemoryKind::device);
  const auto pinned = device.allocate(sizeof *noise, MemoryKind::pinned);
  std::memcpy(pinned->data(), noise, sizeof *noise);
  const auto stream = device.make_stream();
  stream->copy(noise_->data(), pinned->data(), sizeof *noise, CopyKind::host_to_device);
  stream->synchronize();
}

int64_t RowEditor::device_bytes() const {
  return noise_ ? static_cast<int64_t>(noise_->size_bytes()) : 0;
}

void RowEditor::run(Stream& stream, const BatchLayout& layout, std::span<const RowEdit> edits,
                    std::byte* batch) const {
  const auto is_none = [](const RowEdit& edit) { return edit.none(); };
  if (std::all_of(edits.begin(), edits.end(), is_none)) return;
  RowEditArgs args;
  if (noise_) args.noise = reinterpret_cast<const NoiseBytes*>(noise_->data());
  args.images = reinterpret_cast<uint8_t*>(batch + layout.images_offset());
  args.edits = reinterpret_cast<const RowEdit*>(batch + layout.edits_offset());
  args.rows = layout.shape().rows;
  args.height = layout.shape().height;
  args.width = layout.shape().width;
  kernel_(stream, args);
}

}  // namespace stoker
