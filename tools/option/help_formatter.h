// The layout of --help: "--name VALUE" or "--name {choices}" on the left; the meaning, the default
// and the range on the right, broken into lines that fit 100 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stoker {

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kColumn); }
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;

 private:
  static constexpr size_t kColumn = 34;  // where the right side begins
};

}  // namespace stoker
