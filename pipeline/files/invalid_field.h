// Reports that one field of the caller's options is invalid. what() has the field's C++ name; a
// caller with another name for it (the program's --ring-depth, Python's keywords) makes its own
// message from field() and problem(). A value; any thread.
//
// Other fields that a message names, of this class or any other, stand in backquotes: `label_from`.
// Python's arguments have these names; the program puts its options in their place.
#pragma once

#include <stdexcept>
#include <string>

namespace stoker {

class InvalidField : public std::invalid_argument {
 public:
  // InvalidField("LoaderOptions", "ring_depth", " is 0, must be 1 to 65536"): the problem is
  // appended to the field's name as it is.
  InvalidField(const std::string& owner, const std::string& field, const std::string& problem)
      : std::invalid_argument(owner + ": " + field + problem), field_(field), problem_(problem) {}

  const std::string& field() const { return field_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string field_, problem_;
};

}  // namespace stoker
