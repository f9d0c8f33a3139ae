// The plain twin of the entropy decoder, for grey files, and files that encoders do not write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "decode/jpeg/headers.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {

struct PlainBlock {
  std::vector<int16_t> coefficients;
  size_t end = 0;  // in bits of the data without stuffing
  int32_t dc = 0;
};

// Decodes a grey file code by code and bit by bit. Stops at the first invalid block; `blocks` has
// the blocks before it.
void decode_plainly(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                    std::vector<PlainBlock>& blocks);

// Returns where the next MCU begins, in bits of the data without stuffing, as PlainBlock counts.
size_t plain_place(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg, ScanReader& reader,
                   int32_t& dc);

// Makes random data with unusual tables of a grey file: runs past the end of a block (libjpeg
// accepts them, so it has to decide), codes that do not exist, data that end early, values of any
// length. `kind` chooses among four kinds of tables and data.
std::vector<uint8_t> make_unusual(std::vector<uint8_t> file, int kind, std::mt19937& random);

using UnusualCheck =
    std::function<void(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                       const std::vector<PlainBlock>& expected, std::mt19937& random)>;

// Calls check() for files of all these kinds, with the blocks that the plain twin reads, until one
// fails. Fails the test if the files have few sound blocks.
void for_each_unusual(const UnusualCheck& check);

// Makes a grey file with this many blocks of the most bytes, and data that end where the decoder
// looks at its position and may still go on. The memory behind them is new, so it has zeros, too:
// the decoder goes on as far as it ever does.
std::vector<uint8_t> make_longest(int blocks = kSkipChunk);

}  // namespace stoker
