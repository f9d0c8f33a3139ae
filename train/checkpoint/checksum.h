// The checksum that guards files of the trainer, and its text.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// FNV-1a, 64 bit; `hash` continues one.
uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325);
std::string to_hex(uint64_t value);  // 16 digits
uint64_t from_hex(const std::string& text);

}  // namespace stoker
