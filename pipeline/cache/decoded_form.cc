#include "pipeline/cache/decoded_form.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "pipeline/augment/program.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/source/blob/stored_location.h"

namespace stoker {
namespace {

constexpr int64_t kLookedAtSamples = 4;  // that are looked at
constexpr int64_t kMaxTried = 64;        // of which some may be bad
constexpr int64_t kEpochs = 16;          // that are looked at
constexpr uint64_t kSeed = 0x64656364;   // any: what depends on it is not kept

[[noreturn]] void refuse_decoded_cache(const std::string& why) {
  throw InvalidField("LoaderOptions", "cache", " cannot keep decoded pictures: " + why);
}

std::string text_of_form(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

std::string text_of_form(const CropSpec& crop) {
  return text_of_form(Size{crop.crop.width, crop.crop.height}) + " at " +
         std::to_string(crop.crop.x) + "," + std::to_string(crop.crop.y) + " as " +
         text_of_form(crop.resized) + ", of which " +
         text_of_form(Size{crop.window.width, crop.window.height}) + " at " +
         std::to_string(crop.window.x) + "," + std::to_string(crop.window.y) + " by filter " +
         std::to_string(static_cast<int>(crop.filter));
}

// The same for users: the crop, or the window where that is what moves.
std::string part_text(const CropSpec& crop) {
  const Box& part =
      crop.window == Box{0, 0, crop.resized.width, crop.resized.height} ? crop.crop : crop.window;
  return text_of_form(Size{part.width, part.height}) + " at " + std::to_string(part.x) + "," +
         std::to_string(part.y);
}

// A sample, and what its rows show in some epochs.
struct Probe {
  SampleId id = 0;
  ImageFormat format = ImageFormat::unknown;
  Size image{};
  std::vector<CropSpec> crops{};
  bool is_constant() const {
    return std::ranges::all_of(
        crops, [&](const CropSpec& crop) { return shows_the_same(crop, crops.front()); });
  }
  Size size() const { return {crops.front().window.width, crops.front().window.height}; }
};

// Returns false for a sample that is no picture, or that cannot be augmented so.
bool look_at_sample(const Source& source, const AugmentSpec& augment, ImageDecoder& decoder,
                    Probe& probe) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  if (!source.read(probe.id, buffer, bytes).ok) return false;
  ImageInfo info;
  if (!decoder.info(bytes, info).ok()) return false;
  probe.format = info.format;
  probe.image = info.size;
  Draws draws;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    draw_augmentation(augment, info.size, kSeed, epoch, probe.id, draws);
    if (!draws.failure().empty()) return false;
    probe.crops.push_back(plan_decode(draws).crop);
  }
  return true;
}

std::vector<Probe> look_at_some(const Source& source, const AugmentSpec& augment,
                                const DecodeOptions& decode, const Permutation& order) {
  ImageDecoder decoder(decode);
  std::vector<Probe> probes;
  const int64_t most = std::min(kMaxTried, source.size());
  for (int64_t i = 0; i < most && std::ssize(probes) < kLookedAtSamples; ++i) {
    Probe probe{.id = order.at(i)};
    if (look_at_sample(source, augment, decoder, probe)) probes.push_back(std::move(probe));
  }
  if (probes.empty()) {
    throw std::runtime_error("cache: none of " + std::to_string(most) + " samples of " +
                             source.root() + " that were looked at can be decoded");
  }
  return probes;
}

// Libraries of others that decode such images: another version may give other pixels.
std::string libraries_text(const std::vector<Probe>& probes) {
  const bool any = std::ranges::any_of(probes, [](const Probe& probe) {
    return probe.format == ImageFormat::jpeg2000 || probe.format == ImageFormat::avif;
  });
  std::string text;
  if (!any) return text;
  for (const CodecPluginStatus& plugin : query_codec_plugins()) {
    text += "; " + plugin.library + " " + plugin.version;
  }
  return text;
}

// Why whole images cannot be kept; "": they can.
std::string whole_refusal(const std::vector<Probe>& probes, PixelPolicy pixels) {
  const Probe& first = probes.front();
  for (const Probe& probe : probes) {
    if (probe.image != first.image) {
      return "the images have different sizes, as " + text_of_form(first.image) + " and " +
             text_of_form(probe.image);
    }
  }
  if (int64_t{first.image.width} * first.image.height > kMaxWholePixels) {
    return "the images have " + text_of_form(first.image) + " pixels, and more than " +
           std::to_string(kMaxWholePixels) + " are not kept whole";
  }
  if (pixels == PixelPolicy::fast) {
    return "with fast pixels a part of an image has other bytes than the image's (with exact ones "
           "it has not)";
  }
  return "";
}

}  // namespace

FoundForm find_decoded_form(const Source& source, const AugmentSpec& augment,
                            const DecodeOptions& decode, const Permutation& order) {
  if (source.encoding() != SampleEncoding::image_file) {
    refuse_decoded_cache("the samples of " + source.root() +
                         " are raw pixels, and nothing is decoded");
  }
  if (augment.own_views() > 1) {
    refuse_decoded_cache("a sample has " + std::to_string(augment.own_views()) + " views");
  }
  for (int64_t i = 0; i < std::min(kLookedAtSamples, source.size()); ++i) {
    const SampleId id = order.at(i);
    if (version_stamp(source, id).is_known()) continue;
    refuse_decoded_cache("nothing says when sample " + source.name(id) + " of " + source.root() +
                         " changes: it is in no file as it is read, or a server gives no versions");
  }
  const std::vector<Probe> probes = look_at_some(source, augment, decode, order);
  const Probe& first = probes.front();
  const auto moving = std::ranges::find_if_not(probes, &Probe::is_constant);
  const auto other = std::ranges::find_if_not(
      probes, [&](const Probe& probe) { return probe.size() == first.size(); });
  if (moving == probes.end() && other == probes.end()) {
    FoundForm found{{.is_whole = false, .size = first.size()}, ""};
    for (const Probe& probe : probes) found.shown += text_of_form(probe.crops.front()) + "; ";
    found.shown += libraries_text(probes);
    return found;
  }
  const std::string refusal = whole_refusal(probes, decode.pixels);
  if (refusal.empty()) return {{.is_whole = true, .size = first.image}, libraries_text(probes)};
  const std::string advice =
      ". What can be kept of such data is their encoded bytes: a cache of a store's samples "
      "(`store.cache`) does it for data in a store, and the system for files";
  const std::string recipe = std::string("'").append(augment.stages_text()).append("'");
  if (moving == probes.end()) {
    refuse_decoded_cache(recipe + " makes them of different sizes, as " +
                         text_of_form(first.size()) + " and " + text_of_form(other->size()) +
                         ", and " + refusal + advice);
  }
  const auto changed = std::ranges::find_if_not(moving->crops, [&](const CropSpec& crop) {
    return shows_the_same(crop, moving->crops.front());
  });
  refuse_decoded_cache(recipe + " shows another part of each image in every epoch (of " +
                       source.name(moving->id) + ", " + text_of_form(moving->image) +
                       " pixels: " + part_text(moving->crops.front()) + ", then " +
                       part_text(*changed) + "), and " + refusal + advice);
}

}  // namespace stoker
