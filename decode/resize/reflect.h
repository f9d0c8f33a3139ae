// PadMode::reflect for one index. Internal to decode.
#pragma once

namespace stoker {

// Mirrors an index that is less than `size` outside; the edge is not repeated.
inline int reflect(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace stoker
