// The grammar of augmentations, one for --augment, for Python's repr, for recipes and receipts:
//
//   list     = stage { "|" stage }
//   stage    = name [ "(" [ argument { "," argument } ] ")" ]
//   argument = [ name "=" ] value
//   value    = number | word | 'text' | "(" number { "," number } ")" | list
//
// random_resized_crop(224, scale=(0.35, 1)) | random_apply(color_jitter(0.4) | grayscale, p=0.8)
//
// Values. Threads: any. Errors: std::invalid_argument with the text, the column and what was
// expected there. What names mean is not decided here (stage.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct StageText;

// One argument as it was written.
struct ArgumentText {
  enum class Kind : uint8_t { number, word, tuple, list };
  std::string name;  // "": by its place
  Kind kind = Kind::number;
  double number = 0;
  std::string word;               // also of a text in quotes
  std::vector<double> numbers;    // of a tuple
  std::vector<StageText> stages;  // of a list
  bool quoted = false;
};

struct StageText {
  std::string name;
  std::vector<ArgumentText> arguments;
};

std::vector<StageText> parse_stages(std::string_view text);

// Returns the shortest text that reads back as the same number.
std::string number_text(double value);
// Returns "(0.08, 1)"; one number stands without brackets.
std::string numbers_text(const std::vector<double>& values);

}  // namespace stoker
