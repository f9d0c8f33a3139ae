// Writes the plan of a comparison: peers_plan FOLDER train|eval|cifar ROUNDS PLAN.json
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "bench/peers/native/plan.h"

int main(int argc, char** argv) {
  using namespace stoker::peers;
  if (argc != 5) {
    std::fprintf(stderr, "usage: peers_plan FOLDER train|eval|cifar ROUNDS PLAN.json\n");
    return 2;
  }
  try {
    write_plan(make_plan(argv[1], mode_of(argv[2]), std::atoi(argv[3])), argv[4]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peers_plan: %s\n", error.what());
    return 1;
  }
  return 0;
}
