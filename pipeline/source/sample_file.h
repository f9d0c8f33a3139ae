// Reads the files of samples, one sample each, and pieces of larger files. The functions never wait
// for a pipe. Threads: any, each with its own buffer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/files/read_piece.h"
#include "pipeline/source.h"

namespace stoker {

inline constexpr int64_t kMaxSampleBytes = int64_t{1} << 30;  // exceeds any photograph

// Opens a path, relative to the folder that `folder` is open on. Returns -1 with errno on failure.
int open_sample_file(int folder, const char* path);
// The same, but fails instead of waiting for storage; also if the kernel cannot do that.
int open_sample_file_cached(int folder, const char* path);

// Returns the reason with errno's text: "open: No such file or directory".
ReadStatus system_failure(const char* what);

// Reads the whole file into `buffer`, which grows and never shrinks; `bytes` is the part with the
// file.
ReadStatus read_sample_file(int descriptor, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes);
// The same for bytes that are in memory already; false if they are not, if that cannot be known, or
// for an error that read_sample_file() has to report.
bool read_sample_file_cached(int descriptor, std::vector<uint8_t>& buffer,
                             std::span<const uint8_t>& bytes);

// Returns the stamp of the file at a path as for open_sample_file(); an unknown one if that is no
// file with bytes.
FileStamp sample_file_stamp(int folder, const char* path);
// As Source::read_pieces(). The kernel is told to read nothing but the pieces.
bool read_file_pieces(int folder, const char* path, const FileStamp& stamp,
                      std::span<const BytePiece> pieces, MayWait may_wait);

}  // namespace stoker
