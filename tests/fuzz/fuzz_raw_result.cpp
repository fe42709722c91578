// SPDX-License-Identifier: Apache-2.0
// A raw result: as a whole file, and as a document whose trailer is right, since no random byte would pass the
// checksum.
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/trailer.hpp"
#include "schemas/codec.hpp"
#include "schemas/crc32c.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <optional>
#include <vector>

namespace plateau::fuzzing {

namespace {

std::optional<case_result> decoded(bytes file) {
  try {
    return decode_raw_result(file);
  } catch (format_error const& e) {
    must_be_readable(e.what());
    return std::nullopt;
  }
}

std::vector<std::uint8_t> with_trailer(std::vector<std::uint8_t> file) {
  auto const end = trailer_of("PLRR", crc32c(file), file.size());
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

} // namespace

void fuzz_one(bytes input) {
  decoded(input);
  auto const file = with_trailer({input.begin(), input.end()});
  auto const result = decoded(file);
  must(!decoded(bytes(file).first(file.size() - 1)), "a truncated file is refused");
  if (!result) return;
  auto const written = encode_raw_result(*result);
  auto const again = decoded(with_trailer(written));
  must(again && encode_raw_result(*again) == written, "a result that was read is read again as the same");
}

} // namespace plateau::fuzzing
