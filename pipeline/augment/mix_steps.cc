#include "pipeline/augment/mix_steps.h"

namespace stoker {

const PixelKind kBlendBeginStep{.name = "blend_begin", .values = {"weight"}};
const PixelKind kBlendStep{.name = "blend", .values = {"weight"}};
const PixelKind kBlendEndStep{.name = "blend_end"};
const PixelKind kBlendOverStep{.name = "blend_over", .values = {"weight"}};

}  // namespace stoker
