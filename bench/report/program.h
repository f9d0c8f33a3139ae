// The main() of a program that measures or checks. If `run` throws, it prints the program's name
// and the message and returns 3.
#pragma once

#include <cstdio>
#include <exception>

namespace stoker {

inline int run_program(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 3;
  }
}

}  // namespace stoker
