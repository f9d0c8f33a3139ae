#include "decode/decode_status.h"

namespace stoker {

const char* to_string(DecodeCode code) {
  switch (code) {
    case DecodeCode::ok:
      return "ok";
    case DecodeCode::empty:
      return "empty";
    case DecodeCode::not_an_image:
      return "not_an_image";
    case DecodeCode::truncated:
      return "truncated";
    case DecodeCode::corrupt:
      return "corrupt";
    case DecodeCode::unsupported:
      return "unsupported";
    case DecodeCode::too_large:
      return "too_large";
    case DecodeCode::bad_region:
      return "bad_region";
  }
  return "unknown";
}

DecodeStatus cut_short(size_t bytes) {
  return {DecodeCode::truncated, static_cast<int64_t>(bytes), "the file ends too early"};
}

}  // namespace stoker
