#include <algorithm>
#include <stdexcept>

#include "pipeline/augment/operation_plugin.h"
#include "pipeline/augment/stages.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// A step of a user's operation refers to this.
struct OwnOperation {
  PixelOperation operation;
  std::string kind_name;
  PixelKind kind;
};

// A name must fit into one line of text, between other names.
bool is_word(const std::string& name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

void check_operation(const PixelOperation& operation) {
  const std::string quoted = std::string("'").append(printable_name(operation.name)).append("'");
  if (!is_word(operation.name)) {
    throw std::invalid_argument("augment: operation " + quoted +
                                ": a name is of printable ASCII characters without spaces");
  }
  if (!operation.apply) {
    throw std::invalid_argument("augment: operation " + quoted + " has no function");
  }
}

void run(const PixelStep& step, MutableImageView image, PixelScratch&) {
  const auto& own = *static_cast<const OwnOperation*>(step.object);
  const std::string& name = own.operation.name;
  try {
    own.operation.apply(image, step.key);
  } catch (const std::exception& error) {
    throw std::runtime_error("operation " + name + ": " + error.what());
  } catch (...) {
    throw std::runtime_error("operation " + name + " threw no std::exception");
  }
}

// Each operation has a key of its own, by its name, so that none changes the draws of another.
StageActions actions_of(const PixelOperation& operation) {
  check_operation(operation);
  auto own = std::make_shared<OwnOperation>();
  own->operation = operation;
  own->kind_name = "operation(" + operation.name + ")";
  own->kind.name = own->kind_name.c_str();
  own->kind.change = run;
  if (operation.moves) own->kind.motion = Motion::unknown;
  const uint64_t salt = text_digest("stoker operation " + operation.name);
  const auto draw = [own, salt](const StageKey&, Draws& draws) {
    PixelStep& step = draws.add(own->kind);
    step.object = own.get();
    step.key = draws.key(salt);
  };
  return {.draw = draw, .identity = own->kind_name};
}

StageActions make_operation(const Arguments& arguments) {
  PixelOperation operation = open_operation(arguments.word("path"));
  operation.moves = arguments.flag("moves");
  return actions_of(operation);
}

}  // namespace

Stage operation_stage(const PixelOperation& operation) { return Stage(actions_of(operation)); }

const StageType kOperation{
    .name = "operation",
    .help = "Your own operation, in a shared library (stoker_add_operation)",
    .details =
        "A shared library, built from C++ with the headers of this version of stoker\n"
        "(tests/consumer/README.md); pixels have whatever size they have there. Python raises\n"
        "RuntimeError for a file that does not exist, is no operation, or is for another\n"
        "version. moves: False if every pixel stays where it is; otherwise pictures with boxes\n"
        "or masks, which cannot follow, are refused.",
    .parameters = {{"path", ArgumentKind::text, nullptr},
                   kProbability,
                   {"moves", ArgumentKind::flag, "True"}},
    .make = make_operation};

}  // namespace stoker
