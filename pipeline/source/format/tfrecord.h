// TFRecord files of tf.train.Example messages: each record is a length (u64), the masked CRC-32C of
// the length (u32), the data, the masked CRC-32C of the data (u32); all with the low byte first
// (tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details"). The data is an Example
// (tensorflow/core/example/{example,feature}.proto) in protobuf's wire format
// (protobuf.dev/programming-guides/encoding).
#pragma once

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Adds every record of `blob`, without a name. A field is a key of an Example. Unless `fields` says
// otherwise, the image is "image/encoded", else "image_raw", else "image", and the label is
// "image/class/label", else "label", whichever the first record has; an image is one bytes value, a
// label one int64 value or one bytes value, which is the text that names the class. A target is a
// list of int64 or float values; a list of one value is a single number.
//
// This reads the whole file, because only that shows where the records are, and checks both
// checksums of each. It needs memory for the largest record. Throws BlobError with the record's
// number.
void scan_tfrecord(BlobReader& blob, const FieldChoice& fields, SampleSink& out);

}  // namespace stoker
