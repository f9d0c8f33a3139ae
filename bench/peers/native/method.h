// The ways of making a sample from an image file that peers_native compares. Threads: one per
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/peers/native/plan.h"
#include "decode/crop_spec.h"
#include "decode/image.h"

namespace stoker::peers {

class Method {
 public:
  virtual ~Method() = default;
  // Prepares a file once, before it is measured (a seek index). `file` is its index in the plan.
  virtual void prepare(int /*file*/, std::span<const uint8_t> /*bytes*/) {}
  // Writes the finished sample to `out`. Throws std::runtime_error if the file cannot be decoded.
  virtual void decode(int file, std::span<const uint8_t> bytes, const CropSpec& spec,
                      MutableImageView out) = 0;
};

struct MethodInfo {
  std::string name;
  std::string version;
  std::unique_ptr<Method> (*make)();
};

// Returns the methods of this build (the naive one and TurboJPEG's need libraries that may be
// missing).
const std::vector<MethodInfo>& methods();

// Defined in the *_method.cc files.
std::unique_ptr<Method> make_stoker_fast();
std::unique_ptr<Method> make_stoker_row_index();
std::unique_ptr<Method> make_stoker_index_8();
std::unique_ptr<Method> make_stoker_exact_row_index();
std::unique_ptr<Method> make_stoker_exact_index_8();
std::unique_ptr<Method> make_stoker_exact();
std::unique_ptr<Method> make_stock_turbo();
std::unique_ptr<Method> make_naive();
std::unique_ptr<Method> make_turbojpeg();
std::string libjpeg_version();
std::string naive_version();

}  // namespace stoker::peers
