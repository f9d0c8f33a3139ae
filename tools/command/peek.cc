// stoker peek: a contact sheet of what the model sees, beside the source images.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/augment/program.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/loader.h"
#include "pipeline/row/packed_values.h"
#include "tools/command/command.h"
#include "tools/data/annotation_painter.h"
#include "tools/data/contact_sheet.h"
#include "tools/data/dump_rows.h"
#include "tools/option/augment_choice.h"
#include "tools/option/bucket_choice.h"
#include "tools/option/feed_options.h"

namespace stoker {
namespace {

constexpr int kPanelPixels = 128;  // small rows are enlarged to about this
constexpr int kGap = 8;
constexpr int kTextHeight = 12;
constexpr int kTextLines = 4;
constexpr int kMaxSheetSide = 20'000;
constexpr SheetColor kGround{32, 32, 36}, kText{235, 235, 235}, kFaint{160, 160, 170};
constexpr SheetColor kBox{255, 220, 0}, kAlarm{255, 90, 80};

struct PeekOptions {
  DataOptions data;
  AugmentChoice augment;
  std::string out;
  int count = 24;
  int columns = 0;
  int64_t epoch = 0;
  uint64_t seed = 0;
  bool no_shuffle = false;
  bool explain = false;
  BucketChoice buckets;
};

// Draws the whole source image into at most `side` x `side` pixels.
class SourcePainter {
 public:
  SourcePainter(const Source& source, const DecodeOptions& options)
      : source_(source), decoder_(options) {}

  // Draws at (x, y); returns the box that it fills, empty if the sample cannot be shown.
  Box draw(SampleId id, int x, int y, int side, ContactSheet& sheet) {
    std::span<const uint8_t> bytes;
    if (!source_.read(id, file_, bytes).ok) return {};
    if (source_.encoding() != SampleEncoding::image_file) return draw_raw(bytes, x, y, side, sheet);
    ImageInfo info;
    if (!decoder_.info(bytes, info).ok()) return {};
    const double scale =
        std::min(1.0, static_cast<double>(side) / std::max(info.size.width, info.size.height));
    const Size size{std::max(1, static_cast<int>(info.size.width * scale)),
                    std::max(1, static_cast<int>(info.size.height * scale))};
    pixels_.resize(static_cast<size_t>(size.width) * size.height * 3);
    const MutableImageView view{pixels_.data(), size.width, size.height, ptrdiff_t{3} * size.width};
    const CropSpec whole{
        {0, 0, info.size.width, info.size.height}, size, {0, 0, size.width, size.height}};
    if (!decoder_.decode(bytes, whole, view).ok()) return {};
    sheet.draw_image(view, x, y, 1);
    return {x, y, size.width, size.height};
  }

 private:
  Box draw_raw(std::span<const uint8_t> bytes, int x, int y, int side, ContactSheet& sheet) {
    const Size size = source_.raw_size();
    const size_t plane = static_cast<size_t>(size.width) * size.height;
    pixels_.assign(bytes.begin(), bytes.end());
    if (source_.encoding() == SampleEncoding::raw_planar) {
      for (size_t i = 0; i < plane * 3; ++i) pixels_[i] = bytes[i % 3 * plane + i / 3];
    }
    const int scale = std::max(1, side / std::max(size.width, size.height));
    sheet.draw_image({pixels_.data(), size.width, size.height, ptrdiff_t{3} * size.width}, x, y,
                     scale);
    return {x, y, size.width * scale, size.height * scale};
  }

  const Source& source_;
  ImageDecoder decoder_;
  std::vector<uint8_t> file_, pixels_;
};

// The layout of the sheet. A tile has what the model sees, the source beside it, the rows of the
// sample's further pictures, and lines of text.
struct SheetPlan {
  int columns = 1, rows = 1;
  int scale = 1;   // of what the model sees
  int panels = 2;  // pictures of a tile
  int panel = 0;   // pixels, width and height of each of them
  int panel_at(int number) const { return number * (panel + kGap / 2); }
  int tile_width() const { return panel_at(panels) + kGap; }
  int tile_height() const { return panel + kTextLines * kTextHeight + kGap; }
  Size size() const { return {columns * tile_width() + kGap, rows * tile_height() + kGap}; }
};

// `panel`: has room for the own picture's rows.
SheetPlan plan_sheet(const PeekOptions& options, Size panel, const AugmentSpec& augment) {
  SheetPlan plan;
  int side = std::max(panel.width, panel.height);
  for (int view = augment.own_views(); view < augment.views(); ++view) {
    const Size size = augment.view(view).output;
    side = std::max({side, size.width, size.height});
    ++plan.panels;
  }
  plan.scale = std::max(1, kPanelPixels / side);
  plan.panel = side * plan.scale;
  plan.columns = options.columns > 0 ? options.columns
                                     : std::max(1, static_cast<int>(std::sqrt(options.count)));
  plan.columns = std::min(plan.columns, options.count);
  plan.rows = (options.count + plan.columns - 1) / plan.columns;
  const Size size = plan.size();
  if (size.width > kMaxSheetSide || size.height > kMaxSheetSide) {
    throw std::invalid_argument(
        fmt::format("--count {} makes a sheet of {} x {} pixels; at most {} x {}", options.count,
                    size.width, size.height, kMaxSheetSide, kMaxSheetSide));
  }
  return plan;
}

// Returns the crop's frame on the source picture, which fills `shown`.
Box frame_of(const Draws& draws, Box shown) {
  const auto [x, y, width, height] = shown_box(draws);
  const double scale_x = static_cast<double>(shown.width) / draws.source().width;
  const double scale_y = static_cast<double>(shown.height) / draws.source().height;
  return {shown.x + static_cast<int>(x * scale_x), shown.y + static_cast<int>(y * scale_y),
          std::max(1, static_cast<int>(width * scale_x)),
          std::max(1, static_cast<int>(height * scale_y))};
}

// Returns "3 cat"; "no label" where the data have none.
std::string describe_label(const Source& source, int label) {
  const std::vector<std::string>& names = source.class_names();
  return names.empty() ? "no label"
                       : fmt::format("{} {}", label, names[static_cast<size_t>(label)]);
}

// Returns "\"a dog\"  " for a row with a text; else "".
std::string describe_text(const std::vector<TargetColumn>& columns, const DeviceBatch& batch,
                          int row) {
  const auto found = std::ranges::find(columns, TargetType::text, &TargetColumn::type);
  if (found == columns.end()) return "";
  const auto column = static_cast<size_t>(found - columns.begin());
  const std::string text(row_text(packed_values(batch, columns, column), row));
  return fmt::format("\"{}\"  ", printable_name(text));
}

// Returns what stands below a row's picture: its label, or how many objects lie on it.
std::string describe_content(const Source& source, const DeviceBatch& batch, int row) {
  if (!source.annotations().objects) return describe_label(source, batch.labels()[row]);
  const int objects = row_notes(batch)[row].objects;
  return fmt::format("{} object{}", objects, objects == 1 ? "" : "s");
}

// Returns the crop of a row in source pixels, or why there is none.
std::string describe_crop(const RowNote& note, const Draws& draws) {
  if (note.bad) {
    const char* why = note.code == DecodeCode::ok ? "unreadable" : to_string(note.code);
    return fmt::format("BAD: {}", why);
  }
  if (note.partners[0] >= 0) {
    const auto end = std::ranges::find(note.partners, SampleId{-1});
    return fmt::format("with {}", fmt::join(note.partners.begin(), end, ", "));
  }
  const auto [x, y, width, height] = shown_box(draws);
  return fmt::format("{:.0f},{:.0f} {:.0f}x{:.0f} of {}x{}", x, y, width, height, note.source.width,
                     note.source.height);
}

// Returns the steps that the other lines do not tell.
std::string describe_rest(const Draws& draws) {
  return steps_text(draws.steps().subspan(plan_decode(draws).steps));
}

// Returns "  + 25% 7 dog" for a row that has a quarter of another sample's target; else "".
std::string describe_mix(const Source& source, const RowMix& mix) {
  if (mix.partner < 0) return "";
  return fmt::format("  + {:.0f}% {}", 100 * (1 - mix.draw.own_share),
                     describe_label(source, source.label(mix.partner)));
}

// Draws the rows of the sample's further pictures, which are the last columns.
void draw_further(const SheetPlan& plan, const std::vector<TargetColumn>& columns,
                  const DeviceBatch& batch, int row, int x, int y, ContactSheet& sheet) {
  for (int i = 2; i < plan.panels; ++i) {
    const size_t number = columns.size() - static_cast<size_t>(plan.panels - i);
    const TargetColumn& column = columns[number];
    const auto height = static_cast<int>(column.shape[0]),
               width = static_cast<int>(column.shape[1]);
    const auto* const pixels = reinterpret_cast<const uint8_t*>(batch.target(number)) +
                               static_cast<size_t>(column.bytes()) * static_cast<size_t>(row);
    sheet.draw_image({pixels, width, height, ptrdiff_t{3} * width}, x + plan.panel_at(i), y,
                     plan.scale);
  }
}

// `tile`: its number on the sheet.
void draw_tile(const SheetPlan& plan, int tile, const Source& source,
               const std::vector<TargetColumn>& columns, const DeviceBatch& batch, int row,
               const Draws& draws, SourcePainter& painter, ContactSheet& sheet) {
  const int x = kGap + tile % plan.columns * plan.tile_width();
  const int y = kGap + tile / plan.columns * plan.tile_height();
  const BatchShape shape = batch.shape();
  const size_t image_bytes = static_cast<size_t>(shape.height) * shape.width * 3;
  sheet.draw_image(
      {batch.images() + row * image_bytes, shape.width, shape.height, ptrdiff_t{3} * shape.width},
      x, y, plan.scale);
  draw_annotations(source.annotations(), columns, batch, row, {x, y, plan.scale}, sheet);
  draw_further(plan, columns, batch, row, x, y, sheet);
  const RowNote& note = row_notes(batch)[row];
  const Box shown = painter.draw(batch.ids()[row], x + plan.panel_at(1), y, plan.panel, sheet);
  if (shown.width > 0 && !note.bad) sheet.draw_frame(frame_of(draws, shown), kBox);

  const std::string lines[kTextLines] = {
      fmt::format("{}{}{}{}", describe_text(columns, batch, row),
                  describe_content(source, batch, row), is_mirrored(draws) ? "  flipped" : "",
                  describe_mix(source, note.mix)),
      describe_crop(note, draws), describe_rest(draws), source.name(batch.ids()[row])};
  const SheetColor colors[kTextLines] = {kText, note.bad ? kAlarm : kFaint, kFaint, kFaint};
  for (int line = 0; line < kTextLines; ++line) {
    sheet.draw_text(lines[line], x, y + plan.panel + 3 + line * kTextHeight,
                    plan.tile_width() - kGap, 1, colors[line]);
  }
}

void add_peek_options(CLI::App& app, PeekOptions& options) {
  add_data_option(app, options.data);
  add_objects_options(app, options.data);
  add_target_options(app, options.data);
  add_split_option(app, options.data);
  app.add_option("--out,-o", options.out, "PNG file to write")->required();
  app.add_option("--count", options.count, "Number of pictures")->check(CLI::Range(1, 100'000));
  app.add_option("--columns", options.columns, "Pictures in a row; 0: about a square")
      ->check(CLI::Range(0, 1000));
  app.add_option("--epoch", options.epoch, "The epoch that is shown, counted from 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--seed", options.seed, "Seed of the order and the augmentation");
  app.add_flag("--no-shuffle", options.no_shuffle, "Take samples in the order of their ids");
  add_augment_choice(app, options.augment);
  add_bucket_choice(app, options.buckets);
  add_explain_option(app, options.explain);
  add_decode_options(app, options.data);
}

}  // namespace

int run_peek(int argc, char** argv) {
  PeekOptions options;
  auto app = make_parser(
      "peek",
      "Draws a contact sheet of what the model sees: each sample of the first batch beside its "
      "source\n"
      "image, in which the crop is framed. Below stand the text of --target-from, if it is one, "
      "the\n"
      "label, whether the sample is flipped, the\n"
      "crop in source pixels, what else was done to it, and the file. --objects are drawn on what\n"
      "the model sees; the pictures of --picture-from stand on the right, as it sees them. With\n"
      "--buckets each line of the sheet is a step, in the size of its bucket.",
      "  stoker peek --data data/imagenette -o sheet.png\n"
      "  stoker peek --data data/cifar --model airnet --epoch 1 --count 60 --columns 10 -o s.png\n"
      "  stoker peek --data data/imagenette --augment \"random_resized_crop | random_augment\" -o "
      "a.png\n"
      "  stoker peek --data data/imagenette --view eval --split test -o eval.png\n"
      "  stoker peek --data \"laion-{000..127}.tar\" --buckets 512 -o b.png\n"
      "  stoker peek --data coco/train2017 --objects instances_train2017.json --augment "
      "\"letterbox((640, "
      "640))\" -o s.png\n");
  add_peek_options(*app, options);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  check_bucket_choice(*app, options.buckets);
  const auto source = open_data(options.data, parse_split(options.data.split));
  SharedBuckets buckets;
  if (options.buckets.is_wanted()) {
    buckets = options.buckets.of(*source, options.data.decode());
    if (!options.augment.augment) options.augment.augment = kBucketStages;
  }
  const AugmentSpec augment = options.augment.spec(*source);
  // Has room for rows of every size.
  Size panel = buckets ? buckets->sizes().front() : augment.output;
  for (const Size size : buckets ? buckets->sizes() : std::vector<Size>{}) {
    panel = {std::max(panel.width, size.width), std::max(panel.height, size.height)};
  }
  if (options.explain) {
    print_explanation(augment);
    return kExitOk;
  }
  const auto count = static_cast<int>(std::min<int64_t>(options.count, source->size()));
  options.count = count;
  const SheetPlan plan = plan_sheet(options, panel, augment);
  LoaderOptions loader_options;
  loader_options.buckets = buckets;
  const int shown = buckets ? plan.columns : count;  // of each step
  // Rows are mixed in pairs: the last one's partner is not shown.
  loader_options.batch_size = augment.mix.on() ? shown + shown % 2 : shown;
  loader_options.seed = options.seed;
  loader_options.shuffle = !options.no_shuffle;
  loader_options.first_epoch_offset = options.epoch;
  loader_options.feed.decode = options.data.decode();
  loader_options.varying = options.data.varying();
  loader_options.ring_depth = 1;
  loader_options.feed.max_bad = count + 1;  // bad samples are shown and are no error
  if (source->annotations().masks) loader_options.annotations.masks = RowMasks::bits;
  if (source->annotations().rotated) loader_options.annotations.box_format = BoxFormat::xyxyxyxy;
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  Loader loader(*source, augment, {device.get()}, loader_options);

  ContactSheet sheet(plan.size(), kGround);
  SourcePainter painter(*source, options.data.decode());
  Draws draws;
  Annotations annotations;
  for (int first = 0; first < count; first += shown) {
    const DeviceBatch batch = loader.next(0, *stream);
    if (!batch) break;
    batch.synchronize();
    const std::vector<TargetColumn>& columns = loader.targets(batch.header().shape);
    for (int row = 0; row < std::min(shown, count - first); ++row) {
      const RowNote& note = row_notes(batch)[row];
      if (source->annotations().objects) {
        read_row_annotations(*source, note, annotations);
        draws.carry(&annotations, 0);
      }
      draw_row(augment, options.seed, batch.header().epoch, note, draws);
      draw_tile(plan, first + row, *source, columns, batch, row, draws, painter, sheet);
    }
  }
  write_png(options.out, sheet.view());
  fmt::print("{} pictures of {}{} x {} on a sheet of {} x {}: {}\n", count,
             buckets ? "at most " : "", panel.width, panel.height, sheet.size().width,
             sheet.size().height, options.out);
  return kExitOk;
}

}  // namespace stoker
