// The layout of --help: "--name VALUE" or "--name {choices}" on the left; the meaning, the default
// and the range on the right, broken into lines that fit 100 columns.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace stoker {

std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace stoker
