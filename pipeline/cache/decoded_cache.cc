#include "pipeline/cache/decoded_cache.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "pipeline/cache/decoded_form.h"
#include "pipeline/cache/decoded_samples.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/store/object_store.h"
#include "staging/mutex.h"
#include "stoker/version.h"

namespace stoker {
namespace {

// A relative path means other data in another folder.
std::string absolute_root(const std::string& root) {
  if (root.empty() || is_store_address(root)) return root;
  return std::filesystem::absolute(root).lexically_normal().string();
}

// Tells pictures from those of other data, of another decoder, and of other recipes.
std::string about_text(const Source& source, const DecodeOptions& decode, const FoundForm& found) {
  const DecodedForm& form = found.form;
  return "stoker: decoded pictures, form " + std::to_string(DecodedSamples::kForm) +
         "\nversion " STOKER_VERSION + "\nof " + printable_name(absolute_root(source.root())) +
         "\n" + std::to_string(source.size()) + " samples, list " + hex64(source.fingerprint()) +
         "\npixels " + to_string(decode.pixels) +
         (decode.exif == ExifPolicy::apply ? ", exif applied" : ", exif ignored") +
         ", max_pixels " + std::to_string(decode.max_pixels) + "\n" +
         (form.is_whole ? "whole images of " : "rows of ") + std::to_string(form.size.width) +
         " x " + std::to_string(form.size.height) + ", geometry " +
         hex64(text_digest(found.shown)) + "\n";
}

FoundForm find_form(const Source& source, const AugmentSpec& augment, const DecodeOptions& decode) {
  return find_decoded_form(source, augment, decode, DecodedSamples::order_of(source.size()));
}

}  // namespace

struct DecodedCache::Impl {
  const DecodedCacheOptions options;
  Mutex mutex;
  std::map<std::string, std::shared_ptr<DecodedSamples>> opened GUARDED_BY(mutex);

  explicit Impl(const DecodedCacheOptions& all) : options(all) {}
  std::shared_ptr<DecodedSamples> make(const DecodedForm& form, int64_t samples,
                                       const std::string& about) const {
    const int64_t bytes = DecodedSamples::place_bytes(form);
    const int64_t count = std::min(samples, options.bytes / bytes);
    const std::string folder = options.folder + "/" + hex64(text_digest(about));
    return std::make_shared<DecodedSamples>(form, samples, count,
                                            options.folder.empty()
                                                ? slots_in_memory(count, bytes)
                                                : slots_on_disk(folder, about, count, bytes));
  }
};

DecodedCache::DecodedCache(const DecodedCacheOptions& options)
    : impl_(std::make_unique<Impl>(options)) {
  if (options.bytes < 1) {
    throw std::invalid_argument("cache of decoded pictures: its size is " +
                                std::to_string(options.bytes) + " bytes, must be at least 1");
  }
  if (is_store_address(options.folder)) {
    throw std::invalid_argument("cache of decoded pictures: " + options.folder +
                                " is no folder of this machine");
  }
}

DecodedCache::~DecodedCache() = default;

std::shared_ptr<DecodedSamples> DecodedCache::open(const Source& source, const AugmentSpec& augment,
                                                   const DecodeOptions& decode) {
  const FoundForm found = find_form(source, augment, decode);
  const std::string about = about_text(source, decode, found);
  const MutexLock lock(impl_->mutex);
  std::shared_ptr<DecodedSamples>& samples = impl_->opened[about];
  if (!samples) samples = impl_->make(found.form, source.size(), about);
  return samples;
}

DecodedCacheStats DecodedCache::stats(const Source& source, const AugmentSpec& augment,
                                      const DecodeOptions& decode) {
  return open(source, augment, decode)->stats();
}

std::string decoded_cache_refusal(const Source& source, const AugmentSpec& augment,
                                  const DecodeOptions& decode) {
  try {
    find_form(source, augment, decode);
    return "";
  } catch (const InvalidField& error) {
    return error.problem();
  }
}

}  // namespace stoker
