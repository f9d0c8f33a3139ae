// Finds images in a Parquet file, as the Hugging Face Hub has them (the library `datasets` and
// pyarrow write them), one per row:
//   images   a column of binary values, or a struct with binary `bytes` (the Hub's Image); by
//            itself the column image, img, jpg, jpeg, png, webp, picture or pixels, else the only
//            struct with `bytes`
//   labels   a column of integers or text; by itself label, labels, class, fine_label or cls
//   targets  columns of numbers, or of lists (also of lists) of them, which are equally long in
//            all rows; neither nulls nor empty lists (parquet_columns.h)
// A field is a column's name, or names with dots between them for what is inside a struct. Names of
// classes come from what `datasets` notes in the file. Pages may be packed with Snappy or ZSTD, and
// encoded as PLAIN or in a dictionary. What is packed is unpacked during the scan, so a scan of
// packed images reads the whole column. Images that lie in the file as they are, which is also the
// case for most of those that Snappy left alone, are read without unpacking; an image in a ZSTD
// page needs the page to be unpacked up to it.
// Errors: BlobError, also for rows whose image or label is null.
#pragma once

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

void scan_parquet(BlobReader& blob, const FieldChoice& fields, SampleSink& out);

}  // namespace stoker
