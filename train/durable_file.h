// Writing so that a reader finds the old file or the whole new one, whenever the power fails.
// Threads: any, on different paths. Errors: std::runtime_error with the path and errno's text.
#pragma once

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

}  // namespace stoker
