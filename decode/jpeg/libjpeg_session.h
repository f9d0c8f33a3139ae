// One JPEG file in libjpeg, with its error handling: the only place where longjmp happens. Internal
// to libjpeg_decoder.cc.
//
// A session is made for one file and destroyed after it. libjpeg could read another file, but it
// keeps the last one's quantisation and Huffman tables, and would decode a file that lacks them
// with those. Making a new session costs less than a microsecond.
//
// libjpeg reports errors through a callback that must not return. Ours jumps back to guarded(),
// whose body calls C functions only and owns nothing that would need destruction; no C++ exception
// ever passes through libjpeg's frames.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

// jpeglib.h uses size_t and FILE without including their headers, so it comes after them.
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "decode/decode_status.h"

namespace stoker {

class JpegSession {
 public:
  explicit JpegSession(std::span<const uint8_t> bytes);  // `bytes` must outlive the session
  ~JpegSession();
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  // Runs body(cinfo). Returns false if libjpeg reported an error or a warning; failure() returns
  // it. REQUIRES: body owns nothing that needs destruction while it calls libjpeg.
  template <class Body>
  bool guarded(const Body& body) {
    if (setjmp(errors_.jump) != 0) return false;
    body(cinfo_);
    return true;
  }

  bool read_header();
  size_t bytes_read() const { return bytes_.size() - source_.bytes_in_buffer; }
  const jpeg_decompress_struct& cinfo() const { return cinfo_; }
  DecodeStatus failure() const;  // throws std::bad_alloc if libjpeg ran out of memory

 private:
  struct Errors {
    jpeg_error_mgr base;  // first: libjpeg knows only this part
    std::jmp_buf jump;
    DecodeCode code;
    char message[JMSG_LENGTH_MAX];
  };

  [[noreturn]] static void fail(j_common_ptr cinfo, DecodeCode code);
  [[noreturn]] static void on_error(j_common_ptr cinfo);
  static void on_message(j_common_ptr cinfo, int level);
  static void on_progress(j_common_ptr cinfo);
  static void on_source(j_decompress_ptr) {}
  static boolean on_end_of_data(j_decompress_ptr cinfo);
  static void on_skip(j_decompress_ptr cinfo, long count);

  jpeg_decompress_struct cinfo_;
  jpeg_progress_mgr progress_;
  jpeg_source_mgr source_;
  Errors errors_;
  const std::span<const uint8_t> bytes_;
};

}  // namespace stoker
