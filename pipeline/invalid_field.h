// One field of what was asked for makes no sense. what() names it as C++ does; who calls it by
// another name (the program's --ring-depth, Python's keywords) makes the message anew from the
// parts. A value; any thread.
#pragma once

#include <stdexcept>
#include <string>

namespace stoker {

class InvalidField : public std::invalid_argument {
 public:
  // InvalidField("LoaderOptions", "ring_depth", " is 0, must be 1 to 65536"): the problem follows
  // the field's name as it stands.
  InvalidField(const std::string& owner, const std::string& field, const std::string& problem)
      : std::invalid_argument(owner + ": " + field + problem), field_(field), problem_(problem) {}

  const std::string& field() const { return field_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string field_, problem_;
};

}  // namespace stoker
