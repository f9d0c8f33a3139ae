#include "bench/peers/native/plan.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "decode/image_decoder.h"
#include "pipeline/augment/program.h"
#include "pipeline/source/folder_source.h"

namespace stoker::peers {
namespace {

using nlohmann::json;

const char* name_of(Mode mode) {
  constexpr const char* kNames[] = {"train", "eval", "cifar"};
  return kNames[static_cast<size_t>(mode)];
}

Size size_of(const Source& source, SampleId id, ImageDecoder& decoder) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ImageInfo info;
  const ReadStatus read = source.read(id, buffer, bytes);
  if (!read.ok) throw std::runtime_error(source.name(id) + ": " + read.message);
  if (!decoder.info(bytes, info).ok() || info.format != ImageFormat::jpeg) {
    throw std::runtime_error(source.name(id) + ": not a readable JPEG");
  }
  return info.size;
}

Draw draw_of(const AugmentSpec& spec, Size source, int round, SampleId id) {
  Draws draws;
  draw_augmentation(spec, source, 0, round, id, draws);
  const DecodePlan plan = plan_decode(draws);
  CropSpec crop = plan.crop;
  crop.flip = false;
  return {crop, plan.shift_x, plan.shift_y, plan.flip};
}

// crop x, y, width, height; resized width, height; window x, y; flip; shift x, y
json to_json(const Draw& draw) {
  const CropSpec& s = draw.spec;
  return {s.crop.x,          s.crop.y,         s.crop.width, s.crop.height,
          s.resized.width,   s.resized.height, s.window.x,   s.window.y,
          draw.flip ? 1 : 0, draw.shift_x,     draw.shift_y};
}

Draw from_json(const json& v, Size output) {
  return {{.crop = {v.at(0), v.at(1), v.at(2), v.at(3)},
           .resized = {v.at(4), v.at(5)},
           .window = {v.at(6), v.at(7), output.width, output.height}},
          v.at(9),
          v.at(10),
          v.at(8) != 0};
}

}  // namespace

AugmentSpec augmentation(Mode mode) {
  switch (mode) {
    case Mode::train:
      return AugmentSpec("random_resized_crop | flip", {224, 224});
    case Mode::eval:
      return AugmentSpec("resize_center_crop(256)", {224, 224});
    case Mode::cifar:
      break;
  }
  return AugmentSpec("resize | random_crop(padding=4) | flip", {32, 32});
}

Mode mode_of(const std::string& name) {
  for (const Mode mode : {Mode::train, Mode::eval, Mode::cifar}) {
    if (name == name_of(mode)) return mode;
  }
  throw std::invalid_argument("mode '" + name + "': there are train, eval and cifar");
}

Plan make_plan(const std::string& folder, Mode mode, int rounds) {
  const auto source = make_folder_source(folder, {.split = Split::all, .cache_dir = ""});
  const AugmentSpec spec = augmentation(mode);
  Plan plan{.mode = mode, .files = {}, .output = spec.output, .rounds = {}};
  ImageDecoder decoder;
  std::vector<Size> sizes;
  for (SampleId id = 0; id < source->size(); ++id) {
    plan.files.push_back(source->root() + "/" + source->name(id));
    sizes.push_back(size_of(*source, id, decoder));
  }
  for (int round = 0; round < rounds; ++round) {
    std::vector<Draw> draws;
    for (SampleId id = 0; id < source->size(); ++id) {
      draws.push_back(draw_of(spec, sizes[static_cast<size_t>(id)], round, id));
    }
    plan.rounds.push_back(std::move(draws));
  }
  return plan;
}

void write_plan(const Plan& plan, const std::string& path) {
  json rounds = json::array();
  for (const std::vector<Draw>& draws : plan.rounds) {
    json round = json::array();
    for (const Draw& draw : draws) round.push_back(to_json(draw));
    rounds.push_back(std::move(round));
  }
  std::ofstream file(path);
  file << json{{"mode", name_of(plan.mode)},
               {"output", {plan.output.width, plan.output.height}},
               {"files", plan.files},
               {"rounds", std::move(rounds)}};
  if (!file.flush()) throw std::runtime_error(path + ": could not be written");
}

Plan read_plan(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": could not be opened");
  try {
    const json v = json::parse(file);
    Plan plan{.mode = mode_of(v.at("mode")), .files = v.at("files"), .output = {}, .rounds = {}};
    plan.output = {v.at("output").at(0), v.at("output").at(1)};
    for (const json& draws : v.at("rounds")) {
      std::vector<Draw>& round = plan.rounds.emplace_back();
      for (const json& draw : draws) round.push_back(from_json(draw, plan.output));
    }
    return plan;
  } catch (const json::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace stoker::peers
