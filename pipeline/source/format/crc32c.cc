#include "pipeline/source/format/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

// The instructions are not part of the instruction set that this file is compiled for.
#if defined(__x86_64__)
#define STOKER_CRC_INSTRUCTIONS __attribute__((target("sse4.2")))
#else
#define STOKER_CRC_INSTRUCTIONS
#endif

namespace stoker {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // the bits of 0x1EDC6F41 in reverse order

uint32_t first_byte(uint32_t value) { return value & 0xff; }

uint64_t read_word(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// ---- By table: entry [k][byte] is the checksum of that byte and k zero bytes after it, so that
// eight bytes are looked up independently of each other.

using Table = std::array<std::array<uint32_t, 256>, 8>;

constexpr Table make_table() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    table[0][i] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t before = table[k - 1][i];
      table[k][i] = table[0][before & 0xff] ^ before >> 8;
    }
  }
  return table;
}

constexpr Table kTable = make_table();

uint32_t add_by_table(uint32_t crc, std::span<const uint8_t> bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = read_word(&bytes[i]) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][word >> (8 * k) & 0xff];
  }
  for (; i < bytes.size(); ++i) crc = kTable[0][first_byte(crc ^ bytes[i])] ^ crc >> 8;
  return crc;
}

// ---- By instruction

#if defined(__x86_64__)

STOKER_CRC_INSTRUCTIONS inline uint32_t add_word(uint32_t crc, const uint8_t* bytes) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, read_word(bytes)));
}
STOKER_CRC_INSTRUCTIONS inline uint32_t add_byte(uint32_t crc, uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
bool find_instructions() { return __builtin_cpu_supports("sse4.2"); }

#elif defined(__aarch64__)

// In assembler, because compilers differ in how they are told of instructions for one function.
inline uint32_t add_word(uint32_t crc, const uint8_t* bytes) {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(read_word(bytes)));
  return crc;
}
inline uint32_t add_byte(uint32_t crc, uint8_t byte) {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(uint32_t{byte}));
  return crc;
}
bool find_instructions() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#else

uint32_t add_word(uint32_t crc, const uint8_t* bytes) { return add_by_table(crc, {bytes, 8}); }
uint32_t add_byte(uint32_t crc, uint8_t byte) { return add_by_table(crc, {&byte, 1}); }
bool find_instructions() { return false; }

#endif

// An instruction takes one cycle, but its result comes after three. So three lanes next to each
// other are summed at once, and each sum is then moved behind the next lane.
constexpr size_t kLane = 1024;

// A sum after kLane more bytes of zero: the exclusive or of the entries of its four
// bytes, because the checksum is linear.
using LaneShift = std::array<std::array<uint32_t, 256>, 4>;

LaneShift make_lane_shift() {
  static constexpr std::array<uint8_t, kLane> kZeros{};
  LaneShift shift;
  for (size_t k = 0; k < 4; ++k) {
    for (uint32_t i = 0; i < 256; ++i) shift[k][i] = add_by_table(i << (8 * k), kZeros);
  }
  return shift;
}

uint32_t behind_lane(const LaneShift& shift, uint32_t crc) {
  return shift[0][first_byte(crc)] ^ shift[1][first_byte(crc >> 8)] ^
         shift[2][first_byte(crc >> 16)] ^ shift[3][crc >> 24];
}

STOKER_CRC_INSTRUCTIONS uint32_t add_by_instruction(uint32_t crc, std::span<const uint8_t> bytes) {
  static const LaneShift kShift = make_lane_shift();
  const uint8_t* at = bytes.data();
  const uint8_t* const end = at + bytes.size();
  for (; end - at >= static_cast<ptrdiff_t>(3 * kLane); at += 3 * kLane) {
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < kLane; i += 8) {
      crc = add_word(crc, at + i);
      second = add_word(second, at + kLane + i);
      third = add_word(third, at + 2 * kLane + i);
    }
    crc = behind_lane(kShift, behind_lane(kShift, crc) ^ second) ^ third;
  }
  for (; end - at >= 8; at += 8) crc = add_word(crc, at);
  for (; at < end; ++at) crc = add_byte(crc, *at);
  return crc;
}

}  // namespace

bool has_crc32c_instructions() {
  static const bool kFound = find_instructions();
  return kFound;
}

uint32_t crc32c_by_table(std::span<const uint8_t> bytes) {
  return ~add_by_table(0xffffffffu, bytes);
}

uint32_t crc32c(std::span<const uint8_t> bytes) {
  if (!has_crc32c_instructions()) return crc32c_by_table(bytes);
  return ~add_by_instruction(0xffffffffu, bytes);
}

}  // namespace stoker
