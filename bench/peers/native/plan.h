// The work of every participant: the images and, round by round, which pixels of each become its
// sample. peers_plan writes it; the native participants and peer.py read it.
//
// The crops are those that stoker's Loader draws for (seed 0, epoch = round, sample = index), so
// that the Loader does the same work without reading the plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/crop_spec.h"
#include "pipeline/augment.h"

namespace stoker::peers {

enum class Mode : uint8_t {
  train,  // RandomResizedCrop(224) and a random flip
  eval,   // Resize(256), CenterCrop(224)
  cifar,  // the whole image, shifted by up to 4 pixels (padded with zeros), and a random flip
};

struct Draw {
  CropSpec spec;    // without the flip where there is a shift
  int shift_x = 0;  // cifar: output(x) = input(x + shift_x)
  int shift_y = 0;
  bool flip = false;
};

struct Plan {
  Mode mode = Mode::train;
  std::vector<std::string> files;
  Size output;                            // of every sample, pixels
  std::vector<std::vector<Draw>> rounds;  // [round][image]
};

Mode mode_of(const std::string& name);  // throws std::invalid_argument that lists the modes

AugmentSpec augmentation(Mode mode);

// Lists the images below `folder` in the Loader's order and draws their crops. Throws
// std::runtime_error naming a file that cannot be used.
Plan make_plan(const std::string& folder, Mode mode, int rounds);

void write_plan(const Plan& plan, const std::string& path);  // as JSON; format in plan.cc
Plan read_plan(const std::string& path);  // throws std::runtime_error with the path

}  // namespace stoker::peers
