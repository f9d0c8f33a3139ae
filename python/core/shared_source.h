// Sources as nanobind holds them: by pointers that are not const. A Source is const for all its
// users.
#pragma once

#include <memory>

#include "pipeline/source.h"

namespace stoker::python {

using SharedSource = std::shared_ptr<Source>;

inline SharedSource shared(std::shared_ptr<const Source> source) {
  return std::const_pointer_cast<Source>(std::move(source));
}

}  // namespace stoker::python
