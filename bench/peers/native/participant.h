// The protocol between bench/peers/run and a participant, which is a separate process. The
// participant prints one line of JSON when it is ready:
//
//   {"ready": true, "version": "...", "given": "boxes"}
//
// and answers each line that it reads:
//
//   run FIRST COUNT   runs the rounds [FIRST, FIRST + COUNT) of the plan        -> done IMAGES
//   rows PATH         writes the samples of round 0, (N, H, W, 3) u8, to PATH   -> done IMAGES
//   quit
//
// A failure ends the participant with a message on stderr. peer.py implements the same protocol in
// Python.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::peers {

class Participant {
 public:
  virtual ~Participant() = default;
  virtual std::string version() const = 0;
  virtual int64_t run(int first_round, int rounds) = 0;     // returns the number of images
  virtual int64_t write_rows(const std::string& path) = 0;  // returns the number of images
};

// Serves standard input until `quit` or its end.
void serve(Participant& participant);

}  // namespace stoker::peers
