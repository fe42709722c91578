// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/raw_result.hpp"

#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/trailer.hpp"
#include "schemas/codec.hpp"
#include "schemas/crc32c.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace plateau {

namespace {

constexpr std::string_view trailer_name = "PLRR";

// The CBOR of a whole file, once its trailer vouches for it.
std::span<std::uint8_t const> checked_cbor(std::span<std::uint8_t const> file) {
  if (file.size() < trailer_size || !is_trailer(file.last(trailer_size), trailer_name))
    throw format_error("is truncated, or no raw result: it does not end in a trailer");
  auto const cbor = file.first(file.size() - trailer_size);
  check_trailer(file.last<trailer_size>(), crc32c(cbor), cbor.size());
  return cbor;
}

void check_name(case_result const& result, std::filesystem::path const& path) {
  run_folder const same_folder{path.parent_path().parent_path().parent_path()};
  if (same_folder.raw_result(result.id, result.rank, result.attempt).lexically_normal() != path.lexically_normal())
    throw format_error("holds case " + result.id.text() + " of rank " + std::to_string(result.rank) +
                       (result.attempt > 1 ? ", attempt " + std::to_string(result.attempt) : "") +
                       ", not what its name says; it was moved or renamed");
}

// Whether a result that is whole in itself is also one of this run.
void check_belongs(case_result const& result, run_info const& info, job const& run, std::filesystem::path const& path) {
  if (result.run_id != info.run_id)
    throw format_error(path.string() + ": is a result of run " + result.run_id + ", not of " + info.run_id);
  if (!result.measured) return;
  auto const longer = [&](auto const& thread) {
    return static_cast<std::int64_t>(thread.size()) > run.requests_per_worker;
  };
  if (std::ranges::any_of(result.measured->latency_ns, longer))
    throw format_error(path.string() + ": has more requests than the job asks for");
  auto const points = run.soak.windows > 0 ? run.soak.windows + 1 : 0;
  if (std::ssize(result.measured->soak) != points)
    throw format_error(path.string() + ": has " + std::to_string(result.measured->soak.size()) +
                       " points of the soak; the job asks for " + std::to_string(points));
}

} // namespace

std::vector<std::uint8_t> encode_raw_result(case_result const& result) { return to_cbor(encode(result)); }

void write_raw_result(run_folder const& folder, case_id const& id, std::int64_t rank,
                      std::span<std::uint8_t const> cbor, std::int64_t attempt) {
  auto const path = folder.raw_result(id, rank, attempt);
  std::filesystem::create_directories(path.parent_path());
  auto const end = trailer_of(trailer_name, crc32c(cbor), cbor.size());
  write_durably(path, {cbor, end});
}

case_result decode_raw_result(std::span<std::uint8_t const> file) {
  auto const cbor = checked_cbor(file);
  return read_case_result(from_cbor(cbor.data(), cbor.size()));
}

case_result read_raw_result(std::filesystem::path const& path) {
  auto const file = read_file(path);
  try {
    auto result = decode_raw_result(file);
    check_name(result, path);
    return result;
  } catch (format_error const& e) {
    throw format_error(path.string() + ": " + e.what());
  }
}

case_result read_result_of_run(std::filesystem::path const& path, run_info const& info, job const& run) {
  auto result = read_raw_result(path);
  check_belongs(result, info, run, path);
  return result;
}

} // namespace plateau
