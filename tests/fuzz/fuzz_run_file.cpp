// SPDX-License-Identifier: Apache-2.0
// The reading of run.h5. The first byte says what the rest is: the bytes of a file (0 as they are, 1 with a trailer
// that is right), or changes to the items of a file that is whole. HDF5 itself is only ever given what a checksum
// vouches for, so that its own reading of damaged bytes is out of reach by design, and not fuzzed.
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/check_run_file.hpp"
#include "orchestrator/store/run_file.hpp"
#include "orchestrator/store/trailer.hpp"
#include "schemas/crc32c.hpp"
#include "tests/fuzz/fuzzing.hpp"
#include "tests/support/synthetic_run.hpp"

#include <iterator>
#include <vector>

namespace plateau::fuzzing {

namespace {

using items = std::map<std::string, h5::item>;

// A run of two ranks and one case, written and read with HDF5.
items good_items() {
  scratch_folder const scratch;
  auto run = synthetic_job();
  run.modes = {"eager"};
  run.concurrency_levels = {2};
  auto const folder = synthetic_folder(scratch.path / "run", run, 2);
  assemble(folder);
  auto const checked = check_run_file(folder.run_h5());
  must(checked.bytes == run_file_bytes::vouched && checked.faults.empty(), "a file that was just written is good");
  return h5::read_items(folder.run_h5());
}

void check_bytes(std::vector<std::uint8_t> file, bool vouch) {
  if (vouch) {
    auto const end = trailer_of(run_file_trailer, crc32c(file), file.size());
    file.insert(file.end(), end.begin(), end.end());
  }
  bytes const all = file;
  try {
    auto const found = check_run_file_bytes(
        all.first(std::min<std::size_t>(all.size(), 64)), all.last(std::min<std::size_t>(all.size(), trailer_size)),
        all.size(), [&](std::uint64_t size) { return crc32c(all.first(static_cast<std::size_t>(size))); });
    must(!vouch || found == run_file_bytes::vouched, "a trailer that is right is believed");
  } catch (format_error const& e) {
    must_be_readable(e.what());
  }
}

void change_text(std::string& text, taker& t) {
  auto const at = text.empty() ? 0 : (t.byte() | t.byte() << 8) % text.size();
  auto const removed = t.byte(), added = t.byte();
  text.replace(at, removed, text_of(t.some(added % 16)));
}

void change(items& file, taker& t) {
  auto& [path, item] = *std::next(file.begin(), t.byte() % static_cast<std::ptrdiff_t>(file.size()));
  switch (t.byte() % 8) {
  case 0:
    if (file.size() > 1) file.erase(std::string(path));
    break;
  case 1: item.what = static_cast<h5::item::kind>(t.byte() % 5); break;
  case 2: item.size.resize(t.byte() % 5, t.byte()); break;
  case 3:
    for (auto& n : item.size) n = t.byte();
    break;
  case 4: item.values.assign(t.byte() % 4, static_cast<std::int8_t>(t.byte())); break;
  case 5: change_text(item.text, t); break;
  case 6:
    for (auto& [name, value] : item.text_attributes) change_text(value, t);
    break;
  default: item.number_attributes.clear(); break;
  }
}

void check_changed(taker t) {
  static auto const good = good_items();
  auto file = good;
  while (!t.rest.empty()) change(file, t);
  for (auto const& fault : check_run_file_items(file)) must_be_readable(fault);
}

} // namespace

void fuzz_one(bytes input) {
  taker t{input};
  if (auto const how = t.byte(); how < 2)
    check_bytes({t.rest.begin(), t.rest.end()}, how == 1);
  else
    check_changed(t);
}

} // namespace plateau::fuzzing
