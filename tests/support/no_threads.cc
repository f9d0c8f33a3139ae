// A library for LD_PRELOAD: from the thread number $STOKER_NO_THREAD_FROM on (1 is the first one
// that the program makes), pthread_create() fails as it does where the system allows no more.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*work)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  // A program may set it when it has begun.
  const char* const from = std::getenv("STOKER_NO_THREAD_FROM");
  static std::atomic<int> made{0};
  if (from != nullptr && ++made >= std::atoi(from)) return EAGAIN;
  return create(thread, attributes, work, argument);
}
