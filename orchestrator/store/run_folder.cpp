// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/run_folder.hpp"

#include "orchestrator/store/stored_json.hpp"
#include "schemas/codec.hpp"
#include "schemas/host.hpp"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>

#include <unistd.h>

namespace plateau {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 60;

std::string rank_name(std::int64_t rank, char const* extension) {
  char name[48];
  std::snprintf(name, sizeof name, "rank-%05lld.%s", static_cast<long long>(rank), extension);
  return name;
}

} // namespace

fs::path run_folder::raw_result(case_id const& id, std::int64_t rank) const {
  return cases() / id.text() / rank_name(rank, "cbor");
}
fs::path run_folder::worker_log(std::int64_t rank) const { return logs() / rank_name(rank, "log"); }

std::string new_run_id(std::string_view job_name) {
  char digits[8];
  std::snprintf(digits, sizeof digits, "%04x", std::random_device{}() & 0xffffu);
  return utc_now("%Y%m%dT%H%M%SZ") + "-" + safe_for_a_file_name(job_name) + "-" + digits;
}

std::string safe_for_a_file_name(std::string_view text) {
  std::string safe;
  for (unsigned char const c : text.substr(0, longest_name))
    safe += std::isalnum(c) != 0 || c == '_' || c == '-' || (c == '.' && !safe.empty()) ? static_cast<char>(c) : '_';
  return safe.empty() ? "job" : safe;
}

void refuse_if_taken(fs::path const& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return;
  if (fs::is_directory(path, ignored) && fs::is_empty(path, ignored)) return;
  throw input_error(path.string() +
                    ": exists and is not an empty folder; a run never overwrites anything: choose another "
                    "folder with -o");
}

run_folder create_run_folder(fs::path const& path) {
  run_folder folder{path};
  refuse_if_taken(path);
  fs::create_directories(path);
  if (!fs::create_directory(folder.cases())) refuse_if_taken(path); // someone else took it between the look and now
  fs::create_directory(folder.logs());
  return folder;
}

run_folder open_run_folder(fs::path const& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw input_error(path.string() + ": does not exist; needs a run folder, as in runs/latest");
  run_folder folder{fs::is_directory(path, ignored) ? path : path.parent_path()};
  if (folder.path.empty()) folder.path = ".";
  if (!fs::exists(folder.run_json(), ignored))
    throw input_error(folder.path.string() + ": no run.json; is it a run folder?");
  return folder;
}

void write_run_info(run_folder const& folder, run_info const& info) {
  write_stored_json(folder.run_json(), encode(info));
}

run_info read_run_info(run_folder const& folder) { return read_stored<run_info>(folder.run_json(), run_info_format); }

void write_outcome(run_folder const& folder, run_outcome const& outcome) {
  write_stored_json(folder.outcome_json(), encode(outcome));
}

std::optional<run_outcome> read_outcome(run_folder const& folder) {
  if (!fs::exists(folder.outcome_json())) return std::nullopt;
  return read_stored<run_outcome>(folder.outcome_json(), run_outcome_format);
}

void point_latest_at(run_folder const& folder) {
  auto const whole = fs::absolute(folder.path).lexically_normal();
  auto const target = whole.has_filename() ? whole : whole.parent_path(); // "runs/a/" ends in an empty name
  auto const link = target.parent_path() / "latest";
  auto const status = fs::symlink_status(link);
  if (fs::exists(status) && !fs::is_symlink(status)) return;
  auto const temporary = target.parent_path() / (".latest." + std::to_string(::getpid()));
  fs::remove(temporary);
  fs::create_symlink(target.filename(), temporary);
  fs::rename(temporary, link);
}

} // namespace plateau
