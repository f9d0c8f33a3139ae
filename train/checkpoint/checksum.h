// The checksum of the trainer's files, and its text form.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// Returns the 64-bit FNV-1a hash; `hash` is that of the bytes before, to continue it.
uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325);
std::string to_hex(uint64_t value);  // 16 digits
uint64_t from_hex(const std::string& text);

}  // namespace stoker
