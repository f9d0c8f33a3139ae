// The option --machine of `stoker plan` and of benches: a machine with links. Pure but for the
// file.
#pragma once

#include <string>

#include "bench/suite/link_machine.h"

namespace stoker {

// Throws std::invalid_argument that names the option.
LinkMachine machine_option(const std::string& preset_or_file);
std::string preset_names();  // "7gforce, 4xm60, ..."

}  // namespace stoker
