// Says why a sample could not be decoded. A bad sample is data, not an exception: decoders return a
// status and never throw for the content of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker {

enum class DecodeCode : uint8_t {
  ok,
  empty,         // no bytes at all
  not_an_image,  // no decoder knows the signature
  truncated,     // the data end before the image does (for JPEG: no end marker)
  corrupt,       // the decoder met an error or a warning
  unsupported,   // a format or variant that stoker does not decode
  too_large,     // more pixels than max_pixels
  bad_region,    // the crop does not lie inside the image
};

const char* to_string(DecodeCode code);

struct DecodeStatus {
  DecodeCode code = DecodeCode::ok;
  int64_t byte_offset = -1;  // where in the file the error was found; -1 if unknown
  std::string message;       // empty if ok; has numbers but not the path, which the caller knows
  bool ok() const { return code == DecodeCode::ok; }
};

// Returns that a file of so many bytes ends too early.
DecodeStatus cut_short(size_t bytes);

}  // namespace stoker
