#include "pipeline/row/loader_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "pipeline/files/invalid_field.h"
#include "pipeline/measure_hooks.h"
#include "pipeline/row/annotation_columns.h"
#include "pipeline/row/varying_columns.h"
#include "staging/stager.h"

namespace stoker {
namespace {

constexpr int kMaxThreads = 1024;  // more is a mistake, and each thread takes memory

void require_option(bool good, const std::string& field, const std::string& problem) {
  if (!good) throw InvalidField("LoaderOptions", field, problem);
}

void require_range(const char* field, int64_t value, int64_t low, int64_t high) {
  require_option(value >= low && value <= high, field,
                 " is " + std::to_string(value) + ", must be " + std::to_string(low) + " to " +
                     std::to_string(high));
}

void check_options(const LoaderOptions& options, int64_t devices) {
  require_range("batch_size", options.batch_size, 1, 1 << 24);
  require_range("parts", options.parts, 1, 1 << 20);
  require_range("ring_depth", options.ring_depth, 1, 1 << 16);
  require_range("slots", options.slots, -1, Stager::kMaxSlots);
  require_range("leases", options.leases, 1, options.ring_depth);
  require_range("workers", options.feed.workers, -1, kMaxThreads);
  if (options.measure) {
    require_range("spare_workers", options.measure->spare_workers, 0, kMaxThreads);
  }
  require_option(
      !options.remote_rows || options.parts == 1, "parts",
      " is " + std::to_string(options.parts) + ", must be 1 if other processes fill rows");
  require_option(!options.remote_rows || !options.feed.cache, "cache",
                 " keeps decoded pictures, and there are none of rows that other processes fill");
  require_option(options.feed.memory >= 0, "memory",
                 " is " + std::to_string(options.feed.memory) + " bytes, must not be negative");
  require_range("io_threads", options.feed.io_threads, 0, kMaxThreads);
  require_range("world", options.world, 1, 1 << 20);
  require_option(options.rank >= 0 && options.rank < options.world, "rank",
                 " is " + std::to_string(options.rank) + " of a world of " +
                     std::to_string(options.world) + ", must be 0 to world - 1");
  const int64_t replicas = int64_t{options.world} * devices;
  require_option(replicas * options.parts < (int64_t{1} << 31) / options.batch_size, "batch_size",
                 ": the global batch of " + std::to_string(options.world) + " ranks x " +
                     std::to_string(devices) + " devices x " +
                     (options.parts > 1 ? std::to_string(options.parts) + " parts x " : "") +
                     std::to_string(options.batch_size) + " samples is 2^31 samples or more");
  require_option(!std::isnan(options.epochs), "epochs", " is not a number");
  require_option(
      options.feed.max_bad >= 0, "max_bad",
      " is " + std::to_string(options.feed.max_bad) + ", must be a share below 1 or a count");
  require_option(options.first_epoch_offset >= 0, "first_epoch_offset",
                 " is " + std::to_string(options.first_epoch_offset) + ", must not be negative");
  require_option(options.feed.decode.max_pixels >= 1, "decode.max_pixels",
                 " is " + std::to_string(options.feed.decode.max_pixels) + ", must be at least 1");
}

constexpr size_t kMaxName = 100;

void check_share(const LoaderOptions& options) {
  const std::string& name = options.share.name;
  if (name.empty()) return;
  const bool is_name = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.';
  });
  require_option(is_name && name.size() <= kMaxName, "share",
                 " is \"" + name.substr(0, 2 * kMaxName) + "\", must be at most " +
                     std::to_string(kMaxName) + " letters, digits, '_', '-' and '.'");
  require_range("share.steps", options.share.steps, 1, 1 << 16);
  require_option(options.share.wait_s >= 0 && options.share.wait_s <= 1e6, "share.wait_s",
                 " is " + std::to_string(options.share.wait_s) + ", must be 0 to 1000000 seconds");
  require_option(
      !options.remote_rows, "share",
      " is \"" + name +
          "\", but other machines fill rows, too (remote): rows are shared by one machine's "
          "processes, or filled by others, not both");
}

// Partners must be in the same batch of the same device.
void check_mix(const Source& source, const LoaderOptions& options) {
  require_option(options.batch_size % 2 == 0, "batch_size",
                 " is " + std::to_string(options.batch_size) +
                     " for each device, must be even where rows are mixed in pairs (`mix`)");
  for (const TargetColumn& column : source.targets()) {
    for (const TargetColumn& own : mix_columns()) {
      if (column.name != own.name) continue;
      throw std::invalid_argument(source.root() + ": the samples have the target " +
                                  column.describe() + ", which is a name that mixing uses itself");
    }
  }
}

// The rows of another view travel as a column behind the images; those of another picture under its
// name.
TargetColumn view_column(const AugmentSpec& augment, int number,
                         const std::optional<RowFormat>& format) {
  const AugmentView view = augment.view(number);
  const Size size = view.output;
  const bool planar = format && format->order == PixelOrder::nchw;
  const std::string name = view.picture.empty() ? "view_" + std::to_string(number) : view.picture;
  const TargetType type = format ? TargetType::float32 : TargetType::uint8;
  if (planar) return {name, type, {3, size.height, size.width}};
  return {name, type, {size.height, size.width, 3}};
}

// Each picture of a sample has a list, and each list a picture.
void check_pictures(const Source& source, const AugmentSpec& augment) {
  std::string names;
  for (const PictureInfo& each : source.pictures()) {
    names += (names.empty() ? "'" : ", '") + each.name + "'";
    const auto is_listed = [&](const AugmentView& view) { return view.picture == each.name; };
    require_option(std::ranges::any_of(augment.more_views, is_listed), "augment",
                   ": the samples have the picture '" + each.name + "', and '" +
                       augment.stages_text() + "' has no list for it: pictures(LIST, " + each.name +
                       "=LIST)");
  }
  for (const AugmentView& view : augment.more_views) {
    const bool is_there = view.picture.empty() ||
                          std::ranges::any_of(source.pictures(), [&](const PictureInfo& each) {
                            return view.picture == each.name;
                          });
    require_option(is_there, "augment",
                   ": there is a list for the picture '" + view.picture +
                       "', and the samples have " +
                       (names.empty() ? "no further pictures (`pictures_from`)" : names));
  }
  require_option(!augment.has_pictures() || !source.annotations().any(), "augment",
                 ": samples with several pictures carry no boxes, masks or label images");
}

}  // namespace

std::vector<TargetColumn> batch_columns(const Source& source, const AugmentSpec& augment,
                                        const LoaderOptions& options) {
  std::vector<TargetColumn> columns = row_columns(source.targets(), options.varying);
  for (const AnnotationColumn& each :
       annotation_columns(source.annotations(), options.annotations, augment.output)) {
    columns.push_back(each.column);
  }
  if (augment.mix.on()) columns.insert(columns.end(), mix_columns().begin(), mix_columns().end());
  for (int view = 1; view < augment.views(); ++view) {
    columns.push_back(view_column(augment, view, options.format));
  }
  return columns;
}

std::vector<AugmentSpec> row_specs(const AugmentSpec& augment, const LoaderOptions& options) {
  std::vector<Size> sizes = {augment.output};
  if (options.shapes) sizes = options.shapes->sizes();
  if (options.buckets) sizes = options.buckets->sizes();
  std::vector<AugmentSpec> specs;
  for (const Size size : sizes) specs.push_back(augment.with_output(size));
  return specs;
}

BatchLayout batch_layout(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const DeviceEdits& edits) {
  BatchShape shape{
      .rows = options.batch_size, .note_bytes_per_row = sizeof(RowNote), .edits = edits.any()};
  if (options.format) shape.value_bytes = static_cast<int>(value_bytes(options.format->type));
  for (const AugmentSpec& spec : row_specs(augment, options)) {
    const Size size = spec.output;
    if (int64_t{size.width} * size.height > int64_t{shape.width} * shape.height) {
      shape.width = size.width;
      shape.height = size.height;
    }
    const std::vector<TargetColumn> columns = batch_columns(source, spec, options);
    shape.target_bytes.resize(columns.size());
    shape.host_targets.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].varies) shape.host_targets.push_back(i);
      shape.target_bytes[i] = std::max(shape.target_bytes[i], columns[i].bytes());
    }
  }
  return BatchLayout(shape);
}

SamplerOptions sampler_options(const Source& source, const LoaderOptions& options, int devices) {
  return {.samples = source.size(),
          .rows = options.batch_size,
          .replicas = options.world * devices * options.parts,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .last_batch = options.last_batch,
          .grid = options.grid,
          .order = options.order,
          .buckets = options.buckets,
          .shapes = options.shapes};
}

void check_loader(const Source& source, const AugmentSpec& augment,
                  const std::vector<Device*>& devices, const LoaderOptions& options) {
  require_option(!devices.empty(), "devices", ": there are no devices: at least one is needed");
  for (size_t i = 0; i < devices.size(); ++i) {
    require_option(devices[i] != nullptr, "devices", ": device " + std::to_string(i) + " is null");
    require_option(!options.format || devices[i]->host_accessible(), "format",
                   " is for host devices, " + devices[i]->name() + " converts what it was given");
  }
  check_options(options, static_cast<int64_t>(devices.size()));
  check_share(options);
  check_pictures(source, augment);
  const auto size_of = [](SampleEncoding encoding, Size raw_size) {
    return encoding == SampleEncoding::image_file ? std::nullopt : std::optional(raw_size);
  };
  AugmentSpec::PictureSizes sizes;
  for (const PictureInfo& each : source.pictures()) {
    sizes[each.name] = size_of(each.encoding, each.raw_size);
  }
  if (augment.mix.on()) check_mix(source, options);
  require_option(!(options.shapes || options.buckets) || !options.feed.cache, "cache",
                 ": rows of changing sizes are not made of pictures that are kept");
  check_varying(source, augment, options.varying, options.batch_size);
  for (const AugmentSpec& spec : row_specs(augment, options)) {
    spec.validate_for(size_of(source.encoding(), source.raw_size()), sizes);
    check_annotations(source.annotations(), options.annotations, spec);
    check_targets(batch_columns(source, spec, options));
  }
  if (augment.combines()) {
    require_option(source.annotations().any(), "augment",
                   ": '" + augment.stages.describe() +
                       "' combines samples with what lies on them, and these carry neither objects "
                       "nor label images (mix is for classes)");
    require_option(!options.feed.cache, "cache",
                   ": rows of several samples ('" + augment.stages.describe() +
                       "') are not made of pictures that are kept");
  }
  const bool wide = options.format && options.format->type == PixelType::fp32;
  require_option(augment.views() == 1 || !options.format || wide, "format",
                 ": views are uint8 or float32 on a host device");
  const Sampler refuses(sampler_options(source, options, static_cast<int>(devices.size())));
}

}  // namespace stoker
