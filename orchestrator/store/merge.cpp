// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/merge.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/store/folder_lock.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "schemas/codec.hpp"
#include "schemas/error.hpp"
#include "schemas/job.hpp"
#include "schemas/run_record.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

namespace plateau {

namespace {

namespace fs = std::filesystem;

// A run and the folders that hold it, or its parts.
struct source {
  std::vector<run_folder> parts;
  run_info info; // of the part that has seen the most attempts
  job run;       // info's job
};

// The runs of a job array lie beside what their tasks printed, and a pattern that finds the ones finds the others.
std::vector<fs::path> without_output_files(std::span<fs::path const> given, std::vector<std::string>& notes) {
  std::vector<fs::path> runs;
  std::error_code ignored;
  for (auto const& path : given)
    if (path.extension() != ".out" || !fs::is_regular_file(path, ignored)) runs.push_back(path);
  auto const passed_over = given.size() - runs.size();
  if (runs.empty())
    throw input_error(given.front().string() + ": is an output file, and so are all that are given; "
                                               "needs run folders, as in runs/latest");
  if (passed_over > 0)
    notes.push_back("note: passed over " + std::to_string(passed_over) +
                    (passed_over == 1 ? " output file" : " output files"));
  return runs;
}

void refuse_folders_given_twice(std::span<fs::path const> runs) {
  std::map<fs::path, fs::path> seen;
  for (auto const& path : runs) {
    auto const [first, is_new] = seen.emplace(fs::canonical(open_run_folder(path).path), path);
    if (!is_new)
      throw input_error(path.string() + ": is given twice" +
                        (first->second == path ? "" : ", also as " + first->second.string()) +
                        "; each run counts once");
  }
}

// Who resumes two copies of a run has two runs with one id, of which results would be mixed. Attempts are told apart by
// all that is known of them, as their start is known to the second.
void refuse_other_attempts(std::vector<run_attempt> const& known, std::vector<run_attempt> const& found,
                           std::string const& where) {
  for (auto const& one : known)
    for (auto const& other : found)
      if (one.attempt == other.attempt && encode(one) != encode(other))
        throw input_error(where + ": are copies of one run that went on apart: attempt " + std::to_string(one.attempt) +
                          " was started at " + one.started + " in one and at " + other.started +
                          " in the other; give one of them");
}

// A part of a run that another part is known of already.
void add_part(source& known, run_folder const& part, run_info info) {
  auto const where = known.parts.front().path.string() + " and " + part.path.string();
  if (info.job != known.info.job || info.ranks.size() != known.info.ranks.size())
    throw input_error(where + ": say that they are of one run, " + info.run_id +
                      ", but differ in its job or its number of ranks; one of them was damaged or edited");
  refuse_other_attempts(attempts_of(known.info), attempts_of(info), where);
  known.parts.push_back(part);
  if (attempts_of(info).size() > attempts_of(known.info).size()) known.info = std::move(info);
}

std::vector<source> read_sources(std::span<fs::path const> runs) {
  std::map<std::string, source> by_id;
  for (auto const& path : runs) {
    auto const folder = open_run_folder(path);
    refuse_if_held(folder);
    auto info = read_run_info(folder);
    auto const found = by_id.find(info.run_id);
    if (found != by_id.end()) {
      add_part(found->second, folder, std::move(info));
      continue;
    }
    auto run = parse_job(info.job.dump(), folder.run_json().string());
    auto id = info.run_id;
    by_id.emplace(std::move(id), source{{folder}, std::move(info), std::move(run)});
  }
  std::vector<source> sources;
  for (auto& [id, each] : by_id) sources.push_back(std::move(each));
  std::ranges::sort(sources, {}, [](source const& s) { return std::tie(s.info.started, s.info.run_id); });
  return sources;
}

// A merged run among the sources may hold another one of them.
void refuse_runs_given_twice(std::span<source const> sources) {
  std::map<std::string, fs::path> in;
  auto const take = [&](std::string const& run_id, fs::path const& path) {
    auto const [first, is_new] = in.emplace(run_id, path);
    if (!is_new)
      throw input_error(path.string() + ": holds run " + run_id + ", and so does " + first->second.string() +
                        "; each run counts once");
  };
  for (auto const& each : sources) {
    auto const& path = each.parts.front().path;
    if (!each.info.merged_from) take(each.info.run_id, path);
    for (auto const& inner : each.info.merged_from.value_or(std::vector<run_source>{})) take(inner.run_id, path);
  }
}

// Neither what is measured nor how it is judged depends on these.
bool may_differ(job_difference const& d) {
  constexpr std::array free{"/name", "/random_seed", "/timeouts_s", "/fabric"};
  return std::ranges::any_of(
      free, [&](std::string const& field) { return d.where == field || d.where.starts_with(field + "/"); });
}

void refuse_other_gpus_of_rehearsals(std::span<source const> sources) {
  auto const what = [](source const& s) {
    return s.parts.front().path.string() + (s.info.rehearsed ? " rehearses " + *s.info.rehearsed : " is no rehearsal");
  };
  auto const& first = sources.front();
  for (auto const& other : sources)
    if (other.info.rehearsed != first.info.rehearsed)
      throw input_error(what(first) + ", and " + what(other) +
                        "; merge runs with runs, and rehearsals with those of the same GPU");
}

void refuse_other_jobs(std::span<source const> sources, std::vector<std::string>& notes) {
  auto const& first = sources.front();
  auto const in_first = "in " + first.parts.front().path.string();
  for (auto const& other : sources.subspan(1)) {
    auto const in_other = "in " + other.parts.front().path.string();
    auto all = differences(first.run, other.run);
    auto const free = std::ranges::stable_partition(all, [](auto const& d) { return !may_differ(d); });
    std::span const grave(all.begin(), free.begin());
    if (!grave.empty())
      throw input_error("these are runs of different jobs, and a run has one:\n" + told(grave, in_first, in_other));
    if (!free.empty()) notes.push_back("note: " + told(free, in_first, in_other));
  }
}

void add_gates(gates& to, gates const& from) {
  for (auto const& check : from.checks)
    if (std::ranges::find(to.checks, check) == to.checks.end()) to.checks.push_back(check);
  to.strict = to.strict || (from.strict && !from.checks.empty()); // "none" asks for nothing
}

void add_runs(std::vector<run_source>& to, source const& from, std::int64_t first_rank) {
  auto const& info = from.info;
  if (!info.merged_from) {
    to.push_back({info.run_id, first_rank, std::ssize(info.ranks), attempts_of(info), info.warnings, info.fabric});
    return;
  }
  for (auto inner : *info.merged_from) {
    inner.first_rank += first_rank;
    to.push_back(std::move(inner));
  }
}

void add_ranks(std::vector<rank_info>& to, run_info const& from) {
  for (auto rank : from.ranks) {
    if (!rank.origin) rank.origin = rank_origin{from.run_id, rank.rank};
    rank.rank = std::ssize(to);
    to.push_back(std::move(rank));
  }
}

// What is known of the merged run. Of one run it is what was known of it.
run_info merged_info(std::span<source const> sources, merge_request const& request) {
  auto info = sources.front().info;
  if (sources.size() == 1) return info;
  info.schema = run_info_format.text();
  info.run_id = new_run_id(sources.front().run.name);
  info.launcher = "merge";
  info.command_line = request.command_line;
  info.fabric = fabric_record{fabric_status::not_checked,
                              "the run is merged from " + std::to_string(sources.size()) + " runs, each with its own",
                              {}};
  info.attempts.reset();
  info.fail_on = {};
  info.ranks.clear();
  info.warnings.clear();
  info.not_comparable.reset();
  info.merged_from.emplace();
  for (auto const& each : sources) {
    if (each.info.not_comparable)
      info.not_comparable = (info.not_comparable ? *info.not_comparable + "; " : "") +
                            (each.info.merged_from ? "" : "in " + each.info.run_id + " ") + *each.info.not_comparable;
    add_runs(*info.merged_from, each, std::ssize(info.ranks));
    add_ranks(info.ranks, each.info);
    add_gates(info.fail_on, each.info.fail_on);
    for (auto const& warning : each.info.warnings)
      if (std::ranges::find(info.warnings, warning) == info.warnings.end()) info.warnings.push_back(warning);
  }
  return info;
}

// Copies the results of a source, one at a time.
class copier {
public:
  copier(source const& from, std::int64_t first_rank, run_folder const& to, std::string const& run_id, bool renumbered,
         std::vector<std::string>& complaints)
      : from_(from), first_rank_(first_rank), to_(to), run_id_(run_id), renumbered_(renumbered),
        complaints_(complaints) {}

  void copy() {
    auto const world = std::ssize(from_.info.ranks);
    for (auto const& id : cases_of(from_.run)) {
      auto const attempt = attempt_that_counts(from_.parts, id, world).attempt;
      for (std::int64_t rank = 0; rank < world; ++rank)
        if (auto result = find(id, rank, attempt)) store(id, std::move(*result));
    }
  }

private:
  source const& from_;
  std::int64_t first_rank_; // where its ranks begin
  run_folder const& to_;
  std::string const& run_id_;
  bool renumbered_;
  std::vector<std::string>& complaints_;

  // The first whole one; several parts may have it.
  std::optional<case_result> find(case_id const& id, std::int64_t rank, std::int64_t attempt) {
    std::optional<std::string> complaint;
    for (auto const& part : from_.parts) {
      auto const path = part.raw_result(id, rank, attempt);
      if (!fs::exists(path)) continue;
      try {
        return read_result_of_run(path, from_.info, from_.run);
      } catch (input_error const& e) {
        complaint = std::string(e.what()) + "; it is left out";
      }
    }
    if (complaint) complaints_.push_back(*complaint);
    return std::nullopt;
  }

  void store(case_id const& id, case_result result) {
    if (renumbered_) {
      result.run_id = run_id_;
      result.rank += first_rank_;
      if (!result.origin_attempt) result.origin_attempt = result.attempt;
      result.attempt = 1; // the ranks of one case may be of different ones
    }
    write_raw_result(to_, id, result.rank, encode_raw_result(result), result.attempt);
  }
};

run_folder new_folder(fs::path const& path) {
  try {
    return create_run_folder(fs::absolute(path));
  } catch (fs::filesystem_error const& e) {
    throw input_error("cannot make the folder " + path.string() + ": " + e.code().message() +
                      "; choose another one with -o");
  }
}

} // namespace

merged merge_runs(merge_request const& request) {
  merged out;
  auto const runs = without_output_files(request.runs, out.notes);
  refuse_folders_given_twice(runs);
  auto const sources = read_sources(runs);
  refuse_runs_given_twice(sources);
  refuse_other_gpus_of_rehearsals(sources);
  refuse_other_jobs(sources, out.notes);
  auto const info = merged_info(sources, request);
  out.folder = new_folder(request.to);
  try {
    std::int64_t first_rank = 0;
    for (auto const& each : sources) {
      copier(each, first_rank, out.folder, info.run_id, sources.size() > 1, out.complaints).copy();
      first_rank += std::ssize(each.info.ranks);
    }
    write_down(out.folder, info);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(out.folder.path, ignored);
    throw;
  }
  return out;
}

} // namespace plateau
