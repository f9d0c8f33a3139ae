// Built instead of the CPU engine if oneDNN was not found or not wanted.
#include <stdexcept>

#include "train/engine/engine.h"

namespace stoker {

bool cpu_engine_available() { return false; }

bool cpu_supports(Precision) { return false; }

std::unique_ptr<Engine> make_cpu_engine(const NetSpec& net, const EngineOptions&) {
  throw std::runtime_error(
      "cannot train '" + net.name +
      "' on the CPU: this build has no oneDNN, nor has any Python wheel of stoker (install "
      "Debian's "
      "package of stoker, or configure with oneDNN installed and STOKER_ONEDNN=ON)");
}

}  // namespace stoker
