// The option --reduce: the strategy by which replicas train together. Its earlier values are
// refused with the present ones. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "train/collective/reduce_kind.h"

namespace stoker {

// REQUIRES: the text passed the check of check_reduce().
ReduceKind parse_reduce(const std::string& text);
// Makes the parser refuse what is no strategy. Returns the option.
CLI::Option* check_reduce(CLI::Option* option);

}  // namespace stoker
