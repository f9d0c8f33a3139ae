#include <cctype>
#include <filesystem>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "pipeline/files/invalid_field.h"
#include "python/core/bind.h"
#include "python/core/source_sample.h"
#include "staging/error_text.h"
#include "stoker/version.h"

namespace {

// C++ messages begin with the class that refuses an argument ("LoaderOptions: batch_size is 0,
// ..."), which users of Python do not know. Returns the message without it.
std::string_view without_class(std::string_view message) {
  const size_t end = message.find(": ");
  if (end == std::string_view::npos || std::isupper(static_cast<unsigned char>(message[0])) == 0) {
    return message;
  }
  for (const char letter : message.substr(0, end)) {
    if (std::isalpha(static_cast<unsigned char>(letter)) == 0) return message;
  }
  return message.substr(end + 2);
}

// Fields for which Python has another name than C++.
const std::map<std::string, std::string> kArguments = {
    {"decode.max_pixels", "max_pixels"},       {"share.steps", "share_steps"},
    {"varying.max_bytes", "max_target_bytes"}, {"share.wait_s", "share_wait"},
    {"store.cache", "stoker.Store(cache=)"},
};

std::string argument_of(const std::string& field) {
  const auto known = kArguments.find(field);
  return known == kArguments.end() ? field : known->second;
}

// Returns the message with arguments in place of the fields that it names.
std::string in_arguments(const stoker::InvalidField& refused) {
  std::string text = argument_of(refused.field()) + refused.problem();
  for (const auto& [field, argument] : kArguments) {
    const size_t at = text.find("`" + field + "`");
    if (at != std::string::npos) text.replace(at, field.size() + 2, argument);
  }
  return text;
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const stoker::InvalidField& refused) {
    PyErr_SetString(PyExc_ValueError, in_arguments(refused).c_str());
  } catch (const std::invalid_argument& refused) {
    PyErr_SetString(PyExc_ValueError, std::string(without_class(refused.what())).c_str());
  } catch (const stoker::python::UnreadableSample& unreadable) {
    PyErr_SetString(PyExc_OSError, unreadable.what());
  } catch (const std::bad_alloc& memory) {
    PyErr_SetString(PyExc_MemoryError, stoker::error_text(memory).c_str());
  } catch (const std::filesystem::filesystem_error& file) {
    PyErr_SetString(PyExc_RuntimeError, stoker::error_text(file).c_str());
  }
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "stoker's C++ library, as the Python package uses it.";
  module.attr("VERSION") = STOKER_VERSION;
  // Objects that are alive when the interpreter ends are no leaks: a loop's variables, for example.
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator(translate);
  stoker::python::bind_accelerator(module);
  stoker::python::bind_array(module);
  stoker::python::bind_augment(module);
  stoker::python::bind_options(module);
  stoker::python::bind_source(module);
  stoker::python::bind_open(module);
  stoker::python::bind_dataset(module);
  stoker::python::bind_order(module);
  stoker::python::bind_annotations(module);
  stoker::python::bind_views(module);
  stoker::python::bind_image(module);
  stoker::python::bind_index(module);
  stoker::python::bind_remote(module);
  stoker::python::bind_feed(module);
}
