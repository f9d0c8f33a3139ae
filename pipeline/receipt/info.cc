// Describes a run for its receipt, from the arguments of the loader.
#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/loader.h"
#include "pipeline/receipt/files.h"
#include "pipeline/receipt/receipt.h"

namespace stoker {
ReceiptInfo receipt_info(const Loader& loader, const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, int devices) {
  using Entry = ReceiptInfo::Entries::value_type;
  ReceiptInfo info;
  info.fingerprint = loader.fingerprint();
  info.seed = options.seed;
  info.steps_per_epoch = loader.steps_per_epoch();
  info.rows = options.batch_size;
  info.devices = devices;
  info.rank = options.rank;
  info.world = options.world;
  info.policies = {
      {"labels", hex64(source.labels_digest())},
      {"samples", std::to_string(source.size())},
      {"augment", augment.describe()},
      options.order ? Entry{"order", options.order->describe()}
                    : Entry{"shuffle", options.shuffle ? "on" : "off"},
      {"last_batch", to_string(options.last_batch)},
      {"pixels", to_string(options.feed.decode.pixels)},
      {"exif", options.feed.decode.exif == ExifPolicy::ignore ? "ignore" : "apply"},
      {"max_pixels", std::to_string(options.feed.decode.max_pixels)},
  };
  if (options.buckets) info.policies.emplace_back("buckets", options.buckets->describe());
  if (options.shapes) info.policies.emplace_back("sizes", options.shapes->describe());
  if (!source.targets().empty()) {
    info.policies.emplace_back("targets", hex64(source.targets_digest()));
  }
  if (source.annotations().any()) {
    info.policies.emplace_back("annotations", hex64(source.annotations().digest));
  }
  info.options = {
      {"root", printable_name(source.root())},
      {"workers", std::to_string(options.feed.workers)},
      {"io_threads", std::to_string(options.feed.io_threads)},
      {"ring_depth", std::to_string(options.ring_depth)},
      {"slots", std::to_string(options.slots)},
      {"on_bad_sample", options.feed.on_bad_sample == OnBadSample::fail ? "fail" : "substitute"},
      {"max_bad", nlohmann::json(options.feed.max_bad).dump()},
  };
  return info;
}

}  // namespace stoker
