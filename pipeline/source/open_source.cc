#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source.h"
#include "pipeline/source/annotate.h"
#include "pipeline/source/blob/blob_source.h"
#include "pipeline/source/cifar_source.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/growing_source.h"
#include "pipeline/source/pair_pictures.h"
#include "pipeline/source/stored_folder.h"

namespace stoker {
namespace {

void refuse_fields(const std::string& path, const char* kind, const SourceOptions& options) {
  const std::string targets = options.targets_from.empty() ? "" : options.targets_from.front();
  const std::string pictures = options.pictures_from.empty() ? "" : options.pictures_from.front();
  for (const auto& [option, value] :
       {std::pair("image_from", options.image_from), std::pair("label_from", options.label_from),
        std::pair("targets_from", targets), std::pair("objects_from", options.objects_from),
        std::pair("label_image_from", options.label_image_from),
        std::pair("pictures_from", pictures)}) {
    if (value.empty()) continue;
    throw InvalidField("SourceOptions", option,
                       " is \"" + value + "\", and " + shown_path(path) + " is " + kind +
                           ", which has no such choice");
  }
}

void refuse_cache(const std::string& path, const char* why, const StoreOptions& store) {
  if (store.cache.empty() && store.cache_bytes == 0) return;
  throw std::invalid_argument("cache: " + shown_path(path) + why);
}

std::unique_ptr<Source> open_stored(const std::string& address, const SourceOptions& options,
                                    bool waits) {
  if (const auto blobs = find_blobs(address, options.split, options.store)) {
    return waits ? make_blob_source(*blobs, options) : begin_blob_source(*blobs, options);
  }
  const auto place = stored_location(address, options.store);
  if (is_cifar_folder(*place)) {
    refuse_fields(address, "a folder of CIFAR's files", options);
    refuse_cache(address, " has CIFAR's files, which are read once and stay in memory",
                 options.store);
    return make_cifar_source(*place, options.split);
  }
  refuse_fields(address, "an image folder", options);
  return make_stored_folder(place, options);
}

bool has_part_folders(const std::vector<std::string>& folders) {
  const auto is_there = [&](std::string_view name) {
    return std::ranges::find(folders, name) != folders.end();
  };
  return std::ranges::any_of(kTrainNames, is_there) || std::ranges::any_of(kTestNames, is_there);
}

bool has_stored_parts(const std::string& address, const StoreOptions& store) {
  if (has_blob_parts(address, store)) return true;
  if (names_objects(address)) return false;
  const auto place = stored_location(address, store);
  return is_cifar_folder(*place) || has_part_folders(place->list("").folders);
}

// Returns the scheme of an address that nothing here can open: "gs" of "gs://bucket/x"; "" of a
// path, and of an address in a store.
std::string unknown_scheme(const std::string& path) {
  const size_t colon = path.find("://");
  std::error_code ignored;
  if (colon == std::string::npos || is_store_address(path)) return "";
  const std::string scheme = path.substr(0, colon);
  const bool is_word = !scheme.empty() && std::ranges::all_of(scheme, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  return is_word && !std::filesystem::exists(path, ignored) ? scheme : "";
}

// Says what to write instead. The same words for the program and for Python.
std::string instead_of(const std::string& scheme) {
  if (scheme == "gs" || scheme == "gcs") {
    return "; Google's store is reached by S3's interface (its XML API with HMAC keys): s3://, "
           "with "
           "AWS_ENDPOINT_URL_S3=https://storage.googleapis.com, and the keys in AWS_ACCESS_KEY_ID "
           "and AWS_SECRET_ACCESS_KEY";
  }
  if (scheme == "hf") {
    return "; a data set of the Hugging Face Hub is opened in Python by datasets.load_dataset() "
           "and "
           "stoker.huggingface(), and its files by "
           "https://huggingface.co/datasets/OWNER/NAME/resolve/main/FILE";
  }
  if (scheme == "az" || scheme == "abfs" || scheme == "abfss" || scheme == "wasbs") {
    return "; objects of Azure's are named one by one, by URLs that are signed (SAS) or public: "
           "https://ACCOUNT.blob.core.windows.net/CONTAINER/FILE?...";
  }
  return "";
}

// Returns the extension that a field of an image folder names, "txt" of "txt:text"; "": none.
std::string extension_of_text(const std::string& field) {
  constexpr std::string_view kText = ":text";
  if (!field.ends_with(kText) || field.find('/') != std::string::npos) return "";
  return field.substr(0, field.size() - kText.size());
}

bool is_picture_folder(const std::string& path, Split split) {
  std::error_code ignored;
  return !is_store_address(path) && std::filesystem::is_directory(path, ignored) &&
         !find_blobs(path, split);
}

std::unique_ptr<Source> open_annotated(const std::string& path, const SourceOptions& options) {
  if (is_picture_folder(path, options.split)) {
    refuse_fields(path, "a folder of pictures", options);
    refuse_cache(path, " is on this machine; a cache is of data in a store", options.store);
    return annotate_folder(path, options);
  }
  return annotate_source([&](const SourceOptions& plain) { return open_source(path, plain); }, path,
                         options);
}

std::unique_ptr<Source> open_paired(const std::string& path, const SourceOptions& options) {
  SourceOptions others = options;
  others.pictures_from.clear();
  refuse_fields(path, "a folder of pictures", others);
  return open_picture_folders(path, options);
}

}  // namespace

std::string local_path(const std::string& path) {
  constexpr std::string_view kScheme = "file://";
  if (!path.starts_with(kScheme)) {
    const std::string scheme = unknown_scheme(path);
    if (scheme.empty()) return path;
    throw std::invalid_argument(shown_path(path) + ": there is no " + scheme +
                                "://; addresses are s3://, https://, http:// and file:///PATH" +
                                instead_of(scheme));
  }
  if (path.size() == kScheme.size() || path[kScheme.size()] != '/') {
    throw std::runtime_error(shown_path(path) + ": a file of another machine; write file:///PATH");
  }
  return path.substr(kScheme.size());
}

std::string data_forms() {
  return "a folder of CLASS/IMAGE files, train and val (or test) folders of such, the binary files "
         "of CIFAR-10 or CIFAR-100; or shards (" +
         shard_files() + ") or a list of files (" + list_files() + ")";
}

std::unique_ptr<Source> open_source(const std::string& given, const SourceOptions& options) {
  const std::string path = local_path(given);
  if (!options.objects.empty()) return open_annotated(path, options);
  if (is_store_address(path)) return open_stored(path, options, true);
  refuse_cache(path, " is on this machine; a cache is of data in a store", options.store);
  std::error_code ignored;
  const bool is_cifar = std::filesystem::is_directory(path, ignored) && is_cifar_folder(path);
  if (is_cifar) {
    refuse_fields(path, "a folder of CIFAR's files", options);
    return make_cifar_source(path, options.split);
  }
  if (const auto blobs = find_blobs(path, options.split)) return make_blob_source(*blobs, options);
  if (!options.pictures_from.empty()) return open_paired(path, options);
  FolderOptions folder{.split = options.split, .cache_dir = options.cache_dir};
  SourceOptions others = options;
  std::erase_if(others.targets_from, [&](const std::string& field) {
    const std::string extension = extension_of_text(field);
    if (!extension.empty()) folder.texts.push_back(extension);
    return !extension.empty();
  });
  refuse_fields(path, "an image folder", others);
  return make_folder_source(path, folder);
}

std::unique_ptr<Source> begin_source(const std::string& path, const SourceOptions& options) {
  if (is_store_address(path) && options.objects.empty()) return open_stored(path, options, false);
  return open_source(path, options);
}

bool has_parts(const std::string& given, const StoreOptions& store) {
  const std::string path = local_path(given);
  if (is_store_address(path)) return has_stored_parts(path, store);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return has_blob_parts(path);
  const auto is_there = [&](std::string_view name) {
    return std::filesystem::is_directory(std::filesystem::path(path) / name, ignored);
  };
  return is_cifar_folder(path) || has_blob_parts(path) ||
         std::any_of(kTrainNames.begin(), kTrainNames.end(), is_there) ||
         std::any_of(kTestNames.begin(), kTestNames.end(), is_there);
}

std::unique_ptr<Source> open_source(const std::string& path, Split split) {
  return open_source(path, SourceOptions{.split = split});
}

}  // namespace stoker
