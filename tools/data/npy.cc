#include "tools/data/npy.h"

#include "tools/data/output_file.h"

namespace stoker {

void write_npy(const std::string& path, const std::string& descr, std::span<const int64_t> shape,
               std::span<const std::byte> data) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : shape) dict += std::to_string(extent) + ", ";
  dict += "), }";
  // Magic, version and length take 10 bytes; the data begin at a multiple of 64 bytes.
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  head += dict;
  write_file(path, std::as_bytes(std::span(head)), data);
}

}  // namespace stoker
