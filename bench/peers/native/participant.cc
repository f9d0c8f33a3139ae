#include "bench/peers/native/participant.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace stoker::peers {

void serve(Participant& participant) {
  const nlohmann::json ready = {
      {"ready", true}, {"version", participant.version()}, {"given", "boxes"}};
  std::cout << ready << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::istringstream words(line);
    std::string command, path;
    int first = 0, count = 0;
    words >> command;
    int64_t images = 0;
    if (command == "run" && words >> first >> count) {
      images = participant.run(first, count);
    } else if (command == "rows" && words >> path) {
      images = participant.write_rows(path);
    } else {
      throw std::invalid_argument("not a request: '" + line + "'");
    }
    std::cout << "done " << images << std::endl;
  }
}

}  // namespace stoker::peers
