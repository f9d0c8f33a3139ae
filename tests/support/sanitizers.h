// The sanitizer that the tests are compiled with, for tests of times, which sanitizers multiply, of
// memory, of which AddressSanitizer keeps what was freed, and of threads, of which ThreadSanitizer
// adds some.
#pragma once

namespace stoker {

// g++ says it by macros, clang by features.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace stoker
