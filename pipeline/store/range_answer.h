// Ranges and versions of both kinds of stores. Functions of their arguments alone.
// Threads: any.
#pragma once

#include <string>

#include "pipeline/store/object_store.h"

namespace stoker {

// Returns the version that the headers of an answer tell (StoredObject::version).
std::string version_of(const HttpAnswer& answer);
// The same of an ETag, which may lack its quotes, and a Last-Modified; both may be "".
std::string version_of(const std::string& etag, const std::string& last_modified);
// Returns a number of bytes as a header has it, -1 if it is none.
int64_t parse_bytes(const std::string& text);
// Sets the size and the version that an answer to HEAD tells, or to GET of the first byte. Returns
// false if there is no size in it.
bool describe_object(const HttpAnswer& answer, StoredObject& object);

// Adds to a request what asks for [offset, offset + length) of this version of the object.
void ask_for_range(const StoredObject& object, int64_t offset, int64_t length,
                   HttpRequest& request);
// Judges an answer with status 200 or 206. `name`: the object's address, for the message.
Judgement judge_range(const std::string& name, const StoredObject& object, int64_t offset,
                      int64_t length, const HttpAnswer& answer);
Judgement object_changed(const std::string& name, const std::string& how);

}  // namespace stoker
