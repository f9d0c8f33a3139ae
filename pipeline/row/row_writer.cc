#include "pipeline/row/row_writer.h"

#include <cstring>

#include "pipeline/files/digest.h"

namespace stoker {
namespace {

uint64_t joined_digest(uint64_t first, uint64_t second) {
  const uint64_t both[2] = {first, second};
  return pixel_digest({reinterpret_cast<const uint8_t*>(both), sizeof(both)});
}

}  // namespace

RowWriter::RowWriter(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
                     const AnnotationColumns& annotations, const VaryingColumns& varying)
    : views_(views_of(augment, options.format)),
      row_bytes_(views_.back().scratch_offset + views_.back().row_bytes),
      digests_(options.digests),
      mixes_(augment.mix.on()),
      annotations_(annotations),
      varying_(varying) {
  const auto add = [this](const TargetColumn& column) {
    column_bytes_.push_back(static_cast<size_t>(column.bytes()));
  };
  for (const TargetColumn& column : row_columns(source.targets(), options.varying)) add(column);
  targets_ = source.targets().size();
  first_annotation_ = column_bytes_.size();
  for (const AnnotationColumn& each : annotations.columns()) add(each.column);
  source_columns_ = column_bytes_.size();
  if (!mixes_) return;
  for (const TargetColumn& column : mix_columns()) add(column);
}

std::vector<RowWriter::View> RowWriter::views_of(const AugmentSpec& augment,
                                                 const std::optional<RowFormat>& format) {
  std::vector<View> views;
  size_t scratch = 0;
  for (int number = 0; number < augment.views(); ++number) {
    const Size size = augment.view(number).output;
    const size_t bytes = size_t{3} * static_cast<size_t>(size.width) * size.height;
    View view{size, bytes, bytes, {}, scratch};
    if (format) {
      view.stored_bytes = bytes * value_bytes(format->type);
      view.convert = normalise_args({.height = size.height,
                                     .width = size.width,
                                     .type = format->type,
                                     .order = format->order,
                                     .mean = format->mean,
                                     .stddev = format->stddev});
    }
    scratch += bytes;
    views.push_back(view);
  }
  return views;
}

void RowWriter::begin(RowWorker& worker, Slab& slab, int row) const {
  worker.outs.clear();
  for (size_t number = 0; number < views_.size(); ++number) {
    const Size size = views_[number].size;
    worker.outs.push_back(
        {pixels(worker, slab, row, number), size.width, size.height, ptrdiff_t{3} * size.width});
  }
  worker.targets.columns.resize(targets_);
  worker.targets.varying.resize(targets_);
  worker.targets.problem.clear();
  worker.annotation_outs.resize(source_columns_ - first_annotation_);
  const auto place = [&](size_t column) {
    return slab.targets[column] + column_bytes_[column] * static_cast<size_t>(row);
  };
  for (size_t i = 0; i < targets_; ++i) worker.targets.columns[i] = place(i);
  for (size_t i = first_annotation_; i < source_columns_; ++i) {
    worker.annotation_outs[i - first_annotation_] = place(i);
  }
}

uint8_t* RowWriter::pixels(RowWorker& worker, const Slab& slab, int row, size_t view) const {
  if (!views_[view].convert || worker.is_plain) {
    return reinterpret_cast<uint8_t*>(stored_row(slab, view, row, worker.is_plain));
  }
  const auto together = static_cast<size_t>(rows_together());
  worker.pixels.resize(row_bytes_ * together);
  return worker.pixels.data() + row_bytes_ * (static_cast<size_t>(row) % together) +
         views_[view].scratch_offset;
}

// The views after the first are the last columns.
std::byte* RowWriter::stored_row(const Slab& slab, size_t view, int row, bool is_plain) const {
  const size_t bytes = is_plain ? views_[view].row_bytes : views_[view].stored_bytes;
  const size_t offset = bytes * static_cast<size_t>(row);
  if (view == 0) return reinterpret_cast<std::byte*>(slab.images) + offset;
  return slab.targets[column_bytes_.size() + view - 1] + offset;
}

void RowWriter::set_mix(Slab& slab, int row, int32_t label, float weight) const {
  reinterpret_cast<int32_t*>(slab.targets[source_columns_])[row] = label;
  reinterpret_cast<float*>(slab.targets[source_columns_ + 1])[row] = weight;
}

void RowWriter::convert(const View& view, const uint8_t* pixels, std::byte* out, int rows) {
  NormaliseArgs args = *view.convert;
  args.images = pixels;
  args.out = out;
  args.rows = rows;
  normalise_on_host(args);
}

void RowWriter::finish(RowWorker& worker, Slab& slab, int row) const {
  uint64_t& digest = note_of(slab, row).digest;
  for (size_t number = 0; number < views_.size(); ++number) {
    const View& view = views_[number];
    const uint8_t* const made = pixels(worker, slab, row, number);
    if (digests_) {
      const uint64_t of_view = pixel_digest({made, view.row_bytes});
      digest = number == 0 ? of_view : joined_digest(digest, of_view);
    }
    if (view.convert && !worker.is_plain) convert(view, made, stored_row(slab, number, row), 1);
  }
  if (digests_ && annotations_.any()) {
    digest = joined_digest(digest, annotations_.digest(worker.annotation_outs));
  }
  if (digests_ && varying_.any()) digest = joined_digest(digest, varying_.digest(slab, row));
}

void RowWriter::take(Slab& slab, int first, int count, const Slab& made) const {
  const auto copy = [&](auto* to, const auto* from, size_t row_bytes) {
    std::memcpy(reinterpret_cast<std::byte*>(to) + row_bytes * static_cast<size_t>(first), from,
                row_bytes * static_cast<size_t>(count));
  };
  copy(slab.labels, made.labels, sizeof(int32_t));
  copy(slab.weights, made.weights, sizeof(float));
  copy(slab.ids, made.ids, sizeof(SampleId));
  copy(slab.notes, made.notes, sizeof(RowNote));
  if (slab.edits) copy(slab.edits, made.edits, sizeof(RowEdit));
  for (size_t i = 0; i < column_bytes_.size(); ++i) {
    copy(slab.targets[i], made.targets[i], column_bytes_[i]);
  }
  for (size_t number = 0; number < views_.size(); ++number) {
    const View& view = views_[number];
    const auto* from = reinterpret_cast<const uint8_t*>(stored_row(made, number, 0, true));
    std::byte* const out = stored_row(slab, number, first);
    if (view.convert) {
      convert(view, from, out, count);
    } else {
      std::memcpy(out, from, view.row_bytes * static_cast<size_t>(count));
    }
  }
}

}  // namespace stoker
