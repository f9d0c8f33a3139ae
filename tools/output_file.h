// Writing a small file whole, with errors that name the path and the numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stoker {

// Creates or replaces the file. Throws std::runtime_error.
void write_file(const std::string& path, std::span<const std::byte> head,
                std::span<const std::byte> rest = {});

}  // namespace stoker
