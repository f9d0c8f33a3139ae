// libstoker_openjpeg.so (codec_plugin.h), and the only file that uses OpenJPEG, as Pillow does.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "decode/codec/codec_plugin.h"

namespace stoker {
namespace {

template <auto destroy>
struct Destroy {
  void operator()(auto* owned) const { destroy(owned); }
};
using Codec = std::unique_ptr<opj_codec_t, Destroy<opj_destroy_codec>>;
using Stream = std::unique_ptr<opj_stream_t, Destroy<opj_stream_destroy>>;
using Image = std::unique_ptr<opj_image_t, Destroy<opj_image_destroy>>;

// A file in memory, as OpenJPEG's streams read it.
struct FileInMemory {
  std::span<const uint8_t> bytes;
  size_t at = 0;

  static OPJ_SIZE_T read(void* to, OPJ_SIZE_T count, void* file) {
    auto& [bytes, at] = *static_cast<FileInMemory*>(file);
    const size_t given = std::min<size_t>(count, bytes.size() - at);
    if (given == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, bytes.data() + at, given);
    at += given;
    return given;
  }
  static OPJ_OFF_T skip(OPJ_OFF_T count, void* file) {
    auto& [bytes, at] = *static_cast<FileInMemory*>(file);
    if (count < 0) return -1;
    const size_t skipped = std::min<size_t>(static_cast<size_t>(count), bytes.size() - at);
    at += skipped;
    return skipped == 0 ? -1 : static_cast<OPJ_OFF_T>(skipped);
  }
  static OPJ_BOOL seek(OPJ_OFF_T to, void* file) {
    auto& [bytes, at] = *static_cast<FileInMemory*>(file);
    if (to < 0 || static_cast<size_t>(to) > bytes.size()) return OPJ_FALSE;
    at = static_cast<size_t>(to);
    return OPJ_TRUE;
  }
};

Stream open_stream(FileInMemory& file) {
  Stream stream(opj_stream_default_create(OPJ_TRUE));
  if (stream == nullptr) return stream;
  opj_stream_set_user_data(stream.get(), &file, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.bytes.size());
  opj_stream_set_read_function(stream.get(), FileInMemory::read);
  opj_stream_set_skip_function(stream.get(), FileInMemory::skip);
  opj_stream_set_seek_function(stream.get(), FileInMemory::seek);
  return stream;
}

// The first error is the cause; those that follow are its consequences.
void keep_first(const char* message, void* problem) {
  auto& text = *static_cast<std::string*>(problem);
  if (!text.empty()) return;
  text = std::string("OpenJPEG: ") + message;
  while (text.ends_with('\n')) text.pop_back();
}

Codec make_codec(bool has_boxes, std::string& problem) {
  Codec codec(opj_create_decompress(has_boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K));
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (codec == nullptr || !opj_setup_decoder(codec.get(), &parameters)) return nullptr;
  opj_set_error_handler(codec.get(), keep_first, &problem);  // without handlers it prints nothing
  opj_codec_set_threads(codec.get(), 0);                     // else OPJ_NUM_THREADS decides
  return codec;
}

// Whether the picture is one of those that jpeg2000_file.cc lets through.
bool is_as_said(const opj_image_t& image, Size size) {
  if (image.numcomps < 1 || image.numcomps > 4) return false;
  return std::all_of(image.comps, image.comps + image.numcomps, [&](const auto& component) {
    return component.w == static_cast<OPJ_UINT32>(size.width) &&
           component.h == static_cast<OPJ_UINT32>(size.height) && component.prec == 8 &&
           component.sgnd == 0 && component.data != nullptr;
  });
}

// Gray is written three times; what follows the colours is alpha, which is dropped.
void write_rgb(const opj_image_t& image, size_t count, uint8_t* rgb) {
  const bool is_gray = image.numcomps < 3;
  const OPJ_INT32* const channels[] = {image.comps[0].data, image.comps[is_gray ? 0 : 1].data,
                                       image.comps[is_gray ? 0 : 2].data};
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      rgb[3 * i + c] = static_cast<uint8_t>(std::clamp<OPJ_INT32>(channels[c][i], 0, 255));
    }
  }
}

bool decode_jpeg2000(std::span<const uint8_t> bytes, Size size, uint8_t* rgb,
                     std::string& problem) {
  constexpr uint8_t kCodestream = 0xff;  // begins a file without boxes
  FileInMemory file{bytes};
  std::string found;
  const auto codec = make_codec(bytes[0] != kCodestream, found);
  const auto stream = open_stream(file);
  opj_image_t* read = nullptr;
  const bool is_read =
      codec != nullptr && stream != nullptr && opj_read_header(stream.get(), codec.get(), &read);
  const Image image(read);
  if (!is_read || !opj_decode(codec.get(), stream.get(), read) ||
      !opj_end_decompress(codec.get(), stream.get())) {
    problem = found.empty() ? "OpenJPEG cannot read the pixels" : found;
    return false;
  }
  if (!is_as_said(*image, size)) {
    problem = "OpenJPEG finds another picture than the header says";
    return false;
  }
  write_rgb(*image, static_cast<size_t>(size.width) * static_cast<size_t>(size.height), rgb);
  return true;
}

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CodecPlugin* stoker_codec_plugin() {
  using namespace stoker;
  static const CodecPlugin plugin{kCodecPluginVersion, STOKER_BUILD_STAMP, opj_version(),
                                  decode_jpeg2000};
  return &plugin;
}
