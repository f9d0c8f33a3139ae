#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/avif_boxes.h"

namespace stoker {
namespace {

enum ObuType : uint8_t {
  kSequenceObu = 1,
  kFrameHeaderObu = 3,
  kFrameObu = 6,
  kRepeatedFrameHeaderObu = 7,
  kTileListObu = 8,
};
constexpr uint32_t kChosenPerFrame = 2;

DecodeStatus unsupported_av1(size_t at, const char* what) {
  return {DecodeCode::unsupported, static_cast<int64_t>(at), std::string("AV1 with ") + what};
}
DecodeStatus bad_av1(size_t at) {
  return {DecodeCode::corrupt, static_cast<int64_t>(at), "a bad AV1 header"};
}

// Most significant bits first. Reads outside give 0 and set went_outside().
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes, true) {}
  uint32_t bits(uint32_t count) {
    uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      value = value << 1 | (bytes_.u8(at_ / 8) >> (7 - at_ % 8) & 1);
    }
    return value;
  }
  bool flag() { return bits(1) != 0; }
  void skip(uint32_t count) { at_ += count; }
  // A number whose count of leading zeros is the count of its bits (uvlc).
  void skip_number() {
    constexpr uint32_t kMaxZeros = 32;
    uint32_t zeros = 0;
    while (zeros < kMaxZeros && !bytes_.went_outside() && !flag()) ++zeros;
    if (zeros < kMaxZeros) skip(zeros);
  }
  bool went_outside() const { return bytes_.went_outside(); }

 private:
  ByteReader bytes_;
  size_t at_ = 0;
};

struct Sequence {
  Size size;
  bool is_still = false;  // has the reduced header of a still picture
  bool has_layers = false;
  uint32_t time_bits = 0;    // of a frame's time of presentation, if it has one
  uint32_t number_bits = 0;  // of a frame's number, if it has one
  uint32_t screen_content = kChosenPerFrame, whole_motion = kChosenPerFrame;
};

// The model of the decoder's buffers, which holds the bits of two delays. Nothing of it is needed.
struct DecoderModel {
  bool is_present = false;
  uint32_t delay_bits = 0;
};

void read_timing(BitReader& reader, Sequence& sequence, DecoderModel& model) {
  reader.skip(64);  // units in a tick, and in a second
  const bool has_equal_intervals = reader.flag();
  if (has_equal_intervals) reader.skip_number();
  model.is_present = reader.flag();
  if (!model.is_present) return;
  model.delay_bits = reader.bits(5) + 1;
  reader.skip(32 + 5);
  const uint32_t time_bits = reader.bits(5) + 1;
  if (!has_equal_intervals) sequence.time_bits = time_bits;
}

void read_operating_points(BitReader& reader, Sequence& sequence) {
  constexpr uint32_t kSpatialLayers = 8, kMinLevelWithTier = 8;
  DecoderModel model;
  if (reader.flag()) read_timing(reader, sequence, model);
  const bool has_display_delay = reader.flag();
  const uint32_t count = reader.bits(5) + 1;
  sequence.has_layers = count > 1;
  for (uint32_t i = 0; i < count; ++i) {
    sequence.has_layers |= reader.bits(12) >> kSpatialLayers > 1;
    if (reader.bits(5) >= kMinLevelWithTier) reader.skip(1);
    if (model.is_present && reader.flag()) reader.skip(2 * model.delay_bits + 1);
    if (has_display_delay && reader.flag()) reader.skip(4);
  }
}

// Headers that several pictures share; all of it but one field is skipped.
void read_tools_of_motion(BitReader& reader, Sequence& sequence) {
  reader.skip(4);  // kinds of prediction
  const bool has_order = reader.flag();
  if (has_order) reader.skip(2);
  sequence.screen_content = reader.flag() ? kChosenPerFrame : reader.bits(1);
  if (sequence.screen_content > 0) {
    sequence.whole_motion = reader.flag() ? kChosenPerFrame : reader.bits(1);
  }
  if (has_order) reader.skip(3);
}

DecodeStatus read_sequence(std::span<const uint8_t> data, size_t at, Sequence& sequence) {
  BitReader reader(data);
  reader.skip(3 + 1);  // the profile, and whether there is one picture
  sequence.is_still = reader.flag();
  if (sequence.is_still) {
    reader.skip(5);  // level
  } else {
    read_operating_points(reader, sequence);
  }
  const uint32_t width_bits = reader.bits(4) + 1, height_bits = reader.bits(4) + 1;
  sequence.size.width = static_cast<int>(reader.bits(width_bits)) + 1;
  sequence.size.height = static_cast<int>(reader.bits(height_bits)) + 1;
  if (!sequence.is_still && reader.flag()) {
    const uint32_t difference_bits = reader.bits(4) + 2;
    sequence.number_bits = reader.bits(3) + 1 + difference_bits;
  }
  reader.skip(3);  // the size of blocks, kinds of prediction
  if (!sequence.is_still) read_tools_of_motion(reader, sequence);
  if (reader.went_outside()) return bad_av1(at);
  if (sequence.has_layers) return unsupported_av1(at, "layers");
  return {};
}

// Checks that a frame is a shown key frame of its sequence's size.
DecodeStatus check_frame(std::span<const uint8_t> data, size_t at, const Sequence& sequence) {
  if (sequence.is_still) return {};  // nothing else can be said
  BitReader reader(data);
  const bool is_shown_again = reader.flag();
  const uint32_t type = reader.bits(2);
  const bool is_shown = reader.flag();
  if (is_shown_again || type != 0 || !is_shown) {
    return unsupported_av1(at, "a frame that is no picture");
  }
  reader.skip(sequence.time_bits + 1);  // also: whether probabilities stay the same
  const uint32_t screen_content =
      sequence.screen_content == kChosenPerFrame ? reader.bits(1) : sequence.screen_content;
  if (screen_content > 0 && sequence.whole_motion == kChosenPerFrame) reader.skip(1);
  reader.skip(sequence.number_bits);
  if (reader.flag()) return unsupported_av1(at, "a frame of another size");
  return reader.went_outside() ? bad_av1(at) : DecodeStatus{};
}

// One unit of the stream: a header of one or two bytes, a length, the data.
struct Obu {
  uint8_t type = 0;
  bool has_layer = false;  // is of another layer than the first one
  std::span<const uint8_t> data;
};

// Reads the unit at `at`, and moves `at` behind it. Returns false if it does not fit.
bool read_obu(std::span<const uint8_t> bytes, size_t& at, Obu& obu) {
  constexpr uint8_t kForbidden = 0x80, kHasExtension = 4, kHasLength = 2;
  constexpr int kMaxLengthBytes = 8;
  ByteReader reader(bytes, true);
  const uint8_t head = reader.u8(at++);
  obu.type = head >> 3 & 15;
  obu.has_layer = (head & kHasExtension) != 0 && reader.u8(at++) != 0;
  uint64_t length = bytes.size() - at;
  if ((head & kHasLength) != 0) {
    length = 0;
    for (int i = 0; i < kMaxLengthBytes; ++i) {
      const uint8_t byte = reader.u8(at++);
      length |= static_cast<uint64_t>(byte & 0x7f) << 7 * i;
      if ((byte & 0x80) == 0) break;
    }
  }
  if ((head & kForbidden) != 0 || reader.went_outside() || length > bytes.size() - at) return false;
  obu.data = bytes.subspan(at, static_cast<size_t>(length));
  at += static_cast<size_t>(length);
  return true;
}

}  // namespace

DecodeStatus read_av1_header(std::span<const uint8_t> data, Size& size) {
  Sequence sequence;
  bool has_sequence = false, has_frame = false;
  constexpr int kMaxUnits = 1024;  // a picture has about three
  int units = 0;
  for (size_t at = 0; at < data.size();) {
    const size_t begin = at;
    if (++units > kMaxUnits) return unsupported_av1(begin, "more than 1024 units");
    Obu obu;
    if (!read_obu(data, at, obu)) return bad_av1(begin);
    if (obu.has_layer) return unsupported_av1(begin, "layers");
    DecodeStatus status;
    if (obu.type == kSequenceObu) {
      if (has_sequence) return unsupported_av1(begin, "several sequences");
      has_sequence = true;
      status = read_sequence(obu.data, begin, sequence);
    } else if (obu.type == kFrameObu || obu.type == kFrameHeaderObu ||
               obu.type == kRepeatedFrameHeaderObu) {
      if (!has_sequence) return bad_av1(begin);
      if (has_frame) return unsupported_av1(begin, "several frames");
      has_frame = true;
      status = check_frame(obu.data, begin, sequence);
    } else if (obu.type == kTileListObu) {
      return unsupported_av1(begin, "a list of tiles");
    }
    if (!status.ok()) return status;
  }
  if (!has_frame) return bad_av1(data.size());
  size = sequence.size;
  return {};
}

}  // namespace stoker
