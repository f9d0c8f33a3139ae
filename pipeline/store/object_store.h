// A store of objects behind HTTP: which there are, their size and version, and the requests that
// read them. It does not carry bytes of objects: ObjectReader does. Owner: the user; outlives
// readers. Threads: const calls from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/store/http_client.h"
#include "pipeline/store/store_options.h"

namespace stoker {

// Something is wrong with a store, an object or the right to read it. The text has the endpoint,
// the bucket, the key and what to do; never a secret. A feed ends with it: it is no bad sample.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The server does not say whether there is such an object (status 401, 403).
class StoreForbidden : public StoreError {
 public:
  using StoreError::StoreError;
};

// StoredObject::version for a server that gives none.
inline constexpr char kUnversioned[] = "unversioned";

struct StoredObject {
  // S3: in the bucket, not percent-encoded. HTTP: the path on the server as it is in the URL, with
  // its first "/", percent-encoded.
  std::string key{};
  int64_t bytes = -1;
  // The version: the ETag as the server writes it, else "modified:" and its Last-Modified, else
  // kUnversioned; never "".
  std::string version{};
};

// Where objects of a web server are, "/path?query", by what they are called: their keys, or their
// addresses without the query, which may be a secret.
using ObjectTargets = std::map<std::string, std::string>;

// An address that a user may name.
struct StoreAddress {
  enum class Kind : uint8_t { s3, http } kind = Kind::s3;
  std::string server;       // s3: the bucket; http: "https://host:port"
  std::string key;          // prefix or object, as StoredObject has it
  std::string query;        // http only: what follows "?", e.g. of a signed URL; it is a secret
  ObjectTargets targets{};  // http only: by key, of objects that have a query of their own
};

// Returns true for "s3://", "http://" and "https://"; not for "file://".
bool is_store_address(const std::string& path);
// Throws std::invalid_argument with the address and an example of a right one.
StoreAddress parse_address(const std::string& address);
// REQUIRES: an address of a web server.
std::string target_of(const StoreAddress& address);
// Returns a path or an address as messages and files of results show it: an address without query,
// user and password.
std::string shown_path(const std::string& path);
// The same for a word of a command line, "--data=https://...": "?..." stands for what follows the
// path of an address.
std::string shown_word(const std::string& word);

// The judgement of an answer to a request for a range.
enum class AnswerKind : uint8_t {
  fine,
  again,      // try again: 5xx, no answer, cut short, clock skew that was learnt
  throttled,  // try again, and ask for less at a time: 503 Slow Down, 429
  changed,    // the object has another version or length than was listed: an error
  refused,    // an error that another try does not mend
};
struct Judgement {
  AnswerKind kind = AnswerKind::fine;
  std::string problem;  // one line without a secret; "" if fine
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // For messages and names: "s3://bucket" or "https://host".
  virtual const std::string& root() const = 0;
  std::string address_of(const std::string& key) const;  // for messages: without a query
  // Calls `found` with every object whose key begins with `prefix`, in the server's order, page
  // after page. `found` returns false to stop; then no other page is asked for. Throws StoreError;
  // a server without lists says so.
  virtual void scan(const std::string& prefix,
                    const std::function<bool(StoredObject object)>& found) const = 0;
  // The same, ascending by the key's bytes. Not all servers list in this order, so the whole list
  // is read, kept and sorted before `found` is called.
  void list(const std::string& prefix, const std::function<bool(StoredObject object)>& found) const;
  // Returns the "folders" and objects directly in `prefix` (which ends in "/" or is ""), as a
  // listing with the delimiter "/" gives them, ascending. Keys of folders end in "/"; a folder has
  // no size and no version.
  virtual std::vector<StoredObject> list_folder(const std::string& prefix) const = 0;
  // Returns false if there is no such object. Throws StoreError for everything else.
  virtual bool stat(const std::string& key, StoredObject& out) const = 0;
  // Returns a request for [offset, offset + length), signed for now, which is refused by the server
  // if the object has another version than `object`.
  virtual HttpRequest range_request(const StoredObject& object, int64_t offset,
                                    int64_t length) const = 0;
  virtual Judgement judge(const StoredObject& object, int64_t offset, int64_t length,
                          const HttpAnswer& answer) const = 0;
  virtual HttpClient& client() const = 0;
  // Tells objects from others that are called the same, and lie behind other queries. One-way; ""
  // if there is no query.
  virtual std::string digest_of_queries() const { return ""; }
};

// Sorts by the keys' bytes, if they are in another order: some servers list folder by folder, with
// "a/b" before "a-b".
void sort_by_key(std::vector<StoredObject>& objects);

// Opens the store that an address is in. Throws StoreError or std::runtime_error; does not look
// whether the bucket is there before the first request.
std::shared_ptr<const ObjectStore> open_store(const StoreAddress& address,
                                              const StoreOptions& options);

}  // namespace stoker
