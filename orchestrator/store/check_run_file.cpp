// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/check_run_file.hpp"

#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/run_file.hpp"
#include "orchestrator/store/trailer.hpp"
#include "schemas/counters.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace plateau {

namespace {

using h5::item;
using kind = item::kind;
using items_by_path = std::map<std::string, item>;

constexpr std::array<std::uint8_t, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t head_size = 64; // holds a superblock of any version

// Where the file ends as HDF5 sees it; nothing if the superblock is none that is known, with addresses of 64 bits.
std::optional<std::uint64_t> end_by_hdf5(std::span<std::uint8_t const> first) {
  if (first.size() < head_size) return std::nullopt;
  auto const version = first[8];
  if (version > 3 || first[version < 2 ? 13 : 9] != sizeof(std::uint64_t)) return std::nullopt;
  std::size_t const at = version == 0 ? 40 : version == 1 ? 44 : 28;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < sizeof end; ++i) end |= std::uint64_t{first[at + i]} << (8 * i);
  return end;
}

/// Collects what is wrong with the items of one file.
class items_check {
public:
  explicit items_check(items_by_path const& items) : items_(items) {}

  std::vector<std::string> faults;

  item const* find(std::string const& path) const {
    auto const found = items_.find(path);
    return found == items_.end() ? nullptr : &found->second;
  }

  // A dataset that has to be there.
  void expect(std::string const& path, kind what, std::vector<std::uint64_t> const& size) {
    auto const* found = find(path);
    if (found == nullptr)
      faults.push_back(path + " is missing");
    else if (found->what != what)
      faults.push_back(path + " has another type than it should");
    else if (found->size != size)
      faults.push_back(path + " is " + words(found->size) + ", and should be " + words(size));
  }

  void expect_attribute(std::string const& path, std::string const& name, std::string const& value) {
    auto const* found = find(path);
    auto const attribute = found->text_attributes.find(name);
    if (attribute == found->text_attributes.end() || attribute->second != value)
      faults.push_back(path + ": the attribute " + name + " is not \"" + value + "\"");
  }

  // The first dimension of a list; nothing if it is not there as one.
  std::optional<std::uint64_t> length(std::string const& path, kind what) {
    auto const* found = find(path);
    if (found != nullptr && found->what == what && found->size.size() == 1) return found->size[0];
    faults.push_back(path + (found == nullptr ? " is missing" : " is no list"));
    return std::nullopt;
  }

  bool any_below(std::string const& path) const {
    auto const next = items_.lower_bound(path + "/");
    return next != items_.end() && next->first.starts_with(path + "/");
  }

private:
  items_by_path const& items_;

  static std::string words(std::vector<std::uint64_t> const& size) {
    std::string text;
    for (auto const n : size) text += (text.empty() ? "" : " x ") + std::to_string(n);
    return text.empty() ? "a single value" : text;
  }
};

// The ranks of a group: ascending, each one of the run's.
void check_ranks(items_check& check, std::string const& path, std::uint64_t world) {
  auto const& ranks = check.find(path)->values;
  auto const in_world = [&](std::int64_t rank) { return rank >= 0 && static_cast<std::uint64_t>(rank) < world; };
  if (ranks.empty() || !std::ranges::all_of(ranks, in_world) ||
      std::ranges::adjacent_find(ranks, std::greater_equal()) != ranks.end())
    check.faults.push_back(path + " does not list ranks of the run in ascending order");
}

void check_soak(items_check& check, std::string const& soak, std::uint64_t ranks, bool timed) {
  if (check.find(soak) == nullptr) return;
  check.expect(soak + "/rank", kind::integers, {ranks});
  auto const windows = check.length(soak + "/window", kind::integers);
  if (!windows) return;
  for (auto const* name : {"requests", "outside_bytes", "host_resident_bytes"})
    check.expect(soak + "/" + name, kind::integers, {ranks, *windows});
  if (timed) check.expect(soak + "/elapsed_ns", kind::integers, {ranks, *windows});
  for (auto const& field : counter_fields)
    check.expect(soak + "/" + std::string(field.name), kind::integers, {ranks, *windows});
}

void check_attribution(items_check& check, std::string const& group, std::uint64_t ranks) {
  if (check.find(group) == nullptr) return;
  for (auto const* name : {"rank", "requests", "counted_allocation_events", "counted_free_events"})
    check.expect(group + "/" + name, kind::integers, {ranks});
  if (check.find(group + "/op") == nullptr) return;
  auto const ops = check.length(group + "/op", kind::texts);
  if (!ops) return;
  for (auto const* name : {"allocation_events", "allocated_bytes", "free_events", "freed_bytes"})
    check.expect(group + "/" + name, kind::integers, {ranks, *ops});
}

void check_times(items_check& check, std::string const& group, std::uint64_t ranks, std::uint64_t threads,
                 std::uint64_t requests) {
  for (auto const* name : {"latency_ns", "start_ns"})
    check.expect(group + "/" + name, kind::integers, {ranks, threads, requests});
  for (auto const* name : {"wall_ns", "gate_ns"}) check.expect(group + "/" + name, kind::integers, {ranks});
  check.expect(group + "/harness_ns", kind::reals, {ranks});
}

// `timed`: it is no rehearsal, which has no times.
void check_case(items_check& check, case_id const& id, job const& run, std::uint64_t world, bool timed) {
  auto const group = id.text();
  auto const* found = check.find(group);
  if (found == nullptr || found->what != kind::group)
    return check.faults.push_back("the group " + group + " is missing");
  check.expect_attribute(group, "case_id", group);
  if (!check.any_below(group)) return; // nobody measured it
  auto const ranks = check.length(group + "/rank", kind::integers);
  if (!ranks) return;
  check_ranks(check, group + "/rank", world);
  auto const threads = static_cast<std::uint64_t>(id.concurrency);
  if (timed) check_times(check, group, *ranks, threads, static_cast<std::uint64_t>(run.requests_per_worker));
  check.expect(group + "/count", kind::integers, {*ranks, threads});
  check.expect(group + "/hostname", kind::texts, {*ranks});
  check.expect(group + "/point", kind::texts, {2});
  for (auto const& field : counter_fields)
    check.expect(group + "/" + std::string(field.name), kind::integers, {*ranks, 2});
  check.expect(group + "/outside_bytes", kind::integers, {*ranks, 2});
  check_soak(check, group + "/soak", *ranks, timed);
  check_attribution(check, group + "/attribution", *ranks);
}

std::string attribute_of(item const& root, char const* name) {
  auto const found = root.text_attributes.find(name);
  return found == root.text_attributes.end() ? "" : found->second;
}

// A single text that the file has at its root.
std::string const& own_text(items_check const& check, std::string const& path) {
  auto const* found = check.find(path);
  if (found == nullptr || found->what != kind::texts || !found->size.empty())
    throw format_error(path + " is missing, or is no text");
  return found->text;
}

// How many ranks the file says that its run had.
std::uint64_t own_world(items_check const& check) {
  auto const run = json::parse(own_text(check, "run"), nullptr, false);
  if (!run.is_object() || !run.contains("ranks") || !run["ranks"].is_array() || run["ranks"].empty())
    throw format_error("run names no ranks");
  return run["ranks"].size();
}

} // namespace

run_file_bytes check_run_file_bytes(std::span<std::uint8_t const> first, std::span<std::uint8_t const> last,
                                    std::uint64_t size, std::function<std::uint32_t(std::uint64_t)> const& crc) {
  if (first.size() < signature.size() || !std::equal(signature.begin(), signature.end(), first.begin()))
    throw format_error("is no HDF5 file, or damaged at its beginning");
  if (is_trailer(last, run_file_trailer)) {
    check_trailer(last.last<trailer_size>(), crc(size - trailer_size), size - trailer_size);
    return run_file_bytes::vouched;
  }
  auto const end = end_by_hdf5(first);
  if (!end || *end < size) throw format_error("is damaged: it does not end where HDF5 says, nor in a checksum");
  if (*end > size)
    throw format_error("is truncated: HDF5 says " + std::to_string(*end) + " bytes, there are " + std::to_string(size));
  return run_file_bytes::unchecked;
}

std::vector<std::string> check_run_file_items(items_by_path const& items) try {
  items_check check(items);
  auto const* root = check.find("");
  if (root == nullptr) throw format_error("it has no root");
  check_format({{"schema", attribute_of(*root, "schema_name") + "/" + attribute_of(*root, "schema_version")}},
               run_file_format);
  if (attribute_of(*root, "run_id").empty()) check.faults.emplace_back("the attribute run_id is missing");
  if (!root->number_attributes.contains("complete")) check.faults.emplace_back("the attribute complete is missing");
  auto const run = parse_job(own_text(check, "job"), "job");
  auto const world = own_world(check);
  auto const cases = cases_of(run);
  bool const timed = !root->text_attributes.contains("rehearsed");
  for (auto const& id : cases) check_case(check, id, run, world, timed);
  return check.faults;
} catch (input_error const& e) {
  return {e.what()};
}

checked_run_file check_run_file(std::filesystem::path const& path) try {
  auto const ends = read_ends(path, head_size, trailer_size);
  auto const crc = [&](std::uint64_t size) { return checksum_of_file(path, size); };
  checked_run_file out{check_run_file_bytes(ends.first, ends.last, ends.size, crc), "", {}};
  if (out.bytes == run_file_bytes::unchecked) return out;
  auto const items = h5::read_items(path);
  out.run_id = attribute_of(items.at(""), "run_id");
  out.faults = check_run_file_items(items);
  return out;
} catch (format_error const& e) {
  throw format_error(path.string() + ": " + e.what());
} catch (h5::error const& e) {
  throw format_error(path.string() + ": HDF5 cannot read it: " + e.what());
}

} // namespace plateau
