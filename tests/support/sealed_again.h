// Corrects the seal of a file (pipeline/files/sealed_file.h) whose bytes a test has changed: seals
// find accidents, and what they let pass must be safe to use, too.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "pipeline/files/sealed_file.h"

namespace stoker {

// Returns the file as it is if its header has no table inside of it.
inline std::string sealed_again(std::string file) {
  SealedHeader header;
  if (file.size() < sizeof header) return file;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.table_at > file.size()) return file;
  header.seal = seal_of_table(header, std::string_view(file).substr(header.table_at));
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace stoker
