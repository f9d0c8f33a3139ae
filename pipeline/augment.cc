#include "pipeline/augment.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "pipeline/invalid_field.h"
#include "pipeline/printable_name.h"

namespace stoker {
namespace {

constexpr int kMaxSide = 1 << 15;

// The shortest text that reads back as the same number.
std::string exact(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

void require(bool holds, const std::string& field, const std::string& value,
             const std::string& rule) {
  if (holds) return;
  throw InvalidField("AugmentSpec", field, " = " + value + ": " + rule);
}

std::string range(double low, double high) { return exact(low) + ".." + exact(high); }

std::string text_of(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

const char* name_of(CropMode crop) {
  switch (crop) {
    case CropMode::random_resized:
      return "random_resized";
    case CropMode::resize_center:
      return "resize_center";
    case CropMode::pad_random:
      return "pad_random";
    case CropMode::whole:
      return "whole";
  }
  return "?";
}

const char* name_of(FlipMode flip) {
  switch (flip) {
    case FlipMode::none:
      return "none";
    case FlipMode::random:
      return "random";
    case FlipMode::alternating:
      return "alternating";
  }
  return "?";
}

// A name must fit into one line of text, between other names.
bool is_word(const std::string& name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

void check_operations(const std::vector<PixelOperation>& operations) {
  std::set<std::string> names;
  for (const PixelOperation& operation : operations) {
    const std::string quoted = std::string("'").append(printable_name(operation.name)).append("'");
    require(is_word(operation.name), "operations", quoted,
            "a name is of printable ASCII characters without spaces");
    require(names.insert(operation.name).second, "operations", quoted, "is there twice");
    require(operation.apply != nullptr, "operations", quoted, "has no function");
  }
}

}  // namespace

int short_side(const AugmentSpec& spec) {
  if (spec.resize_short != 0) return spec.resize_short;
  return std::max(spec.output.width, spec.output.height) * 256 / 224;
}

void AugmentSpec::validate() const {
  const int shorter = std::min(output.width, output.height);
  const int longer = std::max(output.width, output.height);
  require(shorter >= 1 && longer <= kMaxSide, "output", text_of(output),
          "sides must be 1.." + std::to_string(kMaxSide));
  if (crop == CropMode::random_resized) {
    require(scale_min > 0 && scale_min <= scale_max && scale_max <= 1, "scale",
            range(scale_min, scale_max), "must satisfy 0 < min <= max <= 1");
    require(ratio_min > 0 && ratio_min <= ratio_max && ratio_max <= 1e4, "ratio",
            range(ratio_min, ratio_max), "must satisfy 0 < min <= max <= 10000");
  }
  if (crop == CropMode::resize_center) {
    require(resize_short == 0 || (resize_short >= longer && resize_short <= kMaxSide),
            "resize_short", std::to_string(resize_short),
            "must be 0 or at least the output's longer side, " + std::to_string(longer));
  }
  if (crop == CropMode::pad_random) {
    require(pad >= 0 && pad <= shorter - (pad_mode == PadMode::reflect ? 1 : 0), "pad",
            std::to_string(pad),
            "must be 0 or more, and with reflection less than the output's shorter side, " +
                std::to_string(shorter));
  }
  require(cutout >= 0 && cutout <= shorter, "cutout", std::to_string(cutout),
          "must be 0.." + std::to_string(shorter) + ", inside the output");
  const std::pair<const char*, double> factors[] = {
      {"brightness", brightness}, {"contrast", contrast}, {"saturation", saturation}};
  for (const auto& [field, value] : factors) {
    require(value >= 0 && value <= 1e3, field, exact(value), "must be 0..1000");
  }
  require(hue >= 0 && hue <= 0.5, "hue", exact(hue), "must be 0..0.5");
  check_operations(operations);
}

std::string AugmentSpec::describe() const {
  std::string text = std::string("crop=") + name_of(crop) + " output=" + text_of(output);
  if (crop == CropMode::random_resized) {
    text += " scale=" + range(scale_min, scale_max) + " ratio=" + range(ratio_min, ratio_max);
  }
  if (crop == CropMode::resize_center) text += " short=" + std::to_string(short_side(*this));
  if (crop == CropMode::pad_random) {
    text += " pad=" + std::to_string(pad) + (pad_mode == PadMode::zero ? "/zero" : "/reflect");
  }
  text += filter == Filter::bilinear ? " filter=bilinear" : " filter=bicubic";
  text += std::string(" flip=") + name_of(flip);
  if (cutout > 0) {
    text += " cutout=" + std::to_string(cutout) + "/" + std::to_string(cutout_value);
  }
  const double jitter[] = {brightness, contrast, saturation, hue};
  if (*std::max_element(jitter, jitter + 4) > 0) {
    text += " jitter=" + exact(brightness) + "," + exact(contrast) + "," + exact(saturation) + "," +
            exact(hue);
  }
  for (const PixelOperation& operation : operations) text += " then=" + operation.name;
  return text;
}

}  // namespace stoker
