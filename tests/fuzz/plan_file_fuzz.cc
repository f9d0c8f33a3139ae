// The plan cache. Its seal is corrected first (it guards against accidents, not against forgery):
// read_plan_file() must accept only whole lines then, and a line can be added to any file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/support/sealed_again.h"
#include "tests/support/temp_folder.h"
#include "train/cuda/plan_choices.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  const std::string path =
      folder.write("plans", sealed_again({reinterpret_cast<const char*>(data), size}));
  for (const PlanLine& line : read_plan_file(path).lines) {
    if (line.question.find_first_of("\n\t") != std::string::npos) std::abort();
    if (line.answer.find('\n') != std::string::npos) std::abort();
  }
  const PlanLine added{"a question", "eng1_k2=3"};
  add_plan_lines(path, {added});
  const PlanLines read = read_plan_file(path);
  if (!read.problem.empty() || read.lines.empty() || read.lines.back() != added) std::abort();
  return 0;
}
