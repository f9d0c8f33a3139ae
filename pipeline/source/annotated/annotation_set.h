// The annotations of all pictures of a data set, by the pictures' names. A set is made once, from
// what a data set has (COCO's JSON, VOC's XML, a program's own), and may be kept in a file that is
// mapped when it is opened again.
//
// Owner: shared by sources and their views. Threads: any, for all const functions. Errors:
// std::runtime_error with the path of the file, and the picture and object where there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/annotation/annotations.h"

namespace stoker {

class AnnotationSet {
 public:
  virtual ~AnnotationSet() = default;
  virtual const AnnotationInfo& info() const = 0;
  virtual int64_t pictures() const = 0;
  // As the data set names it: mostly a file's name.
  virtual std::string_view name(int64_t picture) const = 0;
  // Returns the picture's number; -1: there is none of this name.
  virtual int64_t find(std::string_view name) const = 0;
  // Sets `out` to the picture's annotations. Returns "", or what is wrong with them, and with which
  // object: "object 17: the box has no width: (3, 5, 3, 9)".
  virtual std::string read(int64_t picture, Annotations& out) const = 0;
  // Returns Annotations::size of the picture without its objects; {} if they are damaged.
  virtual Size size(int64_t picture) const = 0;
};
using SharedAnnotations = std::shared_ptr<const AnnotationSet>;

struct PictureAnnotations {
  std::string_view name;
  const Annotations* annotations = nullptr;
  std::string_view problem{};  // what is wrong with them, which read() returns; "": nothing
  // The label image's path, relative to the builder's `label_root`, if that is not "".
  std::string_view label_file{};
};

// Makes a set in memory. Owner: one caller.
class AnnotationSetBuilder {
 public:
  // Throws std::runtime_error if a name has a NUL.
  explicit AnnotationSetBuilder(AnnotationInfo info, std::string label_root = {});
  AnnotationSetBuilder(AnnotationSetBuilder&&) noexcept;
  ~AnnotationSetBuilder();
  // Throws std::runtime_error if there is a picture of this name already.
  void add(const PictureAnnotations& picture);
  void add(std::string_view name, const Annotations& annotations, std::string_view problem = {}) {
    add({.name = name, .annotations = &annotations, .problem = problem});
  }
  // The info's digest is that of all pictures. The builder is empty afterwards.
  SharedAnnotations finish();
  // Keeps the set in the file at `path`, too, and returns that, mapped; if it cannot be written, as
  // finish(). `key` says what the set was made from.
  SharedAnnotations finish_in(const std::string& path, const std::string& key);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the set that the file at `path` keeps; nullptr if there is none, or it is damaged or has
// another key.
SharedAnnotations open_annotation_set(const std::string& path, const std::string& key);

}  // namespace stoker
