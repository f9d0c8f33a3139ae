// One view of a sample: the stages that make a row of it.
#pragma once

#include "pipeline/augment/stage.h"

namespace stoker {

struct AugmentView {
  Size output = {};    // pixels of every row; {}: as the first view's
  StageList stages{};  // the last image has the output's size
};

}  // namespace stoker
