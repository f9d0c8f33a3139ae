// The option --reduce, the strategy by which replicas train together, whose earlier values are
// refused with the present ones; and --grad-wire, how gradients travel between them. Pure.
#pragma once

#include <string>

#include "train/collective/reduce_kind.h"
#include "train/collective/wire/grad_wire.h"

namespace CLI {
class Option;
}  // namespace CLI

namespace stoker {

// REQUIRES: the text passed the check of check_reduce().
ReduceKind parse_reduce(const std::string& text);
// Makes the parser refuse what is no strategy. Returns the option.
CLI::Option* check_reduce(CLI::Option* option);

// The same for the number format of gradients between replicas.
GradWire parse_grad_wire(const std::string& text);
CLI::Option* check_grad_wire(CLI::Option* option);

}  // namespace stoker
