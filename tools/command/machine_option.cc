#include "tools/command/machine_option.h"

#include <stdexcept>

namespace stoker {

LinkMachine machine_option(const std::string& preset_or_file) {
  try {
    return find_machine(preset_or_file);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--machine: ") + error.what());
  }
}

std::string preset_names() {
  std::string names;
  for (const LinkMachine& machine : machine_presets()) {
    names += (names.empty() ? "" : ", ") + machine.name;
  }
  return names;
}

}  // namespace stoker
