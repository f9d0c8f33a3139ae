#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "pipeline/source/format/unpack.h"

namespace stoker {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A context holds a window of up to 128 MiB, and making one takes longer than a small image.
ZSTD_DCtx* context_of_thread() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_only);
  return context.get();
}

}  // namespace

bool has_zstd() { return true; }

std::string unpack_zstd(std::span<const uint8_t> packed, std::span<uint8_t> out,
                        std::vector<int64_t>* needed) {
  ZSTD_DCtx* const context = context_of_thread();
  ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
  ZSTD_outBuffer unpacked = {out.data(), 0, 0};
  while (unpacked.pos < out.size()) {
    unpacked.size = std::min(unpacked.pos + static_cast<size_t>(kZstdStep), out.size());
    while (unpacked.pos < unpacked.size) {
      const size_t before = in.pos + unpacked.pos;
      const size_t result = ZSTD_decompressStream(context, &unpacked, &in);
      if (ZSTD_isError(result)) {
        return "at byte " + std::to_string(in.pos) +
               " of Zstandard's: " + ZSTD_getErrorName(result);
      }
      const bool ended = result == 0 || in.pos + unpacked.pos == before;
      if (ended && unpacked.pos < unpacked.size) {
        return "Zstandard's bytes end after " + std::to_string(unpacked.pos) + " of " +
               std::to_string(out.size()) + " unpacked ones";
      }
    }
    // libzstd does not count a frame's last byte before all that comes out has been taken.
    if (needed != nullptr) {
      needed->push_back(static_cast<int64_t>(std::min(in.pos + 1, packed.size())));
    }
  }
  return "";
}

}  // namespace stoker
