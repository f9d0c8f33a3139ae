// The safetensors format: 8 bytes header length (little endian), a JSON header, then the tensors'
// bytes without gaps. Written: F32. Read: the whole header is checked before any of it is used, so
// a hostile file causes an error, never a crash or a large allocation. Threads: any. Errors:
// std::runtime_error with the path and what is wrong.
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

// Writes and flushes the file (pipeline/files/durable_file.h). The same input gives the same bytes.
// Throws std::invalid_argument for a repeated name or a shape that does not match its values.
void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata);

struct StoredTensor {
  std::string dtype;  // "F32", "I64", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

class SafetensorsFile {
 public:
  // Reads and checks the header; read() reads the tensors from the file.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(std::string bytes, std::string name);  // a whole file in memory

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Returns a tensor. Throws if it is missing, is not F32 or has another shape.
  const StoredTensor& find(const std::string& name, std::span<const int64_t> shape) const;
  void read(const std::string& name, std::span<const int64_t> shape, std::span<float> values) const;

 private:
  void parse(std::string_view header, uint64_t data_bytes);

  std::string bytes_, path_;  // bytes_ is empty if the tensors are read from the file
  uint64_t data_begin_ = 0;
  std::map<std::string, StoredTensor> tensors_;
  TensorMetadata metadata_;
};

}  // namespace stoker
