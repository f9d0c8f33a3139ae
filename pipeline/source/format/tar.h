// A tar shard of WebDataset (the "WebDataset format" of its documentation).
#pragma once

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Finds the samples in a shard. A member's key is its path up to the first dot of its base name,
// and its extension is what follows; capital letters do not matter in it. Members that follow each
// other and have one key are one sample: "n01/abc.jpg" and "n01/abc.cls". A leading "./" is
// dropped. Folders are skipped, and so are members whose base name begins with "." or "__"
// (metadata, macOS's "._abc.jpg").
//
// FieldChoice::image is an extension; by itself it is one of jpg, jpeg, png, webp, bmp, tif,
// tiff, ppm, pgm, avif, gif, jp2 and pbm. FieldChoice::label is
//   "cls"         the member's whole content is an integer, or a text that names a class
//   "txt"         the content is a text that names a class
//   "json:FIELD"  an integer or a text in the key's .json; a dot in FIELD goes to an inner object
//   "folder"      the name of the folder that the key is in
//   "none"        no labels
// and by itself "cls" if the first sample has one, else "folder" if its key is in one. White space
// around a label is dropped.
//
// A target is "json:FIELD", numbers in the key's .json (text_value.h), or "npy" or "NAME.npy", an
// array in the member with that extension (npy.h).
//
// Throws BlobError for what TarReader refuses, for names that leave the folder a tar is unpacked
// in, for a key that occurs twice, for two images of a key, and for an image without a label. Keys
// without an image, links, devices and names without an extension are left out. The order is the
// file's. It keeps 16 bytes per key.
void scan_tar(BlobReader& blob, const FieldChoice& fields, SampleSink& out);

}  // namespace stoker
