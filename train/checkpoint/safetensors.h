// The safetensors format: 8 bytes header length (little endian), a JSON header, then the tensors'
// bytes without gaps. Written: F32. Read: everything the format allows is checked before anything
// of it is believed, so a hostile file gives an error, never a crash or a large allocation.
// Threads: any. Errors: std::runtime_error with the path and what is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct TensorView {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> values;  // row-major; as many as the shape says
};
using TensorMetadata = std::map<std::string, std::string>;

// Writes and flushes the file (pipeline/durable_file.h). Same input, same bytes. Throws
// std::invalid_argument for a repeated name or a shape that does not fit its values.
void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata);

struct StoredTensor {
  std::string dtype;  // "F32", "I64", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

class SafetensorsFile {
 public:
  // Reads and checks the header; the tensors stay in the file until they are asked for.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(std::string bytes, std::string name);  // a whole file in memory

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Throws unless the tensor is there, is F32 and has this shape.
  const StoredTensor& find(const std::string& name, std::span<const int64_t> shape) const;
  void read(const std::string& name, std::span<const int64_t> shape, std::span<float> values) const;

 private:
  void parse(std::string_view header, uint64_t data_bytes);

  std::string bytes_, path_;  // no bytes: they are in the file
  uint64_t data_begin_ = 0;
  std::map<std::string, StoredTensor> tensors_;
  TensorMetadata metadata_;
};

}  // namespace stoker
