// Writes NumPy's .npy files (format 1.0), which numpy.load() reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stoker {

// `descr` is NumPy's: "|u1", "<i4", "<f4". `data` is row-major. Throws std::runtime_error.
void write_npy(const std::string& path, const std::string& descr, std::span<const int64_t> shape,
               std::span<const std::byte> data);

}  // namespace stoker
