// Writing so that a reader finds the old file or the whole new one, whenever the power fails.
// Threads: any, on different paths. Errors: std::runtime_error with the path and errno's text, also
// for a pipe or a device (or a link to one), which is never waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

// Creates or replaces `path` with the pieces one after another, and flushes it to the disk. Not
// atomic: for files in a folder that is renamed afterwards.
void write_flushed(const std::string& path, std::span<const std::string_view> pieces);
// The same through `path`.tmp and a rename: atomic.
void replace_file(const std::string& path, std::string_view content);
// Renames a folder or file that is complete, and flushes the folder that holds it.
void publish(const std::string& temporary, const std::string& path);
void flush_folder(const std::string& path);
std::string read_whole_file(const std::string& path);
// Gives a file of any size to `take`, piece after piece, through one small buffer.
void read_pieces(const std::string& path, const std::function<void(std::string_view)>& take);
// Fills `bytes` from `offset` on. A file that ends before is an error.
void read_part(const std::string& path, uint64_t offset, std::span<char> bytes);

}  // namespace stoker
