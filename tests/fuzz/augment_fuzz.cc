// The text of an augmentation: std::invalid_argument, or a list that reads back as itself.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "pipeline/augment/stage.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // This stage loads a shared library.
  if (text.find("operation") != std::string::npos) return 0;
  StageList list;
  try {
    list = StageList(text);
    list.size(Size{40, 30}, {32, 32});
  } catch (const std::invalid_argument&) {
    return 0;
  }
  if (StageList(list.describe()).describe() != list.describe()) std::abort();
  Draws draws;
  draws.begin({40, 30}, {32, 32}, 1, 2, 3);
  list.draw(draws);
  steps_text(draws.steps());
  return 0;
}
