// A list of paths and labels: CSV (RFC 4180; a byte order mark is dropped), TSV (fields between
// tabs, no quotes) or JSON lines (an object per line; empty lines are skipped), as the list's name
// ends: .csv, .tsv, .jsonl or .ndjson.
#pragma once

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Finds the samples in a list. Each has BlobStorage::file and the path as it is written, which may
// be there twice. Throws BlobError, with line and byte, for lines with other fields than the first
// one, for what can be no path (empty, with NUL, more than 4095 bytes), and for lines of more than
// 1 MiB. It keeps one line at a time.
//
// In CSV and TSV the first line is a header if a target is named, or if one of its fields is
// FieldChoice::image or ::label, or one of path, file, file_name, filename, filepath, image and
// image_path in any case of letters. The path is then in the column FieldChoice::image, by itself
// in the first of these; the label in FieldChoice::label, by itself in the first of label, labels,
// class, class_name, category, target and y. Without a header, the path is column 1 and the label
// column 2. JSON lines have keys instead of columns. "none" as label: no labels.
//
// If the first label is an integer, all must be, and labels are numbers; else all are text, "007"
// too. JSON's own types decide there. In CSV and TSV, white space around a label and a column's
// name is dropped, and around a path it stays.
//
// A target is a column of the header or a key: in CSV and TSV as read_text_numbers() takes it, in
// JSON as read_json_numbers() does (text_value.h).
void scan_list(BlobReader& blob, const FieldChoice& fields, SampleSink& out);

}  // namespace stoker
