#include "pipeline/row/fingerprint.h"

#include <algorithm>
#include <string>

#include "pipeline/files/digest.h"
#include "pipeline/order/bucket_steps.h"
#include "pipeline/row/loader_options.h"
#include "stoker/version.h"

namespace stoker {

namespace {

// "": the samples carry nothing.
std::string annotations_text(const Source& source, const LoaderOptions& options) {
  if (!source.annotations().any()) return "";
  const AnnotationOptions& with = options.annotations;
  return "; annotations " + hex64(source.annotations().digest) + " max_objects " +
         std::to_string(with.max_objects) + " too_many " +
         std::to_string(static_cast<int>(with.too_many)) + " box_format " +
         std::to_string(static_cast<int>(with.box_format)) + " masks " +
         std::to_string(static_cast<int>(with.masks)) + " ignore_label " +
         std::to_string(with.ignore_label) + (with.packed ? " packed" : "");
}

std::string order_text(const LoaderOptions& options) {
  if (options.order) return options.order->describe();
  if (options.buckets) return bucket_order(options.buckets, options.shuffle)->describe();
  return options.shuffle ? "shuffled" : "as they lie";
}

// The size of the rows is in here or, where it changes, in the text of the shapes.
std::string augment_text(const AugmentSpec& augment, const LoaderOptions& options) {
  const AugmentSpec first = row_specs(augment, options).front();
  return first.describe() + (options.shapes ? "; " + options.shapes->describe() : "");
}

// "": no target varies.
std::string varying_text(const Source& source, const LoaderOptions& options) {
  if (std::ranges::none_of(source.targets(), &TargetColumn::varies)) return "";
  const VaryingOptions& with = options.varying;
  return "; varying max_bytes " + std::to_string(with.max_bytes) + " texts " +
         std::to_string(static_cast<int>(with.texts)) + " too_long " +
         std::to_string(static_cast<int>(with.too_long));
}

}  // namespace

uint64_t pixels_fingerprint(const Source& source, const AugmentSpec& augment,
                            const LoaderOptions& options, int64_t global_batch) {
  const DecodeOptions& decode = options.feed.decode;
  const std::string targets =
      source.targets().empty() ? "" : "; targets " + hex64(source.targets_digest());
  const std::string annotations = annotations_text(source, options);
  // A mix per batch depends on which samples share a batch, and so does the size of a step.
  const bool mixes_batch = augment.mix.on() && augment.mix.per_batch;
  const std::string batch = mixes_batch || options.buckets || options.shapes
                                ? "; global batch " + std::to_string(global_batch)
                                : "";
  return text_digest(
      "stoker pixels 2; labels " + hex64(source.labels_digest()) + targets +
      varying_text(source, options) + annotations + "; samples " + std::to_string(source.size()) +
      "; augment " + augment_text(augment, options) + "; seed " + std::to_string(options.seed) +
      (options.order || options.buckets ? "; order " + order_text(options)
                                        : "; shuffle " + std::to_string(options.shuffle)) +
      "; last batch " + std::to_string(static_cast<int>(options.last_batch)) + "; pixels " +
      std::to_string(static_cast<int>(decode.pixels)) + "; exif " +
      std::to_string(static_cast<int>(decode.exif)) + "; max_pixels " +
      std::to_string(decode.max_pixels) + batch);
}

uint64_t resume_fingerprint(const Source& source, const LoaderOptions& options, uint64_t pixels,
                            int64_t global_batch) {
  return text_digest("stoker resume 2; " + hex64(pixels) + "; source " +
                     hex64(source.fingerprint()) + "; global batch " +
                     std::to_string(global_batch) + "; epoch offset " +
                     std::to_string(options.first_epoch_offset));
}

uint64_t rows_fingerprint(const Source& source, const AugmentSpec& augment,
                          const LoaderOptions& options, int devices, const DeviceEdits& edits) {
  return text_digest("stoker rows 2\n" + rows_facts(source, augment, options, devices, edits));
}

std::string rows_facts(const Source& source, const AugmentSpec& augment,
                       const LoaderOptions& options, int devices, const DeviceEdits& edits) {
  const DecodeOptions& decode = options.feed.decode;
  const EpochGrid& grid = options.grid;
  std::string text;
  const auto add = [&](const char* what, const std::string& value) {
    text += std::string(what) + ": " + value + "\n";
  };
  const auto number = [&](const char* what, int64_t value) { add(what, std::to_string(value)); };
  add("version", STOKER_VERSION);
  number("number of samples", source.size());
  add("digest of the labels", hex64(source.labels_digest()));
  add("digest of the names", hex64(source.fingerprint()));
  if (!source.targets().empty()) add("digest of the targets", hex64(source.targets_digest()));
  if (const std::string varying = varying_text(source, options); !varying.empty()) {
    add("targets that vary", varying);
  }
  if (source.annotations().any()) add("annotations", annotations_text(source, options));
  add("augment", augment_text(augment, options));
  add("seed", std::to_string(options.seed));
  add("order", order_text(options));
  number("last_batch", static_cast<int>(options.last_batch));
  number("batch_size", options.batch_size);
  number("parts", options.parts);
  number("rank", options.rank);
  number("world", options.world);
  number("number of devices", devices);
  number("first_epoch_offset", options.first_epoch_offset);
  std::string taken;
  for (const int64_t samples : grid.taken) taken += ", " + std::to_string(samples);
  add("grid", std::to_string(grid.epoch) + ", " + std::to_string(grid.step) + ", " +
                  std::to_string(grid.position) + taken);
  number("pixels", static_cast<int>(decode.pixels));
  number("exif", static_cast<int>(decode.exif));
  number("max_pixels", decode.max_pixels);
  number("digests", options.digests);
  number("erasing left to the device", edits.erases);
  number("mixing left to the device", edits.mixes);
  number("steps shared", options.share.steps);
  return text;
}

int64_t global_batch(const LoaderOptions& options, int64_t devices) {
  return int64_t{options.batch_size} * devices * options.world * options.parts;
}

}  // namespace stoker
