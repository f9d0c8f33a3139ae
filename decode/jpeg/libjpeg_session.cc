#include "decode/jpeg/libjpeg_session.h"

#include <jerror.h>

#include <cstring>
#include <new>

namespace stoker {
namespace {

// A file with a scan for every few bytes would make a decoder work over the whole frame again and
// again. Encoders write about ten scans.
constexpr int kMaxScans = 500;

DecodeCode code_of(int message) {
  switch (message) {
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF:
      return DecodeCode::truncated;
    case JERR_INPUT_EMPTY:
      return DecodeCode::empty;
    case JERR_NO_SOI:
      return DecodeCode::not_an_image;
    case JERR_IMAGE_TOO_BIG:
      return DecodeCode::too_large;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return DecodeCode::unsupported;
    default:
      return DecodeCode::corrupt;
  }
}

}  // namespace

JpegSession::JpegSession(std::span<const uint8_t> bytes) : bytes_(bytes) {
  std::memset(&cinfo_, 0, sizeof cinfo_);
  std::memset(&errors_, 0, sizeof errors_);
  cinfo_.err = jpeg_std_error(&errors_.base);
  errors_.base.error_exit = on_error;
  errors_.base.emit_message = on_message;
  const bool made = guarded([](jpeg_decompress_struct& cinfo) { jpeg_create_decompress(&cinfo); });
  if (!made) throw std::bad_alloc();  // the only reason: header and library are one package
  progress_.progress_monitor = on_progress;
  cinfo_.progress = &progress_;
  source_.init_source = on_source;
  source_.term_source = on_source;
  source_.fill_input_buffer = on_end_of_data;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.next_input_byte = bytes.data();
  source_.bytes_in_buffer = bytes.size();
  cinfo_.src = &source_;
}

JpegSession::~JpegSession() { jpeg_destroy_decompress(&cinfo_); }

bool JpegSession::read_header() {
  return guarded([](jpeg_decompress_struct& cinfo) { jpeg_read_header(&cinfo, TRUE); });
}

DecodeStatus JpegSession::failure() const {
  if (errors_.base.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
  return {errors_.code, static_cast<int64_t>(bytes_read()), errors_.message};
}

void JpegSession::fail(j_common_ptr cinfo, DecodeCode code) {
  auto* errors = reinterpret_cast<Errors*>(cinfo->err);
  errors->code = code;
  (*errors->base.format_message)(cinfo, errors->message);
  std::longjmp(errors->jump, 1);
}

void JpegSession::on_error(j_common_ptr cinfo) { fail(cinfo, code_of(cinfo->err->msg_code)); }

void JpegSession::on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;  // trace
  // Stray bytes are harmless between the segments of the header. After the start of a scan they are
  // left over from its data, and so a sign of damage.
  const bool is_header = reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number == 0;
  const int code = cinfo->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA && is_header) return;
  // Versions of application data beside the picture.
  if (code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  fail(cinfo, code_of(code));
}

void JpegSession::on_progress(j_common_ptr cinfo) {
  if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number <= kMaxScans) return;
  cinfo->err->msg_code = JERR_BAD_PROGRESSION;
  fail(cinfo, DecodeCode::corrupt);
}

boolean JpegSession::on_end_of_data(j_decompress_ptr cinfo) {
  cinfo->err->msg_code = JERR_INPUT_EOF;
  fail(reinterpret_cast<j_common_ptr>(cinfo), DecodeCode::truncated);
}

void JpegSession::on_skip(j_decompress_ptr cinfo, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *cinfo->src;
  if (static_cast<size_t>(count) > source.bytes_in_buffer) on_end_of_data(cinfo);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<size_t>(count);
}

}  // namespace stoker
