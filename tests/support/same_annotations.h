// Annotations as text with all their bits, for tests to compare.
#pragma once

#include <string>

#include "pipeline/annotation/annotations.h"

namespace stoker {

// Masks are written with their points and runs, wherever these lie.
std::string describe(const Annotations& annotations);

}  // namespace stoker
