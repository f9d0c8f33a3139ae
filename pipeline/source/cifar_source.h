// CIFAR-10 and CIFAR-100 in their binary layout: records of one label byte (CIFAR-10) or a coarse
// and a fine one (CIFAR-100; the fine one is used), then (3, 32, 32) u8. The files are read into
// memory once; read() copies nothing. A sample's name is "<file>:<record>".
// Errors: std::runtime_error with the path and the numbers for a missing file, a size that is not
// a whole number of records, a label out of range, or a wrong number of class names.
#pragma once

#include <memory>
#include <string>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_location.h"

namespace stoker {

// Returns true if a folder, of this machine or of a store, or the folder that the archives unpack
// to inside it (cifar-10-batches-bin, cifar-100-binary), has any of the files.
bool is_cifar_folder(const BlobLocation& location);

// train: data_batch_1.bin ... 5 or train.bin; test: test_batch.bin or test.bin; all: train, then
// test. Class names come from batches.meta.txt or fine_label_names.txt, else they are numbers.
std::unique_ptr<Source> make_cifar_source(const BlobLocation& location, Split split);

// The same for a folder of this machine.
bool is_cifar_folder(const std::string& path);
std::unique_ptr<Source> make_cifar_source(const std::string& path, Split split);

}  // namespace stoker
